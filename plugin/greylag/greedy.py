"""The greedy loop that every diversifier here is, and the stage that runs it: only the gain differs.

Carbonell & Goldstein's MMR, Essential Pages, and the prediction of a learned coverage model all pick, again and again,
the candidate whose marginal gain is largest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from greylag.errors import ParameterError
from greylag.ranking import FloatArray, IntArray, Ranking, Stage

ROUNDING = 1e-12


class Gain(Protocol):
    """Marginal gains of n candidates, given what has been picked."""

    def gains(self) -> FloatArray:
        """What adding each candidate would gain now, shape (n,); the values of picked ones do not matter."""

    def add(self, candidate: int) -> None:
        """Pick a candidate."""


def greedy(gain: Gain, k: int) -> IntArray:
    """The first `k` candidates that are picked by largest gain (all, where there are fewer), shape (min(k, n),).

    Equal gains, to within 1e-12 of the largest magnitude, go to the lower number: the better rank of the stage before.
    """
    gains = gain.gains()
    left = np.ones(len(gains), dtype=bool)
    picked = np.empty(min(k, len(gains)), dtype=np.int64)
    for place in range(len(picked)):
        gains = np.where(left, gains, -np.inf)
        tie = ROUNDING * np.abs(gains[left]).max()
        picked[place] = best = int(np.argmax(gains >= gains.max() - tie))
        left[best] = False
        gain.add(best)
        gains = gain.gains() if place + 1 < len(picked) else gains
    return picked


def picked_first(picked: IntArray, n: int) -> IntArray:
    """All of 0, ..., n - 1: the picked ones first, then the others in ascending order."""
    rest = np.ones(n, dtype=bool)
    rest[picked] = False
    return np.concatenate([picked, np.flatnonzero(rest)])


class GreedyStage(Stage, ABC):
    """A stage that picks `k` of the first `depth` documents greedily, by the gain that its class defines.

    The result is a permutation of the ranking: the picks, then all others in the order in which they came. Scores are
    n, n - 1, ..., 1. Ties go to the better rank. Where there are fewer documents than k, all are picked.

    Subclasses are frozen dataclasses with the fields `depth` and `k`, both >= 1.
    """

    depth: int
    k: int

    def __post_init__(self) -> None:
        if self.depth < 1 or self.k < 1:
            raise ParameterError(f"depth and k have to be at least 1, not {self.depth} and {self.k}")

    @abstractmethod
    def gain(self, candidates: Ranking) -> Gain:
        """The gain over these documents, of which none is picked yet."""

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank one query's documents."""
        picked = greedy(self.gain(ranking.head(self.depth)), self.k)
        return ranking.permute(picked_first(picked, len(ranking)))
