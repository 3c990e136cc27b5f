"""BM25 without Java, from a `PositionalIndex`, with Lucene's arithmetic."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.base import (
    CollectionError,
    FloatArray,
    IntArray,
    ParameterError,
    Query,
    Ranking,
    Source,
    check_counts,
    compiled,
)
from greylag.index.tables import DAMAGE_ERROR, Int32Array, offsets

EXACT_LENGTHS = 24  # below which Lucene stores a document's length exactly; of greater ones, four binary digits
_AT_ONCE = 1 << 16  # postings that are read in one call, which take about 40 bytes each


@dataclass(frozen=True)
class PositionalBM25(Source):
    """The source of `PositionalIndex.bm25`, with the scores of `greylag.index.BM25` in every digit."""

    index: Any  # a PositionalIndex, whose module imports this one
    _: KW_ONLY
    k: int = 1000
    k1: float = 0.9
    b: float = 0.4

    def __post_init__(self) -> None:
        check_counts(k=self.k)
        if not (math.isfinite(self.k1) and self.k1 >= 0 and 0 <= self.b <= 1):
            raise ParameterError(f"k1 is {self.k1} and b {self.b}: k1 must be at least 0 and finite, b from 0 to 1")

    def __call__(self, query: Query, /) -> Ranking:
        """Return the top `k` documents; ties are broken by docid, ascending. A query without index terms finds none."""
        scores = self.weigh(query.text)
        best = self.best(scores, self.k)
        return Ranking(query.qid, query.text, tuple(self.index.docids_of(best)), scores[best])

    def weigh(self, text: str) -> FloatArray:
        """Score all documents of the index, shape (N,); 0 for one without a term of the query."""
        index, (terms, weights) = self.index, self._weighted(text)
        scores = np.zeros(index.n_documents)
        step = max(1, len(terms)) if index.document_frequencies[terms].sum() <= _AT_ONCE else 1
        for first in range(0, len(terms), step):
            some = slice(first, first + step)
            for part in index.parts:
                own = slice(part.first, part.first + part.shard.n_documents)
                postings = part.shard.postings(part.shard_terms(terms[some]))
                _add_gains(weights[some], *postings, self._inverse_norms[own], scores[own])
        return scores.astype(np.float32).astype(np.float64)

    def best(self, scores: FloatArray, k: int) -> IntArray:
        """Return the numbers of the `k` documents with the highest of all scores, best first; none that scores 0."""
        best: IntArray = _best(scores, self._places, min(k, len(scores)))  # docids decide between documents that tie
        return best

    def score(self, text: str, documents: IntArray) -> FloatArray:
        """Score documents with these numbers as a search does, shape (n,); 0 for one without a term of the query."""
        scores, (terms, weights) = np.zeros(len(documents)), self._weighted(text)
        ascending = np.argsort(terms)
        tfs = np.empty((len(terms), len(documents)), np.int32)
        tfs[ascending] = self.index.parts.frequencies(terms[ascending], documents)
        rows, places = np.nonzero(tfs)
        ends = offsets(np.bincount(rows, minlength=len(terms)))
        norms = self._inverse_norms[documents]
        _add_gains(weights, ends, places.astype(np.int32), tfs[rows, places], norms, scores)
        return scores.astype(np.float32).astype(np.float64)

    def _weighted(self, text: str) -> tuple[IntArray, NDArray[np.float32]]:
        """Return the query's terms that the collection has, in the order in which their scores are added, and idf."""
        counts = Counter(number for number in self.index.query_terms(text).tolist() if number >= 0)
        terms, n = np.array([*counts], dtype=np.int64), self._n_with_tokens
        df = self.index.document_frequencies[terms]
        # Every step in the precision that Lucene has there: single for terms, double for the sum, single for the score.
        idf = np.log(1 + (n - df + 0.5) / (df + 0.5)).astype(np.float32)
        return terms, np.array([*counts.values()], np.float32) * idf

    @cached_property
    def _places(self) -> Int32Array:
        """The place of each document in the ascending order of docids, shape (N,)."""
        order: Int32Array = self.index.docid_order
        # As unsigned numbers, the negative ones are too large. A number that occurs twice leaves a gap.
        counts = np.bincount(order[order.view(np.uint32) < len(order)], minlength=len(order))
        if not counts.all():
            raise CollectionError(DAMAGE_ERROR)
        places = np.empty_like(order)
        places[order] = np.arange(len(places), dtype=places.dtype)
        return places

    @cached_property
    def _n_with_tokens(self) -> int:
        """Number of documents that have a token."""
        return int(np.count_nonzero(self.index.document_lengths))

    @cached_property
    def _inverse_norms(self) -> NDArray[np.float32]:
        """1 / (k1 (1 - b + b |D| / avgdl)) of each document, shape (N,)."""
        k1, b = np.float32(self.k1), np.float32(self.b)
        one = np.float32(1)
        # Lucene keeps a length in a byte; with exact lengths, scores would differ from its own.
        lengths = stored_lengths(np.asarray(self.index.document_lengths, dtype=np.int64)).astype(np.float32)
        with np.errstate(divide="ignore"):
            norms: NDArray[np.float32] = one / (k1 * ((one - b) + b * lengths / np.float32(self.index.average_length)))
        return norms


def stored_lengths(lengths: IntArray) -> IntArray:
    """Round lengths as Lucene stores them in a byte (SmallFloat.intToByte4, and back), shape (N,)."""
    excess = np.maximum(lengths - EXACT_LENGTHS, 0)
    shift = np.maximum(np.frexp(excess.astype(np.float64))[1] - 4, 0)
    return np.where(lengths < EXACT_LENGTHS, lengths, EXACT_LENGTHS + (excess >> shift << shift))


@compiled(error_model="numpy")
def _add_gains(
    weights: NDArray[np.float32], ends: IntArray, documents: Int32Array, tfs: Int32Array,
    inverse_norms: NDArray[np.float32], scores: FloatArray,
) -> None:  # fmt: skip
    """Add to the scores of documents those by each term, which they have `tfs` times."""
    # Every term adds more than 0.
    for t in range(len(weights)):
        for i in range(ends[t], ends[t + 1]):
            document = documents[i]
            norm = np.float32(1) + np.float32(tfs[i]) * inverse_norms[document]
            scores[document] += weights[t] - weights[t] / norm


@compiled(error_model="numpy")
def _best(scores: FloatArray, places: Int32Array, k: int) -> IntArray:
    """Return the `k` documents with the highest scores above 0, best first; ties in the order of places."""
    # A heap: each document is worse than the two below it, at 2 i + 1 and 2 i + 2.
    heap, n = np.empty(k, np.int64), 0
    for document in range(len(scores)):
        if scores[document] > 0:
            if n < len(heap):
                heap[n], place = document, n
                n += 1
                while place > 0 and _is_worse(scores, places, heap[place], heap[(place - 1) // 2]):
                    above = (place - 1) // 2
                    heap[place], heap[above] = heap[above], heap[place]
                    place = above
            elif scores[document] >= scores[heap[0]] and _is_worse(scores, places, heap[0], document):
                heap[0] = document
                _sink(scores, places, heap, n)
    for end in range(n - 1, 0, -1):
        heap[0], heap[end] = heap[end], heap[0]
        _sink(scores, places, heap, end)
    return heap[:n]


@compiled(error_model="numpy")
def _sink(scores: FloatArray, places: Int32Array, heap: IntArray, n: int) -> None:
    """Move the first document of a heap of `n` down to its place."""
    place = 0
    while 2 * place + 1 < n:
        below = 2 * place + 1
        if below + 1 < n and _is_worse(scores, places, heap[below + 1], heap[below]):
            below += 1
        if not _is_worse(scores, places, heap[below], heap[place]):
            break
        heap[place], heap[below] = heap[below], heap[place]
        place = below


@compiled(error_model="numpy")
def _is_worse(scores: FloatArray, places: Int32Array, one: int, other: int) -> bool:
    """Return whether a document comes after another one."""
    if scores[one] == scores[other]:
        return places[one] > places[other]  # type: ignore[no-any-return]
    return scores[one] < scores[other]  # type: ignore[no-any-return]
