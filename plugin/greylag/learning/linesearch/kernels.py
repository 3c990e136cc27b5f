"""Compiled code of the exact line search: measures of a ranking, and how they change along a line.

All of it is one module, since Numba's cache of a function does not notice changes in other modules. `line_search`
explains the method with an example; the slow and obvious version is among the tests.

Every measure is a sum over a query's relevant documents r of H(gain_r, rank_r, i_r, Q_r), where i_r counts the relevant
documents down to r, and Q_r is the probability that a user reaches r past those above it (ERR). `term` is H. A relevant
document's place is kept as two numbers: the non-relevant documents above it (`above`), and the relevant ones down to it
(`count`), itself included. Its rank is their sum.

Layout of the arrays, for n documents of q queries, `relevant` of them relevant:

- ``lines`` is a tuple (s, v, rows, offsets, relevant_offsets): the lines s + x v of all documents, ordered by query
  with each query's relevant documents first. ``rows`` are their places in the data, which break ties. Query i has the
  documents ``offsets[i]:offsets[i + 1]``, and ``relevant_offsets`` numbers the relevant ones of all queries.
- ``gains`` has a gain for each document in that order, or for each relevant one; ``weights`` are the normalisers of the
  queries, or of the queries of relevant documents.
- ``divisor[rank]`` divides H at a rank, and is infinite beyond the cut-off.
- ``state`` is a tuple (above, count, reach) of arrays of shape (relevant,); reach is Q.
- ``steps`` and ``events``, shape (m,), are the swaps: where a relevant document and another one cross, and which. An
  event is 2^32 times the number of the relevant document, plus twice the number + 1 of the other one if it is relevant,
  too (or 0), plus 1 if the first one moves up. Two relevant documents are two events.
- ``bins``, shape (2 B + 1,), are where the swaps of each bin begin that raise H, and those that lower it.

Crossings. Two lines cross at x = (s_d - s_a) / (v_a - v_d), as computed in floating point. v is scaled by a power of
two such that x is about 1. x is rounded to float32 for a comparison with the ends of buckets, but not for one with
another x. The *cell* of a pair has the sign of v_a - v_d (its highest bit), and the sign, the exponent and `CELL_BITS`
bits of the mantissa of x, just as they are in a float32. The *slot* of a cell is 2b + up for bucket b of the x axis,
with up = 1 if the relevant document moves up there. Three more slots after those of the B buckets hold the pairs that
never cross: the other document is below the relevant one (2B), above it (2B + 1), or on the same line (2B + 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.base import FloatArray, IntArray, compiled

_jit = compiled(error_model="numpy")

AP, NDCG, RR, P, ERR = range(5)

# Means of the measure that differ by less are equal: they differ by rounding alone.
MEAN_TOLERANCE = 1e-12
# Sums of the changes at all swaps, which may be millions, are rounded by less than this.
ROUNDING = 1e-11
# Intervals of less than this relative width are no result: rounding of scores could close them.
MIN_RELATIVE_WIDTH = 1e-10
# Bits of the mantissa of x that a cell has. The table of all cells, a byte each, then takes half a megabyte, which a
# processor's cache holds, and a cell is 0.2 % wide.
CELL_BITS = 9
# A float32 has 23 bits of mantissa; a cell drops the others.
CELL_SHIFT = 23 - CELL_BITS
# The bit of the sign of x in the number of a cell; that of v_a - v_d is the bit above it.
SIGN = 1 << (8 + CELL_BITS)
# Lines that cross at this x or beyond count as never crossing: s + x v in float64 no longer depends on s there.
MAX_CROSSING = 2.0**54
# The most slots: the number of a slot fits in a byte.
SLOTS = 256
# The lower half of an event: the other document and the direction.
LOWER_HALF = (1 << 32) - 1
# Relative width around the end of a bucket in which a crossing may count on either side. Rounding x to float32 changes
# it by at most 6e-8 of itself.
END_TOLERANCE = 1e-6
# The difference of two scores is rounded by less than this fraction of their magnitude, 64 units in the last place.
DIFFERENCE_ROUNDING = 2.0**-46
# Rounding a number to float32 changes it by less than this fraction of itself.
FLOAT32_ROUNDING = 1.2e-7
# Documents of a bin of scores, on average: few enough that a search looks at few too many.
DOCUMENTS_PER_BIN = 4
# The x axis has this number of strips, in each of which documents that stay below the top are found.
STRIPS = 8
# What begins as a literal 0 has a type of its own, for which Numba compiles a function once more.
ZERO: Any = np.int64(0)


# ----------------------------------------------------------------------------------------------------------------------
# Measures of a ranking
# ----------------------------------------------------------------------------------------------------------------------


@_jit
def divisors(code: int, depth: int, longest: int) -> FloatArray:
    """Return the divisor of H at each rank from 0 to `longest` + 1: infinity beyond the cut-off `depth`."""
    table = np.empty(longest + 2)
    for rank in range(len(table)):
        if rank < 1 or rank > depth:
            table[rank] = np.inf
        elif code == NDCG:
            table[rank] = np.log2(rank + 1.0)
        else:
            table[rank] = 1.0 if code == P else rank
    return table


@_jit
def term(code: int, divisor: float, gain: float, count: int, reach: float) -> float:
    """Compute H of a relevant document; `divisor` is the entry of `divisors` at its rank."""
    if code == AP:
        return count / divisor
    if code == NDCG:
        return gain / divisor
    if code == RR:
        return 1.0 / divisor if count == 1 else 0.0
    if code == P:
        return 1.0 / divisor
    return gain * reach / divisor


@_jit
def highest_term(code: int, divisor: FloatArray, gain: float, above: int, count: int, more: int, reach: float) -> float:
    """Return an upper bound of H for any order of the swaps in a bucket.

    It has the fewest non-relevant documents above it (`above`), the fewest and the most relevant ones down to it
    (`count` and `more`), and the highest Q (`reach`). `divisor` is the result of `divisors`.
    """
    best = divisor[above + count]
    if code == AP:
        return more / (above + more) if best < np.inf else 0.0
    return term(code, best, gain, count, reach)  # type: ignore[no-any-return]


@_jit
def evaluate(
    code: int, divisor: FloatArray, offsets: IntArray, scores: FloatArray, gains: FloatArray, normalisers: FloatArray
) -> Any:
    """Evaluate the measure of each query times its normaliser, shape (q,); the earlier row wins ties."""
    values = np.zeros(len(offsets) - 1)
    ranked = np.empty(_longest(offsets) + 1)
    for q in range(len(values)):
        first, end = offsets[q], offsets[q + 1]
        ranked[:] = 0.0  # the gain by rank
        for d in range(first, end):
            if gains[d] > 0:
                rank = 1 + _at_least(scores[first:d], scores[d]) + _more(scores[d + 1 : end], scores[d])
                ranked[rank] = gains[d]
        count, reach = 0, 1.0
        for rank in range(1, end - first + 1):
            gain = ranked[rank]
            if gain > 0:
                count += 1
                values[q] += term(code, divisor[rank], gain, count, reach)
                reach *= 1.0 - gain  # used by ERR only
        values[q] *= normalisers[q]
    return values


@_jit
def _longest(offsets: IntArray) -> int:
    """Return the greatest difference of two successive offsets, or 0."""
    longest = np.int64(0)
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    return longest  # type: ignore[return-value]


@_jit
def _more(y: Any, limit: float) -> int:
    """Count numbers above a limit. Counting in 32 bits lets these loops use vectors of twice the length."""
    count = np.int32(0)
    for i in range(len(y)):
        count = np.int32(count + (y[i] > limit))
    return int(count)


@_jit
def _at_least(y: Any, limit: float) -> int:
    """Count numbers at or above a limit."""
    count = np.int32(0)
    for i in range(len(y)):
        count = np.int32(count + (y[i] >= limit))
    return int(count)


# ----------------------------------------------------------------------------------------------------------------------
# Survey: bound the measure in each bucket of the x axis, by one pass over all pairs
#
# For each relevant document, its pairs are counted by slot. Slots encode how many documents it falls and rises past in
# each bucket, so that its place at the left end of each bucket follows from left to right, and the best place it can
# have within the bucket is the one after all its rises and none of its falls.
# ----------------------------------------------------------------------------------------------------------------------


@_jit
def survey(
    code: int, divisor: FloatArray, lines: Any, gains: Any, weights: Any, slots: Any, buckets: int, stride: int
) -> Any:
    """Bound the measure in B buckets by the pairs of the queries 0, `stride`, 2 `stride`, ....

    `slots`, shape (4 * SIGN,), has the slot of each cell. Returns the measure at x = -infinity, and for each bucket how
    much it changes over it, how much it can rise above its left end at most, and the number of its swaps, where those
    of two relevant documents count twice.
    """
    s, v, rows, offsets, relevant_offsets = lines
    start, number = 0.0, np.zeros(buckets, np.int64)
    change, slack = np.zeros(buckets), np.zeros(buckets)
    ease, factor = np.ones(buckets), np.ones(buckets)
    longest = _longest(offsets)
    cells = np.empty(longest, np.uint32)
    crossing, apart = np.empty(longest, np.float32), np.empty(longest, np.float32)
    x, slope = (crossing, crossing.view(np.int32)), (apart, apart.view(np.int32))
    others, fellows = np.zeros(SLOTS, np.int32), np.zeros(SLOTS, np.int32)
    places, reach, values = np.empty((5, buckets + 1), np.int32), np.ones((2, buckets + 1)), np.empty((2, buckets + 1))
    for q in range(0, len(weights), stride):
        first, end = offsets[q], offsets[q + 1]
        relevant, query_gains = relevant_offsets[q + 1] - relevant_offsets[q], gains[first:end]
        cell = cells[: end - first]
        for a in range(relevant):
            _cells(s[first:end], v[first:end], a, x, slope, cell)
            _count(cell[:relevant], slots, fellows)
            _count(cell[relevant:], slots, others)
            above, count = _at_the_left(others, fellows, buckets, slots, cell, rows[first:end], relevant, a)
            if code == ERR:
                reach[0, 0] = _pass_relevant(cell, slots, query_gains[:relevant], a, ease, factor)
                for b in range(buckets):
                    reach[0, b + 1], reach[1, b] = reach[0, b] * factor[b], reach[0, b] * ease[b]
                ease[:], factor[:] = 1.0, 1.0
            # A document that never comes within the cut-off adds nothing.
            if divisor[_follow_buckets(others, fellows, above, count, places, number)] < np.inf:
                _terms(code, divisor, query_gains[a], places, reach, values)
                start += weights[q] * values[0, 0]
                for b in range(buckets):
                    slack[b] += weights[q] * max(values[1, b] - values[0, b], 0.0)
                    change[b] += weights[q] * (values[0, b + 1] - values[0, b])
            others[:], fellows[:] = 0, 0
    return start, change, slack, number


@_jit
def _cells(s: FloatArray, v: FloatArray, a: int, x: Any, slope: Any, cell: Any) -> None:
    """Return the cell of each document's crossing with document a of its query; both loops vectorise.

    `x` and `slope` have room for float32 numbers, and for their bits as int32.
    """
    # For s = (0, 2), v = (1, 0) and a = 0: x = 2 and v_a - v_d = 1, both positive, so a moves up past the other at 2.
    for d in range(len(s)):
        apart = v[a] - v[d]
        x[0][d] = (s[d] - s[a]) / apart
        slope[0][d] = apart
    for d in range(len(s)):
        x_bits = (x[1][d] >> np.int32(CELL_SHIFT)) & np.int32(2 * SIGN - 1)
        cell[d] = x_bits | ((slope[1][d] >> np.int32(31)) & np.int32(2 * SIGN))


@_jit
def _count(cell: Any, slots: Any, table: Any) -> None:
    """Add pairs to a table by slot. Unsigned numbers spare the test for negative indices."""
    for d in range(len(cell)):
        table[np.uint64(slots[np.uint64(cell[d])])] += np.int32(1)


@_jit
def _follow_buckets(others: Any, fellows: Any, above: int, count: int, places: Any, number: IntArray) -> int:
    """Follow a relevant document through the buckets; the highest rank that it may reach in one of them.

    At x = -infinity, it has `above` non-relevant documents above it and `count` relevant ones down to it. `places`,
    shape (5, B + 1), is set to both numbers at the left end of each bucket, to the fewest of both within it, and to the
    most relevant documents down to it. The swaps of each bucket are added to `number`.
    """
    here, down_to = np.int32(above), np.int32(count)
    highest = np.int32(above + count)
    for b in range(len(number)):
        # Past non-relevant documents, and past relevant ones: down (even slots), and up (odd slots).
        falls, rises = others[2 * b], others[2 * b + 1]
        behind, past = fellows[2 * b], fellows[2 * b + 1]
        number[b] += falls + rises + behind + past
        fewest, least = here - rises, down_to - past
        most = down_to + behind
        places[0, b], places[1, b], places[2, b], places[3, b], places[4, b] = here, down_to, fewest, least, most
        highest = min(highest, np.int32(fewest + least))
        here, down_to = np.int32(fewest + falls), np.int32(most - past)
    places[:, -1] = here
    places[1, -1] = places[3, -1] = places[4, -1] = down_to
    return int(highest)


@_jit
def _terms(code: int, divisor: FloatArray, gain: float, places: Any, reach: FloatArray, values: FloatArray) -> None:
    """Compute H at the left end of each bucket, and its upper bound within: `values`, shape (2, B + 1).

    `places` is what `_follow_buckets` sets, and `reach` has Q at the left ends, and the highest within.
    """
    above, count, fewest, least, most = places[0], places[1], places[2], places[3], places[4]
    for b in range(len(above)):
        values[0, b] = term(code, divisor[np.uint32(above[b] + count[b])], gain, count[b], reach[0, b])
        values[1, b] = highest_term(code, divisor, gain, fewest[b], least[b], most[b], reach[1, b])


@_jit
def _at_the_left(
    others: Any, fellows: Any, buckets: int, slots: Any, cell: Any, rows: IntArray, relevant: int, a: int
) -> tuple[int, int]:
    """Return, for document a at x = -infinity, non-relevant documents above it, and relevant ones down to it.

    `others` and `fellows` are its pairs with non-relevant and with relevant documents, by slot.
    """
    above, count = 0, 1
    for b in range(buckets + 1):
        above += others[2 * b + 1]
        count += fellows[2 * b + 1]
    # With 2B + 1 the odd slots are all documents that a ever passes upwards, or has above it for ever: just those above
    # it at -infinity. Documents on the same line are ordered by row.
    same = 2 * buckets + 2
    if others[same] + fellows[same] > 1:  # more than a itself
        for d in range(len(cell)):
            if slots[cell[d]] == same and rows[d] < rows[a]:
                above += d >= relevant
                count += d < relevant
    return above, count


@_jit
def _pass_relevant(cell: Any, slots: Any, gains: FloatArray, a: int, ease: FloatArray, factor: FloatArray) -> float:
    """Return Q of document a at x = -infinity, and its factors per bucket, at most (`ease`) and in all (`factor`)."""
    reach, never = 1.0, 2 * len(factor)
    for d in range(len(gains)):
        slot = slots[cell[d]]
        if (slot & 1 and slot < never + 2) or (slot == never + 2 and d < a):
            reach *= 1.0 - gains[d]
        if slot < never and slot & 1:
            ease[slot >> 1] /= 1.0 - gains[d]
            factor[slot >> 1] /= 1.0 - gains[d]
        elif slot < never:
            factor[slot >> 1] *= 1.0 - gains[d]
    return reach


# ----------------------------------------------------------------------------------------------------------------------
# Swaps: collect them in an interval of the x axis, and sort them by bin
#
# A point of the x axis is a pair (c, d) with x = d / c. Scores there are c s + d v, which is finite for x = infinity,
# too. Two documents whose order at both ends is certain, whatever was rounded, and the same do not swap. The crossing
# is computed of others only. Documents are binned by their score at the left end, so that a relevant document is
# compared only with those that are as near as two documents can move towards each other up to the right end.
# ----------------------------------------------------------------------------------------------------------------------


@_jit
def collect(cascade: bool, lines: Any, gains: FloatArray, ends: Any, points: Any, room: int) -> Any:
    """Collect the swaps at `ends[0]` <= x < `ends[1]`, in no order, and each relevant document's place before them.

    `points`, shape (2, 2), are farther apart than the ends by `END_TOLERANCE`. `cascade` says whether Q is of interest,
    and `room` is about the number of swaps. Returns state, steps and events.
    """
    offsets, relevant_offsets = lines[3], lines[4]
    total, m = relevant_offsets[-1], 0
    longest, most = _longest(offsets), _longest(relevant_offsets)
    above, count, reach = np.zeros(total, np.int64), np.ones(total, np.int64), np.ones(total)
    steps, events = np.empty(room + most * longest), np.empty(room + most * longest, np.int64)
    y, binned = np.empty((2, longest)), np.empty((2, longest), np.float32)
    order = np.empty(longest, np.int64)
    flags, unsure = np.zeros(-(-longest // 8) * 8, np.uint8), np.empty(longest + 8, np.int64)
    for q in range(len(offsets) - 1):
        first, base = offsets[q], relevant_offsets[q]
        n = offsets[q + 1] - first
        relevant = relevant_offsets[q + 1] - base
        if relevant == 0:
            continue
        if m + relevant * n > len(steps):
            steps, events = _longer(steps, most * longest), _longer(events, most * longest)
        s, v = lines[0][first : first + n], lines[1][first : first + n]
        rows = lines[2][first : first + n]
        extents = _extent(s), _extent(v)
        margins = (
            _scores_above_least(s, v, points[0], extents, y[0]),
            _scores_above_least(s, v, points[1], extents, y[1]),
        )
        distance, scale = _approach(extents, points) + 4.0 * margins[0], _scale(extents, points[0], n)
        for start, stop in ((0, relevant), (relevant, n)):
            bins, fellow = _bin(y, start, stop, scale, order, binned), start == 0
            for a in range(relevant):
                low = bins[_number(y[0, a] - distance, scale)]
                high = bins[_number(y[0, a] + distance, scale) + 1]
                left, right = binned[0, low:high], binned[1, low:high]
                (least0, most0), (least1, most1) = _around(y[0, a], margins[0]), _around(y[1, a], margins[1])
                # Documents in higher bins, and those that are surely above at both points; the order of others that
                # are not surely below at both (`unsure`) is computed.
                ahead = stop - high + _more_in_both(left, right, most0, most1)
                if cascade and fellow:
                    reach[base + a] = _missed(gains[first:], order[low:stop], left, right, most0, most1)
                _flag(left, right, most0, most1, least0, least1, flags)
                for index in unsure[: _set_flags(flags, len(left), unsure)]:
                    d = order[low + index]
                    apart, slope = s[d] - s[a], v[a] - v[d]
                    x = apart / slope
                    rounded = np.float32(x)
                    if (
                        abs(rounded) < MAX_CROSSING
                    ):  # left of x, d is above a if a has the greater slope, else right of it
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
    """Copy an array into one with an eighth and some more of room; unused room takes no memory."""
    longer = np.empty(len(values) + len(values) // 8 + more, values.dtype)
    for i in range(len(values)):
        longer[i] = values[i]
    return longer


@_jit
def _set_flags(flags: Any, n: int, indices: IntArray) -> int:
    """Write the indices of non-zero bytes to `indices`, and return their number."""
    # Eight bytes at a time: most words are 0.
    words, number = flags.view(np.uint64), 0
    for word in range((n + 7) // 8):
        if words[word]:
            for d in range(8 * word, min(8 * word + 8, n)):
                indices[number] = d
                number += flags[d] != 0
    return number


@_jit
def _missed(gains: FloatArray, order: IntArray, y: Any, z: Any, limit_y: float, limit_z: float) -> float:
    """Compute Q past the documents that are above both limits, which those beyond `y` and `z` are."""
    reach = 1.0
    for place in range(len(order)):
        if place >= len(y) or (y[place] > limit_y and z[place] > limit_z):
            reach *= 1.0 - gains[order[place]]
    return reach


@_jit
def _more_in_both(y: Any, z: Any, limit_y: float, limit_z: float) -> int:
    """Count indices at which two arrays are both above their limits."""
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
    """Find the least and the highest of finite values, which vectorises where there is no NaN to be kept."""
    low, high = values[0], values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
    return low, high


@_jit
def _scores_above_least(s: FloatArray, v: FloatArray, point: FloatArray, extents: Any, y: FloatArray) -> float:
    """Return scores of a query's documents at a point, less those of one with the least s and the least v.

    Returns more than what the difference of two is rounded by.
    """
    (low_s, high_s), (low_v, high_v), c, d = extents[0], extents[1], point[0], point[1]
    for i in range(len(s)):
        y[i] = c * (s[i] - low_s) + d * (v[i] - low_v)
    high = abs(c) * max(abs(low_s), abs(high_s)) + abs(d) * max(abs(low_v), abs(high_v))
    return DIFFERENCE_ROUNDING * high + 1e-43  # type: ignore[no-any-return]


@_jit
def _around(score: float, margin: float) -> Any:
    """Return two limits: scores rounded to float32 below the first, or above the second, are so for certain."""
    width = margin + FLOAT32_ROUNDING * abs(score)
    return np.float32(score - width), np.float32(score + width)


@_jit
def _approach(extents: Any, points: FloatArray) -> float:
    """Bound by how much two scores may approach each other between the points.

    Scores at the second point are scaled so that only the difference in s, or in v, counts.
    """
    (c, d), (e, f), by_s, by_v = points[0], points[1], np.inf, np.inf
    if c > 0.0 and e > 0.0:
        by_v = abs(f / e * c - d) * (extents[1][1] - extents[1][0])
    if d * f > 0.0:
        by_s = abs(e / f * d - c) * (extents[0][1] - extents[0][0])
    return min(by_v, by_s)


@_jit
def _scale(extents: Any, point: FloatArray, n: int) -> tuple[float, float, int]:
    """Return a number below all scores at a point, the bins per unit, and the number of bins."""
    span_s, span_v = point[0] * (extents[0][1] - extents[0][0]), point[1] * (extents[1][1] - extents[1][0])
    number = 1 + n // DOCUMENTS_PER_BIN
    return min(span_v, 0.0), min(number / max(span_s + abs(span_v), 1e-300), 1e300), number


@_jit
def _number(score: float, scale: tuple[float, float, int]) -> int:
    """Return the bin of a score."""
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
    """Sort swaps by B = `number` bins of equal width on `_position`'s axis, within each those that raise H first.

    `inverse` says whether H falls where a document moves up past a relevant one. Returns steps, events and bins.
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


# ----------------------------------------------------------------------------------------------------------------------
# Sweep: follow the measure through sorted swaps
# ----------------------------------------------------------------------------------------------------------------------


@_jit
def sweep(
    code: int,
    divisor: FloatArray,
    lines: Any,
    gains: FloatArray,
    weights: FloatArray,
    state: Any,
    steps: FloatArray,
    events: IntArray,
    bins: IntArray,
    scale: float,
    outermost: tuple[bool, bool],
    floor: float,
    best: tuple[float, float, float],
) -> tuple[float, float, float]:
    """Follow the measure through swaps that are sorted by bin; overwrites the state, and sorts within bins.

    Within a bin, the swaps that raise H come first. So the measure after them bounds it within the bin in any order.
    Only where it may beat the best, the swaps are sorted.

    `best` is the best interval so far: its middle, the measure on it, its width. It is returned with the intervals that
    begin within the bins. `scale` is what a crossing is multiplied by for the scale of `best`. `outermost` says whether
    there are no other swaps to the left, and to the right. Values below `floor` are of no interest.
    """
    above, count, reach = state
    value = 0.0
    for i in range(len(gains)):
        value += weights[i] * term(code, divisor[above[i] + count[i]], gains[i], count[i], reach[i])
    if outermost[0] and value >= max(floor, best[1]) - ROUNDING:
        after = scale * _first_after(steps, bins, ZERO, lines, outermost[1], -np.inf)
        half = max(1.0, abs(after)) if after < np.inf else 0.0
        best = _better(best, after - half if after < np.inf else 0.0, 2.0 * max(half, 1.0), 1.0, value)
    for b in range(len(bins) // 2):
        first, middle, end = bins[2 * b], bins[2 * b + 1], bins[2 * b + 2]
        # All rises of H without any fall: no order of the bin's swaps gives more.
        before = value
        for e in range(first, middle):
            value += _swap(code, divisor, gains, weights, above, count, reach, events[e])
        slack = 0.0
        if code == AP and divisor[-1] == np.inf:
            slack = _cut_off_slack(divisor, gains, weights, above, count, events[first:end])
        if value + slack < max(floor, best[1]) - ROUNDING or first == end:
            for e in range(middle, end):
                value += _swap(code, divisor, gains, weights, above, count, reach, events[e])
            continue
        # The bin may hold the maximum: take the rises back (the lowest bit is the direction), sort, and go one by one.
        for e in range(middle - 1, first - 1, -1):
            _swap(code, divisor, gains, weights, above, count, reach, events[e] ^ 1)
        value = before
        order, unsorted = np.argsort(steps[first:end]), (steps[first:end].copy(), events[first:end].copy())
        for i in range(end - first):
            steps[first + i], events[first + i] = unsorted[0][order[i]], unsorted[1][order[i]]
        e = first
        while e < end:
            here = steps[e]
            while e < end and steps[e] == here:  # swaps at the same x are one change of the measure
                value += _swap(code, divisor, gains, weights, above, count, reach, events[e])
                e += 1
            if value > best[1] - MEAN_TOLERANCE:
                after = scale * (steps[e] if e < end else _first_after(steps, bins, b + 1, lines, outermost[1], here))
                here *= scale
                half = max(1.0, abs(here))
                width = (after if after < np.inf else here + 2.0 * half) - here
                best = _better(best, here + 0.5 * width, width, max(min(1.0, scale), abs(here)), value)
    return best


@_jit
def _swap(
    code: int, divisor: Any, gains: Any, weights: Any, above: IntArray, count: IntArray, reach: Any, event: int
) -> float:
    """Move a relevant document past another one, as `event` encodes; return the change of the measure."""
    r, other, up = event >> 32, ((event & LOWER_HALF) >> 1) - 1, event & 1
    before = term(code, divisor[above[r] + count[r]], gains[r], count[r], reach[r])
    if other < 0:
        above[r] += 1 - 2 * up
    else:
        count[r] += 1 - 2 * up
        if code == ERR:
            reach[r] *= 1.0 / (1.0 - gains[other]) if up else 1.0 - gains[other]
    after = term(code, divisor[above[r] + count[r]], gains[r], count[r], reach[r])
    return weights[r] * (after - before)  # type: ignore[no-any-return]


@_jit
def _cut_off_slack(
    divisor: FloatArray, gains: FloatArray, weights: FloatArray, above: IntArray, count: IntArray, events: IntArray
) -> float:
    """Bound how much higher AP with a cut-off may be than without it at the highest H of each document.

    A relevant document that moves up past another one may come before the cut-off, so that no order of a bin's swaps
    gives the highest H.
    """
    slack = 0.0
    for event in events:
        r = event >> 32
        if divisor[above[r] + count[r]] == np.inf and divisor[above[r] + 1] < np.inf:
            slack += weights[r] * count[r] / (above[r] + count[r])
    return slack


@_jit
def _better(
    best: tuple[float, float, float], middle: float, width: float, magnitude: float, value: float
) -> tuple[float, float, float]:
    """Return the better interval: the higher; of equally high ones the wider, of equally wide ones the left one.

    Intervals that rounding could close do not count. That the last rule is there makes the result independent of the
    order in which buckets are swept.
    """
    higher = value > best[1] + MEAN_TOLERANCE
    wider = width > best[2] or (width == best[2] and middle < best[0])
    if width > MIN_RELATIVE_WIDTH * magnitude and (higher or (value > best[1] - MEAN_TOLERANCE and wider)):
        return middle, max(value, best[1]), width
    return best


@_jit
def _first_after(steps: FloatArray, bins: IntArray, b: int, lines: Any, last: bool, x: float) -> float:
    """Return the first crossing to the right of x, which is before all of bin b and its successors."""
    for later in range(b, len(bins) // 2):
        if bins[2 * later] < bins[2 * later + 2]:
            first = np.inf
            for e in range(bins[2 * later], bins[2 * later + 2]):
                first = min(first, steps[e])
            return first
    return np.inf if last else _crossing_after(lines, x)


@_jit
def _crossing_after(lines: Any, x: float) -> float:
    """Return the first crossing to the right of x; infinity if there is none."""
    s, v, _, offsets, relevant_offsets = lines
    first = np.inf
    for q in range(len(offsets) - 1):
        for a in range(offsets[q], offsets[q] + relevant_offsets[q + 1] - relevant_offsets[q]):
            nearest = np.inf
            for d in range(offsets[q], offsets[q + 1]):
                crossing = (s[d] - s[a]) / (v[a] - v[d])
                counts = (crossing > x) & (abs(np.float32(crossing)) < MAX_CROSSING)
                nearest = min(nearest, crossing if counts else np.inf)
            first = min(first, nearest)
    return first


# ----------------------------------------------------------------------------------------------------------------------
# Top ranks: leave out the documents that never come there
#
# Below a cut-off, ranks count for nothing, and most documents never rise above it, wherever x is. The measure of the
# others alone is the same at every x, and has few crossings. Of RR, relevant documents that are never the first count
# for nothing, either.
# ----------------------------------------------------------------------------------------------------------------------


@_jit
def may_count(first: bool, depth: int, lines: Any) -> Any:
    """Return which documents may be among the top `depth` of their query at some x, shape (n,), and perhaps others.

    With `first`, a relevant document that is never above all other relevant ones is left out, too.
    """
    s, v, _, offsets, relevant_offsets = lines
    kept = np.ones(len(s), np.bool_)
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        relevant = begin + relevant_offsets[q + 1] - relevant_offsets[q]
        if first:
            _leave_out(1, s[begin:relevant], v[begin:relevant], kept[begin:relevant])
        _leave_out(depth, s[begin:end], v[begin:end], kept[begin:end])
    return kept


@_jit
def _leave_out(k: int, s: FloatArray, v: FloatArray, kept: Any) -> None:
    """Unmark lines that are below k others at both ends of each strip of the x axis, and so between them, too."""
    n = len(s)
    if n <= k:
        return
    left, right, both = -v, np.empty(n), np.empty(n)  # scores at x = -infinity, and at the ends of a strip
    near, top = np.zeros(n, np.bool_), np.arange(k)
    margin = DIFFERENCE_ROUNDING * max(np.abs(s).max(), np.abs(v).max())
    for strip in range(1, STRIPS + 1):
        u = 2.0 * strip / STRIPS - 1.0
        for d in range(n):
            right[d] = (1.0 - abs(u)) * s[d] + u * v[d]
            both[d] = left[d] + right[d]  # the order somewhere between the ends
        lowest = _lowest(both, top)
        for d in range(n):
            if both[d] > both[top[lowest]] and d not in top:
                top[lowest] = d
                lowest = _lowest(both, top)
        low_left, low_right = left[top].min() - margin, right[top].min() - margin
        for d in range(n):
            near[d] |= (left[d] >= low_left) | (right[d] >= low_right)
        left, right = right, left
    for d in range(n):
        kept[d] &= near[d]


@_jit
def _lowest(scores: FloatArray, rows: IntArray) -> int:
    """Return the place of the row with the lowest score."""
    lowest: int = ZERO
    for i in range(1, len(rows)):
        lowest = i if scores[rows[i]] < scores[rows[lowest]] else lowest
    return lowest
