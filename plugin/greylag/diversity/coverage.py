"""Coverage: pick documents that cover the most columns (words, subtopics) not yet covered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from greylag.base import FloatArray, Gain, IntArray, ParameterError, Ranking, compiled
from greylag.diversity.stage import DiversityStage
from greylag.evaluation import Subtopics, covered_columns
from greylag.index import PositionalIndex


@dataclass(frozen=True)
class Coverage(DiversityStage):
    """Pick the documents with the most distinct words that no picked document contains.

    Parameters
    ----------
    index : PositionalIndex
        The collection. A document that it lacks keeps its rank.
    depth, k : int
        See `greylag.diversity.DiversityStage`.
    """

    needs = frozenset({"index"})

    index: PositionalIndex

    def gain(self, candidates: Ranking) -> CoverageGain:
        """Count the new words."""
        return unweighted_coverage(self.index.term_frequencies(self.index.documents(candidates.docids)))


class CoverageGain:
    """The total value of newly covered columns, which count once each, plus `base` for each candidate."""

    # The coverage, shape (n, M), is 1 where a candidate covers a column; other entries are refused.
    def __init__(self, coverage: csr_matrix, values: FloatArray, base: FloatArray | float = 0.0) -> None:
        if (other := coverage.data[coverage.data != 1]).size:
            raise ParameterError(f"coverage has an entry {other[0]}: the entries must be 1")
        self._coverage = coverage
        self._columns = coverage.indices.copy()  # `_sum_left` drops covered ones in place; `add` needs the whole rows
        self._ends = coverage.indptr[1:].astype(np.int64)
        self._values = values.astype(np.float64)
        self._base = base

    def gains(self) -> FloatArray:
        """Return the value of the columns that each candidate would newly cover, shape (n,)."""
        sums = np.empty(len(self._ends))
        _sum_left(self._coverage.indptr, self._ends, self._columns, self._values, sums)
        return sums + self._base

    def add(self, candidate: int) -> None:
        """Reduce the value of the columns that the candidate covers to 0."""
        self._values[covered_columns(self._coverage, [candidate])] = 0.0


@dataclass(frozen=True)
class SumOfGains:
    """The sum of two gains over the same candidates."""

    first: Gain
    second: Gain

    def gains(self) -> FloatArray:
        """Return the sums, shape (n,)."""
        return self.first.gains() + self.second.gains()

    def add(self, candidate: int) -> None:
        """Pick a candidate in both."""
        self.first.add(candidate)
        self.second.add(candidate)


def unweighted_coverage(frequencies: csr_matrix) -> CoverageGain:
    """Make the gain in the number of distinct words, given term frequencies of shape (n, V)."""
    words, columns = np.unique(frequencies.indices, return_inverse=True)
    ones = np.ones(len(columns))
    return CoverageGain(
        csr_matrix((ones, columns, frequencies.indptr), (frequencies.shape[0], len(words))), np.ones(len(words))
    )


@compiled()
def _sum_left(starts: Any, ends: IntArray, columns: Any, values: FloatArray, sums: FloatArray) -> None:
    """Write the sum of the values of each row's columns to `sums`, and drop columns of value 0 from the row for good.

    Row i has the columns from ``starts[i]`` to ``ends[i]``; `columns` and `ends` are updated. Values are added in the
    order of the columns, as scipy adds them in a product. The loop has no branch, since values of 0 come in no order,
    and no negative numbers, which Numba would count from the end of an array.
    """
    for row in range(len(ends)):
        total, end = 0.0, np.uint64(starts[row])
        for entry in range(np.uint64(starts[row]), np.uint64(ends[row])):
            column = np.uint64(columns[entry])
            value = values[column]
            total += value
            columns[end] = column
            end += np.uint64(value != 0.0)
        sums[row], ends[row] = total, end


def subtopic_gain(subtopics: Subtopics) -> CoverageGain:
    """Make the gain in the weight of covered subtopics."""
    return CoverageGain(subtopics.coverage, subtopics.weights)
