"""Tables: the documents and terms of a collection, by name and number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from greylag.errors import CollectionError
from greylag.index.arrays import DAMAGED, Int32Array, join
from greylag.index.lookup import Bytes, find
from greylag.ranking import IntArray

UNKNOWN = -1
"""The number of a term or document that a collection lacks."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Tables:
    """N documents and V terms, numbered from 0.

    The arrays are read-only, in memory or mapped from files.

    Parameters
    ----------
    docids : uint8 array
        The concatenated UTF-8 bytes of the docids.
    docid_offsets : int64 array, shape (N + 1,)
        The docid of document d is ``docids[docid_offsets[d]:docid_offsets[d + 1]]``.
    docid_order : int32 array, shape (N,)
        Document numbers in ascending order of docids.
    document_lengths : int64 array, shape (N,)
        Number of indexed tokens |D| of each document.
    terms : uint8 array
        The concatenated UTF-8 bytes of the terms, in ascending order.
    term_offsets : int64 array, shape (V + 1,)
        Term t is ``terms[term_offsets[t]:term_offsets[t + 1]]``.
    collection_frequencies : int64 array, shape (V,)
        Cf of each term.
    postings_offsets : int64 array, shape (V + 1,)
        The df of term t is ``postings_offsets[t + 1] - postings_offsets[t]``. In a shard, its postings have the numbers
        from ``postings_offsets[t]`` on.
    fingerprint : str
        SHA-256 (hex) of the collection; see `PositionalIndex`.
    folder : Path, optional
        The folder of the files. None if the arrays are in memory.
    """

    docids: Bytes
    docid_offsets: IntArray
    docid_order: Int32Array
    document_lengths: IntArray
    terms: Bytes
    term_offsets: IntArray
    collection_frequencies: IntArray
    postings_offsets: IntArray
    fingerprint: str
    folder: Path | None = None

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
        return np.diff(self.postings_offsets)

    def docid(self, document: int) -> str:
        """The docid of a document."""
        return _text(self.docids, self.docid_offsets, document)

    def term(self, term: int) -> str:
        """The term with a number."""
        return _text(self.terms, self.term_offsets, term)

    def documents(self, docids: Sequence[bytes]) -> IntArray:
        """The numbers of docids, -1 for one that the collection lacks."""
        return self._find(self.docids, self.docid_offsets, self.docid_order, docids)

    def term_numbers(self, terms: Sequence[bytes]) -> IntArray:
        """The numbers of terms, -1 for one that the collection lacks."""
        return self._find(self.terms, self.term_offsets, self.docid_order[:0], terms)

    @staticmethod
    def _find(text: Bytes, offsets: IntArray, order: Int32Array, wanted: Sequence[bytes]) -> IntArray:
        found: IntArray = find(text, offsets, order, *join(wanted))
        return found


def _text(text: Bytes, offsets: IntArray, number: int) -> str:
    begin, end = offsets[number : number + 2]
    if not 0 <= begin <= end <= len(text):
        raise CollectionError(DAMAGED)
    return text[begin:end].tobytes().decode()
