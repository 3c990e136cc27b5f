"""Compiled rank measures: a measure of a ranking, and how it changes along a line.

Every measure is a sum over a query's relevant documents r of H(gain_r, rank_r, i_r, Q_r), where i_r counts the relevant
documents down to r, and Q_r is the probability that a user reaches r past those above it (ERR). `term` is H. All
functions compiled here call none of other modules, since Numba's cache does not notice changes there.

`greylag.ltr.line_search` explains how `survey`, `collect` and `sweep` work together. They share these conventions:

- ``lines`` is a tuple (s, v, rows, offsets, relevant_offsets): the lines s + x v of all documents, ordered by query
  with each query's relevant documents first; ``rows`` are their places in the data, which break ties.
- Two lines cross at x = (s_d - s_a) / (v_a - v_d), as computed in floating point. v is scaled by a power of two such
  that x is about 1. Lines that cross at `FAR` or beyond count as never crossing. x is rounded to float32 for a
  comparison with the ends of buckets, but not for one with another x.
- The *cell* of a pair has the sign of v_a - v_d, and the sign, the exponent and `CELL_BITS` bits of the mantissa of x.
  The *slot* of a cell is 2b + up for bucket b of the x axis, with up = 1 if the relevant document moves up there.
  Three more slots after those of the B buckets hold the pairs that never cross: the other document is below the
  relevant one (2B), above it (2B + 1), or on the same line (2B + 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.ranking import FloatArray, IntArray
from greylag.runtime.compilation import compiled

_jit = compiled(error_model="numpy")

AP, NDCG, RR, P, ERR = range(5)
EQUAL = 1e-12  # means that differ by less differ by rounding alone
ROUNDING = 1e-11  # of sums over all swaps
THIN = 1e-10  # relative width below which rounding could close an interval
LOWER_HALF = (1 << 32) - 1
CELL_BITS = 9
CELL_SHIFT = 23 - CELL_BITS  # float32 has 23 bits of mantissa
SIGN = 1 << (8 + CELL_BITS)  # of x, in the number of a cell; that of v_a - v_d is the bit above it
FAR = 2.0**54
SLOTS = 256  # at most, so that a slot fits in a byte


@_jit
def divisors(code: int, depth: int, longest: int) -> FloatArray:
    """What H is divided by at each rank from 0 to `longest` + 1: infinity beyond the cut-off `depth`."""
    found = np.empty(longest + 2)
    for rank in range(len(found)):
        if rank < 1 or rank > depth:
            found[rank] = np.inf
        elif code == NDCG:
            found[rank] = np.log2(rank + 1.0)
        else:
            found[rank] = 1.0 if code == P else rank
    return found


@_jit
def term(code: int, divisor: float, gain: float, count: int, reach: float) -> float:
    """H of one relevant document; `divisor` is the entry of `divisors` at its rank."""
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
    """An upper bound of H for any order of the swaps in a bucket.

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
    """The measure of each query times its normaliser, shape (q,); the earlier row wins ties."""
    values = np.zeros(len(offsets) - 1)
    ranked = np.empty(np.max(np.diff(offsets)) + 1 if len(values) else 0)
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
def _more(y: Any, limit: float) -> int:
    """How many numbers are above a limit. Counting in 32 bits lets these loops use vectors of twice the length."""
    count = np.int32(0)
    for i in range(len(y)):
        count = np.int32(count + (y[i] > limit))
    return int(count)


@_jit
def _at_least(y: Any, limit: float) -> int:
    """How many numbers are at or above a limit."""
    count = np.int32(0)
    for i in range(len(y)):
        count = np.int32(count + (y[i] >= limit))
    return int(count)


@_jit
def _cells(s: FloatArray, v: FloatArray, a: int, x: Any, slope: Any, cell: Any) -> None:
    """The cell of each document's crossing with document a of its query; both loops vectorise.

    `x` and `slope` have room for float32 numbers, and for their bits as int32.
    """
    for d in range(len(s)):
        apart = v[a] - v[d]
        x[0][d] = (s[d] - s[a]) / apart
        slope[0][d] = apart
    for d in range(len(s)):
        own = (x[1][d] >> np.int32(CELL_SHIFT)) & np.int32(2 * SIGN - 1)
        cell[d] = own | ((slope[1][d] >> np.int32(31)) & np.int32(2 * SIGN))


@_jit
def _count(cell: Any, slots: Any, table: Any) -> None:
    """Add pairs to a table by slot. Unsigned numbers spare the test for negative indices."""
    for d in range(len(cell)):
        table[np.uint64(slots[np.uint64(cell[d])])] += np.int32(1)


@_jit
def survey(
    code: int, divisor: FloatArray, lines: Any, gains: Any, weights: Any, slots: Any, buckets: int, stride: int
) -> Any:
    """Measure at the left end of each bucket, and bound it within, in one pass over all pairs of every n-th query.

    Parameters
    ----------
    gains : float array, shape (n,)
        By document, in the order of `lines`.
    weights : float array, shape (q,)
        The queries' normalisers.
    slots : uint8 array, shape (4 * SIGN,)
        The slot of each cell.
    buckets : int
        B.
    stride : int
        Only the queries 0, `stride`, 2 * `stride`, ... are taken.

    Returns
    -------
    start : float
        The measure at x = -infinity.
    change : float array, shape (B,)
        How much it changes over each bucket.
    slack : float array, shape (B,)
        How much it can rise at most, within each bucket, above its left end.
    number : int array, shape (B,)
        The swaps in each bucket; those of two relevant documents count twice.
    """
    s, v, rows, offsets, relevant_offsets = lines
    start, change, slack = 0.0, np.zeros(buckets), np.zeros(buckets)
    number, ease, factor = np.zeros(buckets, np.int64), np.ones(buckets), np.ones(buckets)
    longest = np.max(np.diff(offsets))
    cells, crossing, apart = np.empty(longest, np.uint32), np.empty(longest, np.float32), np.empty(longest, np.float32)
    x, slope = (crossing, crossing.view(np.int32)), (apart, apart.view(np.int32))
    others, fellows = np.zeros(SLOTS, np.int32), np.zeros(SLOTS, np.int32)
    places, reach, values = np.empty((5, buckets + 1), np.int32), np.ones((2, buckets + 1)), np.empty((2, buckets + 1))
    for q in range(0, len(weights), stride):
        first, end = offsets[q], offsets[q + 1]
        relevant, own_gains = relevant_offsets[q + 1] - relevant_offsets[q], gains[first:end]
        cell = cells[: end - first]
        for a in range(relevant):
            _cells(s[first:end], v[first:end], a, x, slope, cell)
            _count(cell[:relevant], slots, fellows)
            _count(cell[relevant:], slots, others)
            above, count = _at_the_left(others, fellows, buckets, slots, cell, rows[first:end], relevant, a)
            if code == ERR:
                reach[0, 0] = _pass_relevant(cell, slots, own_gains[:relevant], a, ease, factor)
                for b in range(buckets):
                    reach[0, b + 1], reach[1, b] = reach[0, b] * factor[b], reach[0, b] * ease[b]
                ease[:], factor[:] = 1.0, 1.0
            if divisor[_follow(others, fellows, above, count, places, number)] < np.inf:
                _terms(code, divisor, own_gains[a], places, reach, values)
                start += weights[q] * values[0, 0]
                for b in range(buckets):
                    slack[b] += weights[q] * max(values[1, b] - values[0, b], 0.0)
                    change[b] += weights[q] * (values[0, b + 1] - values[0, b])
            others[:], fellows[:] = 0, 0
    return start, change, slack, number


@_jit
def _follow(others: Any, fellows: Any, above: int, count: int, places: Any, number: IntArray) -> int:
    """Follow a relevant document through the buckets; the highest rank that it may reach in one of them.

    At x = -infinity, it has `above` non-relevant documents above it and `count` relevant ones down to it. `places`,
    shape (5, B + 1), is set to both numbers at the left end of each bucket, to the fewest of both within it, and to the
    most relevant documents down to it. The swaps of each bucket are added to `number`.
    """
    here, down_to, highest = np.int32(above), np.int32(count), np.int32(above + count)
    for b in range(len(number)):
        falls, rises, behind, past = others[2 * b], others[2 * b + 1], fellows[2 * b], fellows[2 * b + 1]
        number[b] += falls + rises + behind + past
        fewest, least, most = here - rises, down_to - past, down_to + behind
        places[0, b], places[1, b], places[2, b], places[3, b], places[4, b] = here, down_to, fewest, least, most
        highest = min(highest, np.int32(fewest + least))
        here, down_to = np.int32(fewest + falls), np.int32(most - past)
    places[:, -1] = here
    places[1, -1], places[3, -1], places[4, -1] = down_to, down_to, down_to
    return int(highest)


@_jit
def _terms(code: int, divisor: FloatArray, gain: float, places: Any, reach: FloatArray, values: FloatArray) -> None:
    """H at the left end of each bucket, and its upper bound within: `values`, shape (2, B + 1).

    `places` is what `_follow` sets, and `reach` has Q at the left ends, and the highest within.
    """
    above, count, fewest, least, most = places[0], places[1], places[2], places[3], places[4]
    for b in range(len(above)):
        values[0, b] = term(code, divisor[np.uint32(above[b] + count[b])], gain, count[b], reach[0, b])
        values[1, b] = highest_term(code, divisor, gain, fewest[b], least[b], most[b], reach[1, b])


@_jit
def _at_the_left(
    others: Any, fellows: Any, buckets: int, slots: Any, cell: Any, rows: IntArray, relevant: int, a: int
) -> tuple[int, int]:
    """Document a at x = -infinity: non-relevant documents above it, and relevant ones down to it.

    `others` and `fellows` are its pairs with non-relevant and with relevant documents, by slot.
    """
    above, count = 0, 1
    for b in range(buckets + 1):
        above += others[2 * b + 1]
        count += fellows[2 * b + 1]
    same = 2 * buckets + 2
    if others[same] + fellows[same] > 1:  # more than a itself
        for d in range(len(cell)):
            if slots[cell[d]] == same and rows[d] < rows[a]:
                above += d >= relevant
                count += d < relevant
    return above, count


@_jit
def _pass_relevant(cell: Any, slots: Any, gains: FloatArray, a: int, ease: FloatArray, factor: FloatArray) -> float:
    """Q of document a at x = -infinity; what multiplies it in each bucket, at most (`ease`) and in all (`factor`)."""
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


@_jit
def crossing_after(lines: Any, x: float) -> float:
    """The first crossing to the right of x; infinity if there is none."""
    s, v, _, offsets, relevant_offsets = lines
    found = np.inf
    for q in range(len(offsets) - 1):
        for a in range(offsets[q], offsets[q] + relevant_offsets[q + 1] - relevant_offsets[q]):
            nearest = np.inf
            for d in range(offsets[q], offsets[q + 1]):
                crossing = (s[d] - s[a]) / (v[a] - v[d])
                counts = (crossing > x) & (abs(np.float32(crossing)) < FAR)
                nearest = min(nearest, crossing if counts else np.inf)
            found = min(found, nearest)
    return found


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

    Parameters
    ----------
    gains, weights : float arrays, shape (relevant,)
        The gain of each relevant document, and the normaliser of its query.
    bins : int array, shape (2 B + 1,)
        Where the swaps of each bin begin that raise H, and those that lower it.
    scale : float
        What a crossing is multiplied by for the scale of `best`.
    outermost : tuple of bool
        Whether there are no other swaps to the left, and to the right.
    floor : float
        Values below it are of no interest.
    best : tuple of float
        The best interval so far: its middle, the measure on it, its width.

    Returns
    -------
    best : tuple of float
        The same, with the intervals that begin within the bins.
    """
    above, count, reach = state
    value = 0.0
    for i in range(len(gains)):
        value += weights[i] * term(code, divisor[above[i] + count[i]], gains[i], count[i], reach[i])
    if outermost[0] and value >= max(floor, best[1]) - ROUNDING:
        after = scale * _first_after(steps, bins, 0, lines, outermost[1], -np.inf)
        half = max(1.0, abs(after)) if after < np.inf else 0.0
        best = _better(best, after - half if after < np.inf else 0.0, 2.0 * max(half, 1.0), 1.0, value)
    for b in range(len(bins) // 2):
        first, middle, end = bins[2 * b], bins[2 * b + 1], bins[2 * b + 2]
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
        for e in range(middle - 1, first - 1, -1):
            _swap(code, divisor, gains, weights, above, count, reach, events[e] ^ 1)
        value = before
        order = np.argsort(steps[first:end])
        steps[first:end], events[first:end] = steps[first:end][order], events[first:end][order]
        e = first
        while e < end:
            here = steps[e]
            while e < end and steps[e] == here:
                value += _swap(code, divisor, gains, weights, above, count, reach, events[e])
                e += 1
            if value > best[1] - EQUAL:
                after = scale * (steps[e] if e < end else _first_after(steps, bins, b + 1, lines, outermost[1], here))
                here *= scale
                half = max(1.0, abs(here))
                width = (after if after < np.inf else here + 2.0 * half) - here
                best = _better(best, here + 0.5 * width, width, max(min(1.0, scale), abs(here)), value)
    return best


@_jit
def _cut_off_slack(
    divisor: FloatArray, gains: FloatArray, weights: FloatArray, above: IntArray, count: IntArray, events: IntArray
) -> float:
    """How much AP with a cut-off may be higher than with the highest H of each document were it not for the cut-off.

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
    """The better interval: the higher one, and the wider one of equally high ones, if rounding cannot close it."""
    higher = value > best[1] + EQUAL
    if width > THIN * magnitude and (higher or (value > best[1] - EQUAL and width > best[2])):
        return middle, max(value, best[1]), width
    return best


@_jit
def _first_after(steps: FloatArray, bins: IntArray, b: int, lines: Any, last: bool, x: float) -> float:
    """The first crossing to the right of x, which is before all of bin b and its successors."""
    for own in range(b, len(bins) // 2):
        if bins[2 * own] < bins[2 * own + 2]:
            return np.min(steps[bins[2 * own] : bins[2 * own + 2]])
    return np.inf if last else crossing_after(lines, x)


@_jit
def _swap(
    code: int, divisor: Any, gains: Any, weights: Any, above: IntArray, count: IntArray, reach: Any, event: int
) -> float:
    """Move a relevant document past another one, as `event` says; the change of the measure."""
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
