"""The arrays of a positional index, and what is read from them by name and number: its documents and terms."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greylag.base import CollectionError, IntArray, compiled

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Bytes = NDArray[np.uint8]
Int32Array = NDArray[np.int32]

UNKNOWN = -1
"""The number of a term or document that a collection lacks."""

DTYPES = {
    "docids": "uint8",
    "docid_offsets": "int64",
    "docid_order": "int32",
    "document_lengths": "int64",
    "terms": "uint8",
    "term_offsets": "int64",
    "collection_frequencies": "int64",
    "postings_offsets": "int64",
    "postings_docs": "uint8",
    "block_places": "int64",
    "positions": "uint8",
    "forward_offsets": "int64",
    "forward": "uint8",
}
"""The arrays' types by name."""

DAMAGE_ERROR = "the exported positions are damaged: greylag doctor --index names the file"
"""The error if an array points outside another one."""

_BLOCK_DOCUMENTS = 1 << 16  # documents hashed at a time


def offsets(counts: Any) -> IntArray:
    """Return 0 followed by the cumulative sums of `counts`, int64, shape (len(counts) + 1,)."""
    sums = np.zeros(len(counts) + 1, np.int64)
    np.add.accumulate(counts, dtype=np.int64, out=sums[1:])
    return sums


def ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """Concatenate the ranges ``starts[i], ..., starts[i] + counts[i] - 1``, shape (sum of counts,)."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)


@compiled(error_model="numpy")
def numbered(n: int, bounds: IntArray, entries: Int32Array) -> tuple[Int32Array, Int32Array]:
    """Number the distinct entries of ranges from 0, in the order of appearance; return them and each entry's number.

    Range i is ``entries[bounds[0, i]:bounds[1, i]]``; all entries are below `n`.
    """
    size = np.int64(0)
    for i in range(bounds.shape[1]):
        if bounds[0, i] < 0 or bounds[1, i] < bounds[0, i] or bounds[1, i] > len(entries):
            raise CollectionError(DAMAGE_ERROR)
        size += bounds[1, i] - bounds[0, i]
    # Open addressing, by an entry's last bits; 0 is an empty slot, and i + 1 the number i. At most half full, so that
    # few probes are needed.
    n_slots = np.int64(16)
    while n_slots < 2 * size:
        n_slots *= 2
    table, mask = np.zeros(n_slots, np.int32), np.uint64(n_slots - 1)
    different, numbers = np.empty(size, np.int32), np.empty(size, np.int32)
    known = place = 0
    for i in range(bounds.shape[1]):
        for at in range(bounds[0, i], bounds[1, i]):
            entry = entries[np.uint64(at)]
            if entry < 0 or entry >= n:
                raise CollectionError(DAMAGE_ERROR)
            slot = np.uint64(entry) & mask
            # Linear probing; the table has more slots than entries, so that an empty one ends it.
            while table[slot] > 0 and different[table[slot] - 1] != entry:
                slot = (slot + np.uint64(1)) & mask
            if table[slot] == 0:
                different[known] = entry
                known += 1
                table[slot] = known
            numbers[place] = table[slot] - 1
            place += 1
    return different[:known], numbers


def drop_empty_columns(matrix: csr_matrix) -> csr_matrix:
    """Keep the columns of a matrix that have entries, in their order; one empty column if there are none."""
    from scipy.sparse import csr_matrix

    # Entries are told apart by hashing, and only the distinct ones are sorted: `numpy.unique` would sort them all.
    used, numbers = numbered(matrix.shape[1], np.array([[0], [len(matrix.indices)]]), matrix.indices)
    ranks = np.empty(len(used), np.int32)
    ranks[np.argsort(used)] = np.arange(len(used))
    return csr_matrix((matrix.data, ranks[numbers], matrix.indptr), shape=(matrix.shape[0], max(1, len(used))))


def join(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], IntArray]:
    """Concatenate the bytes of texts, and return their offsets, too, shape (len(texts) + 1,)."""
    return np.frombuffer(b"".join(texts), dtype=np.uint8), offsets([*map(len, texts)])


def fingerprint(arrays: Mapping[str, Any]) -> str:
    """Compute the SHA-256 (hex) of docids in ascending order, their lengths, terms, df and cf."""
    # Docids are padded with zero bytes to the longest. The order in which documents were indexed does not matter.
    order, docids, starts = arrays["docid_order"], arrays["docids"], arrays["docid_offsets"]
    sizes = np.diff(starts)
    width = max(1, int(sizes.max(initial=0)))
    block = max(1, _BLOCK_DOCUMENTS // width)
    # By blocks of documents, as docids are padded to the longest one.
    digest = hashlib.sha256()
    for first in range(0, len(order), block):
        documents = order[first : first + block]
        padded = np.zeros((len(documents), width), dtype=np.uint8)
        padded[np.arange(width) < sizes[documents, None]] = docids[ranges(starts[documents], sizes[documents])]
        digest.update(padded.data)
    df, cf = np.diff(arrays["postings_offsets"]), arrays["collection_frequencies"]
    for part in (arrays["document_lengths"][order], arrays["terms"], arrays["term_offsets"], df, cf):
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()


@dataclass(frozen=True, eq=False, kw_only=True)
class Tables:
    """N documents and V terms, numbered from 0, by read-only arrays in memory or mapped from files."""

    docids: Bytes  # concatenated, in UTF-8
    docid_offsets: IntArray  # of document d is ``docids[docid_offsets[d]:docid_offsets[d + 1]]``, shape (N + 1,)
    docid_order: Int32Array  # document numbers in ascending order of docids, shape (N,)
    document_lengths: IntArray  # number of indexed tokens |D| of each document, shape (N,)
    terms: Bytes  # concatenated, in UTF-8, in ascending order
    term_offsets: IntArray  # term t is ``terms[term_offsets[t]:term_offsets[t + 1]]``, shape (V + 1,)
    collection_frequencies: IntArray  # cf of each term, shape (V,)
    postings_offsets: IntArray  # in a shard, of each term's first posting; the differences are df; shape (V + 1,)
    fingerprint: str  # SHA-256 (hex) of the collection; see `PositionalIndex`
    folder: Path | None = None  # of the files; None if the arrays are in memory

    @property
    def n_documents(self) -> int:
        """N, the number of documents."""
        return len(self.document_lengths)

    @property
    def n_terms(self) -> int:
        """V, the number of terms."""
        return len(self.collection_frequencies)

    @cached_property
    def document_frequencies(self) -> IntArray:
        """Document frequency df of each term, shape (V,)."""
        df = np.diff(self.postings_offsets)
        if ((df < 0) | (df > self.collection_frequencies)).any():
            raise CollectionError(DAMAGE_ERROR)
        return df

    def docids_of(self, documents: IntArray) -> list[str]:
        """Return the docids of documents with these numbers."""
        return _decode_texts(self.docids, self.docid_offsets, documents)

    def terms_of(self, numbers: IntArray | Int32Array) -> list[str]:
        """Return the terms with these numbers."""
        return _decode_texts(self.terms, self.term_offsets, numbers)

    def find_docids(self, docids: Sequence[bytes]) -> IntArray:
        """Find the numbers of docids in UTF-8, -1 for one that the collection lacks."""
        return find(self.docids, self.docid_offsets, self.docid_order, *join(docids))

    def find_terms(self, terms: Sequence[bytes]) -> IntArray:
        """Find the numbers of terms in UTF-8, -1 for one that the collection lacks."""
        return find(self.terms, self.term_offsets, self.docid_order[:0], *join(terms))


def _decode_texts(text: Bytes, starts: IntArray, numbers: IntArray | Int32Array) -> list[str]:
    first, sizes = starts[numbers], starts[numbers + 1] - starts[numbers]
    if ((first < 0) | (sizes < 0) | (first + sizes > len(text))).any():
        raise CollectionError(DAMAGE_ERROR)
    joined, bounds = text[ranges(first, sizes)].tobytes(), offsets(sizes).tolist()
    if joined.isascii():  # as a rule: decoded at once
        whole = joined.decode()
        return [whole[begin:end] for begin, end in pairwise(bounds)]
    try:
        return [joined[begin:end].decode() for begin, end in pairwise(bounds)]
    except UnicodeDecodeError:
        raise CollectionError(DAMAGE_ERROR) from None


def find(text: Bytes, offsets: IntArray, order: Int32Array, wanted: Bytes, wanted_offsets: IntArray) -> IntArray:
    """Find the numbers of `wanted` texts in a table; -1 for one that it lacks."""
    # Text i of a table is ``text[offsets[i]:offsets[i + 1]]``. `order` has the numbers of the texts in ascending order
    # of their bytes; it is empty if the table is in this order already.
    numbers = np.full(len(wanted_offsets) - 1, UNKNOWN, np.int64)
    _search(text, offsets, order, wanted, wanted_offsets, numbers)
    return numbers


@compiled(error_model="numpy")
def _search(
    text: Bytes, offsets: IntArray, order: Int32Array, wanted: Bytes, wanted_offsets: IntArray, numbers: IntArray
) -> None:
    """Fill in what `find` returns, by binary search."""
    size = len(offsets) - 1
    for i in range(len(numbers)):
        low, high = 0, size
        mine, length = wanted_offsets[i], wanted_offsets[i + 1] - wanted_offsets[i]
        while low < high:
            middle = (low + high) // 2
            number = np.int64(order[middle]) if len(order) else np.int64(middle)
            if number < 0 or number >= size:
                raise CollectionError(DAMAGE_ERROR)
            begin, end = offsets[number], offsets[number + 1]
            if begin < 0 or end < begin or end > len(text):
                raise CollectionError(DAMAGE_ERROR)
            # Compared by bytes, which is the order of UTF-8 texts by code point.
            j, common = 0, min(end - begin, length)
            while j < common and text[begin + j] == wanted[mine + j]:
                j += 1
            if j == length and j == end - begin:
                numbers[i] = number
                break
            if (j < common and text[begin + j] < wanted[mine + j]) or (j == common and j < length):
                low = middle + 1
            else:
                high = middle
