"""The exact test of paired differences: all flips of their signs."""

from __future__ import annotations

from typing import Literal

import numpy as np

from greylag.base import FloatArray

Alternative = Literal["two-sided", "greater"]

MOST_FLIPPED = 20
"""The most differences, without those that are 0, whose flips are all counted."""
ROUNDING = 1e-12
"""Numbers that are apart by this share of the largest, or less, are equal on paper."""


def are_equal(values: FloatArray) -> bool:
    """Return whether values are equal on paper, so that what seems their variance is rounding."""
    return float(np.ptp(values)) <= ROUNDING * float(np.abs(values).max())


def sign_flip_p(values: FloatArray, alternative: Alternative) -> float:
    """Return the share of all 2^n flips of the signs of n values whose sum is at least as extreme as the values' own.

    The values are at most `MOST_FLIPPED`, or all equal. Two-sided, it is doubled: sums are symmetric around 0.
    """
    own = float(values.sum()) if alternative == "greater" else abs(float(values.sum()))
    if are_equal(values):
        share = 2.0 ** -min(len(values), 1022) if own > 0 else 1.0  # never 0
    else:
        # Sums of two halves, each flip of one with each of the other: 2^(n / 2) values instead of 2^n.
        halves = [np.zeros(1), np.zeros(1)]
        for place, value in enumerate(values):
            sums = halves[place % 2]
            halves[place % 2] = np.concatenate([sums + value, sums - value])
        first, second = halves[0], np.sort(halves[1])
        least = own - ROUNDING * float(np.abs(values).sum())
        flips = first.size * second.size
        share = (flips - int(np.searchsorted(second, least - first).sum())) / flips
    return share if alternative == "greater" else min(1.0, 2 * share)
