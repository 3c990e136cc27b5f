"""The simplest gains, which learned diversity is held against.

The greedy that knows the subtopics, the bound from the other side, is `greylag.diversity.coverage.known_subtopics`.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from greylag.diversity.coverage import CoverageGain
from greylag.ranking import FloatArray


class ModularGain:
    """Each candidate's own `worth`, shape (n,), whatever else is picked; where all are equal, the incoming order."""

    def __init__(self, worth: FloatArray) -> None:
        self._worth = worth

    def gains(self) -> FloatArray:
        """The worths."""
        return self._worth

    def add(self, candidate: int) -> None:
        """Changes nothing."""


def random_gain(n: int, rng: np.random.Generator) -> ModularGain:
    """Picks n candidates in random order."""
    return ModularGain(rng.random(n))


def unweighted_coverage(frequencies: csr_matrix) -> CoverageGain:
    """The number of different words: each counts 1 once some picked document has it. tf of shape (n, V)."""
    words, columns = np.unique(frequencies.indices, return_inverse=True)
    ones = np.ones(len(columns))
    return CoverageGain(
        csr_matrix((ones, columns, frequencies.indptr), (frequencies.shape[0], len(words))), np.ones(len(words))
    )
