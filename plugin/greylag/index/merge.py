"""Merging the documents and terms of shards into the tables of one collection.

The tables are in ``FIRST+N.HASH.greylag/FINGERPRINT/`` beside the first shard's index, and made again when a shard
changes. This reads the shards' tables, and none of their postings.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import partial
from glob import escape
from itertools import pairwise
from typing import Any

import numpy as np

from greylag.base import BoolArray, CollectionError, IntArray, compiled
from greylag.index.array_folder import ArraySource, Writer, named, open_arrays, places, verify_arrays
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.shards import Part, Parts, Shard
from greylag.index.tables import DAMAGE_ERROR, DTYPES, Bytes, Int32Array, offsets, ranges

_TABLES = (
    "docids", "docid_offsets", "docid_order", "document_lengths",
    "terms", "term_offsets", "collection_frequencies", "postings_offsets",
)  # fmt: skip
_NAME = r"\+\d+\.[0-9a-f]{8}\.greylag"  # after that of the first shard
_MAX_DOCUMENTS = (1 << 31) - 1  # their numbers are int32
_NUMBERS = "numbers"  # in the collection, of the terms of each shard, one shard after another
_DTYPES = {**{name: DTYPES[name] for name in _TABLES}, _NUMBERS: "int32"}


def open_merged(source: LuceneIndex, shards: Sequence[Shard]) -> tuple[dict[str, Any], Parts]:
    """Open a collection's `Tables`, made first if they are missing or damaged, and its shards."""
    # `shards` are the exports of the folders of `source`, in the same order.
    arrays = _arrays_of(source, shards)
    tables = open_arrays(arrays)
    del tables["note"]  # which merged tables have none of
    # Numbers of terms are stored with the tables, and cut into one run for each shard.
    numbers = tables.pop(_NUMBERS)
    sizes = sum(shard.n_documents for shard in shards), sum(shard.n_terms for shard in shards)
    if sizes != (len(tables["document_lengths"]), len(numbers)):
        raise CollectionError(f"{tables['folder']} is not of the shards {source.name}: remove it")
    parts = parts_of(shards, numbers)
    # Compiled functions use these numbers unchecked, and the terms that a shard has are found by bisection.
    bounds = [np.concatenate([[-1], own.numbers, [len(tables["collection_frequencies"])]]) for own in parts]
    if not all((np.diff(numbers) > 0).all() for numbers in bounds):
        raise CollectionError(DAMAGE_ERROR)
    return tables, parts


def verify_merged(source: LuceneIndex) -> list[str]:
    """Compare the files of the tables of several shards with their checksums; return a line about each."""
    # Tables of other collections that begin with one of the folders are checked, too, such as those of a collection
    # that has grown since. They are never removed, since only the user knows whether they are used.
    merged = [_arrays_of(source, ())] if len(source.paths) > 1 else []
    lines = list(map(verify_arrays, merged))
    for path in map(named, source.paths):
        for folder in sorted(path.parent.glob(f"{escape(path.name)}+*.greylag")):
            is_used = any(folder in arrays.places for arrays in merged)
            if not is_used and re.fullmatch(_NAME, folder.name.removeprefix(path.name)):
                size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
                lines.append(f"{folder}: {size / 1e6:.1f} MB of another set of shards, to delete if it is not used")
    return lines


def _arrays_of(source: LuceneIndex, shards: Sequence[Shard]) -> ArraySource:
    paths = list(map(named, source.paths))
    identity = "\n".join(str(path.resolve()) for path in paths)
    name = f"{paths[0].name}+{len(paths) - 1}.{hashlib.sha256(identity.encode()).hexdigest()[:8]}.greylag"
    return ArraySource(
        name=source.name,
        making="merging tables",
        places=places(name, paths[0].parent, identity),
        fingerprint=source.fingerprint,
        dtypes=_DTYPES,
        write=partial(_write_merged, source, shards),
        files=[],
        check=lambda: None,
    )


def parts_of(shards: Sequence[Shard], numbers: Int32Array) -> Parts:
    """Make shards parts of their collection, given the numbers of their terms in it, one shard after another."""
    documents, terms = [offsets([getattr(s, name) for s in shards]) for name in ("n_documents", "n_terms")]
    return Parts(
        Part(shard, int(first), numbers[begin:end])
        for shard, first, (begin, end) in zip(shards, documents, pairwise(terms), strict=False)
    )


def merge(shards: Sequence[Shard], names: Sequence[str]) -> dict[str, Any]:
    """Merge the arrays of `Tables` of all shards, and the numbers of their terms; `names` are for messages."""
    firsts = offsets([shard.n_documents for shard in shards])
    if firsts[-1] > _MAX_DOCUMENTS:
        raise CollectionError(f"{firsts[-1]} documents are too many: a collection has at most {_MAX_DOCUMENTS}")
    docids, docid_offsets = _concatenated([(shard.docids, shard.docid_offsets) for shard in shards])
    orders = np.concatenate([s.docid_order.astype(np.int64) + f for s, f in zip(shards, firsts, strict=False)])
    order, repeated = merge_sorted(docids, docid_offsets, orders, firsts)
    if repeated.any():
        at = int(np.argmax(repeated))
        docid = docids[slice(*docid_offsets[order[at] : order[at] + 2])].tobytes().decode()
        first, second = [names[int(np.searchsorted(firsts, d, "right")) - 1] for d in order[at - 1 : at + 1]]
        raise CollectionError(f"the docid {docid!r} is in {first} and in {second}: leave it out of one of them")
    terms, term_offsets, numbers = merged_terms(shards)
    size = len(term_offsets) - 1
    return {
        "docids": docids,
        "docid_offsets": docid_offsets,
        "docid_order": order.astype(np.int32),
        "document_lengths": np.concatenate([shard.document_lengths for shard in shards]),
        "terms": terms,
        "term_offsets": term_offsets,
        "collection_frequencies": _summed([shard.collection_frequencies for shard in shards], numbers, size),
        "postings_offsets": offsets(_summed([shard.document_frequencies for shard in shards], numbers, size)),
        _NUMBERS: numbers,
    }


def merged_terms(shards: Sequence[Shard]) -> tuple[Bytes, IntArray, Int32Array]:
    """Merge the terms of shards; return their bytes and offsets, and the number of each term, shard after shard."""
    terms, term_offsets = _concatenated([(shard.terms, shard.term_offsets) for shard in shards])
    ascending, repeated = merge_sorted(
        terms, term_offsets, np.arange(len(term_offsets) - 1), offsets([shard.n_terms for shard in shards])
    )
    # A term of several shards gets one number, by its first occurrence among the sorted terms.
    numbers = np.empty(len(ascending), dtype=np.int32)
    numbers[ascending] = np.cumsum(~repeated) - 1
    distinct = ascending[~repeated]
    sizes = np.diff(term_offsets)[distinct]
    return terms[ranges(term_offsets[distinct], sizes)], offsets(sizes), numbers


def _write_merged(source: LuceneIndex, shards: Sequence[Shard], writer: Writer) -> None:
    _ = source.language  # an error for shards of two languages, before anything is written
    for name, array in merge(shards, [str(path) for path in source.paths]).items():
        writer.append(name, array)


def _concatenated(tables: Sequence[tuple[Bytes, IntArray]]) -> tuple[Bytes, IntArray]:
    """Join the texts of several tables as one table."""
    sizes = [np.diff(starts) for _, starts in tables]
    return np.concatenate([text for text, _ in tables]), offsets(np.concatenate(sizes))


def _summed(counts: Sequence[IntArray], numbers: Int32Array, size: int) -> IntArray:
    """Sum counts that have the same number, one shard after another."""
    sums = np.zeros(size, dtype=np.int64)
    # Not `bincount`: it sums in floats.
    np.add.at(sums, numbers, np.concatenate(counts))
    return sums


@compiled(error_model="numpy")
def merge_sorted(text: Bytes, starts: IntArray, order: IntArray, firsts: IntArray) -> tuple[IntArray, BoolArray]:
    """Merge lists of texts that are in ascending order of their bytes.

    Text i is ``text[starts[i]:starts[i + 1]]``, and list l has the texts with the numbers
    ``order[firsts[l]:firsts[l + 1]]``. Returns the numbers in ascending order of all texts, equal ones in the order of
    their lists, and whether each text equals the one before.
    """
    merged, repeated = np.empty(len(order), np.int64), np.zeros(len(order), np.bool_)
    # The place in each list up to which it is merged.
    heads = firsts[:-1].copy()
    for n in range(len(order)):
        # Few shards, so that the least head is found by comparing all of them.
        least = -1
        for l in range(len(heads)):  # noqa: E741
            if heads[l] < firsts[l + 1] and (
                least < 0 or _compare(text, starts, order[heads[l]], order[heads[least]]) < 0
            ):
                least = l
        merged[n] = order[heads[least]]
        heads[least] += 1
        repeated[n] = n > 0 and _compare(text, starts, merged[n - 1], merged[n]) == 0
    return merged, repeated


@compiled(error_model="numpy")
def _compare(text: Bytes, starts: IntArray, a: int, b: int) -> int:
    """Return a negative number if text a is before text b, 0 if they are equal."""
    size_a, size_b = starts[a + 1] - starts[a], starts[b + 1] - starts[b]
    difference: int = size_a - size_b
    for i in range(min(size_a, size_b)):
        if text[starts[a] + i] != text[starts[b] + i]:
            difference = 1 if text[starts[a] + i] > text[starts[b] + i] else -1
            break
    return difference
