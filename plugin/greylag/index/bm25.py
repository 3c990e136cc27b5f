"""BM25 without Java, from a `PositionalIndex`, with Lucene's arithmetic."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.base import CollectionError, FloatArray, IntArray, ParameterError, Query, Ranking, Source, check_counts
from greylag.index.tables import DAMAGE_ERROR, Int32Array

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
        index, counts = self.index, self._counts(text)
        scores = np.zeros(index.n_documents)
        terms = np.array([*counts], dtype=np.int64)
        at_once = terms[None] if index.document_frequencies[terms].sum() <= _AT_ONCE else terms[:, None]
        for some in at_once:
            for term, (documents, tfs) in zip(some.tolist(), index.parts.postings(some), strict=True):
                scores[documents] += self._gains(counts[term], len(documents), tfs, documents)
        return scores.astype(np.float32).astype(np.float64)

    def best(self, scores: FloatArray, k: int) -> IntArray:
        """Return the numbers of the `k` documents with the highest of all scores, best first; none that scores 0."""
        # Every term of the query adds more than 0.
        documents = np.flatnonzero(scores)
        values = scores[documents]
        if len(documents) > k:
            # All that tie with the k-th score stay, since docids decide between them.
            least = np.partition(values, -k)[-k]
            documents, values = documents[values >= least], values[values >= least]
        best: IntArray = documents[np.lexsort((self._places[documents], -values))[:k]]
        return best

    def score(self, text: str, documents: IntArray) -> FloatArray:
        """Score documents with these numbers as a search does, shape (n,); 0 for one without a term of the query."""
        scores, counts = np.zeros(len(documents)), self._counts(text)
        terms = np.array(sorted(counts), dtype=np.int64)
        rows = dict(zip(terms.tolist(), self.index.parts.frequencies(terms, documents), strict=True))
        for term, count in counts.items():
            has, df = np.flatnonzero(rows[term]), int(self.index.document_frequencies[term])
            scores[has] += self._gains(count, df, rows[term][has], documents[has])
        return scores.astype(np.float32).astype(np.float64)

    def _counts(self, text: str) -> Counter[int]:
        """Count the query's terms that the collection has, in the order in which their scores are added."""
        return Counter(number for number in self.index.query_terms(text).tolist() if number >= 0)

    def _gains(self, count: int, df: int, tfs: NDArray[Any], documents: IntArray) -> NDArray[np.float32]:
        """Score documents by one term, which the query has `count` times and they `tfs` times."""
        # Every step in the precision that Lucene has there: single for terms, double for the sum, single for the score.
        n = self._n_with_tokens
        weight = np.float32(count) * np.float32(np.log(1 + (n - np.float64(df) + 0.5) / (np.float64(df) + 0.5)))
        norms = np.float32(1) + tfs.astype(np.float32) * self._inverse_norms[documents]
        gains: NDArray[np.float32] = weight - weight / norms
        return gains

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
