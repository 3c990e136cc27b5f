"""Compiled: the swaps of relevant documents in a part of a line's x axis; see `greylag.ltr.kernels`.

A point of the x axis is a pair (c, d) with x = d / c. Scores there are c s + d v, which is finite for x = infinity,
too. They are compared in float32, with thresholds that tell which documents are above or below for certain, whatever
was rounded. Two documents whose order at both ends is certain and the same do not swap. The crossing is computed of
others only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.compilation import compiled
from greylag.ranking import FloatArray, IntArray

_jit = compiled(error_model="numpy")

UNSURE = 2.0**-47  # of the magnitude of scores, more than what they are rounded by
NEAR = 1e-6  # relative width around the end of a bucket, more than what rounding x to float32 changes
FLOAT32 = 1.2e-7  # of a number, more than what rounding it to float32 changes


@_jit
def collect(cascade: bool, lines: Any, gains: FloatArray, ends: Any, points: Any, far: float, room: int) -> Any:
    """The swaps at `ends[0]` <= x < `ends[1]`, and each relevant document's place before them.

    Parameters
    ----------
    cascade : bool
        Whether Q is of interest.
    ends : tuple of float
        The ends of the interval, infinite or rounded to float32.
    points : float array, shape (2, 2)
        Points (c, d), x = d / c, that are farther apart than the ends by `NEAR`.
    far : float
        `greylag.ltr.kernels.FAR`.
    room : int
        About the number of swaps; those of two relevant documents count twice.

    Returns
    -------
    state : tuple of arrays of shape (relevant,)
        Each relevant document at the left end: non-relevant ones above it, relevant ones down to it, and Q.
    steps : float array, shape (m,)
        The crossings, in no order.
    events : int array, shape (m,)
        Packed: 2^32 times the number of the relevant document, plus twice (the number + 1 of the other document if it
        is relevant too, or 0), plus 1 if the first one moves up.
    """
    s, v, rows, offsets, relevant_offsets = lines
    total, longest = relevant_offsets[-1], np.max(np.diff(offsets))
    above, count, reach = np.zeros(total, np.int64), np.ones(total, np.int64), np.ones(total)
    y, flags = np.empty((2, longest), np.float32), np.zeros(-(-longest // 8) * 8, np.uint8)
    most = np.max(np.diff(relevant_offsets))
    steps, events = np.empty(room + most * longest), np.empty(room + most * longest, np.int64)
    surely, maybe = np.empty((2, most), np.float32), np.empty((2, most), np.float32)
    unsure, m = np.empty(longest + 8, np.int64), 0
    for q in range(len(offsets) - 1):
        first, end = offsets[q], offsets[q + 1]
        relevant = relevant_offsets[q + 1] - relevant_offsets[q]
        left, right = y[0, : end - first], y[1, : end - first]
        flags[:] = 0
        if m + relevant * (end - first) > len(steps):
            steps, events = _longer(steps, most * longest), _longer(events, most * longest)
        for k in range(2 if relevant else 0):
            own = y[k, : end - first]
            _project(s[first:end], v[first:end], points[k], own, surely[k, :relevant], maybe[k, :relevant])
        for a in range(relevant):
            i = relevant_offsets[q] + a
            above[i] = _more_in_both(left[relevant:], right[relevant:], surely[0, a], surely[1, a])
            count[i] += _more_in_both(left[:relevant], right[:relevant], surely[0, a], surely[1, a])
            for d in range(relevant if cascade else 0):
                if left[d] > surely[0, a] and right[d] > surely[1, a]:
                    reach[i] *= 1.0 - gains[first + d]
            _flag(left, right, surely[0, a], surely[1, a], maybe[0, a], maybe[1, a], flags)
            for d in unsure[: _places(flags, unsure)]:
                apart, slope = s[first + d] - s[first + a], v[first + a] - v[first + d]
                x = apart / slope
                rounded = np.float32(x)
                if abs(rounded) < far:
                    before = (rounded >= ends[0]) == (slope > 0.0)
                    if ends[0] <= rounded < ends[1]:
                        steps[m] = x
                        other = relevant_offsets[q] + d + 1 if d < relevant else 0
                        events[m] = (i << 32) + (other << 1) + (slope > 0.0)
                        m += 1
                else:
                    before = apart > 0.0 or (apart == 0.0 and rows[first + d] < rows[first + a])
                above[i] += before and d >= relevant
                count[i] += before and d < relevant
                reach[i] *= 1.0 - gains[first + d] if cascade and before else 1.0
    return (above, count, reach), steps[:m], events[:m]


@_jit
def _longer(values: Any, more: int) -> Any:
    """A copy with room for an eighth and some more; room that is not used takes no memory."""
    longer = np.empty(len(values) + len(values) // 8 + more, values.dtype)
    longer[: len(values)] = values
    return longer


@_jit
def _places(flags: Any, places: IntArray) -> int:
    """Write the places of non-zero bytes to `places`, and return their number; eight are looked at at a time."""
    words, number = flags.view(np.uint64), 0
    for word in range(len(words)):
        if words[word]:
            for d in range(8 * word, 8 * word + 8):
                places[number] = d
                number += flags[d] != 0
    return number


@_jit
def _more_in_both(y: Any, z: Any, limit_y: float, limit_z: float) -> int:
    """In how many places two arrays are both above their limits."""
    count = np.int32(0)
    for i in range(len(y)):
        count = np.int32(count + ((y[i] > limit_y) & (z[i] > limit_z)))
    return int(count)


@_jit
def _flag(left: Any, right: Any, above0: float, above1: float, below0: float, below1: float, flags: Any) -> None:
    """Mark the documents that are neither surely above nor surely below at both points."""
    for d in range(len(left)):
        apart = ((left[d] > above0) & (right[d] > above1)) | ((left[d] < below0) & (right[d] < below1))
        flags[d] = np.uint8(not apart)


@_jit
def _project(s: FloatArray, v: FloatArray, point: FloatArray, y: Any, surely: Any, maybe: Any) -> None:
    """Scores of a query's documents at a point, in float32, less a constant.

    Documents with y > surely[a] are above document a, and those with y < maybe[a] below it, for certain; `surely` and
    `maybe` have an entry for each relevant document.
    """
    c, d = point[0], point[1]
    middle_s, middle_v = np.mean(s), np.mean(v)
    unsure = UNSURE * (abs(c) * np.max(np.abs(s)) + abs(d) * np.max(np.abs(v)))
    for i in range(len(s)):
        y[i] = c * (s[i] - middle_s) + d * (v[i] - middle_v)
    for a in range(len(surely)):
        exact = c * (s[a] - middle_s) + d * (v[a] - middle_v)
        margin = unsure + FLOAT32 * abs(exact) + 1e-43
        surely[a], maybe[a] = exact + margin, exact - margin


@_jit
def _position(x: float) -> float:
    """Map the x axis to [-1, 1]. As each step rounds monotonically, so does the whole; equal x have equal positions."""
    u = 1.0 - 1.0 / (abs(x) + 1.0)
    return u if x > 0 else -u


@_jit
def sort_by_bin(inverse: bool, steps: FloatArray, events: IntArray, ends: tuple[float, float], number: int) -> Any:
    """Sort swaps by bins of equal width on `_position`'s axis, within each those that raise H first.

    Parameters
    ----------
    inverse : bool
        Whether H falls where a document moves up past a relevant one.
    steps, events : arrays
        See `collect`.
    number : int
        The number of bins, B.

    Returns
    -------
    steps, events : arrays
        Sorted.
    bins : int array, shape (2 B + 1,)
        Where the swaps of each bin begin that raise H, and those that lower it.
    """
    low = _position(ends[0])
    per_unit = number / (_position(ends[1]) - low)
    bins, key = np.zeros(2 * number + 1, np.int64), np.empty(len(steps), np.int32)
    for e in range(len(steps)):
        place = np.int64(min(max((_position(steps[e]) - low) * per_unit, 0.0), number - 1.0))
        up, relevant = events[e] & 1, events[e] & 0xFFFFFFFE != 0
        raises = up != (inverse and relevant)
        key[e] = 2 * place + (not raises)
        bins[key[e] + 1] += 1
    bins = np.cumsum(bins)
    next_free = bins.copy()
    sorted_steps, sorted_events = np.empty_like(steps), np.empty_like(events)
    for e in range(len(steps)):
        to = next_free[key[e]]
        sorted_steps[to], sorted_events[to] = steps[e], events[e]
        next_free[key[e]] += 1
    return sorted_steps, sorted_events, bins
