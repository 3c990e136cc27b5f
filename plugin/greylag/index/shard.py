"""Shard: the arrays of a positional index, as one Lucene index or some texts give them, and what is read from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from greylag.errors import CollectionError
from greylag.index import streams
from greylag.index.arrays import DAMAGED, Int32Array, join
from greylag.index.lookup import Bytes, find
from greylag.ranking import IntArray

UNKNOWN = -1
"""The number of a term or document that the shard lacks."""

_PART = 1 << 12  # documents in memory while a collection is read
_SHORTEST, _LONGEST = 1 << 14, 1 << 20  # documents that are looked through for them


class Located(NamedTuple):
    """Where t terms occur in n documents.

    Parameters
    ----------
    postings : int array, shape (t, n)
        The posting of the term in the document, or -1.
    having : int array, shape (p,)
        ``having[offsets[i]:offsets[i + 1]]`` are the documents with term i, as ascending places among the documents.
    offsets : int array, shape (t + 1,)
    starts : int array, shape (p + 1,)
        The positions of posting i are ``positions[starts[i]:starts[i + 1]]``.
    positions : int32 array
        Ascending within a posting; stop words leave gaps.
    """

    postings: IntArray
    having: IntArray
    offsets: IntArray
    starts: IntArray
    positions: Int32Array


@dataclass(frozen=True, eq=False)
class Shard:
    """N documents, V terms, P postings and C tokens, numbered from 0 within the shard.

    The arrays are read-only, in memory or mapped from files. `streams` describes the compressed ones.

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
        The postings of term t are numbered ``postings_offsets[t], ..., postings_offsets[t + 1] - 1``.
    postings_docs : uint8 array
        The document of each posting, ascending within a term, in a fixed number of bytes.
    block_places : int64 array, shape (P / `streams.BLOCK`, rounded up)
        The place of every `streams.BLOCK`-th posting in `positions`.
    positions : uint8 array
        The stream of the positions of all postings.
    forward_offsets : int64 array, shape (N + 1,)
        The entries of document d are the stream ``forward[forward_offsets[d]:forward_offsets[d + 1]]``.
    forward : uint8 array
        The streams of the terms of each document, with tf.
    fingerprint : str
        SHA-256 (hex) of the shard as a collection; see `PositionalIndex`.
    folder : Path, optional
        The folder of the files. None if the shard is in memory.
    """

    docids: Bytes
    docid_offsets: IntArray
    docid_order: Int32Array
    document_lengths: IntArray
    terms: Bytes
    term_offsets: IntArray
    collection_frequencies: IntArray
    postings_offsets: IntArray
    postings_docs: Bytes
    block_places: IntArray
    positions: Bytes
    forward_offsets: IntArray
    forward: Bytes
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
        """The numbers of docids, -1 for one that the shard lacks."""
        return self._find(self.docids, self.docid_offsets, self.docid_order, docids)

    def term_numbers(self, terms: Sequence[bytes]) -> IntArray:
        """The numbers of terms, -1 for one that the shard lacks."""
        return self._find(self.terms, self.term_offsets, self.docid_order[:0], terms)

    def locate(self, terms: IntArray, documents: IntArray) -> Located:
        """Where terms (-1 for one that the shard lacks) occur in documents, which have ascending numbers."""
        return Located(*streams.locate(*self._documents, self.block_places, self.positions, terms, documents))

    def joint_documents(self, terms: IntArray, least: int) -> Iterator[IntArray]:
        """The ascending numbers of the documents with at least `least` of some distinct terms, a part at a time."""
        postings = max(1, int(self.document_frequencies[terms].sum()))
        step = min(_LONGEST, max(_SHORTEST, _PART * least * self.n_documents // postings))
        places = np.zeros(len(terms), np.int64)
        for begin in range(0, self.n_documents, step):
            end = min(begin + step, self.n_documents)
            yield streams.joint_documents(*self._documents, terms, least, places, begin, end, self.n_documents)

    def entries(self, documents: IntArray) -> tuple[IntArray, Int32Array, Int32Array]:
        """The terms of documents (-1 for a document without any) and their tf.

        Returns
        -------
        offsets : int array, shape (n + 1,)
            The entries of document i are ``offsets[i], ..., offsets[i + 1] - 1``.
        terms : int32 array
            Ascending within a document.
        tf : int32 array, of the same shape
        """
        found: tuple[IntArray, Int32Array, Int32Array] = streams.entries(
            self.forward_offsets, self.forward, documents, self.n_terms
        )
        return found

    def frequencies(self, terms: IntArray, documents: IntArray) -> Int32Array:
        """Tf of terms, which have ascending numbers, in documents, shape (len(terms), len(documents))."""
        found: Int32Array = streams.frequencies(self.forward_offsets, self.forward, terms, documents)
        return found

    @property
    def _documents(self) -> tuple[Any, ...]:
        return self.postings_offsets, self.postings_docs, streams.document_bytes(self.n_documents)

    @staticmethod
    def _find(text: Bytes, offsets: IntArray, order: Int32Array, wanted: Sequence[bytes]) -> IntArray:
        found: IntArray = find(text, offsets, order, *join(wanted))
        return found


def _text(text: Bytes, offsets: IntArray, number: int) -> str:
    begin, end = offsets[number : number + 2]
    if not 0 <= begin <= end <= len(text):
        raise CollectionError(DAMAGED)
    return text[begin:end].tobytes().decode()
