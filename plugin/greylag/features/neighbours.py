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
            numbers, highest = numbered(terms, starts[len(scores)])
            means: FloatArray = neighbour_means(starts, numbers, highest, weights, scores)
            return means

        return values


@compiled(error_model="numpy")
def numbered(terms: Int32Array, end: int) -> tuple[Int32Array, int]:
    """Number the terms before `end` from 1; 0 is another one. Return the numbers, which have gaps, and the highest."""
    # By a hash table with open addressing: a table of all terms would grow with the collection.
    size = 16
    while size < 2 * end:
        size *= 2
    table, numbers = np.full(size, -1, np.int32), np.zeros(len(terms), np.int32)
    for entry in range(len(terms)):
        slot = terms[entry] & (size - 1)
        while table[slot] >= 0 and table[slot] != terms[entry]:
            slot = (slot + 1) & (size - 1)
        if entry < end:
            table[slot] = terms[entry]
        if table[slot] >= 0:
            numbers[entry] = slot + 1
    return numbers, size


@compiled(error_model="numpy")
def neighbour_means(
    starts: IntArray, numbers: Int32Array, highest: int, weights: FloatArray, scores: FloatArray
) -> FloatArray:
    """Average the scores of the first k rows of terms, shape (k,), by squared cosines with each of the n rows, (n,).

    Row i has the different terms ``numbers[starts[i]:starts[i + 1]]`` (`numbered`), and their weights, in unit length.
    """
    k, end = len(scores), starts[len(scores)]
    sizes = np.zeros(highest + 2, np.int64)
    for entry in range(end):
        sizes[numbers[entry] + 1] += 1
    ends = np.cumsum(sizes)  # of number p, postings begin at ``ends[p]``, and end there once they are filled in
    rows, values = np.empty(end, np.int64), np.empty(end)
    for row in range(k):
        for entry in range(starts[row], starts[row + 1]):
            number = numbers[entry]
            rows[ends[number]], values[ends[number]] = row, weights[entry]
            ends[number] += 1
    out = np.empty(len(starts) - 1)
    for i in range(len(out)):
        cosines = np.zeros(k)
        for entry in range(starts[i], starts[i + 1]):
            number = numbers[entry]
            if number > 0:
                for j in range(ends[number - 1], ends[number]):
                    cosines[rows[j]] += weights[entry] * values[j]
        total, mean = 0.0, 0.0
        for j in range(k):
            if j != i:
                square = cosines[j] * cosines[j]
                total += square
                mean += square * scores[j]
        out[i] = mean / total if total > 0 else scores.mean()
    return out
