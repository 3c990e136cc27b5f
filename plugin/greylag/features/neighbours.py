"""The scores of the documents that a document is like, as like documents are relevant to the same queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from greylag.base import FloatArray, IntArray, Ranking, compiled, unit_range
from greylag.features.feature import Evidence, Values
from greylag.index import Entries, EntryCache, Int32Array, numbered, offsets

if TYPE_CHECKING:
    from greylag.index import PositionalIndex

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
    sizes = vectors.bounds[1] - vectors.bounds[0]
    different, terms = numbered(n_terms, vectors.bounds, int(sizes.sum()), vectors.numbers)
    end = int(sizes[: len(scores)].sum())
    starts = offsets(np.bincount(terms[:end], minlength=len(different)))
    sums = np.zeros((2, len(sizes)))
    _add_squares(
        vectors.bounds, terms, vectors.weights, scores, starts[:-1], starts[:-1].copy(), np.empty(end, np.int32),
        np.empty(end), np.empty(len(scores)), sums,
    )  # fmt: skip
    return np.asarray(np.divide(sums[1], sums[0], out=np.full(len(sizes), scores.mean()), where=sums[0] > 0))


@compiled(error_model="numpy")
def _add_squares(
    bounds: IntArray, terms: Int32Array, weights: FloatArray, scores: FloatArray, starts: IntArray, ends: IntArray,
    rows: Int32Array, values: FloatArray, cosines: FloatArray, sums: FloatArray,
) -> None:  # fmt: skip
    """Add up each vector's squared cosines, and their products with the scores, in ``sums[0]`` and ``sums[1]``.

    Number t of `terms` has room for its postings in `rows` and `values`, from ``starts[t]`` on.
    """
    k, first = len(scores), 0
    for i in range(bounds.shape[1]):
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
