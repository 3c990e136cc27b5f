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

from greylag.ltr.dataset import RankingData
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
    steps, pairs = _crossings(*problem[2:6], scores, direction)
    order = np.argsort(steps)
    start = np.lexsort((-scores, direction))
    step = _sweep(
        problem.code, problem.depth, problem.offsets, problem.gains, problem.norms, start, steps[order], pairs[order], direction
    )
    return Optimum(step, mean(problem, scores + step * direction))


def mean(problem: Problem, scores: FloatArray) -> float:
    """The mean of the measure when documents are ranked by `scores`."""
    return float(evaluate(problem.code, problem.depth, problem.offsets, scores, problem.gains, problem.norms).sum())


@_jit  # type: ignore[untyped-decorator]
def _term(code: int, depth: int, gain: float, rank: int, count: int, reach: float) -> float:
    """h of one relevant document: its gain, rank, i and Q."""
    if rank > depth:
        return 0.0
    if code == AP:
        return count / rank  # type: ignore[no-any-return]
    if code == NDCG:
        return gain / np.log2(rank + 1.0)  # type: ignore[no-any-return]
    if code == RR:
        return 1.0 / rank if count == 1 else 0.0
    if code == P:
        return 1.0
    return gain * reach / rank


@_jit  # type: ignore[untyped-decorator]
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


@_jit  # type: ignore[untyped-decorator]
def _crossings(
    offsets: IntArray,
    relevant: IntArray,
    relevant_offsets: IntArray,
    gains: FloatArray,
    scores: FloatArray,
    direction: FloatArray,
) -> Any:
    """Where relevant documents swap with others: steps (m,) and pairs (m, 2), the relevant one first."""
    most = 0
    for q in range(len(offsets) - 1):
        most += (relevant_offsets[q + 1] - relevant_offsets[q]) * (offsets[q + 1] - offsets[q])
    steps, pairs = np.empty(most), np.empty((most, 2), np.int32)
    m = 0
    for q in range(len(offsets) - 1):
        for i in range(relevant_offsets[q], relevant_offsets[q + 1]):
            r = relevant[i]
            for d in range(offsets[q], offsets[q + 1]):
                slope = direction[r] - direction[d]
                if slope == 0 or (gains[d] > 0 and d <= r):  # parallel, or a pair of relevant ones met already
                    continue
                step = (scores[d] - scores[r]) / slope
                if np.isfinite(step):
                    steps[m] = step
                    pairs[m, 0], pairs[m, 1] = r, d
                    m += 1
    return steps[:m], pairs[:m]


@_jit  # type: ignore[untyped-decorator]
def _sweep(
    code: int,
    depth: int,
    offsets: IntArray,
    gains: FloatArray,
    norms: FloatArray,
    start: IntArray,
    steps: FloatArray,
    pairs: Any,
    direction: FloatArray,
) -> float:
    """Follow the measure from x = -infinity through the sorted crossings; the best x.

    `start`: all rows, ordered as for x = -infinity.
    """
    n, q_of = len(start), np.empty(len(start), np.int64)
    for q in range(len(offsets) - 1):
        q_of[offsets[q] : offsets[q + 1]] = q
    rank, count, reach, norm = np.zeros(n, np.int64), np.zeros(n, np.int64), np.ones(n), np.zeros(n)
    seen, seen_relevant, reached = np.zeros(len(norms), np.int64), np.zeros(len(norms), np.int64), np.ones(len(norms))
    value = 0.0
    for r in start:
        q = q_of[r]
        seen[q] += 1
        rank[r], norm[r] = seen[q], norms[q]
        if gains[r] > 0:
            seen_relevant[q] += 1
            count[r], reach[r] = seen_relevant[q], reached[q]
            reached[q] *= 1.0 - gains[r]
            value += norm[r] * _term(code, depth, gains[r], rank[r], count[r], reach[r])
    if len(steps) == 0:
        return 0.0
    reach_left = max(1.0, abs(steps[0]))
    best_value, best_step, best_width = value, steps[0] - reach_left, 2.0 * reach_left
    e = 0
    while e < len(steps):
        here = steps[e]
        while e < len(steps) and steps[e] == here:
            r, d = pairs[e, 0], pairs[e, 1]
            upper, lower = (r, d) if direction[r] > direction[d] else (d, r)  # as it is beyond the crossing
            for row, move in ((upper, -1), (lower, 1)):
                if gains[row] > 0:
                    value -= norm[row] * _term(code, depth, gains[row], rank[row], count[row], reach[row])
                    other = lower if move < 0 else upper
                    rank[row] += move
                    if gains[other] > 0:
                        count[row] += move
                        stay = 1.0 - gains[other] if code == ERR else 1.0
                        reach[row] = reach[row] / stay if move < 0 else reach[row] * stay
                    value += norm[row] * _term(code, depth, gains[row], rank[row], count[row], reach[row])
            e += 1
        half = max(1.0, abs(here))
        end = steps[e] if e < len(steps) else here + 2.0 * half
        width = end - here
        if width > 1e-10 * half and (value > best_value + EQUAL or (value > best_value - EQUAL and width > best_width)):
            best_value, best_step, best_width = max(value, best_value), here + 0.5 * width, width
    return best_step  # type: ignore[no-any-return]
