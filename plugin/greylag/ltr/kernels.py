"""Compiled rank measures: a measure of a ranking, and how it changes along a line.

Every measure is a sum over a query's relevant documents r of H(gain_r, rank_r, i_r, Q_r), where i_r counts the relevant
documents down to r, and Q_r is the probability that a user reaches r past those above it (ERR). `term` is H. All
compiled functions are in this module because Numba's cache does not notice changes in functions of other modules.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from greylag.ranking import FloatArray, IntArray

_jit = njit(cache=True, nogil=True, error_model="numpy")

AP, NDCG, RR, P, ERR = range(5)
EQUAL = 1e-12  # means that differ by less differ by rounding alone


@_jit
def term(code: int, depth: int, gain: float, rank: int, count: int, reach: float) -> float:
    """H of one relevant document: 0 beyond `depth`."""
    if rank > depth:
        return 0.0
    if code == AP:
        return count / rank
    if code == NDCG:
        return gain / np.log2(rank + 1.0)  # type: ignore[no-any-return]
    if code == RR:
        return 1.0 / rank if count == 1 else 0.0
    if code == P:
        return 1.0
    return gain * reach / rank


@_jit
def evaluate(
    code: int, depth: int, offsets: IntArray, scores: FloatArray, gains: FloatArray, normalisers: FloatArray
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
                values[q] += term(code, depth, gain, rank, count, reach)
                reach *= 1.0 - gain  # used by ERR only
        values[q] *= normalisers[q]
    return values


@_jit
def crossings(
    code: int,
    depth: int,
    offsets: IntArray,
    relevant: IntArray,
    relevant_offsets: IntArray,
    gains: FloatArray,
    normalisers: FloatArray,
    scores: FloatArray,
    direction: FloatArray,
) -> Any:
    """Find the state of the relevant documents at x = -infinity and the points where they swap with others.

    Returns
    -------
    state : tuple of arrays of shape (relevant,)
        Rank, i, Q, gain and normaliser of each relevant document.
    steps : shape (m,)
        The crossings, unsorted.
    events : shape (m,)
        Packed: 2^32 times the number of the relevant document, plus twice (the number + 1 of the other document if it
        is relevant too, or 0), plus 1 if the first one moves up.
    """
    most = 0
    for q in range(len(normalisers)):
        most += (relevant_offsets[q + 1] - relevant_offsets[q]) * (offsets[q + 1] - offsets[q])
    steps, events = np.empty(most), np.empty(most, np.int64)
    number = np.full(len(gains), -1, np.int64)
    number[relevant] = np.arange(len(relevant))
    rank, count = np.ones(len(relevant), np.int64), np.ones(len(relevant), np.int64)
    reach, normaliser = np.ones(len(relevant)), np.empty(len(relevant))
    m = 0
    for q in range(len(normalisers)):
        for i in range(relevant_offsets[q], relevant_offsets[q + 1]):
            r = relevant[i]
            normaliser[i] = normalisers[q]
            for d in range(offsets[q], offsets[q + 1]):
                slope = direction[r] - direction[d]
                apart = scores[d] - scores[r]
                if slope > 0 or (slope == 0 and (apart > 0 or (apart == 0 and d < r))):
                    rank[i] += 1
                    if number[d] >= 0:
                        count[i] += 1
                        reach[i] *= 1.0 - gains[d] if code == ERR else 1.0
                if slope == 0 or (number[d] >= 0 and d < r):  # parallel, or a pair already seen
                    continue
                steps[m] = apart / slope
                events[m] = (i << 32) + ((number[d] + 1) << 1) + (slope > 0)
                m += np.isfinite(steps[m])
    return (rank, count, reach, gains[relevant], normaliser), steps[:m], events[:m]


@_jit
def sweep(
    code: int,
    depth: int,
    rank: IntArray,
    count: IntArray,
    reach: FloatArray,
    gains: FloatArray,
    normalisers: FloatArray,
    steps: FloatArray,
    events: IntArray,
) -> float:
    """Follow the measure from x = -infinity through the sorted crossings; return the best x. Overwrites the state."""
    if len(steps) == 0:
        return 0.0
    value = 0.0
    for r in range(len(rank)):
        value += normalisers[r] * term(code, depth, gains[r], rank[r], count[r], reach[r])
    half = max(1.0, abs(steps[0]))
    best_value, best_step, best_width = value, steps[0] - half, 2.0 * half
    e = 0
    while e < len(steps):
        here = steps[e]
        while e < len(steps) and steps[e] == here:
            r, other, up = events[e] >> 32, ((events[e] & 0xFFFFFFFF) >> 1) - 1, events[e] & 1
            value += _move(code, depth, rank, count, reach, gains, normalisers, r, other, up)
            if other >= 0:
                value += _move(code, depth, rank, count, reach, gains, normalisers, other, r, 1 - up)
            e += 1
        half = max(1.0, abs(here))
        end = steps[e] if e < len(steps) else here + 2.0 * half
        width = end - here
        if width > 1e-10 * half and (value > best_value + EQUAL or (value > best_value - EQUAL and width > best_width)):
            best_value, best_step, best_width = max(value, best_value), here + 0.5 * width, width
    return best_step  # type: ignore[no-any-return]


@_jit
def _move(
    code: int,
    depth: int,
    rank: IntArray,
    count: IntArray,
    reach: FloatArray,
    gains: FloatArray,
    normalisers: FloatArray,
    r: int,
    other: int,
    up: int,
) -> float:
    """Swap a relevant document with another one, relevant (`other` >= 0) or not; return the change of the measure."""
    before = term(code, depth, gains[r], rank[r], count[r], reach[r])
    step = 1 - 2 * up
    rank[r] += step
    if other >= 0:
        count[r] += step
        if code == ERR:
            stay = 1.0 - gains[other]
            reach[r] = reach[r] / stay if up else reach[r] * stay
    return normalisers[r] * (term(code, depth, gains[r], rank[r], count[r], reach[r]) - before)  # type: ignore[no-any-return]
