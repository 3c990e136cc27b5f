"""Compiled: the swaps of relevant documents in a part of a line's x axis; see `greylag.ltr.kernels`.

A point of the x axis is a pair (c, d) with x = d / c. Scores there are c s + d v, which is finite for x = infinity,
too. Two documents whose order at both ends is certain, whatever was rounded, and the same do not swap. The crossing is
computed of others only. Documents are binned by their score at the left end, so that a relevant document is compared
only with those that are as near as two documents can move towards each other up to the right end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.ranking import FloatArray, IntArray
from greylag.runtime.compilation import compiled

_jit = compiled(error_model="numpy")

UNSURE = 2.0**-47  # of the magnitude of scores, more than what they are rounded by
NEAR = 1e-6  # relative width around the end of a bucket, more than what rounding x to float32 changes
FLOAT32 = 1.2e-7  # of a number, more than what rounding it to float32 changes
SHARED = 4  # documents of a bin, on average


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
    offsets, relevant_offsets = lines[3], lines[4]
    total, longest, most = relevant_offsets[-1], np.max(np.diff(offsets)), np.max(np.diff(relevant_offsets))
    above, count, reach = np.zeros(total, np.int64), np.ones(total, np.int64), np.ones(total)
    steps, events, m = np.empty(room + most * longest), np.empty(room + most * longest, np.int64), 0
    y, binned, order = np.empty((2, longest)), np.empty((2, longest), np.float32), np.empty(longest, np.int64)
    flags, unsure = np.zeros(-(-longest // 8) * 8, np.uint8), np.empty(longest + 8, np.int64)
    for q in range(len(offsets) - 1):
        first, n, base = offsets[q], offsets[q + 1] - offsets[q], relevant_offsets[q]
        relevant = relevant_offsets[q + 1] - base
        if relevant == 0:
            continue
        if m + relevant * n > len(steps):
            steps, events = _longer(steps, most * longest), _longer(events, most * longest)
        s, v, rows = lines[0][first : first + n], lines[1][first : first + n], lines[2][first : first + n]
        extents = _extent(s), _extent(v)
        margins = _project(s, v, points[0], extents, y[0]), _project(s, v, points[1], extents, y[1])
        distance, scale = _approach(extents, points) + 4.0 * margins[0], _scale(extents, points[0], n)
        for start, stop in ((0, relevant), (relevant, n)):
            bins, fellow = _bin(y, start, stop, scale, order, binned), start == 0
            for a in range(relevant):
                low = bins[_number(y[0, a] - distance, scale)]
                high = bins[_number(y[0, a] + distance, scale) + 1]
                left, right = binned[0, low:high], binned[1, low:high]
                (least0, most0), (least1, most1) = _around(y[0, a], margins[0]), _around(y[1, a], margins[1])
                ahead = stop - high + _more_in_both(left, right, most0, most1)
                if cascade and fellow:
                    reach[base + a] = _missed(gains[first:], order[low:stop], left, right, most0, most1)
                _flag(left, right, most0, most1, least0, least1, flags)
                for place in unsure[: _places(flags, len(left), unsure)]:
                    d = order[low + place]
                    apart, slope = s[d] - s[a], v[a] - v[d]
                    x = apart / slope
                    rounded = np.float32(x)
                    if abs(rounded) < far:
                        before = (rounded >= ends[0]) == (slope > 0.0)
                        if ends[0] <= rounded < ends[1]:
                            steps[m] = x
                            events[m] = ((base + a) << 32) + ((base + d + 1 if fellow else 0) << 1) + (slope > 0.0)
                            m += 1
                    else:
                        before = apart > 0.0 or (apart == 0.0 and rows[d] < rows[a])
                    ahead += before
                    reach[base + a] *= 1.0 - gains[first + d] if cascade and before and fellow else 1.0
                places = count if fellow else above
                places[base + a] += ahead
    return (above, count, reach), steps[:m], events[:m]


@_jit
def _longer(values: Any, more: int) -> Any:
    """A copy with room for an eighth and some more; room that is not used takes no memory."""
    longer = np.empty(len(values) + len(values) // 8 + more, values.dtype)
    longer[: len(values)] = values
    return longer


@_jit
def _places(flags: Any, n: int, places: IntArray) -> int:
    """Write the places of non-zero bytes to `places`, and return their number; eight are looked at at a time."""
    words, number = flags.view(np.uint64), 0
    for word in range((n + 7) // 8):
        if words[word]:
            for d in range(8 * word, min(8 * word + 8, n)):
                places[number] = d
                number += flags[d] != 0
    return number


@_jit
def _missed(gains: FloatArray, order: IntArray, y: Any, z: Any, limit_y: float, limit_z: float) -> float:
    """Q past the documents that are above both limits, which those beyond `y` and `z` are."""
    reach = 1.0
    for place in range(len(order)):
        if place >= len(y) or (y[place] > limit_y and z[place] > limit_z):
            reach *= 1.0 - gains[order[place]]
    return reach


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


@compiled(error_model="numpy", fastmath={"nnan", "nsz"})
def _extent(values: FloatArray) -> tuple[float, float]:
    """The least and the highest of finite values, which vectorises where there is no NaN to be kept."""
    low, high = values[0], values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
    return low, high


@_jit
def _project(s: FloatArray, v: FloatArray, point: FloatArray, extents: Any, y: FloatArray) -> float:
    """Scores of a query's documents at a point, less those of one with the least s and the least v.

    Returns more than what the difference of two is rounded by.
    """
    (low_s, high_s), (low_v, high_v), c, d = extents[0], extents[1], point[0], point[1]
    for i in range(len(s)):
        y[i] = c * (s[i] - low_s) + d * (v[i] - low_v)
    high = abs(c) * max(abs(low_s), abs(high_s)) + abs(d) * max(abs(low_v), abs(high_v))
    return UNSURE * high + 1e-43  # type: ignore[no-any-return]


@_jit
def _around(score: float, margin: float) -> Any:
    """Scores rounded to float32 that are below the first result, or above the second, are so for certain."""
    own = margin + FLOAT32 * abs(score)
    return np.float32(score - own), np.float32(score + own)


@_jit
def _approach(extents: Any, points: FloatArray) -> float:
    """By how much two scores may approach each other between the points.

    Scores at the second point are scaled such that only the difference in s, or in v, counts.
    """
    (c, d), (e, f), by_s, by_v = points[0], points[1], np.inf, np.inf
    if c > 0.0 and e > 0.0:
        by_v = abs(f / e * c - d) * (extents[1][1] - extents[1][0])
    if d * f > 0.0:
        by_s = abs(e / f * d - c) * (extents[0][1] - extents[0][0])
    return min(by_v, by_s)


@_jit
def _scale(extents: Any, point: FloatArray, n: int) -> tuple[float, float, int]:
    """A number below all scores at a point, the bins per unit, and the number of bins."""
    span_s, span_v = point[0] * (extents[0][1] - extents[0][0]), point[1] * (extents[1][1] - extents[1][0])
    number = 1 + n // SHARED
    return min(span_v, 0.0), min(number / max(span_s + abs(span_v), 1e-300), 1e300), number


@_jit
def _number(score: float, scale: tuple[float, float, int]) -> int:
    """The bin of a score."""
    return int(min(max((score - scale[0]) * scale[1], 0.0), scale[2] - 1.0))


@_jit
def _bin(
    y: FloatArray, start: int, stop: int, scale: tuple[float, float, int], order: IntArray, binned: FloatArray
) -> IntArray:
    """Sort some documents by bin, and their scores with them; the places where bins begin, and the end."""
    bins = np.zeros(scale[2] + 2, np.int64)
    for d in range(start, stop):
        bins[_number(y[0, d], scale) + 2] += 1
    bins[0] = bins[1] = start
    for b in range(2, len(bins)):
        bins[b] += bins[b - 1]
    for d in range(start, stop):
        b = _number(y[0, d], scale) + 1
        order[bins[b]], binned[0, bins[b]], binned[1, bins[b]] = d, y[0, d], y[1, d]
        bins[b] += 1
    return bins[:-1]


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
