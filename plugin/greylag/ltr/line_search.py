"""Exact line search on rank measures.

Along scores a + x b a measure changes only where a relevant document swaps with another one, at
x = (a_j - a_i) / (b_i - b_j). Following it through these crossings gives the measure on every open interval between two
of them, and hence its global maximum over x. Few of the crossings need to be looked at for that:

1. Survey: the x axis is divided into buckets. One pass counts each relevant document's swaps by bucket and direction,
   which gives the measure at the left end of each bucket exactly. Within the bucket a document can rise at most as if
   all its upward swaps came first, which bounds the measure there. Buckets whose bound is below a value that the
   measure takes elsewhere cannot hold the maximum. Surveys of some queries tell where buckets should be narrow.
2. Sweep: the swaps of the buckets that are left are put into narrow bins, which are bounded in the same way. Only the
   swaps of bins that may hold the maximum are sorted and followed one by one.

Memory is bounded: at most `ROOM` swaps are held at a time, or those of one bucket if there are more.

References
----------
Metzler 2007, section 4 (Algorithm 1, line 5, which leaves the method of the search open).
Och, Minimum error rate training in statistical machine translation, ACL 2003 (the sweep over all crossings).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from greylag.ltr import kernels, swaps, tops
from greylag.ltr.data import RankingData
from greylag.ltr.kernels import ROUNDING
from greylag.ltr.objectives import Objective
from greylag.ranking import FloatArray, IntArray

BUCKETS = 120  # of a survey, at most
DOCUMENTS = 3  # of a query for each bucket
TOP_BUCKETS = 1024  # of a survey of the top ranks, and of each part that is divided again
NARROW = 4e-6  # width of a bucket, of which the whole x axis has 2, that is not divided
PARTS = 4  # that are divided, at most
REFINED = 3  # times, at most
FEW = 0.002  # of all swaps, which are better swept
DEEP = 4  # times a cut-off must be fewer documents than there are for that
DEEPEST = 32  # cut-off for that
SMALL = 1 << 15  # pairs, up to which all swaps are swept
ROOM = 1 << 20  # swaps that are held at a time
GAP = 0.01  # of all swaps, up to which buckets that are ruled out are swept with those around them
BIN = 512  # swaps of a bin, on average
ROUGH = 2  # surveys of some queries, which tell where buckets should be narrow
SHARE, MANY = 6, 300  # every `SHARE`-th query, or fewer if these are more than `MANY`
CAUTION = 0.4  # as the measure differs between these queries and all
SAMPLE, FEWEST = 1 << 14, 64  # pairs, at most and at least, whose crossings tell how to divide the x axis
EVERY = 256  # of so many pairs, one is in the sample
RANGE = 900  # binary exponents that are far from overflow
CELLS = 181 << kernels.CELL_BITS  # of positive x below `kernels.FAR`, 2^(181 - 127)


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
    sorted_gains : float array, shape (n,)
        In the order of `rows`.
    weights : float array, shape (q,)
        The objective's normalisers, divided by q.
    rows : int array, shape (n,)
        The rows by query, the relevant ones of each query first.
    relevant_offsets : int array, shape (q + 1,)
        Numbers the relevant rows, by query.
    sample : int array, shape (2, m)
        The rows of a sample of pairs of a relevant document and another one of its query.
    """

    code: int
    divisor: FloatArray
    offsets: IntArray
    gains: FloatArray
    sorted_gains: FloatArray
    weights: FloatArray
    rows: IntArray
    relevant_offsets: IntArray
    sample: IntArray

    @property
    def pairs(self) -> int:
        """The number of pairs of a relevant document and another one of its query, an upper bound of the swaps."""
        return int(np.diff(self.offsets) @ np.diff(self.relevant_offsets))

    @property
    def top(self) -> bool:
        """Whether `greylag.ltr.tops` can follow the measure, with less to do than `greylag.ltr.kernels`."""
        depth = int(np.isfinite(self.divisor).sum())
        return self.code == kernels.RR or (
            self.code in (kernels.NDCG, kernels.P, kernels.ERR)
            and depth <= DEEPEST
            and DEEP * depth <= len(self.divisor)
        )


class Survey(NamedTuple):
    """What a pass over all pairs tells of the measure along a line.

    Parameters
    ----------
    scale : float
        A power of two, by which `kernels` multiplies the direction.
    ends : float array, shape (B + 1,)
        The ends of the buckets in units of `scale`, increasing from -infinity to infinity.
    values : float array, shape (B,)
        The measure at the left end of each bucket, or less.
    bounds : float array, shape (B,)
        Upper bounds of the measure within each bucket.
    numbers : int array, shape (B,)
        The swaps in each bucket, about.
    crossings : float array
        A sample, sorted, in units of `scale`.
    """

    scale: float
    ends: FloatArray
    values: FloatArray
    bounds: FloatArray
    numbers: IntArray
    crossings: FloatArray

    @property
    def reached(self) -> float:
        """A value that the measure takes, less rounding; on an interval that may be too narrow for a step."""
        return float(self.values.max()) - ROUNDING

    def left(self, floor: float) -> Any:
        """Which buckets may hold a value of at least `floor`, shape (B,)."""
        return self.bounds >= floor - ROUNDING


def prepare(data: RankingData, objective: Objective) -> Problem:
    """Prepare line searches that maximise the mean of the objective over the queries."""
    gains = objective.gains(data)
    query = np.repeat(np.arange(len(data.qids)), np.diff(data.offsets))
    relevant = np.bincount(query[gains > 0], minlength=len(data.qids))
    rows, relevant_offsets = np.lexsort((gains <= 0, query)), np.concatenate([[0], np.cumsum(relevant)])
    return Problem(
        code=objective.code,
        divisor=objective.divisors(data),
        offsets=data.offsets,
        gains=gains,
        sorted_gains=gains[rows],
        weights=objective.normalisers(data) / len(data.qids),
        rows=rows,
        relevant_offsets=relevant_offsets,
        sample=_sample(rows, data.offsets, relevant_offsets),
    )


def _sample(rows: IntArray, offsets: IntArray, relevant_offsets: IntArray) -> IntArray:
    """The rows of a sample of pairs of a relevant document and another one of its query."""
    sizes, relevant, rng = np.diff(offsets), np.diff(relevant_offsets), np.random.default_rng(0)
    queries = np.flatnonzero(relevant)
    number = np.clip(int(sizes @ relevant) // EVERY, FEWEST, SAMPLE)
    query = queries[rng.integers(len(queries), size=number)] if len(queries) else queries
    return rows[offsets[query] + np.stack([rng.integers(relevant[query]), rng.integers(sizes[query])])]


def mean(problem: Problem, scores: FloatArray) -> float:
    """The mean of the measure when documents are ranked by `scores`."""
    return float(
        kernels.evaluate(problem.code, problem.divisor, problem.offsets, scores, problem.gains, problem.weights).sum()
    )


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
    by 2. Intervals that rounding could close, of relative width below 1e-10, are skipped; around 0, the width is
    relative to the median crossing, or to 1 if that is less.

    Parameters
    ----------
    first : Survey, optional
        The result of `survey` for the same line, if it is known.
    floor : float, optional
        Values below it are of no interest. If there are no others, the result is (0, -infinity).
    """
    found = first or survey(problem, scores, direction)
    lines = _lines(problem, scores, direction, found.scale)
    if problem.top and len(found.values) > 1:
        found = _refine(problem, lines, found, floor)
    reached = max(floor, found.reached)
    step, value = _search(problem, lines, found, reached)
    if value < reached - ROUNDING and floor < reached:  # it was reached on an interval that is too narrow for a step
        step, value = _search(problem, lines, found, max(floor, value))
    if value < floor - ROUNDING:
        return Optimum(0.0, -np.inf)
    return Optimum(step, mean(problem, scores + step * direction))


def survey(problem: Problem, scores: FloatArray, direction: FloatArray) -> Survey:
    """Bound the measure along a line, in one pass over all pairs; a small problem is one bucket without a bound."""
    crossings = _crossings(problem, scores, direction)
    middle = np.round(np.log2(np.median(np.abs(crossings)))) if len(crossings) else 0
    even = _exponent(scores) - _exponent(direction)
    scale = float(2.0 ** np.clip(np.clip(middle, even - RANGE, even + RANGE), -RANGE, RANGE))
    crossings /= scale
    whole, low = np.array([-np.inf, np.inf]), np.array([-np.inf])
    undivided = Survey(scale, whole, low, -low, np.array([problem.pairs]), crossings)
    if problem.pairs <= SMALL:
        return undivided
    lines = _lines(problem, scores, direction, scale)
    if problem.top:
        return _divide(problem, lines, undivided, np.array([True]))
    number = int(np.clip(len(problem.rows) / len(problem.weights) / DOCUMENTS, 16, BUCKETS))
    cells, density, stride = _places(crossings), np.ones(len(crossings)), max(SHARE, len(problem.weights) // MANY)
    for _ in range(ROUGH):
        rough = _survey(problem, lines, undivided, _cuts(cells, density, number), stride)
        bucket = np.searchsorted(rough.ends, crossings, side="right") - 1
        density = (_parts(rough, number) / np.maximum(1, np.bincount(bucket, minlength=len(rough.values))))[bucket]
    return _survey(problem, lines, undivided, _cuts(cells, density, number), 1)


def _lines(problem: Problem, scores: FloatArray, direction: FloatArray, scale: float) -> Any:
    """What `greylag.ltr.kernels` calls lines."""
    rows, unit = problem.rows, -_exponent(scores)  # powers of two change no crossing
    s, v = np.ldexp(scores[rows], unit), np.ldexp(direction[rows], unit + int(np.log2(scale)))
    return s, v, rows, problem.offsets, problem.relevant_offsets


def _exponent(values: Any) -> int:
    """The largest binary exponent; 0 if there are only zeros."""
    return int(np.frexp(np.abs(values).max(initial=0.0))[1])


def _crossings(problem: Problem, scores: FloatArray, direction: FloatArray) -> FloatArray:
    """The crossings of the sample of pairs, sorted."""
    a, d = problem.sample
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        crossings = (scores[d] - scores[a]) / (direction[a] - direction[d])
    return np.sort(crossings[np.isfinite(crossings) & (crossings != 0)])


def _places(x: FloatArray) -> IntArray:
    """The places of the cells of x from left to right: 0 and the smallest positive numbers are in cell `CELLS`."""
    bits = x.astype(np.float32).view(np.int32) >> kernels.CELL_SHIFT
    size = np.minimum(bits & (kernels.SIGN - 1), CELLS - 1)
    places: IntArray = np.where(bits < 0, CELLS - 1 - size, CELLS + size).astype(np.int64)
    return places


def _parts(rough: Survey, number: int) -> FloatArray:
    """Into how many parts to divide each bucket, `number` in sum, such that few of them may hold the maximum.

    A bucket's slack is shared by its parts. So they are ruled out if there are more of them than the slack divided by
    what the bucket's ends are below the maximum. The same number is added to all these differences, since there are not
    enough parts for the buckets around the maximum.
    """
    highest = np.maximum(rough.values, np.append(rough.values[1:], rough.values[-1]))
    slack, below = rough.bounds - highest, CAUTION * (highest.max() - highest)
    low, high = 0.0, float(slack.sum()) or 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (slack / (below + middle)).sum() > number else (low, middle)
    parts: FloatArray = slack / (below + high)
    return parts


def _cuts(cells: IntArray, density: FloatArray, number: int) -> IntArray:
    """The places of the cells with which buckets begin, such that each holds about as much of the density."""
    total = np.cumsum(density)
    cuts = cells[np.searchsorted(total, np.arange(1, number) / number * total[-1])] if len(cells) else cells
    return np.unique(cuts[(cuts > 0) & (cuts != CELLS)])  # the cells around 0 are in one bucket, as -0 equals 0


def _ends(cuts: IntArray) -> FloatArray:
    """The least x in float32, infinite or not, of the buckets that begin with these cells, and infinity."""
    size = np.where(cuts > CELLS, cuts - CELLS, CELLS - cuts).astype(np.int32)
    edges = (size << kernels.CELL_SHIFT).view(np.float32)
    least = np.where(cuts > CELLS, edges, np.nextafter(-edges, np.float32(0.0)))
    return np.concatenate([[-np.inf], least.astype(np.float64), [np.inf]])


def _slots(cuts: IntArray) -> Any:
    """The slot of each cell, as `greylag.ltr.kernels` numbers them."""
    bucket = np.repeat(np.arange(0, 2 * len(cuts) + 2, 2, dtype=np.uint8), np.diff(cuts, prepend=0, append=2 * CELLS))
    never = 2 * (len(cuts) + 1)
    slots = np.empty((2, 2, kernels.SIGN), dtype=np.uint8)  # by the signs of the slope and of x
    slots[1, 0, :CELLS], slots[1, 1, :CELLS] = bucket[CELLS:], bucket[CELLS - 1 :: -1]
    slots[1, 0, CELLS:], slots[1, 1, CELLS:] = never, never + 1
    np.bitwise_xor(slots[1], 1, out=slots[0])
    slots[:, :, (255 << kernels.CELL_BITS) + 1 :] = never + 2  # 0 / 0
    return slots.ravel()


def _survey(problem: Problem, lines: Any, whole: Survey, cuts: IntArray, stride: int) -> Survey:
    start, change, slack, numbers = kernels.survey(
        problem.code, problem.divisor, lines, problem.sorted_gains, problem.weights, _slots(cuts),
        len(cuts) + 1, stride,
    )  # fmt: skip
    values = start + np.concatenate([[0.0], np.cumsum(change)[:-1]])
    bounds = np.maximum(values, values + change) + slack
    return whole._replace(ends=_ends(cuts), values=values, bounds=bounds, numbers=numbers)


def _refine(problem: Problem, lines: Any, found: Survey, floor: float) -> Survey:
    """Divide the buckets that may hold a value of at least `floor`, as long as they hold more than a few swaps."""
    for _ in range(REFINED):
        left = found.left(max(floor, found.reached))
        if found.numbers[left].sum() <= FEW * found.numbers.sum():
            break
        found = _divide(problem, lines, found, left)
    return found


def _divide(problem: Problem, lines: Any, found: Survey, left: Any) -> Survey:
    """Divide some buckets of a survey of the top ranks, and buckets between them if they are in too many parts."""
    edges = np.flatnonzero(np.diff(left, prepend=False, append=False)).reshape(-1, 2)
    apart = np.sort(np.argsort(edges[:-1, 1] - edges[1:, 0], kind="stable")[: PARTS - 1])
    starts, stops = edges[np.append(0, apart + 1), 0], edges[np.append(apart, -1), 1]
    for start, stop in zip(starts[::-1], stops[::-1], strict=True):  # from the right, as the numbers of buckets change
        span = float(found.ends[start]), float(found.ends[stop])
        low, high = (np.copysign(1.0 - 1.0 / (1.0 + abs(x)), x) for x in span)
        number = min(TOP_BUCKETS, int((high - low) / NARROW))
        if number > stop - start:
            u = np.linspace(low, high, number + 1)[1:-1]
            inner = (u / (1.0 - np.abs(u))).astype(np.float32).astype(np.float64)
            values, bounds = tops.survey(
                problem.code == kernels.RR, problem.code == kernels.ERR, _discounts(problem), lines,
                problem.sorted_gains, problem.weights, span, number,
            )  # fmt: skip
            found = found._replace(
                ends=np.concatenate([found.ends[: start + 1], inner, found.ends[stop:]]),
                values=np.concatenate([found.values[:start], values, found.values[stop:]]),
                bounds=np.concatenate([found.bounds[:start], bounds, found.bounds[stop:]]),
            )
    shares: IntArray = np.diff(np.searchsorted(found.crossings, found.ends))
    return found._replace(numbers=shares * problem.pairs // max(1, len(found.crossings)))


def _discounts(problem: Problem) -> FloatArray:
    """What H has as factor at each rank up to one beyond the cut-off; 0 at rank 0."""
    finite = np.append(np.inf, problem.divisor[np.isfinite(problem.divisor)])
    return 1.0 / np.append(finite, np.inf)


def _points(lines: Any, ends: FloatArray) -> FloatArray:
    """The points (c, d) of x = d / c, as in `swaps.collect`, such that c s + d v is at most about 1."""
    s, v = (float(np.abs(line).max(initial=0.0)) or 1.0 for line in lines[:2])
    finite = np.isfinite(ends)
    x = np.where(finite, ends, 0.0)
    c = np.where(finite, 1.0 / (s + np.abs(x) * v), 0.0)
    return np.stack([c, np.where(finite, x * c, np.copysign(1.0 / v, ends))], axis=1)


def _search(problem: Problem, lines: Any, found: Survey, floor: float) -> tuple[float, float]:
    """The middle of the best interval between crossings, and the measure on it, among all that may reach `floor`."""
    todo = found.left(floor)
    best = 0.0, -np.inf, 0.0
    while todo.any():
        run = _run(todo, found)
        best = _sweep(problem, lines, found, run, floor, best)
        todo[run] = False
        todo &= found.bounds >= best[1] - ROUNDING
    return best[0], best[1]


def _run(todo: Any, found: Survey) -> slice:
    """The bucket with the highest bound, and those around it, as long as there is room for their swaps.

    A pass over all pairs costs more than the swaps of small gaps.
    """
    numbers = found.numbers
    first = int(np.argmax(np.where(todo, found.bounds, -np.inf)))
    end, left = first + 1, np.flatnonzero(todo)
    for more in left[left >= end]:
        if numbers[end:more].sum() > GAP * numbers.sum() or numbers[first : more + 1].sum() > ROOM:
            break
        end = int(more) + 1
    for more in left[left < first][::-1]:
        if numbers[more + 1 : first].sum() > GAP * numbers.sum() or numbers[more:end].sum() > ROOM:
            break
        first = int(more)
    return slice(first, end)


def _sweep(
    problem: Problem,
    lines: Any,
    found: Survey,
    run: slice,
    floor: float,
    best: tuple[float, float, float],
) -> tuple[float, float, float]:
    """`best`, or the best interval that begins within a run of buckets."""
    code, gains = problem.code, problem.sorted_gains
    ends = found.ends[run.start], found.ends[run.stop]
    points = _points(lines, np.array([ends[0] - swaps.NEAR * abs(ends[0]), ends[1] + swaps.NEAR * abs(ends[1])]))
    state, steps, events = swaps.collect(
        code == kernels.ERR, lines, gains, ends, points, kernels.FAR, int(found.numbers[run].sum())
    )
    steps, events, bins = swaps.sort_by_bin(code == kernels.AP, steps, events, ends, 1 + len(steps) // BIN)
    relevant = np.diff(problem.relevant_offsets)
    owners = np.repeat(problem.offsets[:-1] - problem.relevant_offsets[:-1], relevant) + np.arange(relevant.sum())
    weights = np.repeat(problem.weights, relevant)
    swept: tuple[float, float, float] = kernels.sweep(
        code, problem.divisor, lines, gains[owners], weights, state, steps, events, bins, found.scale,
        (run.start == 0, run.stop == len(found.values)), floor, best,
    )  # fmt: skip
    return swept
