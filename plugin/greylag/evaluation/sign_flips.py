"""The exact test of paired differences: all flips of their signs."""

from __future__ import annotations

from typing import Literal

import numpy as np

from greylag.ranking import FloatArray

Alternative = Literal["two-sided", "greater"]

MOST_FLIPPED = 20
"""The most differences, without those that are 0, whose flips are all counted."""
ROUNDING = 1e-12
"""Differences and sums that are this share of the largest possible sum apart, or less, are equal on paper."""


def sign_flip_p(values: FloatArray, alternative: Alternative) -> float:
    """Return the share of all 2^n flips of the signs of n values whose sum is at least as extreme as the values' own.

    The values are at most `MOST_FLIPPED`. Two-sided, it is doubled, at most 1: the sums are symmetric around 0.
    """
    # Sums of two halves, each flip of one with each of the other: 2^(n / 2) values instead of 2^n.
    halves = [np.zeros(1), np.zeros(1)]
    for place, value in enumerate(values):
        sums = halves[place % 2]
        halves[place % 2] = np.concatenate([sums + value, sums - value])
    first, second = halves[0], np.sort(halves[1])
    own = float(values.sum())
    least = (own if alternative == "greater" else abs(own)) - ROUNDING * float(np.abs(values).sum())
    reaching = first.size * second.size - int(np.searchsorted(second, least - first).sum())
    share = reaching / (first.size * second.size)
    return share if alternative == "greater" else min(1.0, 2 * share)
