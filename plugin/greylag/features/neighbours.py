"""The scores of the documents that a document is like, as like documents are relevant to the same queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from greylag.features.feature import Evidence, Values, unit_ranges
from greylag.index.tables import Int32Array
from greylag.ranking import FloatArray, IntArray, Ranking
from greylag.runtime.compilation import compiled

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

NEIGHBOURS = 100
"""The first documents of a ranking, with which all of it are compared."""


@dataclass(frozen=True)
class NeighbourScore(Evidence):
    """The mean score of the documents that a document is like, spelt ``neighbours``.

    The first 100 documents e of the ranking, but for d itself, count by cos(d, e)^2, with the cosine of TF-IDF vectors
    (`PositionalIndex.tfidf`), and have their scores, scaled to [0, 1] in the ranking. If d is like none, all count the
    same.

    References
    ----------
    Diaz, Regularizing query-based retrieval scores, Information Retrieval 10(6), 2007.
    """

    form: ClassVar[str] = "neighbours"
    reads_query: ClassVar[bool] = False

    def bind(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """Bind the means of a ranking's documents, shape (n,)."""

        def values(ranking: Ranking) -> FloatArray:
            scores = unit_ranges(ranking.scores)[:NEIGHBOURS]
            starts, terms, tf = index.entries(index.documents(ranking.docids))
            weights = index.unit_weights(starts, terms, tf)
            means: FloatArray = neighbour_means(starts, terms, weights, index.n_terms, scores)
            return means

        return values


@compiled(error_model="numpy")
def neighbour_means(
    starts: IntArray, terms: Int32Array, weights: FloatArray, n_terms: int, scores: FloatArray
) -> FloatArray:
    """Average the scores of the first k rows of terms, shape (k,), by squared cosines with each of the n rows, (n,).

    Row i has the different terms ``terms[starts[i]:starts[i + 1]]``, and their weights, in unit length.
    """
    k, end = len(scores), starts[len(scores)]
    # The postings of the neighbours' terms, which are numbered from 1.
    places, sizes = np.zeros(n_terms, np.int32), np.zeros(end + 2, np.int64)
    known = 0
    for entry in range(end):
        if places[terms[entry]] == 0:
            known += 1
            places[terms[entry]] = known
        sizes[places[terms[entry]] + 1] += 1
    ends = np.cumsum(sizes)  # of place p, postings begin at ``ends[p]``, and end there once they are filled in
    rows, values = np.empty(end, np.int64), np.empty(end)
    for row in range(k):
        for entry in range(starts[row], starts[row + 1]):
            place = places[terms[entry]]
            rows[ends[place]], values[ends[place]] = row, weights[entry]
            ends[place] += 1
    out = np.empty(len(starts) - 1)
    for i in range(len(out)):
        cosines = np.zeros(k)
        for entry in range(starts[i], starts[i + 1]):
            place = places[terms[entry]]
            if place > 0:
                for j in range(ends[place - 1], ends[place]):
                    cosines[rows[j]] += weights[entry] * values[j]
        total, mean = 0.0, 0.0
        for j in range(k):
            if j != i:
                square = cosines[j] * cosines[j]
                total += square
                mean += square * scores[j]
        out[i] = mean / total if total > 0 else scores.mean()
    return out
