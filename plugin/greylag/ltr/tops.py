"""Compiled: bounds along a line for measures of the top ranks whose H depends on the gain and the rank alone.

These are nDCG@k and P@k, with H = gain / divisor. Between two points of the x axis a document that is below k others
at both points is below them throughout, so that few documents of a query have to be looked at, and no crossing is
computed. Points and scores there are those of `greylag.ltr.swaps`. Scores are compared in float32, with a margin that
covers what is rounded, ends of buckets included.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.compilation import compiled
from greylag.ranking import FloatArray

_jit = compiled(error_model="numpy")

UNSURE = 2.0**-46  # of the magnitude of scores, more than what the difference of two is rounded by
FLOAT32 = 3e-7  # of the magnitude of scores, more than what rounding two and a sum to float32 changes
NEAR = 3e-6  # relative width around the end of a bucket, more than what rounding x to float32 changes
STEPS = 32  # to a limit, of the magnitude of scores


@_jit
def survey(
    depth: int,
    divisor: FloatArray,
    lines: Any,
    gains: FloatArray,
    weights: FloatArray,
    points: FloatArray,
    wanted: Any,
    stride: int,
) -> tuple[FloatArray, FloatArray]:
    """Bound the measure at points and between them, for every n-th query.

    Parameters
    ----------
    depth : int
        The cut-off, k.
    divisor : float array
        See `greylag.ltr.kernels.divisors`.
    lines : tuple
        See `greylag.ltr.kernels`.
    gains : float array, shape (n,)
        By document, in the order of `lines`.
    weights : float array, shape (q,)
        The queries' normalisers.
    points : float array, shape (B + 1, 2)
        From left to right; see `greylag.ltr.swaps`.
    wanted : bool array, shape (B,)
        The buckets to be looked at. The others' values and bounds are 0.
    stride : int
        Only the queries 0, `stride`, 2 * `stride`, ... are taken.

    Returns
    -------
    values : float array, shape (B,)
        At most the measure around the left end of each bucket. It is lower only by documents that are too close there.
    bounds : float array, shape (B,)
        At least the measure within each bucket.
    """
    s, v, _, offsets, relevant_offsets = lines
    values, bounds, zero = np.zeros(len(points) - 1), np.zeros(len(points) - 1), np.float32(0.0)
    longest, places = np.max(np.diff(offsets)), np.flatnonzero(wanted)
    room, centred = np.empty((4, longest), np.float32), np.empty((2, longest))
    for q in range(0, len(weights), stride):
        first, end = offsets[q], offsets[q + 1]
        relevant = relevant_offsets[q + 1] - relevant_offsets[q]
        if relevant == 0:
            continue
        n = end - first
        own_s, own_v, own_gains = centred[0, :n], centred[1, :n], gains[first : first + relevant]
        (size_s, all_s), (size_v, all_v) = _centre(s[first:end], own_s), _centre(v[first:end], own_v)
        size = size_s, size_v, all_s, all_v
        here, margin, top, limit = -1, zero, zero, zero
        for b in places:
            left, right, least, most = room[b % 2, :n], room[(b + 1) % 2, :n], room[2, :n], room[3, :n]
            if here != b:
                margin, top = _project(own_s, own_v, points[b], size, left)
                limit = _limit(left, depth, limit, top)
            values[b] += weights[q] * _at_least(divisor, own_gains, left, margin, limit)
            next_margin, next_top = _project(own_s, own_v, points[b + 1], size, right)
            next_limit = _limit(right, depth, limit, next_top)
            for d in range(n):
                least[d] = left[d] if left[d] < right[d] else right[d]
                most[d] = right[d] if left[d] < right[d] else left[d]
            both = _limit(least, depth, min(limit, next_limit), max(top, next_top)) - max(margin, next_margin)
            bounds[b] += weights[q] * _at_most(divisor, own_gains, left, right, most, (margin, next_margin), both)
            here, margin, top, limit = int(b) + 1, next_margin, next_top, next_limit
    return values, bounds


@_jit
def _centre(values: FloatArray, centred: FloatArray) -> tuple[float, float]:
    """Subtract the mean; the largest magnitude afterwards, and before. Loops, since arrays in between take longer."""
    total, after, before = 0.0, 0.0, 0.0
    for value in values:
        total += value
        before = max(before, abs(value))
    mean = total / len(values)
    for i in range(len(values)):
        centred[i] = values[i] - mean
        after = max(after, abs(centred[i]))
    return after, before


@_jit
def _project(s: FloatArray, v: FloatArray, point: FloatArray, size: Any, y: Any) -> Any:
    """Scores of a query's documents at a point, a margin for their differences, and a bound of their magnitudes.

    `s` and `v` have mean 0. `size` has their largest magnitudes, and those before the mean was subtracted.
    """
    c, d = point[0], point[1]
    for i in range(len(s)):
        y[i] = np.float32(c * s[i] + d * v[i])
    top = abs(c) * size[0] + abs(d) * size[1]
    exact = UNSURE * (abs(c) * size[2] + abs(d) * size[3])
    return np.float32(exact + FLOAT32 * top + NEAR * abs(d) * size[1] + 1e-43), np.float32(top)


@_jit
def _limit(y: Any, k: int, start: Any, top: Any) -> Any:
    """A number that at least k numbers, and hardly more, are above; at most -top if there are no k numbers.

    It is found soon if it is near `start`. All numbers are between -top and top.
    """
    limit, step = max(min(start, top), -top), top / np.float32(STEPS)
    while limit > -top and _more(y, limit) < k:
        limit = limit - step
    while limit < top and _more(y, limit + step) >= k:
        limit = limit + step
    return limit


@_jit
def _more(y: Any, limit: Any) -> int:
    """How many numbers are above a limit."""
    count = np.int32(0)
    for i in range(len(y)):
        count = np.int32(count + (y[i] > limit))
    return int(count)


@_jit
def _at_least(divisor: FloatArray, gains: FloatArray, y: Any, margin: Any, limit: Any) -> float:
    """The measure at a point if the relevant documents lose all that is uncertain, but for those below a limit."""
    value = 0.0
    for a in range(len(gains)):
        if y[a] >= limit:
            value += gains[a] / divisor[_more(y, y[a] - margin)]
    return value


@_jit
def _at_most(
    divisor: FloatArray, gains: FloatArray, left: Any, right: Any, most: Any, margins: Any, limit: Any
) -> float:
    """A bound of the measure between two points, where relevant documents below a limit are below the cut-off.

    Each of the others is at least below those that are above it at both points.
    """
    value = 0.0
    for a in range(len(gains)):
        if most[a] >= limit:
            value += gains[a] / divisor[1 + _more_in_both(left, right, left[a] + margins[0], right[a] + margins[1])]
    return value


@_jit
def _more_in_both(y: Any, z: Any, limit_y: Any, limit_z: Any) -> int:
    """In how many places two arrays are both above their limits."""
    count = np.int32(0)
    for i in range(len(y)):
        count = np.int32(count + ((y[i] > limit_y) & (z[i] > limit_z)))
    return int(count)
