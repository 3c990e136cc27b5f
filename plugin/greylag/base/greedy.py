"""Greedy maximisation of a set function by marginal gains.

MMR, Essential Pages, learned coverage and MMR feature selection all repeatedly pick the candidate with the largest
marginal gain; they differ in their `Gain`.
"""

from __future__ import annotations

from math import isfinite
from typing import Protocol

import numpy as np

from greylag.base.core.hints import shown
from greylag.base.errors import ParameterError
from greylag.base.ranking import FloatArray, IntArray

TIE_TOLERANCE = 1e-12


class Gain(Protocol):
    """Marginal gains of n candidates, given those already picked."""

    def gains(self) -> FloatArray:
        """Return the gain from adding each candidate, shape (n,); the values of picked candidates are ignored."""

    def add(self, candidate: int) -> None:
        """Pick a candidate."""


class ModularGain:
    """Gains that do not depend on the picks: the `worth` of each candidate, shape (n,)."""

    def __init__(self, worth: FloatArray) -> None:
        self._worth = worth

    def gains(self) -> FloatArray:
        """Return the worth of each candidate, shape (n,)."""
        return self._worth

    def add(self, candidate: int) -> None:
        """Do nothing."""


def greedy_picks(gain: Gain, k: int, n: int | None = None) -> IntArray:
    """Pick `k` candidates, each time one of largest gain; all n if there are fewer. Shape (min(k, n),).

    Ties, to within 1e-12 of the largest magnitude, go to the lowest number: the better rank of the previous stage.
    `ParameterError` if there are not n gains, where n is given, or the largest is not finite.
    """
    return greedy_path(gain, k, n)[0]


def greedy_path(gain: Gain, k: int, n: int | None = None) -> tuple[IntArray, FloatArray]:
    """Run `greedy_picks`; return the picks and the gain of each when it was picked."""
    if not callable(getattr(gain, "gains", None)):
        raise ParameterError(f"{shown(gain)} is no gain: give an object with methods gains and add")
    gains = gain.gains()
    if n is not None and np.shape(gains) != (n,):
        raise ParameterError(f"{type(gain).__name__}: gains of shape {np.shape(gains)} for {n} candidates")
    taken = np.full(len(gains), -np.inf)  # infinity where a candidate is picked, whose gain may not be a number
    left, for_lowest, for_highest = -taken, taken.copy(), taken.copy()
    picked = np.empty(min(k, len(gains)), dtype=np.int64)
    gain_when_picked = np.empty(len(picked))
    for number in range(len(picked)):
        # fmin and fmax pass over NaN: picked candidates, whatever their gain, are never the highest nor the lowest.
        np.fmax(gains, taken, for_lowest)
        gains = np.fmin(gains, left, for_highest)
        lowest, highest = for_lowest.item(for_lowest.argmin()), gains.item(gains.argmax())
        if not isfinite(highest):
            raise ParameterError(f"{type(gain).__name__}: the gain of candidate {gains.argmax()} is not finite")
        # Relative to the largest magnitude: gains are sums, rounded in proportion to their terms.
        tie = TIE_TOLERANCE * max(-lowest, highest, -highest)
        picked[number] = best = int((gains >= highest - tie).argmax())
        gain_when_picked[number] = gains[best]
        taken[best], left[best] = np.inf, -np.inf
        gain.add(best)
        gains = gain.gains() if number + 1 < len(picked) else gains
    return picked, gain_when_picked
