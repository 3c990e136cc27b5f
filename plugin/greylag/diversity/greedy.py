"""The greedy loop that every diversifier here is: only the gain differs.

Carbonell & Goldstein's MMR, Essential Pages, and the prediction of a learned coverage model all pick, again and again, the
candidate whose marginal gain is largest.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from greylag.ranking import FloatArray, IntArray


class Gain(Protocol):
    """Marginal gains of n candidates, given what has been picked."""

    def gains(self) -> FloatArray:
        """What adding each candidate would gain now, shape (n,); the values of picked ones do not matter."""

    def add(self, candidate: int) -> None:
        """Pick a candidate."""


def greedy(gain: Gain, k: int) -> IntArray:
    """The first `k` candidates that are picked by largest gain (all, where there are fewer), shape (min(k, n),).

    Equal gains go to the lower number, that is, to the better rank of the stage before.
    """
    available = np.ones(len(gain.gains()), dtype=bool)
    picked = np.empty(min(k, len(available)), dtype=np.int64)
    for place in range(len(picked)):
        picked[place] = int(np.argmax(np.where(available, gain.gains(), -np.inf)))
        available[picked[place]] = False
        gain.add(int(picked[place]))
    return picked


def picked_first(picked: IntArray, n: int) -> IntArray:
    """All of 0, ..., n - 1: the picked ones first, then the others in ascending order."""
    rest = np.ones(n, dtype=bool)
    rest[picked] = False
    return np.concatenate([picked, np.flatnonzero(rest)])
