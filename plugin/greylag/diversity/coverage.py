"""Coverage: pick documents that cover the most columns (words, subtopics) not yet covered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from greylag.diversity.stage import GreedyStage
from greylag.errors import ParameterError
from greylag.evaluation.subtopics import Subtopics, covered_columns
from greylag.greedy import greedy_picks
from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, IntArray, Ranking


@dataclass(frozen=True)
class Coverage(GreedyStage):
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
    """The total value of newly covered columns, each of which counts once, plus `base` for each candidate."""

    # The coverage, shape (n, M), is 1 where a candidate covers a column; other entries are refused.
    def __init__(self, coverage: csr_matrix, values: FloatArray, base: FloatArray | float = 0.0) -> None:
        if (other := coverage.data[coverage.data != 1]).size:
            raise ParameterError(f"coverage has an entry {other[0]}: the entries must be 1")
        self._coverage = coverage
        self._values = values.astype(np.float64)
        self._base = base

    def gains(self) -> FloatArray:
        """Return the value of the columns that each candidate would newly cover, shape (n,)."""
        return np.asarray(self._coverage @ self._values + self._base)

    def add(self, candidate: int) -> None:
        """Reduce the value of the columns that the candidate covers to 0."""
        self._values[covered_columns(self._coverage, [candidate])] = 0.0

    def picks(self, k: int, other: CoverageGain | None = None) -> IntArray:
        """Pick by `greedy_picks` of this gain plus another coverage's; both are used up."""
        return greedy_picks(self if other is None else _Sum(self, other), k)


class _Sum:
    """The sum of two gains."""

    def __init__(self, *parts: CoverageGain) -> None:
        self._parts = parts

    def gains(self) -> FloatArray:
        return self._parts[0].gains() + self._parts[1].gains()

    def add(self, candidate: int) -> None:
        for part in self._parts:
            part.add(candidate)


def unweighted_coverage(frequencies: csr_matrix) -> CoverageGain:
    """Make the gain in the number of distinct words, given term frequencies of shape (n, V)."""
    words, columns = np.unique(frequencies.indices, return_inverse=True)
    ones = np.ones(len(columns))
    return CoverageGain(
        csr_matrix((ones, columns, frequencies.indptr), (frequencies.shape[0], len(words))), np.ones(len(words))
    )


def subtopic_gain(subtopics: Subtopics) -> CoverageGain:
    """Make the gain in the weight of covered subtopics."""
    return CoverageGain(subtopics.coverage, subtopics.weights)
