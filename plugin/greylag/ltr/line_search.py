"""Exact line search on rank measures.

Along scores a + x b a measure changes only where a relevant document swaps with another one, at
x = (a_j - a_i) / (b_i - b_j). Following it through these crossings gives the measure on every open interval between two
of them, and hence its global maximum over x. Most crossings need not be sorted for that:

1. Survey: the x axis is divided into buckets. One pass counts each relevant document's swaps by bucket and direction,
   which gives the measure at the left end of each bucket exactly. Within the bucket a document can rise at most as if
   all its upward swaps came first, which bounds the measure there (`Survey`). Buckets whose bound is below a value that
   the measure takes elsewhere cannot hold the maximum; the others are divided again (`refine`).
2. Sweep: the swaps of the buckets that are left are sorted and followed one by one, from the state before the bucket.

Memory is bounded: at most `ROOM` swaps are held at a time (all swaps of one bucket, if those are more).

References
----------
Metzler 2007, section 4 (Algorithm 1, line 5, which leaves the method of the search open).
Och, Minimum error rate training in statistical machine translation, ACL 2003 (the sweep over all crossings).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from greylag.ltr import kernels
from greylag.ltr.data import RankingData
from greylag.ltr.kernels import CELLS
from greylag.ltr.objectives import Objective
from greylag.ranking import FloatArray, IntArray

BUCKETS = 128  # of a survey
LEVELS = 3  # surveys of one search, each within the buckets that the one before left
SMALL = 1 << 17  # pairs, up to which it is as fast to sort all crossings
ROOM = 1 << 20  # swaps that are sorted at a time
ROUNDING = 1e-11  # of sums over all swaps
SAMPLE = 4096  # pairs whose crossings tell the scale of the x axis


class Optimum(NamedTuple):
    """The best step along a line, and the mean of the measure there."""

    step: float
    value: float


class Problem(NamedTuple):
    """The data and objective of line searches, prepared once.

    Parameters
    ----------
    code : int
        The measure, for the compiled functions.
    divisor : float array
        By rank; see `kernels.divisors`.
    offsets : int array, shape (q + 1,)
        The data's.
    gains : float array, shape (n,)
        By row.
    weights : float array, shape (q,)
        The objective's normalisers, divided by q.
    rows : int array, shape (n,)
        The rows by query, the relevant ones of each query first.
    relevant_offsets : int array, shape (q + 1,)
        Numbers the relevant rows, by query.
    """

    code: int
    divisor: FloatArray
    offsets: IntArray
    gains: FloatArray
    weights: FloatArray
    rows: IntArray
    relevant_offsets: IntArray

    @property
    def pairs(self) -> int:
        """The number of pairs of a relevant document and another one of its query, an upper bound of the swaps."""
        return int(np.diff(self.offsets) @ np.diff(self.relevant_offsets))


class Survey(NamedTuple):
    """What a pass over all pairs tells of the measure along a line.

    Parameters
    ----------
    grid : tuple of float
        See `kernels.survey`.
    bucket : int array, shape (CELLS,)
        The bucket of each cell.
    values : float array, shape (B,)
        The measure at the left end of each bucket.
    bounds : float array, shape (B,)
        Upper bounds of the measure within each bucket; -infinity for buckets that an earlier survey ruled out.
    numbers : int array, shape (B,)
        The swaps in each bucket, at most.
    """

    grid: tuple[float, float, float]
    bucket: IntArray
    values: FloatArray
    bounds: FloatArray
    numbers: IntArray

    @property
    def reached(self) -> float:
        """A value that the measure takes, less rounding; on an interval that may be too narrow for a step."""
        return float(self.values.max()) - ROUNDING

    def left(self, floor: float) -> Any:
        """Which buckets may hold a value of at least `floor`, shape (B,)."""
        return (self.bounds >= floor - ROUNDING) & (self.numbers > 0)


def prepare(data: RankingData, objective: Objective) -> Problem:
    """Prepare line searches that maximise the mean of the objective over the queries."""
    gains = objective.gains(data)
    query = np.repeat(np.arange(len(data.qids)), np.diff(data.offsets))
    relevant = np.bincount(query[gains > 0], minlength=len(data.qids))
    return Problem(
        code=objective.code,
        divisor=objective.divisors(data),
        offsets=data.offsets,
        gains=gains,
        weights=objective.normalisers(data) / len(data.qids),
        rows=np.lexsort((gains <= 0, query)),
        relevant_offsets=np.concatenate([[0], np.cumsum(relevant)]),
    )


def mean(problem: Problem, scores: FloatArray) -> float:
    """The mean of the measure when documents are ranked by `scores`."""
    code, divisor, offsets, gains, weights = problem[:5]
    return float(kernels.evaluate(code, divisor, offsets, scores, gains, weights).sum())


def line_search(
    problem: Problem,
    scores: FloatArray,
    direction: FloatArray,
    *,
    first: Survey | None = None,
    floor: float = -np.inf,
) -> Optimum:
    """Find the x that maximises the measure of ``scores + x direction``, both of shape (n,), over all real x.

    The result is the middle of the best interval between two crossings, and of the widest one among equally good ones
    (to 1e-12). An unbounded interval is taken to extend from its end by twice that end's distance from 0, and at least
    by 2. Intervals that rounding could close, of relative width below 1e-10, are skipped.

    Parameters
    ----------
    first : Survey, optional
        The result of `survey` for the same line, if it is known.
    floor : float, optional
        Values below it are of no interest. If there are no others, the result is (0, -infinity).
    """
    lines = _lines(problem, scores, direction)
    found = first or _survey_all(problem, lines)
    if not found.numbers.any():
        return Optimum(0.0, mean(problem, scores))
    reached = max(floor, found.reached)
    for _ in range(1, LEVELS):
        left = found.left(reached)
        if found.numbers[left].sum() <= ROOM or not left.any():
            break
        found = refine(problem, lines, found, left)
        reached = max(reached, found.reached)
    step, value = _search(problem, lines, found, reached)
    if value < reached - ROUNDING and floor < reached:  # it was reached on an interval that is too narrow for a step
        step, value = _search(problem, lines, _survey_all(problem, lines), max(floor, value))
    return Optimum(step, mean(problem, scores + step * direction)) if value > -np.inf else Optimum(0.0, -np.inf)


def survey(problem: Problem, scores: FloatArray, direction: FloatArray) -> Survey:
    """Bound the measure along a line, in one pass over all pairs; a small problem is one bucket."""
    return _survey_all(problem, _lines(problem, scores, direction))


def _lines(problem: Problem, scores: FloatArray, direction: FloatArray) -> Any:
    """What `greylag.ltr.kernels` calls lines."""
    rows = problem.rows
    return scores[rows], direction[rows], rows, problem.offsets, problem.relevant_offsets


def _survey_all(problem: Problem, lines: Any) -> Survey:
    bucket = np.arange(CELLS) * (BUCKETS if problem.pairs > min(SMALL, ROOM) else 1) // CELLS
    grid = _scale(problem, lines[0], lines[1]), -1.0, CELLS / 2.0
    return _survey(problem, lines, grid, bucket, np.ones(CELLS, dtype=bool))


def refine(problem: Problem, lines: Any, found: Survey, left: Any) -> Survey:
    """Divide the buckets in `left`, shape (B,), and survey again; what lies between them is ruled out."""
    scale, low, per_cell = found.grid
    kept = np.flatnonzero(left[found.bucket])
    start, end = low + kept[0] / per_cell, low + (kept[-1] + 1) / per_cell
    margin = 2 * (end - start) / (CELLS - 4)  # two cells on each side, as the outermost hold all that lies outside
    grid = scale, start - margin, CELLS / (end - start + 2 * margin)
    middles = grid[1] + (np.arange(CELLS) + 0.5) / grid[2]
    old = np.clip(((middles - low) * per_cell).astype(np.int64), 0, CELLS - 1)
    inside = left[found.bucket[old]]
    # A cell that overlaps a kept one, up to rounding, has its middle in it or is next to one that has.
    own = np.zeros(CELLS, dtype=bool)
    own[1:-1] = inside[:-2] | inside[1:-1] | inside[2:]
    label = np.where(own, np.cumsum(own) // max(1, -(-int(own.sum()) // BUCKETS)), -1)
    bucket = np.cumsum(np.concatenate([[0], np.diff(label) != 0]))
    return _survey(problem, lines, grid, bucket, own)


def _survey(problem: Problem, lines: Any, grid: tuple[float, float, float], bucket: IntArray, own: Any) -> Survey:
    gains = problem.gains[problem.rows]
    start, change, slack, numbers = kernels.survey(
        problem.code, problem.divisor, lines, gains, problem.weights, grid, _slots(bucket, int(bucket[-1]) + 1)
    )
    values = start + np.concatenate([[0.0], np.cumsum(change)[:-1]])
    bounds = np.where(np.bincount(bucket, weights=own) > 0, np.maximum(values, values + change) + slack, -np.inf)
    return Survey(grid, bucket, values, bounds, numbers)


def _slots(bucket: IntArray, buckets: int) -> IntArray:
    """The slot of each cell, as `greylag.ltr.kernels` numbers them."""
    return np.concatenate([2 * bucket, 2 * bucket + 1, 2 * buckets + np.arange(3)])


def _scale(problem: Problem, s: FloatArray, v: FloatArray) -> float:
    """The median distance from 0 of some crossings, 1 if there are none."""
    queries = np.flatnonzero(np.diff(problem.relevant_offsets))
    rng = np.random.default_rng(0)
    query = queries[rng.integers(len(queries), size=SAMPLE)] if len(queries) else queries
    a = problem.offsets[query] + rng.integers(np.diff(problem.relevant_offsets)[query])
    d = problem.offsets[query] + rng.integers(np.diff(problem.offsets)[query])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        distances = np.abs((s[d] - s[a]) / (v[a] - v[d]))
    distances = distances[np.isfinite(distances) & (distances > 0)]
    return float(np.median(distances)) if len(distances) else 1.0


def _search(problem: Problem, lines: Any, found: Survey, reached: float) -> tuple[float, float]:
    """The middle of the best interval, and the measure on it, among all that may reach a value."""
    todo = found.left(reached)
    best = _leftmost(lines, found, reached)
    while todo.any():
        order = np.flatnonzero(todo)[np.argsort(-found.bounds[todo], kind="stable")]
        fitting = max(1, int(np.searchsorted(np.cumsum(found.numbers[order]), ROOM, side="right")))
        chosen = np.zeros(len(todo), dtype=bool)
        chosen[order[:fitting]] = True
        best = _sweep(problem, lines, found, chosen, best)
        todo &= ~chosen & (found.bounds >= best[1] - ROUNDING)
    return best[0], best[1]


def _leftmost(lines: Any, found: Survey, reached: float) -> tuple[float, float, float]:
    """The interval from -infinity to the first crossing: its middle, the measure on it, its width."""
    if found.values[0] < reached - ROUNDING:
        return 0.0, -np.inf, 0.0
    first = kernels.crossing_after(lines, -np.inf, found.grid[0])
    half = max(1.0, abs(first))
    return first - half, float(found.values[0]), 2.0 * half


def _sweep(
    problem: Problem, lines: Any, found: Survey, chosen: Any, best: tuple[float, float, float]
) -> tuple[float, float, float]:
    """`best`, or the best interval that begins in one of the `chosen` buckets, shape (B,)."""
    inside = chosen[found.bucket]
    part = np.cumsum(np.diff(inside, prepend=False))  # 0 for what lies before the first run, 1 for that, and so on
    runs = (int(part[-1]) + 1) // 2
    state, jumps, steps, events, numbers = kernels.collect(
        problem.code,
        lines,
        problem.gains[problem.rows],
        found.grid,
        _slots(part, 2 * runs + 1),
        int(found.numbers[chosen].sum()),
    )
    order = np.argsort(steps)
    relevant = np.diff(problem.relevant_offsets)
    gains = problem.gains[problem.rows]
    owners = np.repeat(problem.offsets[:-1] - problem.relevant_offsets[:-1], relevant) + np.arange(relevant.sum())
    swept: tuple[float, float, float] = kernels.sweep(
        problem.code,
        problem.divisor,
        lines,
        gains[owners],
        np.repeat(problem.weights, relevant),
        state,
        jumps,
        steps[order],
        events[order],
        numbers,
        found.grid[0],
        best,
    )
    return swept
