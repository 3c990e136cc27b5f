"""Compiled: measures of the top ranks along a line, followed query by query.

Along scores s + x v, the top k of n documents change far less often than relevant documents swap with others, and the
first relevant document is passed still less often. So the measure of each query is followed exactly, from change to
change: nDCG@k, P@k and ERR@k by `_follow_top`, RR by `_follow_first`. The changes of all queries are entered by bucket
of the x axis, which gives the mean measure at the ends of buckets and bounds it within.

Buckets are of equal width on the axis of `_position`. A change that is so close to the end of a bucket that rounding
could put it on either side is taken to be on both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.ranking import FloatArray
from greylag.runtime.compilation import compiled

_jit = compiled(error_model="numpy")

NEAR = 1e-6  # relative width around the end of a bucket, more than what rounding x to float32 changes
STRIPS = 8  # parts of half the x axis, in each of which few documents may come to the top
CLOSE = 1e-15  # relative, more than what rounding changes of a crossing
UNSURE = 2.0**-46  # of the magnitude of scores, more than what the difference of two is rounded by
S, V, GAIN, ROW = range(4)  # of a query's documents
LEFT, HIGHEST, VALUE = range(3)  # of a query: at the left end of the bucket, within it so far, and now
CHANGE, SLACK, BLUR = range(3)  # of all queries, by bucket; the last one by left end


@_jit
def survey(
    first: bool,
    cascade: bool,
    discount: FloatArray,
    lines: Any,
    gains: FloatArray,
    weights: FloatArray,
    span: tuple[float, float],
    number: int,
) -> tuple[FloatArray, FloatArray]:
    """Bound the measure in buckets of a part of the x axis.

    Parameters
    ----------
    first : bool
        Whether only the first relevant document counts.
    cascade : bool
        Whether Q is of interest; see `greylag.ltr.kernels`.
    discount : float array, shape (depth + 2,)
        What H has as factor at each rank, from 0 on; 0 at rank 0 and beyond the cut-off.
    lines : tuple
        See `greylag.ltr.kernels`.
    gains : float array, shape (n,)
        By document, in the order of `lines`.
    weights : float array, shape (q,)
        The queries' normalisers.
    span : tuple of float
        The ends of this part, infinite or not.
    number : int
        The number of buckets, B.

    Returns
    -------
    values : float array, shape (B,)
        At most the measure at the left end of each bucket.
    bounds : float array, shape (B,)
        At least the measure within each bucket.
    """
    s, v, rows, offsets, relevant_offsets = lines
    table, start, state = np.zeros((3, number + 1)), 0.0, np.empty(3)
    axis = _position(span[0]), number / (_position(span[1]) - _position(span[0]))
    margin = np.array([NEAR * abs(end) if np.isfinite(end) else 0.0 for end in span])
    within = span[0] - margin[0], span[1] + margin[1]
    longest = np.max(np.diff(offsets)) if len(weights) else 0
    own, room = np.empty((4, longest)), np.empty((2, longest))
    for q in range(len(weights)):
        here, end = offsets[q], offsets[q + 1]
        relevant = relevant_offsets[q + 1] - relevant_offsets[q]
        if relevant == 0:
            continue
        docs, times = own[:, : end - here], room[:, : end - here]
        docs[S], docs[V], docs[GAIN], docs[ROW] = s[here:end], v[here:end], gains[here:end], rows[here:end]
        if first:
            start += _follow_first(discount, docs, relevant, weights[q], within, axis, times, state, table)
        else:
            start += _follow_top(cascade, discount, docs, weights[q], within, axis, times[0], state, table)
    values = start + np.cumsum(table[CHANGE]) - table[CHANGE]
    bounds = values[:-1] + table[SLACK, :-1] + table[BLUR, :-1] + table[BLUR, 1:]
    return (values - table[BLUR])[:-1], bounds


@_jit
def _position(x: float) -> float:
    """Map the x axis to [-1, 1]."""
    u = 1.0 - 1.0 / (abs(x) + 1.0)
    return u if x > 0 else -u


@_jit
def _enter(
    x: float, value: float, weight: float, bucket: int, axis: tuple[float, float], state: FloatArray, table: FloatArray
) -> int:
    """Enter that a query's measure is `value` from x on, to the right of all changes before; the bucket of x."""
    place = min(max((_position(x) - axis[0]) * axis[1], 0.0), table.shape[1] - 1.0)
    own = int(min(place, table.shape[1] - 2))
    if own != bucket:
        _close(weight, bucket, state, table)
    change = weight * (value - state[VALUE])
    near = NEAR * axis[1] * min(1.0, abs(x)) / (1.0 + min(1.0, abs(x))) ** 2 + 1e-9
    if place - own < near:
        table[BLUR, own] += abs(change)
    elif own + 1.0 - place < near:
        table[BLUR, own + 1] += abs(change)
    table[CHANGE, own] += change
    state[HIGHEST], state[VALUE] = max(state[HIGHEST], value), value
    return own


@_jit
def _close(weight: float, bucket: int, state: FloatArray, table: FloatArray) -> None:
    """Enter how far a query's measure rises in a bucket above its left end, and go on to the next one."""
    table[SLACK, bucket] += weight * (state[HIGHEST] - state[LEFT])
    state[LEFT], state[HIGHEST] = state[VALUE], state[VALUE]


@_jit
def _above(docs: FloatArray, a: int, b: int, x: float) -> bool:
    """Whether document a is above document b just to the right of x."""
    apart, slope = docs[S, b] - docs[S, a], docs[V, a] - docs[V, b]
    if slope == 0.0:
        return apart < 0.0 or (apart == 0.0 and docs[ROW, a] < docs[ROW, b])  # type: ignore[no-any-return]
    return (apart / slope <= x) == (slope > 0.0)  # type: ignore[no-any-return]


@_jit
def _exchange(docs: FloatArray, a: int, b: int) -> None:
    for i in range(len(docs)):
        docs[i, a], docs[i, b] = docs[i, b], docs[i, a]


@_jit
def _project(x: float, s: FloatArray, v: FloatArray, scores: FloatArray) -> float:
    """Write scores at x, divided by 1 + |x|; a margin for their differences."""
    c = 1.0 / (1.0 + abs(x))
    d = x * c if np.isfinite(x) else np.copysign(1.0, x)
    high = 0.0
    for i in range(len(s)):
        scores[i] = c * s[i] + d * v[i]
    for i in range(len(s)):
        high = max(high, abs(s[i]), abs(v[i]))
    return UNSURE * high


@_jit
def _sort_top(docs: FloatArray, k: int, x: float, scores: FloatArray) -> None:
    """Bring the top k just to the right of x to the front, in order."""
    margin, limit = _project(x, docs[S], docs[V], scores), -np.inf
    for d in range(len(scores)):
        if d < k or (scores[d] >= limit and _above(docs, d, k - 1, x)):
            place = min(d, k - 1)
            if place != d:
                _exchange(docs, place, d)
                scores[place], scores[d] = scores[d], scores[place]
            while place > 0 and _above(docs, place, place - 1, x):
                _exchange(docs, place, place - 1)
                scores[place], scores[place - 1] = scores[place - 1], scores[place]
                place -= 1
            limit = scores[k - 1] - 2.0 * margin if d >= k - 1 else -np.inf


@_jit
def _gather(docs: FloatArray, k: int, x: float, scores: FloatArray) -> int:
    """Bring those that may come to the top k up to x next to these; the end of both.

    The others are below the present top k now and at x.
    """
    margin, limit, end = _project(x, docs[S], docs[V], scores), np.inf, k
    for d in range(k):
        limit = min(limit, scores[d])
    limit -= margin
    for d in range(k, len(scores)):
        if scores[d] >= limit:
            _exchange(docs, d, end)
            end += 1
    return end


@_jit
def _passing(docs: FloatArray, upper: int, lower: int) -> float:
    """Where a document passes one that is above it; infinity if never."""
    slope = docs[V, lower] - docs[V, upper]
    return (docs[S, upper] - docs[S, lower]) / slope if slope > 0.0 else np.inf


@_jit
def _challenger(docs: FloatArray, upper: int, first: int, end: int, now: float, times: FloatArray) -> tuple[int, float]:
    """Which of the documents from `first` to `end` is the first to pass one that is above all, and where.

    If several are, as far as rounding tells, it is the one that is above the others then. -1 and infinity if none is.
    """
    s, v, times = docs[S, first:end], docs[V, first:end], times[first:end]
    own_s, own_v = docs[S, upper], docs[V, upper]
    for d in range(len(s)):
        x = (s[d] - own_s) / (own_v - v[d])
        times[d] = x if v[d] > own_v else np.inf
    found, nearest = -1, np.inf
    for d in range(len(s)):
        if times[d] < nearest:
            found, nearest = d, times[d]
    if found < 0:
        return found, nearest
    now = max(now, nearest + CLOSE * abs(nearest))
    for d in range(len(s)):
        if times[d] <= now and d != found and _above(docs, first + d, first + found, now):
            found = d
    return first + found, nearest


@_jit
def _reach(cascade: bool, gains: FloatArray, i: int) -> float:
    """Q of the document at place i."""
    reach = 1.0
    for j in range(i if cascade else 0):
        reach *= 1.0 - gains[j]
    return reach


@_jit
def _follow_top(
    cascade: bool, discount: FloatArray, docs: FloatArray, weight: float, span: Any, axis: Any, times: FloatArray,
    state: FloatArray, table: FloatArray,
) -> float:  # fmt: skip
    """Follow the top k; the measure at the left end of `span`, times the query's weight.

    Where a document passes another one, it has the greater slope. So the same two are never exchanged back at the same
    x, however crossings are rounded, and the loop ends.
    """
    k = min(len(discount) - 2, docs.shape[1])
    _sort_top(docs, k, span[0], times)
    gains, last, start = docs[GAIN], k - 1, 0.0
    for i in range(k):
        start += gains[i] * _reach(cascade, gains, i) * discount[i + 1]
    state[:] = start
    passes = np.empty(k)
    for i in range(last):
        passes[i] = _passing(docs, i, i + 1)
    now, bucket = span[0], 0
    low, high = _position(span[0]), _position(span[1])
    strips = int(np.ceil(STRIPS * (high - low)))
    for strip in range(1, strips + 1):
        u = low + (high - low) / strips * strip
        stop = u / (1.0 - abs(u)) if strip < strips else span[1]
        end = _gather(docs, k, stop, times)
        known = False
        while True:
            if not known:
                (challenger, passes[last]), known = _challenger(docs, last, k, end, now, times), True
            i, x = 0, passes[0]
            for j in range(1, k):
                i, x = (j, passes[j]) if passes[j] < x else (i, x)
            if not x < stop:
                break
            now, lower = max(now, x), i + 1 if i < last else challenger
            change = (gains[lower] - gains[i]) * (discount[i + 1] - discount[i + 2])
            if change != 0.0:
                value = state[VALUE] + change * _reach(cascade, gains, i)
                bucket = _enter(now, value, weight, bucket, axis, state, table)
            _exchange(docs, i, lower)
            if i > 0:
                passes[i - 1] = _passing(docs, i - 1, i)
            if i < last:
                passes[i] = np.inf
            if i + 1 < last:
                passes[i + 1] = _passing(docs, i + 1, i + 2)
            else:
                known = False
    _close(weight, bucket, state, table)
    return float(weight * start)


@_jit
def _follow_first(
    discount: FloatArray, docs: FloatArray, relevant: int, weight: float, span: Any, axis: Any, room: FloatArray,
    state: FloatArray, table: FloatArray,
) -> float:  # fmt: skip
    """Follow the rank of the first relevant document; the measure at the left end of `span`, times the query's weight.

    The highest of the relevant lines is convex in x. So another document is above all of them between two points, if
    anywhere.
    """
    left, right, top, x = room[0, relevant:], room[1, relevant:], 0, span[0]
    left[:], right[:] = span[0], span[1]
    for a in range(1, relevant):
        top = a if _above(docs, a, top, x) else top
    while x < span[1]:
        _narrow(docs[:, relevant:], docs[S, top], docs[V, top], docs[ROW, top], left, right)
        top, x = _challenger(docs, top, 0, relevant, x, room[0])
    above, m = 0, 0
    places, moves = np.empty(2 * len(left)), np.empty(2 * len(left), np.int64)
    for d in range(len(left)):
        if left[d] < right[d]:
            above += left[d] == span[0]
            for place, move in ((left[d], 1), (right[d], -1)):
                if span[0] < place < span[1]:
                    places[m], moves[m] = place, move
                    m += 1
    discounts = np.zeros(len(left) + 2)
    discounts[: len(discount)] = discount[: len(discounts)]
    state[:] = start = discounts[above + 1]
    bucket = 0
    for e in np.argsort(places[:m]):
        above += moves[e]
        bucket = _enter(places[e], discounts[above + 1], weight, bucket, axis, state, table)
    _close(weight, bucket, state, table)
    return float(weight * start)


@_jit
def _narrow(docs: FloatArray, s: float, v: float, row: float, left: FloatArray, right: FloatArray) -> None:
    """Narrow the intervals in which documents are above one line."""
    own_s, own_v, rows = docs[S], docs[V], docs[ROW]
    for d in range(len(left)):
        x = (own_s[d] - s) / (v - own_v[d])
        left[d] = x if (own_v[d] > v) & (x > left[d]) else left[d]
        right[d] = x if (own_v[d] < v) & (x < right[d]) else right[d]
    for d in range(len(left)):
        if own_v[d] == v and (own_s[d] < s or (own_s[d] == s and rows[d] > row)):
            right[d] = -np.inf
