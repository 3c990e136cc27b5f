"""Compiled: bounds along a line for measures of the top ranks whose H depends on the gain and the rank alone.

These are nDCG@k and P@k, with H = gain / divisor. Between two points of the x axis a document that is below k others at
both points is below them throughout, so that few documents of a query have to be looked at, and no crossing is computed.
Points and scores there are those of `greylag.ltr.swaps`. Scores are compared in float32, with a margin that covers what
is rounded and that ends of buckets are rounded, too.
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
HALVINGS = 8


@_jit
def survey(
    depth: int, divisor: FloatArray, lines: Any, gains: FloatArray, weights: FloatArray, points: FloatArray, stride: int
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
    values, bounds = np.zeros(len(points) - 1), np.zeros(len(points) - 1)
    room = np.empty((4, np.max(np.diff(offsets))), np.float32)
    for q in range(0, len(weights), stride):
        first, end = offsets[q], offsets[q + 1]
        relevant = relevant_offsets[q + 1] - relevant_offsets[q]
        if relevant == 0:
            continue
        y = room[:, : end - first]
        own_s, own_v, own_gains = s[first:end], v[first:end], gains[first : first + relevant]
        spread = _spread(own_s), _spread(own_v), np.max(np.abs(own_s)), np.max(np.abs(own_v))
        margin, top = _project(own_s, own_v, points[0], spread, y[0])
        for b in range(len(values)):
            left, right = y[b % 2], y[(b + 1) % 2]
            values[b] += weights[q] * _at_least(depth, divisor, own_gains, left, margin, top)
            other_margin, other_top = _project(own_s, own_v, points[b + 1], spread, right)
            margins, top = (margin, other_margin), max(top, other_top)
            bounds[b] += weights[q] * _at_most(depth, divisor, own_gains, left, right, margins, top, y[2:])
            margin, top = other_margin, other_top
    return values, bounds


@_jit
def _spread(values: FloatArray) -> float:
    """The largest distance from the mean."""
    return float(np.max(np.abs(values - np.mean(values))))


@_jit
def _project(s: FloatArray, v: FloatArray, point: FloatArray, spread: Any, y: Any) -> Any:
    """Scores of a query's documents at a point, less a constant; a margin for their differences, and their maximum."""
    c, d = point[0], point[1]
    middle_s, middle_v = np.mean(s), np.mean(v)
    for i in range(len(s)):
        y[i] = np.float32(c * (s[i] - middle_s) + d * (v[i] - middle_v))
    top = abs(c) * spread[0] + abs(d) * spread[1]
    exact = UNSURE * (abs(c) * spread[2] + abs(d) * spread[3])
    return np.float32(exact + FLOAT32 * top + NEAR * abs(d) * spread[1] + 1e-43), np.float32(top)


@_jit
def _kth(y: Any, k: int, top: Any) -> Any:
    """A number that at least k numbers are above, and hardly more; -infinity if there are no k numbers."""
    low, high = -np.float32(np.inf), top
    middle = np.float32(0.0)
    for halving in range(HALVINGS):
        if _more(y, middle) >= k:
            low = middle
        else:
            high = middle
        width = np.float32(2.0) * top / np.float32(2 << (halving + 1))
        middle = middle + width if low == middle else middle - width
    return low


@_jit
def _more(y: Any, limit: Any) -> int:
    """How many numbers are above a limit."""
    count = np.int32(0)
    for i in range(len(y)):
        count = np.int32(count + (y[i] > limit))
    return int(count)


@_jit
def _at_least(depth: int, divisor: FloatArray, gains: FloatArray, y: Any, margin: Any, top: Any) -> float:
    """The measure at a point if the relevant documents lose all that is uncertain."""
    value, low = 0.0, _kth(y, depth, top)
    for a in range(len(gains)):
        if y[a] >= low:
            value += gains[a] / divisor[_more(y, y[a] - margin)]
    return value


@_jit
def _at_most(
    depth: int, divisor: FloatArray, gains: FloatArray, left: Any, right: Any, margins: Any, top: Any, ends: Any
) -> float:
    """A bound of the measure between two points: each relevant document is below those above it at both only."""
    least, most = ends[0], ends[1]
    for d in range(len(left)):
        least[d] = left[d] if left[d] < right[d] else right[d]
        most[d] = right[d] if left[d] < right[d] else left[d]
    value, low = 0.0, _kth(least, depth, top) - max(margins[0], margins[1])
    for a in range(len(gains)):
        if most[a] >= low:
            value += gains[a] / divisor[1 + _more_in_both(left, right, left[a] + margins[0], right[a] + margins[1])]
    return value


@_jit
def _more_in_both(y: Any, z: Any, limit_y: Any, limit_z: Any) -> int:
    """In how many places two arrays are both above their limits."""
    count = np.int32(0)
    for i in range(len(y)):
        count = np.int32(count + ((y[i] > limit_y) & (z[i] > limit_z)))
    return int(count)
