"""LuceneIndex: an index built by greylag, Anserini or Pyserini, as a first stage and as a source of postings.

`greylag.index.PositionalIndex.from_lucene` reads the postings once; afterwards only searching and analysis need the
JVM, which starts on first use.
"""

from __future__ import annotations

import json
import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from greylag.base import (
    MARK_FILE,
    CollectionError,
    ParameterError,
    Query,
    Ranking,
    Source,
    check_counts,
    guided,
    refuse_attribute,
    step,
)
from greylag.index.languages import ENGLISH, WHITESPACE, language_code, likely_language, warn_of
from greylag.index.lucene import bulk_calls
from greylag.index.lucene.jvm import java_class, pyjnius, reason
from greylag.index.lucene.open_index import (
    POSITIONS_REMEDY,
    Statistics,
    check_docids,
    check_integrity,
    commit_fingerprint,
    folders,
    open_reader,
    reads_index,
    recorded_language,
)


@guided
class LuceneIndex:
    """A Lucene index with Anserini's fields: ``id``, and ``contents``, which is searched.

    It is opened on first use and closed by `close` or at the end of a ``with`` block. All methods are thread-safe. On
    opening, Lucene's checksums are compared if the files have at most 64 MB; `check_integrity` compares them always.
    `CollectionError` if a folder contains no Lucene index or a prebuilt index cannot be downloaded; `ParameterError` if
    there is no such language, or greylag indexed the documents in another one.

    Parameters
    ----------
    path : str, Path, sequence of these, or Pyserini's LuceneSearcher
        The index folder, or the name of a prebuilt index of Pyserini, such as "msmarco-v1-passage-full", which Pyserini
        downloads. Several are the shards of one collection, which is searched as one index of all documents would be.
    language : str, optional
        The language that another program indexed the documents in, such as Anserini by ``-language de``, by name or
        code, or "whitespace". An index does not keep it, and is searched in English otherwise. greylag's own keep it.

    Attributes
    ----------
    fingerprint : str
        SHA-256 (hex) of the name and bytes of the commit file (``segments_N``), which differ between any two builds; of
        shards, one digest over all of them.
    paths : tuple of Path
        The folders.
    """

    if not TYPE_CHECKING:
        __getattr__ = refuse_attribute

    def __init__(self, path: str | Path | Sequence[str | Path], *, language: str | None = None) -> None:
        searcher: Any = path if hasattr(path, "index_dir") else None
        self.paths = folders(path if searcher is None else searcher.index_dir)
        self.name = ", ".join(map(str, self.paths))  # for messages
        self._given = None if language is None else language_code(language)
        if searcher is not None and language is not None:
            raise ParameterError("a searcher has an analyzer of its own: leave out language, or give the folder")
        self._shards = tuple(LuceneIndex(p, language=language) for p in self.paths) if len(self.paths) > 1 else ()
        self.fingerprint = commit_fingerprint(*self.paths)
        # At once: analysis goes on after `close`, when another index may be in the folder.
        self._recorded = tuple(map(recorded_language, self.paths))
        self._of_searcher, self._closed = searcher is not None, False
        self._analyzer: Any = searcher.object.get_analyzer() if searcher is not None else None
        self._distinct = len(self.paths) == 1  # whether the shards are known to have no docid in common
        self._lock = threading.RLock()
        self._opened: Any = None

    def __repr__(self) -> str:
        return f"LuceneIndex({self.name!r})"

    @property
    def path(self) -> Path:
        """The folder of an index that has only one."""
        if len(self.paths) > 1:
            raise ParameterError(f"{self.name} are several indexes: use `paths`, or `shards`")
        return self.paths[0]

    @property
    def shards(self) -> tuple[LuceneIndex, ...]:
        """The index of each folder; of a single folder, the index itself."""
        return self._shards or (self,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder's name; each process opens the index once."""
        if self._of_searcher:
            raise ParameterError(f"{self.name} has a searcher's analyzer, which other processes lack: use threads")
        if not (self._distinct or self._closed):
            reads_index(self._reader)()  # compares docids here, and not in every process
        return _reopened, (tuple(map(os.path.abspath, self.paths)), self.fingerprint, self._given), self._distinct

    def __setstate__(self, distinct: bool) -> None:
        self._distinct = self._distinct or distinct

    def close(self) -> None:
        """Close the index's files. Searching and reading then raise `CollectionError`; analysis still works."""
        with self._lock:
            # Only the first of several calls gets the reader.
            reader, self._closed = None if self._closed else self._opened, True
        if reader is not None:  # closed without the lock, which the thread that calls Java may wait for
            reads_index(lambda: reader.close())()  # noqa: PLW0108 - or it would be looked up outside `reads_index`
        for shard in self._shards:
            shard.close()

    @guided
    def bm25(self, k: int = 1000, *, k1: float = 0.9, b: float = 0.4) -> BM25:
        """Return the source that ranks by `BM25`."""
        return BM25(self, k=k, k1=k1, b=b)

    @guided
    def ql(self, k: int = 1000, *, mu: float = 1000.0) -> QueryLikelihood:
        """Return the source that ranks by `QueryLikelihood`."""
        return QueryLikelihood(self, k=k, mu=mu)

    @reads_index
    def analyze(self, text: str) -> list[str]:
        """Analyse `text` into index terms, in order, by the analyzer of the index's language, or of its searcher."""
        return list(
            java_class("io.anserini.analysis.AnalyzerUtils").analyze(self._java_analyzer(), _java_text(text)).toArray()
        )

    @cached_property
    def language(self) -> str:
        """The language that `build_index` was given; of an index that another program made, the one given, or "en"."""
        recorded = self._recorded[0]
        for path, other in zip(self.paths, self._recorded, strict=True):
            if other != recorded:
                different = f"{self.paths[0]} ({recorded}), {path} ({other})"
                raise CollectionError(f"shards of one collection have one language, unlike {different}")
        if self._given in (None, recorded):
            return recorded
        if any((path / MARK_FILE).is_file() for path in self.paths):
            raise ParameterError(f"{self.name} was indexed by greylag in {recorded!r}, not in {self._given!r}")
        return str(self._given)

    @property
    def is_plainly_english(self) -> bool:
        """Whether `language` is English and the analyzer not a searcher's."""
        return not self._of_searcher and self._given in (None, ENGLISH) and {*self._recorded} == {ENGLISH}

    @property
    def is_assumed_english(self) -> bool:
        """Whether another program made the index, and neither it nor the caller named the language."""
        made = all((path / MARK_FILE).is_file() for path in self.paths)
        return self.is_plainly_english and self._given is None and not made

    @reads_index
    def texts_of(self, documents: Iterable[int]) -> list[str]:
        """Return the texts of documents by Lucene's numbers; none if they are not stored."""
        reader, field, read = self._reader(), self._text_field, bulk_calls.stored
        texts = [read(reader, field, number) or "" for number in documents] if field else []
        return [_contents(text) or "" for text in texts] if field == "raw" else texts

    def likely_language(self) -> str | None:
        """Return the code of the language that the first texts are evidently in; None if unsure, or without texts."""
        return likely_language(self.texts_of(range(100)))

    @reads_index
    def statistics(self) -> Statistics:
        """Return the index's totals, as Lucene keeps them."""
        reader, terms = self._reader(), self._terms("contents")
        return Statistics(
            documents=int(reader.numDocs()),
            tokens=int(terms.getSumTotalTermFreq()),
            terms=bulk_calls.count_terms(terms),
            postings=int(terms.getSumDocFreq()),
        )

    @reads_index
    def check_exportable(self) -> None:
        """Raise `CollectionError` if the index has no positions or has deleted documents."""
        if not self._terms("contents").hasPositions():
            raise CollectionError(
                f"{self.name} has no positions: {POSITIONS_REMEDY}, or name the -full version of a prebuilt index"
            )
        self._refuse_deletions()

    @reads_index
    def check_integrity(self) -> None:
        """Raise `CollectionError` if a file of the index does not have the checksum that Lucene recorded."""
        check_integrity(self.name, self._reader())

    @reads_index
    def docids(self) -> list[str]:
        """Return the docid of every document, in the order of Lucene's document numbers."""
        numbered = [pair for docids, docs in self.docid_blocks() for pair in zip(docs.tolist(), docids, strict=True)]
        return [docid.decode() for _, docid in sorted(numbered)]

    def known_docids(self, docids: set[bytes]) -> set[bytes]:
        """Return the docids, in UTF-8, that are documents of the index."""
        return set().union(*(docids.intersection(block) for block, _ in self.docid_blocks()))

    def docid_blocks(self) -> Iterator[tuple[list[bytes], NDArray[np.int32]]]:
        """Yield the docids in UTF-8, in the order of their bytes, and Lucene's document numbers, in blocks."""
        reads_index(self._refuse_deletions)()
        # A document without an id, or with two, would shift all numbers after it.
        counts = np.zeros(reads_index(lambda: self._reader().maxDoc())(), dtype=np.int32)  # docids of each document
        for block in self._blocks("id"):
            if (block.df != 1).any():
                at = int(np.argmax(block.df))
                raise CollectionError(f"{self.name}: {block.df[at]} documents have the id {block.terms[at].decode()!r}")
            np.add.at(counts, block.docs, 1)
            yield block.terms, block.docs
        if (counts != 1).any():
            raise CollectionError(f"{self.name}: a document has no id, or several: {POSITIONS_REMEDY}")

    @property
    def stores_texts(self) -> bool:
        """Whether documents are stored with their texts, judged by the first one; see `texts`."""
        return self._text_field is not None

    def texts(self) -> Iterator[str]:
        """Yield the text of every document, in the order of Lucene's document numbers.

        It is the stored field ``contents`` or, without one, ``contents`` of the JSON that the stored field ``raw`` has,
        as Anserini's ``-storeRaw`` keeps the documents of a JsonCollection.
        """
        reads_index(self._refuse_deletions)()
        number, field = reads_index(lambda: self._reader().maxDoc())(), self._text_field or "contents"
        with step("reading texts", number) as current:
            for first in range(0, number, bulk_calls.BLOCK_TEXTS):
                count = min(bulk_calls.BLOCK_TEXTS, number - first)
                block = reads_index(bulk_calls.texts)(self._reader(), field, first, count)
                for raw in block:
                    if (text := _contents(raw) if field == "raw" else raw) is None:
                        what = f"{raw:.40}... is stored as a document, without contents"
                        raise CollectionError(f"{self.name}: {what}: {POSITIONS_REMEDY}")
                    yield text
                current.reach(first + count)

    @cached_property
    def _text_field(self) -> str | None:
        stored = reads_index(bulk_calls.stored)
        if stored(self._reader(), "contents") is not None:
            return "contents"
        raw = stored(self._reader(), "raw")
        return None if raw is None or _contents(raw) is None else "raw"

    def postings_blocks(self) -> Iterator[bulk_calls.PostingsBlock]:
        """Yield postings of the field ``contents``, with segments merged, in blocks of about two million positions."""
        self.check_exportable()
        yield from self._blocks("contents")

    def _blocks(self, field: str) -> Iterator[bulk_calls.PostingsBlock]:
        """Yield the postings of a field; other threads call Java between the blocks."""
        blocks = bulk_calls.postings_blocks(reads_index(self._terms)(field))
        while (block := reads_index(next)(blocks, None)) is not None:
            yield block

    def _refuse_deletions(self) -> None:
        if self._reader().hasDeletions():
            raise CollectionError(f"{self.name} has deleted documents: {POSITIONS_REMEDY}")

    def _java_analyzer(self) -> Any:
        if self._analyzer is None:
            self._analyzer = analyzer_of(self.language)
        return self._analyzer

    def _reader(self) -> Any:
        """Open the reader of all folders, once, at the commits that were current when `self` was created."""
        with self._lock:
            if self._closed:
                raise CollectionError(f"{self.name} is closed: create another LuceneIndex")
            # Under the lock, as two readers of one index would both stay open.
            if self._opened is None:
                self._opened = open_reader(self.paths, self.fingerprint)
        self._distinct = self._distinct or check_docids(self.paths, self._opened)  # unlocked, as others call Java then
        return self._opened

    def _terms(self, field: str) -> Any:
        terms = java_class("org.apache.lucene.index.MultiTerms").getTerms(self._reader(), field)
        if terms is None:
            raise CollectionError(f"{self.name} has no indexed field {field!r}: {POSITIONS_REMEDY}")
        return terms


def _contents(raw: str) -> str | None:
    """Return the contents of a document of a JsonCollection; None of another form."""
    with suppress(ValueError):
        match json.loads(raw):
            case {"contents": str(text)}:
                return text
    return None


def _java_text(text: str) -> str:
    """Replace lone surrogates, which no text for Java may have, by U+FFFD, which belongs to no word."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def analyzer_of(language: str) -> Any:
    """Return the analyzer of `build_index`'s language."""
    if language == ENGLISH:
        return java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    if language == WHITESPACE:
        return java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    analyzers = java_class("io.anserini.analysis.AnalyzerMap")
    known = sorted(map(str, analyzers.analyzerMap.keySet().toArray()))
    if language not in known:
        raise ParameterError(f"language is {language!r}: Anserini has en, whitespace, and {', '.join(known)}")
    return analyzers.getLanguageSpecificAnalyzer(language)


@dataclass(frozen=True)
class _Retriever(Source, ABC):
    """A source over a LuceneIndex, with its own ``IndexSearcher``, which holds the similarity."""

    index: LuceneIndex
    _: KW_ONLY
    k: int = 1000

    def __post_init__(self) -> None:
        check_counts(k=self.k)

    def __call__(self, query: Query, /) -> Ranking:
        """Return the top `k` documents; ties are broken by docid, ascending. A query without index terms finds none."""
        return self.search(query)

    @reads_index
    def search(
        self, query: Query | str, *, weights: Mapping[str, float] | None = None, k: int | None = None
    ) -> Ranking:
        """Search for the top documents of the query's text or, if given, of weighted index terms in its place."""
        # A document's score by `weights` is the sum of the weights times the terms' scores; `k` is by default the
        # source's.
        self.index._reader()  # raises if the index was closed
        query = Query("query", query) if isinstance(query, str) else query
        try:
            if weights is None:
                generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
                words = generator.buildQuery("contents", self.index._java_analyzer(), _java_text(query.text))
            else:
                # A query for documents with any of the terms, weighted.
                names = "index.Term", "search.TermQuery", "search.BoostQuery"
                term, term_query, boost = [java_class(f"org.apache.lucene.{name}") for name in names]
                builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
                should = java_class("org.apache.lucene.search.BooleanClause$Occur").SHOULD
                for text, weight in weights.items():
                    builder.add(boost(term_query(term("contents", text)), weight), should)
                words = builder.build()
            docids, scores = bulk_calls.hits(self._searcher, words, self.k if k is None else k)
        except pyjnius().JavaException as error:
            raise CollectionError(f"query {query.qid} on {self.index.name}: {reason(error)}") from error
        return Ranking(query.qid, query.text, tuple(docids), np.array(scores))

    @cached_property
    def _searcher(self) -> Any:
        searcher = java_class("org.apache.lucene.search.IndexSearcher")(self.index._reader())
        searcher.setSimilarity(self._similarity())
        if self.index.is_assumed_english:
            warn_of(self.index.likely_language())
        return searcher

    @abstractmethod
    def _similarity(self) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class BM25(_Retriever):
    """BM25 as in Lucene and Anserini, without the constant factor k1 + 1.

    score(Q, D) = sum over t in Q of idf(t) tf / (tf + k1 (1 - b + b |D| / avgdl)), where
    idf(t) = log(1 + (N - df + 0.5) / (df + 0.5)).

    Parameters
    ----------
    k : int, at least 1, default 1000
        Number of documents to retrieve.
    k1 : float, at least 0, default 0.9
        Term frequency saturation.
    b : float in [0, 1], default 0.4
        Document length normalisation.
    """

    k1: float = 0.9
    b: float = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.k1) and self.k1 >= 0):
            raise ParameterError(f"k1 is {self.k1}: it must be finite and at least 0")
        if not 0 <= self.b <= 1:
            raise ParameterError(f"b is {self.b}: it must be between 0 and 1")

    def _similarity(self) -> Any:
        return java_class("org.apache.lucene.search.similarities.BM25Similarity")(self.k1, self.b)


@dataclass(frozen=True, kw_only=True)
class QueryLikelihood(_Retriever):
    """Query likelihood with Dirichlet smoothing, as in Lucene.

    score(Q, D) = sum over t in Q of max(0, log(1 + tf / (mu p(t|C))) + log(mu / (|D| + mu))), where
    p(t|C) = (cf + 1) / (|C| + 1).

    Parameters
    ----------
    k : int, at least 1, default 1000
        Number of documents to retrieve.
    mu : float above 0, default 1000
        Smoothing parameter.
    """

    mu: float = 1000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.mu) and self.mu > 0):
            raise ParameterError(f"mu is {self.mu}: it must be finite and above 0")

    def _similarity(self) -> Any:
        return java_class("org.apache.lucene.search.similarities.LMDirichletSimilarity")(self.mu)


@lru_cache(maxsize=8)
def _reopened(paths: tuple[str, ...], fingerprint: str, language: str | None) -> LuceneIndex:
    """Open the index that was pickled, once in this process."""
    index = LuceneIndex(paths, language=language)
    if index.fingerprint != fingerprint:
        raise CollectionError(
            f"{index.name} is not the index that the work began with: give all workers the same files"
        )
    return index
