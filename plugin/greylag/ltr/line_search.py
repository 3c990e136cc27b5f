"""Exact line search on rank measures, compiled.

Along scores a + x b a measure changes only where a relevant document and another one swap places, at
x = (a_j - a_i) / (b_i - b_j). Sorting these crossings over all queries and sweeping through them gives the measure on
every open interval between two of them, hence its global maximum over x (cf. Metzler 2007, section 4.2, where the
search is by steps; Och 2003 for the idea).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from greylag.ltr.data import RankingData
from greylag.ltr.objectives import AP, ERR, NDCG, RR, Objective, P
from greylag.ranking import FloatArray, IntArray

_jit = njit(cache=True, nogil=True, error_model="numpy")
EQUAL = 1e-12  # means that differ by less are the same measure with other rounding


class Optimum(NamedTuple):
    """The best step along a line, and the mean of the measure there."""

    step: float
    value: float


class Problem(NamedTuple):
    """What of the data and the objective a line search needs, prepared once for many searches.

    ``relevant``: rows with a gain, by query ``relevant_offsets``; ``gains`` (n,); ``norms`` (q,), divided by q.
    """

    code: int
    depth: int
    offsets: IntArray
    relevant: IntArray
    relevant_offsets: IntArray
    gains: FloatArray
    norms: FloatArray


def prepare(data: RankingData, objective: Objective) -> Problem:
    """The line-search problem of maximising the objective's mean over the data's queries."""
    gains = objective.gains(data)
    relevant = np.flatnonzero(gains > 0)
    relevant_offsets = np.searchsorted(relevant, data.offsets)
    norms = objective.norms(data) / len(data.qids)
    return Problem(objective.code, objective.depth, data.offsets, relevant, relevant_offsets, gains, norms)


def line_search(problem: Problem, scores: FloatArray, direction: FloatArray) -> Optimum:
    """The x that maximises the measure of ``scores + x direction``, both of shape (n,), over all real x.

    The middle of the best interval between two crossings; of equally good ones (to 1e-12) the widest. An unbounded
    interval is taken to reach as far from its end as twice that end's distance from 0, and at least 2. Intervals that
    rounding could close, of relative width below 1e-10, are passed over.
    """
    state, steps, events = _crossings(*problem, scores, direction)
    order = np.argsort(steps)
    step = _sweep(problem.code, problem.depth, *state, steps[order], events[order])  # type: ignore[call-arg]
    return Optimum(step, mean(problem, scores + step * direction))


def mean(problem: Problem, scores: FloatArray) -> float:
    """The mean of the measure when documents are ranked by `scores`."""
    return float(evaluate(problem.code, problem.depth, problem.offsets, scores, problem.gains, problem.norms).sum())


@_jit
def _term(code: int, depth: int, gain: float, rank: int, count: int, reach: float) -> float:
    """H of one relevant document: its gain, rank, i and Q."""
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
def evaluate(code: int, depth: int, offsets: IntArray, scores: FloatArray, gains: FloatArray, norms: FloatArray) -> Any:
    """The measure of each query times its norm, shape (q,); of equal scores the earlier row is first."""
    values = np.zeros(len(offsets) - 1)
    for q in range(len(values)):
        first = offsets[q]
        order = np.argsort(-scores[first : offsets[q + 1]], kind="mergesort")
        count, reach = 0, 1.0
        for rank in range(1, len(order) + 1):
            gain = gains[first + order[rank - 1]]
            if gain > 0:
                count += 1
                values[q] += _term(code, depth, gain, rank, count, reach)
                reach *= 1.0 - gain  # means nothing, and is not used, but for ERR
        values[q] *= norms[q]
    return values


@_jit
def _crossings(
    code: int,
    depth: int,
    offsets: IntArray,
    relevant: IntArray,
    relevant_offsets: IntArray,
    gains: FloatArray,
    norms: FloatArray,
    scores: FloatArray,
    direction: FloatArray,
) -> Any:
    """The relevant documents as they stand at x = -infinity, and where they swap with others.

    Returns
    -------
    state : rank, i, Q, gain and norm of each relevant document, shape (relevant,).
    steps : shape (m,), the crossings, unsorted.
    events : shape (m,), each packed: the relevant document's number x 2^32, plus twice (the other's number + 1 where
        it is relevant too, or 0), plus 1 where the first moves up.
    """
    most = 0
    for q in range(len(norms)):
        most += (relevant_offsets[q + 1] - relevant_offsets[q]) * (offsets[q + 1] - offsets[q])
    steps, events = np.empty(most), np.empty(most, np.int64)
    number = np.full(len(gains), -1, np.int64)
    number[relevant] = np.arange(len(relevant))
    rank, count = np.ones(len(relevant), np.int64), np.ones(len(relevant), np.int64)
    reach, norm = np.ones(len(relevant)), np.empty(len(relevant))
    m = 0
    for q in range(len(norms)):
        for i in range(relevant_offsets[q], relevant_offsets[q + 1]):
            r = relevant[i]
            norm[i] = norms[q]
            for d in range(offsets[q], offsets[q + 1]):
                slope = direction[r] - direction[d]
                apart = scores[d] - scores[r]
                if slope > 0 or (slope == 0 and (apart > 0 or (apart == 0 and d < r))):
                    rank[i] += 1
                    if number[d] >= 0:
                        count[i] += 1
                        reach[i] *= 1.0 - gains[d] if code == ERR else 1.0
                if slope == 0 or (number[d] >= 0 and d < r):  # parallel, or a pair of relevant ones met already
                    continue
                steps[m] = apart / slope
                events[m] = (i << 32) + ((number[d] + 1) << 1) + (slope > 0)
                m += np.isfinite(steps[m])
    return (rank, count, reach, gains[relevant], norm), steps[:m], events[:m]


@_jit
def _sweep(
    code: int,
    depth: int,
    rank: IntArray,
    count: IntArray,
    reach: FloatArray,
    gains: FloatArray,
    norms: FloatArray,
    steps: FloatArray,
    events: IntArray,
) -> float:
    """Follow the measure from x = -infinity through the sorted crossings; the best x. The state is used up."""
    if len(steps) == 0:
        return 0.0
    value = 0.0
    for r in range(len(rank)):
        value += norms[r] * _term(code, depth, gains[r], rank[r], count[r], reach[r])
    half = max(1.0, abs(steps[0]))
    best_value, best_step, best_width = value, steps[0] - half, 2.0 * half
    e = 0
    while e < len(steps):
        here = steps[e]
        while e < len(steps) and steps[e] == here:
            r, other, up = events[e] >> 32, ((events[e] & 0xFFFFFFFF) >> 1) - 1, events[e] & 1
            value += _move(code, depth, rank, count, reach, gains, norms, r, other, up)
            if other >= 0:
                value += _move(code, depth, rank, count, reach, gains, norms, other, r, 1 - up)
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
    norms: FloatArray,
    r: int,
    other: int,
    up: int,
) -> float:
    """Let a relevant document pass another one, relevant (`other` >= 0) or not; how the measure changes."""
    before = _term(code, depth, gains[r], rank[r], count[r], reach[r])
    step = 1 - 2 * up
    rank[r] += step
    if other >= 0:
        count[r] += step
        if code == ERR:
            stay = 1.0 - gains[other]
            reach[r] = reach[r] / stay if up else reach[r] * stay
    return norms[r] * (_term(code, depth, gains[r], rank[r], count[r], reach[r]) - before)  # type: ignore[no-any-return]
