"""Shard: the arrays of a positional index, as one Lucene index or some texts give them, and what is read from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from greylag.index import streams
from greylag.index.arrays import Int32Array
from greylag.index.lookup import Bytes
from greylag.index.tables import Tables
from greylag.ranking import IntArray

_PART = 1 << 14  # documents in memory while a collection is read
_SHORTEST, _LONGEST = 1 << 14, 1 << 17  # documents that are looked through for them


class Located(NamedTuple):
    """Where t terms occur in n documents.

    Parameters
    ----------
    postings : int array, shape (t, n)
        The posting of the term in the document, or -1.
    sole : int32 array, shape (t, n)
        The position of the term in the document; -1 if there are several, and -2 if there is none.
    having : int array, shape (p,)
        ``having[offsets[i]:offsets[i + 1]]`` are the documents with term i, as places among the documents, ascending
        if the documents are given.
    offsets : int array, shape (t + 1,)
    starts : int array, shape (p + 1,)
        The positions of posting i are ``positions[starts[i]:starts[i + 1]]``.
    positions : int32 array
        Ascending within a posting; stop words leave gaps.
    """

    postings: IntArray
    sole: Int32Array
    having: IntArray
    offsets: IntArray
    starts: IntArray
    positions: Int32Array


@dataclass(frozen=True, eq=False, kw_only=True)
class Shard(Tables):
    """N documents, V terms, P postings and C tokens, numbered from 0 within the shard.

    `streams` describes the compressed arrays.

    Parameters
    ----------
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
    """

    postings_docs: Bytes
    block_places: IntArray
    positions: Bytes
    forward_offsets: IntArray
    forward: Bytes

    def locate(self, terms: IntArray, documents: IntArray) -> Located:
        """Where terms (-1 for one that the shard lacks) occur in documents, which have ascending numbers."""
        return Located(*streams.locate(*self._documents, self.block_places, self.positions, terms, documents))

    def locate_jointly(self, terms: IntArray, least: int) -> Iterator[Located]:
        """Where distinct terms occur in the documents that have at least `least` of them, a part at a time.

        The documents of a part are in an order of their own.
        """
        own = *self._documents, self.block_places, self.positions, terms, least, np.zeros(len(terms), np.int64)
        postings = max(1, int(self.document_frequencies[terms].sum()))
        step = min(_LONGEST, max(_SHORTEST, _PART * least * self.n_documents // postings))
        for begin in range(0, self.n_documents, step):
            end = min(begin + step, self.n_documents)
            yield Located(*streams.locate_jointly(*own, begin, end, self.n_documents))

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
