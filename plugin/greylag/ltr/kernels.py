"""Compiled rank measures: a measure of a ranking, and how it changes along a line.

Every measure is a sum over a query's relevant documents r of H(gain_r, rank_r, i_r, Q_r), where i_r counts the relevant
documents down to r, and Q_r is the probability that a user reaches r past those above it (ERR). `term` is H. All
compiled functions are in this module because Numba's cache does not notice changes in functions of other modules.

`greylag.ltr.line_search` explains how `survey`, `collect` and `sweep` work together. They share two conventions:

- ``lines`` is a tuple (s, v, rows, offsets, relevant_offsets): the lines s + x v of all documents, ordered by query
  with each query's relevant documents first; ``rows`` are their places in the data, which break ties.
- A *slot* says where a pair's lines cross. Slot 2b + up is bucket b of the line's x axis, with up = 1 if the relevant
  document moves up there. Three more slots after those of the B buckets hold the pairs that never cross: the other
  document is below the relevant one (2B), above it (2B + 1), or on the same line (2B + 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.compilation import compiled
from greylag.ranking import FloatArray, IntArray

_jit = compiled(error_model="numpy")

AP, NDCG, RR, P, ERR = range(5)
EQUAL = 1e-12  # means that differ by less differ by rounding alone
CELLS = 1 << 12  # the finest division of the x axis in one survey; buckets are made of cells
BELOW, ABOVE, SAME = 2 * CELLS, 2 * CELLS + 1, 2 * CELLS + 2  # cells of the pairs that never cross
THIN = 1e-10  # relative width below which rounding could close an interval
ONE_RELEVANT = 1 << 32  # pairs are counted in one integer: non-relevant ones in its lower half, relevant ones above


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

    Parameters
    ----------
    divisor : float array
        The result of `divisors`.
    above, count : int
        The fewest non-relevant documents above, and the fewest relevant ones down to it.
    more : int
        The most relevant documents down to it.
    reach : float
        The highest Q.
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
    for q in range(len(values)):
        first = offsets[q]
        order = np.argsort(-scores[first : offsets[q + 1]], kind="mergesort")
        count, reach = 0, 1.0
        for rank in range(1, len(order) + 1):
            gain = gains[first + order[rank - 1]]
            if gain > 0:
                count += 1
                values[q] += term(code, divisor[rank], gain, count, reach)
                reach *= 1.0 - gain  # used by ERR only
        values[q] *= normalisers[q]
    return values


@_jit
def _position(x: float, scale: float) -> float:
    """Map the x axis to [-1, 1]. As each step rounds monotonically, so does the whole; equal x have equal positions."""
    u = 1.0 - scale / (abs(x) + scale)
    return u if x > 0 else -u


@_jit
def _cells(s: FloatArray, v: FloatArray, a: int, grid: Any, cell: Any) -> None:
    """The cell of each document's crossing with document a of its query, plus `CELLS` if a moves up there.

    Pairs that cross so far from 0 that their position rounds to -1 or 1 count as never crossing. The loop vectorises.
    """
    scale, low, per_cell = grid
    for d in range(len(s)):
        slope = v[a] - v[d]
        apart = s[d] - s[a]
        u = _position(apart / slope, scale)
        c = np.floor(min(max((u - low) * per_cell, 0.0), CELLS - 1.0))
        c = c + CELLS if slope > 0 else c
        c = c if abs(u) < 1.0 else (ABOVE if apart > 0 else BELOW)
        cell[d] = np.int32(SAME if (slope == 0.0) & (apart == 0.0) else c)


@_jit
def _state_at_the_left(
    table: IntArray, buckets: int, slots: Any, cell: Any, rows: IntArray, gains: FloatArray, relevant: int, a: int
) -> tuple[int, int, float]:
    """Document a at x = -infinity: non-relevant documents above it, relevant ones down to it, and Q.

    Parameters
    ----------
    table : int array
        The pairs of a by slot.
    cell, rows, gains : arrays, by document of the query
    relevant : int
        The first documents, which are relevant.
    """
    ahead = table[2 * buckets + 1]
    for b in range(buckets):
        ahead += table[2 * b + 1]
    above, count, reach = ahead & (ONE_RELEVANT - 1), 1 + (ahead >> 32), 1.0
    if table[2 * buckets + 2] != ONE_RELEVANT:  # more than a itself
        for d in range(len(cell)):
            if cell[d] == SAME and rows[d] < rows[a]:
                if d < relevant:
                    count += 1
                else:
                    above += 1
    for d in range(relevant if gains[a] < 1.0 else 0):  # Q, which only ERR uses; its gains are below 1
        slot = slots[cell[d]]
        if (slot < 2 * buckets + 2 and slot & 1) or (slot == 2 * buckets + 2 and rows[d] < rows[a]):
            reach *= 1.0 - gains[d]
    return above, count, reach


@_jit
def _count_pairs(cell: Any, slots: Any, relevant: int, table: IntArray) -> None:
    """Add a document's pairs to `table`, by slot."""
    for d in range(relevant):
        table[slots[cell[d]]] += ONE_RELEVANT
    for d in range(relevant, len(cell)):
        table[slots[cell[d]]] += 1


@_jit
def survey(
    code: int, divisor: FloatArray, lines: Any, gains: FloatArray, weights: FloatArray, grid: Any, slots: Any
) -> Any:
    """Measure at the left end of each bucket, and bound it within, in one pass over all pairs.

    Parameters
    ----------
    gains : float array, shape (n,)
        By document, in the order of `lines`.
    weights : float array, shape (q,)
        The queries' normalisers.
    grid : tuple of float
        Scale, lowest u, and cells per unit of u.
    slots : int array, shape (2 * CELLS + 3,)
        The slot of each cell.

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
    buckets = slots[SAME] // 2 - 1
    start, change, slack = 0.0, np.zeros(buckets), np.zeros(buckets)
    number = np.zeros(buckets, np.int64)
    table, cell = np.zeros(2 * buckets + 3, np.int64), np.empty(np.max(np.diff(offsets)), np.int32)
    ease, factor = np.ones(buckets), np.ones(buckets)
    for q in range(len(weights)):
        first, end = offsets[q], offsets[q + 1]
        relevant, own, own_gains = relevant_offsets[q + 1] - relevant_offsets[q], cell[: end - first], gains[first:end]
        for a in range(relevant):
            _cells(s[first:end], v[first:end], a, grid, own)
            _count_pairs(own, slots, relevant, table)
            above, count, reach = _state_at_the_left(
                table, buckets, slots, own, rows[first:end], own_gains, relevant, a
            )
            if code == ERR:
                _pass_relevant(own, slots, own_gains, relevant, ease, factor)
            value = term(code, divisor[above + count], own_gains[a], count, reach)
            start += weights[q] * value
            for b in range(buckets):
                down, up = table[2 * b], table[2 * b + 1]
                if down + up == 0:
                    continue
                falls, rises = down & (ONE_RELEVANT - 1), up & (ONE_RELEVANT - 1)
                behind, past = down >> 32, up >> 32
                number[b] += falls + rises + behind + past
                high = highest_term(
                    code, divisor, own_gains[a], above - rises, count - past, count + behind, reach * ease[b]
                )
                slack[b] += weights[q] * max(high - value, 0.0)
                above, count, reach = above + falls - rises, count + behind - past, reach * factor[b]
                after = term(code, divisor[above + count], own_gains[a], count, reach)
                change[b] += weights[q] * (after - value)
                value = after
            table[:] = 0
            if code == ERR:
                ease[:], factor[:] = 1.0, 1.0
    return start, change, slack, number


@_jit
def _pass_relevant(
    cell: Any, slots: Any, gains: FloatArray, relevant: int, ease: FloatArray, factor: FloatArray
) -> None:
    """By bucket, what a document's Q is multiplied by: at most (`ease`), and over the whole bucket (`factor`)."""
    for d in range(relevant):
        slot = slots[cell[d]]
        if slot >= 2 * len(factor):
            continue
        if slot & 1:
            ease[slot >> 1] /= 1.0 - gains[d]
            factor[slot >> 1] /= 1.0 - gains[d]
        else:
            factor[slot >> 1] *= 1.0 - gains[d]


@_jit
def collect(code: int, lines: Any, gains: FloatArray, grid: Any, slots: Any, room: int) -> Any:
    """The swaps within runs of cells, and what happens to relevant documents before, between and after the runs.

    Parameters
    ----------
    slots : int array, shape (2 * CELLS + 3,)
        The slot of each cell, where buckets 1, 3, 5, ... are the runs, and buckets 0, 2, 4, ... the gaps around them.
    room : int
        At least the number of swaps within runs.

    Returns
    -------
    state : tuple of arrays of shape (relevant,)
        Each relevant document at x = -infinity: non-relevant ones above it, relevant ones down to it, Q.
    jumps : tuple of arrays of shape (relevant, runs + 1)
        How that changes in each gap; Q is multiplied.
    steps : float array, shape (m,)
        The crossings within runs, unsorted.
    events : int array, shape (m,)
        Packed: 2^32 times the number of the relevant document, plus twice (the number + 1 of the other document if it
        is relevant too, or 0), plus 1 if the first one moves up.
    numbers : int array, shape (runs,)
        The swaps in each run.
    """
    s, v, rows, offsets, relevant_offsets = lines
    buckets, total = slots[SAME] // 2 - 1, relevant_offsets[-1]
    runs = buckets // 2
    above, count, reach = np.zeros(total, np.int64), np.ones(total, np.int64), np.ones(total)
    falls, behind = np.zeros((total, runs + 1), np.int32), np.zeros((total, runs + 1), np.int32)
    factors = np.ones((total if code == ERR else 0, runs + 1))
    steps, events, numbers = np.empty(room), np.empty(room, np.int64), np.zeros(runs, np.int64)
    table, cell = np.zeros(2 * buckets + 3, np.int64), np.empty(np.max(np.diff(offsets)), np.int32)
    ease, factor = np.ones(buckets), np.ones(buckets)
    m = 0
    for q in range(len(offsets) - 1):
        first, end = offsets[q], offsets[q + 1]
        relevant, own, own_gains = relevant_offsets[q + 1] - relevant_offsets[q], cell[: end - first], gains[first:end]
        for a in range(relevant):
            i = relevant_offsets[q] + a
            _cells(s[first:end], v[first:end], a, grid, own)
            _count_pairs(own, slots, relevant, table)
            above[i], count[i], reach[i] = _state_at_the_left(
                table, buckets, slots, own, rows[first:end], own_gains, relevant, a
            )
            for gap in range(runs + 1):
                down, up = table[4 * gap], table[4 * gap + 1]
                falls[i, gap] = (down & (ONE_RELEVANT - 1)) - (up & (ONE_RELEVANT - 1))
                behind[i, gap] = (down >> 32) - (up >> 32)
            if code == ERR:
                _pass_relevant(own, slots, own_gains, relevant, ease, factor)
                factors[i] = factor[::2]
                ease[:], factor[:] = 1.0, 1.0
            for d in range(a + 1, end - first):
                slot = slots[own[d]]
                if slot & 2 and slot < 2 * buckets:
                    steps[m] = (s[first + d] - s[first + a]) / (v[first + a] - v[first + d])
                    other = relevant_offsets[q] + d + 1 if d < relevant else 0
                    events[m] = (i << 32) + (other << 1) + (slot & 1)
                    numbers[slot >> 2] += 1
                    m += 1
            table[:] = 0
    return (above, count, reach), (falls, behind, factors), steps[:m], events[:m], numbers


@_jit
def crossing_after(lines: Any, x: float, scale: float) -> float:
    """The first crossing to the right of x, of those that `_cells` counts as such; infinity if there is none."""
    s, v, _, offsets, relevant_offsets = lines
    found = np.inf
    for q in range(len(offsets) - 1):
        for a in range(offsets[q], offsets[q] + relevant_offsets[q + 1] - relevant_offsets[q]):
            nearest = np.inf
            for d in range(offsets[q], offsets[q + 1]):
                crossing = (s[d] - s[a]) / (v[a] - v[d])
                counts = (crossing > x) & (abs(_position(crossing, scale)) < 1.0)
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
    jumps: Any,
    steps: FloatArray,
    events: IntArray,
    numbers: IntArray,
    scale: float,
    best: tuple[float, float, float],
) -> tuple[float, float, float]:
    """Follow the measure through the runs' sorted swaps; overwrites the state.

    Parameters
    ----------
    gains, weights : float arrays, shape (relevant,)
        The gain of each relevant document, and the normaliser of its query.
    scale : float
        The grid's.
    best : tuple of float
        The best interval so far: its middle, the measure on it, its width.

    Returns
    -------
    best : tuple of float
        The same, with the intervals that begin within the runs.
    """
    above, count, reach = state
    middle, best_value, best_width = best
    e = 0
    for run in range(len(numbers)):
        value = 0.0
        for i in range(len(gains)):
            above[i] += jumps[0][i, run]
            count[i] += jumps[1][i, run]
            if code == ERR:
                reach[i] *= jumps[2][i, run]
            value += weights[i] * term(code, divisor[above[i] + count[i]], gains[i], count[i], reach[i])
        end = e + numbers[run]
        while e < end:
            here = steps[e]
            while e < end and steps[e] == here:
                r, other, up = events[e] >> 32, ((events[e] & (ONE_RELEVANT - 1)) >> 1) - 1, events[e] & 1
                value += weights[r] * _swap(code, divisor, gains, above, count, reach, r, other, up)
                e += 1
            half = max(1.0, abs(here))
            after = here
            if e < end:
                after = steps[e]
            elif value > best_value - EQUAL:
                after = crossing_after(lines, here, scale)
            width = (after if after < np.inf else here + 2.0 * half) - here
            if width > THIN * half and (
                value > best_value + EQUAL or (value > best_value - EQUAL and width > best_width)
            ):
                middle, best_value, best_width = here + 0.5 * width, max(value, best_value), width
    return middle, best_value, best_width


@_jit
def _swap(
    code: int,
    divisor: FloatArray,
    gains: FloatArray,
    above: IntArray,
    count: IntArray,
    reach: FloatArray,
    r: int,
    other: int,
    up: int,
) -> float:
    """Swap a relevant document with another one, relevant (`other` >= 0) or not; the change of both their H."""
    change = -term(code, divisor[above[r] + count[r]], gains[r], count[r], reach[r])
    if other < 0:
        above[r] += 1 - 2 * up
    else:
        change -= term(code, divisor[above[other] + count[other]], gains[other], count[other], reach[other])
        count[r] += 1 - 2 * up
        count[other] -= 1 - 2 * up
        if code == ERR:
            reach[r] *= 1.0 / (1.0 - gains[other]) if up else 1.0 - gains[other]
            reach[other] *= 1.0 - gains[r] if up else 1.0 / (1.0 - gains[r])
        change += term(code, divisor[above[other] + count[other]], gains[other], count[other], reach[other])
    return change + term(code, divisor[above[r] + count[r]], gains[r], count[r], reach[r])  # type: ignore[no-any-return]
