"""Bulk calls of Lucene: a query's hits in one call, a field's dictionary and postings as NumPy arrays.

Each is one loop that runs inside the JVM (see `method_handles`; the routines here begin with the Java code that they
are). Postings pass through temporary files of 32-bit integers, block by block, so that memory use does not grow with
the collection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.base import CollectionError, scratch_folder
from greylag.index.lucene.jvm import java_class, pyjnius, reason
from greylag.index.lucene.method_handles import Handle, Routine, element, field, length, method, run

BLOCK_POSITIONS = 1 << 21
BLOCK_TEXTS = 1 << 10

_BYTES = "org.apache.lucene.util.BytesRef"
_CELL = "java.util.concurrent.atomic.AtomicReference"
_COUNTER = "java.util.concurrent.atomic.AtomicInteger"
_DOCUMENT = "org.apache.lucene.document.Document"
_FIELDS = "org.apache.lucene.index.StoredFields"
_HIT = "org.apache.lucene.search.FieldDoc"
_HITS = "[Lorg.apache.lucene.search.ScoreDoc;"
_OBJECT = "java.lang.Object"
_OUTPUT = "org.apache.lucene.store.DataOutput"
_POSTINGS = "org.apache.lucene.index.PostingsEnum"
_QUERY = "org.apache.lucene.search.Query"
_SEARCHER = "org.apache.lucene.search.IndexSearcher"
_SORT = "org.apache.lucene.search.Sort"
_STRING = "java.lang.String"
_TERMS = "org.apache.lucene.index.TermsEnum"
_TOP = "org.apache.lucene.search.TopFieldDocs"


@dataclass(frozen=True, eq=False)
class PostingsBlock:
    """The P postings of T consecutive terms, in the order of the terms' UTF-8 bytes."""

    terms: list[bytes]  # in UTF-8
    df: NDArray[np.int64]  # number of postings of each term, shape (T,)
    docs: NDArray[np.int32]  # Lucene's document number of each posting, ascending within a term, shape (P,)
    tfs: NDArray[np.int32]  # frequency of the term in the document, shape (P,)
    positions: NDArray[np.int32]  # ascending within a posting; -1 if the field has none; shape (sum of tfs,)


def directory(folder: str | Path) -> Any:
    """Open the Lucene ``Directory`` of a folder (made absolute: Java ignores changes of Python's working folder)."""
    path = java_class("java.nio.file.Paths").get(str(Path(folder).absolute()))
    return java_class("org.apache.lucene.store.FSDirectory").open(path)


def hits(searcher: Any, query: Any, k: int) -> tuple[list[str], list[float]]:
    """Search for the docids and scores of the top `k` documents; ties are broken by docid, ascending."""
    # Lucene allocates a heap of k entries, however few documents there are.
    k = min(k, searcher.getIndexReader().maxDoc())
    # The first line is empty: pyjnius decodes UTF-16, and would take U+FEFF in a first docid for a byte-order mark.
    docids, scores = java_class("java.lang.StringBuilder")("\n"), java_class("java.nio.FloatBuffer").allocate(k)
    # Routines have no variables: these hold the result, the hit and the index.
    cells = java_class(_CELL)(), java_class(_CELL)(), java_class(_COUNTER)()
    run(_hits_routine(), searcher, query, k, _by_score_and_docid(), *cells, docids, scores)
    return docids.toString().split("\n")[1:-1], scores.array()[: scores.position()]


def postings_blocks(terms: Any, positions: int = BLOCK_POSITIONS) -> Iterator[PostingsBlock]:
    """Yield the postings of Lucene `Terms`, in blocks of at most `positions` positions (more for a single term)."""
    # The enumeration stays where the last block ended; the dictionary, read beforehand, shows how many terms fit in a
    # block.
    enumeration, cell, start = terms.iterator(), java_class(_CELL)(), 0
    with _dictionary(terms) as (text, sizes, dfs, cfs):
        for first, last in _runs(cfs, positions):
            with _outputs(_postings_routine(), last - first, enumeration, cell, dtypes=("<i4",) * 3) as written:
                arrays = [np.array(array) for array in written]
            bounds = [*accumulate(sizes[first:last].tolist(), initial=0)]
            joined = text[start : start + bounds[-1]].tobytes()
            cut = [joined[begin:end] for begin, end in pairwise(bounds)]
            yield PostingsBlock(cut, dfs[first:last].astype(np.int64), *arrays)
            start += bounds[-1]


def count_terms(terms: Any) -> int:
    """Count the terms of a field; Lucene itself knows it only for a single segment."""
    if terms.size() >= 0:
        return int(terms.size())
    with _dictionary(terms) as (_, sizes, _, _):
        return len(sizes)


def repeated_term(terms: Any) -> str | None:
    """Find the first of a field's terms that more than one document has."""
    with _dictionary(terms) as (text, sizes, dfs, _):
        repeated = np.flatnonzero(dfs > 1)[:1]
        ends = np.cumsum(sizes, dtype=np.int64)[repeated]
        terms_repeated = [text[end - n : end].tobytes().decode() for end, n in zip(ends, sizes[repeated], strict=True)]
    return terms_repeated[0] if terms_repeated else None


def stored(reader: Any, name: str, number: int = 0) -> str | None:
    """Return a stored field of a document, the first by default; None if it is not stored, or there is none."""
    return reader.storedFields().document(number).get(name) if number < reader.maxDoc() else None


def texts(reader: Any, name: str, first: int, count: int) -> list[str]:
    """Read a stored field, which all documents have, of `count` documents from number `first` on."""
    counter = java_class(_COUNTER)(first)
    with _outputs(_texts_routine(name), reader.storedFields(), count, counter, dtypes=("u1",)) as (written,):
        data, at, values = written.tobytes(), 0, []  # each text with its length before it
        for _ in range(count):
            # Lucene's vInt: seven bits a byte, the lowest first.
            size = shift = 0
            while data[at] & 128:
                size |= (data[at] & 127) << shift
                at, shift = at + 1, shift + 7
            size |= data[at] << shift
            values.append(data[at + 1 : at + 1 + size].decode("utf-8", "replace"))
            at += 1 + size
        return values


def _dictionary(terms: Any) -> AbstractContextManager[list[NDArray[Any]]]:
    """Read a field's terms: their concatenated UTF-8 bytes, and the length, df and cf of each."""
    return _outputs(_dictionary_routine(), terms.iterator(), dtypes=("u1", "<i4", "<i4", "<i8"))


def _runs(sizes: NDArray[np.int64], limit: int) -> Iterator[tuple[int, int]]:
    """Split positive sizes into the longest runs whose sum is at most `limit`, or that have one element."""
    first = 0
    while first < len(sizes):
        # At most `limit` sizes fit, as each is at least 1.
        ends = np.cumsum(sizes[first : first + limit])
        last = first + max(1, int(np.searchsorted(ends, limit, side="right")))
        yield first, last
        first = last


@contextmanager
def _outputs(routine: Handle, *arguments: Any, dtypes: Sequence[str]) -> Iterator[list[NDArray[Any]]]:
    """Run a routine whose last parameters are outputs; yields what it wrote to each, mapped from temporary files."""
    # Through files: pyjnius would make a Python list of each array.
    with scratch_folder() as folder:
        create, context = directory(folder).createOutput, java_class("org.apache.lucene.store.IOContext").DEFAULT
        outputs = [create(str(number), context) for number in range(len(dtypes))]
        try:
            run(routine, *arguments, *outputs)
            for output in outputs:
                output.close()  # writes what is buffered
        except pyjnius().JavaException as error:
            raise CollectionError(
                f"postings cannot be read, or not be written to {folder}; is the disk full? ({reason(error)})"
            ) from error
        finally:
            for output in outputs:
                with suppress(pyjnius().JavaException):
                    output.close()
        paths = [folder / str(number) for number in range(len(dtypes))]
        yield [  # a file without bytes cannot be mapped
            np.memmap(path, dtype, mode="r") if path.stat().st_size else np.empty(0, dtype)
            for path, dtype in zip(paths, dtypes, strict=True)
        ]


@cache
def _by_score_and_docid() -> Any:
    sort_field = java_class("org.apache.lucene.search.SortField")
    docid = sort_field("id", java_class("org.apache.lucene.search.SortField$Type").STRING_VAL)
    return java_class("org.apache.lucene.search.Sort")(sort_field.FIELD_SCORE, docid)


@cache
def _hits_routine() -> Handle:
    r"""Search, and write the docids, a line each, and scores of the hits.

    ::

        top.set(searcher.search(query, k, sort));
        for (int i = 0; i < top.get().scoreDocs.length; i++) {
            hit.set(top.get().scoreDocs[counter.getAndIncrement()]);
            docids.append(hit.get().fields[1].utf8ToString());
            docids.append("\n");
            scores.put(hit.get().fields[0]);
        }
    """
    objects = "[Ljava.lang.Object;"
    builder, buffer = "java.lang.StringBuilder", "java.nio.FloatBuffer"
    routine = Routine(_SEARCHER, _QUERY, "int", _SORT, _CELL, _CELL, _COUNTER, builder, buffer)
    searcher, query, k, sort, top, hit, counter, docids, scores = routine.arguments()
    search = method(_SEARCHER, "search", _TOP, _QUERY, "int", _SORT)
    get, store = method(_CELL, "get", _OBJECT), method(_CELL, "set", "void", _OBJECT)
    append = method(builder, "append", builder, _STRING)
    put = method(buffer, "put", buffer, "float")
    hits = routine.call(field(_TOP, "scoreDocs", _HITS), routine.call(get, top))
    number = routine.call(method(_COUNTER, "getAndIncrement", "int"), counter)
    values = routine.call(field(_HIT, "fields", objects), routine.call(get, hit))
    score, docid = [routine.call(element(objects), values, routine.constant("int", place)) for place in (0, 1)]
    body = routine.sequence(
        routine.call(store, hit, routine.call(element(_HITS), hits, number)),
        routine.call(append, docids, routine.call(method(_BYTES, "utf8ToString", _STRING), docid)),
        routine.call(append, docids, routine.constant(_STRING, "\n")),
        routine.call(put, scores, score),
    )
    return routine.sequence(
        routine.call(store, top, routine.call(search, searcher, query, k, sort)),
        routine.repeat(routine.call(length(_HITS), hits), body),
    )


@cache
def _dictionary_routine() -> Handle:
    """Write each term's bytes, and its length, df and cf.

    ::

        while (terms.next() != null) {
            text.writeBytes(terms.term().bytes, terms.term().offset, terms.term().length);
            sizes.writeInt(terms.term().length);
            dfs.writeInt(terms.docFreq());
            cfs.writeLong(terms.totalTermFreq());
        }
    """
    routine = Routine(_TERMS, *[_OUTPUT] * 4)
    terms, text, sizes, dfs, cfs = routine.arguments()
    term = routine.call(method(_TERMS, "term", _BYTES), terms)
    array, offset, size = [
        routine.call(field(_BYTES, name, kind), term)
        for name, kind in (("bytes", "[B"), ("offset", "int"), ("length", "int"))
    ]
    write_int = method(_OUTPUT, "writeInt", "void", "int")
    body = routine.sequence(
        routine.call(method(_OUTPUT, "writeBytes", "void", "[B", "int", "int"), text, array, offset, size),
        routine.call(write_int, sizes, size),
        routine.call(write_int, dfs, routine.call(method(_TERMS, "docFreq", "int"), terms)),
        routine.call(
            method(_OUTPUT, "writeLong", "void", "long"),
            cfs,
            routine.call(method(_TERMS, "totalTermFreq", "long"), terms),
        ),
    )
    return routine.loop(routine.call(method(_TERMS, "next", _BYTES), terms), body)


@cache
def _texts_routine(name: str) -> Handle:
    """Write the next `count` texts, each after its length in bytes, in variable-byte code.

    ::

        for (int i = 0; i < count; i++)
            out.writeString(fields.document(counter.getAndIncrement()).get(name));
    """
    routine = Routine(_FIELDS, "int", _COUNTER, _OUTPUT)
    fields, count, counter, out = routine.arguments()
    number = routine.call(method(_COUNTER, "getAndIncrement", "int"), counter)
    document = routine.call(method(_FIELDS, "document", _DOCUMENT, "int"), fields, number)
    text = routine.call(method(_DOCUMENT, "get", _STRING, _STRING), document, routine.constant(_STRING, name))
    return routine.repeat(count, routine.call(method(_OUTPUT, "writeString", "void", _STRING), out, text))


@cache
def _postings_routine() -> Handle:
    """Write the document, tf and positions of each posting of the next `count` terms.

    ::

        for (int i = 0; i < count; i++) {
            terms.next();
            cell.set(terms.postings(cell.get(), PostingsEnum.POSITIONS));
            for (int j = 0; j < terms.docFreq(); j++) {
                docs.writeInt(cell.get().nextDoc());
                tfs.writeInt(cell.get().freq());
                for (int l = 0; l < cell.get().freq(); l++)
                    positions.writeInt(cell.get().nextPosition());
            }
        }
    """
    routine = Routine("int", _TERMS, _CELL, *[_OUTPUT] * 3)
    count, terms, cell, docs, tfs, positions = routine.arguments()
    write = method(_OUTPUT, "writeInt", "void", "int")
    with_positions = routine.constant("int", int(java_class(_POSTINGS).POSITIONS))
    postings = routine.call(method(_CELL, "get", _OBJECT), cell)
    next_doc, tf, next_position = [
        routine.call(method(_POSTINGS, name, "int"), postings) for name in ("nextDoc", "freq", "nextPosition")
    ]
    posting = routine.sequence(
        routine.call(write, docs, next_doc),
        routine.call(write, tfs, tf),
        routine.repeat(tf, routine.call(write, positions, next_position)),
    )
    opened = routine.call(method(_TERMS, "postings", _POSTINGS, _POSTINGS, "int"), terms, postings, with_positions)
    term = routine.sequence(
        routine.call(method(_TERMS, "next", _BYTES), terms),
        routine.call(method(_CELL, "set", "void", _OBJECT), cell, opened),
        routine.repeat(routine.call(method(_TERMS, "docFreq", "int"), terms), posting),
    )
    return routine.repeat(count, term)
