"""The scores of the documents that a document is like, as like documents are relevant to the same queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from greylag.base import FloatArray, IntArray, Ranking, compiled, unit_range
from greylag.features.feature import Evidence, Values
from greylag.index import Entries, EntryCache, Int32Array, numbered

if TYPE_CHECKING:
    from greylag.index import PositionalIndex

_jit = compiled(error_model="numpy")
NEIGHBOURS = 100
"""The first documents of a ranking, with which all of it are compared."""


@dataclass(frozen=True)
class NeighbourScore(Evidence):
    """The mean score of the documents that a document is like, spelt ``neighbours``.

    The mean is over the top 100 documents e other than d, weighted by cos(d, e)^2 of TF-IDF vectors
    (`PositionalIndex.tfidf`); scores are scaled to [0, 1] in the ranking. If d is like none of them, its value is the
    mean score of the top 100, d included.

    References
    ----------
    Diaz, Regularizing query-based retrieval scores, Information Retrieval 10(6), 2007.
    """

    form: ClassVar[str] = "neighbours"
    reads_query: ClassVar[bool] = False

    def bind(self, index: PositionalIndex) -> Values:
        """Bind the means of a ranking's documents, shape (n,)."""
        vectors = index.cache(_unit_vectors)

        def values(ranking: Ranking) -> FloatArray:
            # Scaled before it is cut: the range is that of the whole ranking.
            scores = unit_range(ranking.scores)[:NEIGHBOURS]
            return _means(vectors(index.documents(ranking.docids)), index.n_terms, scores)

        return values


def _unit_vectors(index: PositionalIndex) -> EntryCache:
    """Make the documents' TF-IDF vectors, which have unit length."""

    def compute(documents: IntArray) -> Entries:
        starts, terms, tf = index.parts.entries(documents)
        return Entries(np.array([starts[:-1], starts[1:]]), terms, index.unit_weights(starts, terms, tf))

    return EntryCache(index.n_documents, int(index.document_frequencies.sum()), compute)


def _means(vectors: Entries, n_terms: int, scores: FloatArray) -> FloatArray:
    """Average the scores of the first k of n unit vectors, shape (k,), by squared cosines with each, shape (n,)."""
    different, terms = numbered(n_terms, vectors.bounds, vectors.numbers)
    means = np.full(vectors.bounds.shape[1], scores.mean())
    _set_means(vectors.bounds, terms, len(different), vectors.weights, scores, means)
    return means


@_jit
def _rooms(bounds: IntArray, terms: Int32Array, n_terms: int) -> tuple[IntArray, int]:
    """Return where the room for each term's postings in the first vectors begins, and the size of all."""
    starts, end = np.zeros(n_terms + 1, np.int64), 0
    for i in range(bounds.shape[1]):
        end += bounds[1, i] - bounds[0, i]
    for entry in range(end):
        starts[terms[entry] + 1] += 1
    for t in range(n_terms):
        starts[t + 1] += starts[t]
    return starts, end


@_jit
def _set_means(
    bounds: IntArray, terms: Int32Array, n_terms: int, weights: FloatArray, scores: FloatArray, means: FloatArray
) -> None:
    """Set the means of `_means` of the vectors that are like one of the first k; `terms` are numbered from 0."""
    k, n = len(scores), bounds.shape[1]
    starts, end = _rooms(bounds[:, :k], terms, n_terms)
    ends, rows, values = starts.copy(), np.empty(end, np.int32), np.empty(end)
    # Sums of squared cosines, and of their products with the scores.
    cosines, sums, first = np.empty(k), np.zeros((2, n)), np.int64(0)
    for i in range(n):
        end, shift = first + bounds[1, i] - bounds[0, i], bounds[0, i] - first
        # The postings are of the vectors before this one, so that each pair of the first k is looked at once.
        others = min(i, k)
        for j in range(others):
            cosines[j] = 0.0
        for entry in range(first, end):
            term, weight = np.uint64(terms[entry]), weights[entry + shift]
            for at in range(starts[term], ends[term]):
                posting = np.uint64(at)
                cosines[np.uint64(rows[posting])] += weight * values[posting]
        total, weighted = 0.0, 0.0
        for j in range(others):
            square = cosines[j] * cosines[j]
            total += square
            weighted += square * scores[j]
            if i < k:
                sums[0, j] += square
                sums[1, j] += square * scores[i]
        sums[0, i], sums[1, i] = total, weighted
        if i < k:
            for entry in range(first, end):
                term = np.uint64(terms[entry])
                rows[ends[term]], values[ends[term]] = i, weights[entry + shift]
                ends[term] += 1
        first = end
    for i in range(n):
        if sums[0, i] > 0:
            means[i] = sums[1, i] / sums[0, i]
