"""Exact line search on rank measures.

Along scores a + x b a measure changes only where a relevant document swaps with another one, at
x = (a_j - a_i) / (b_i - b_j). Following it through these crossings gives the measure on every open interval between two
of them, and hence its global maximum over x: `tests/greylag/learning/linesearch/reference.py` does that, and is the
module to read first. An example with one query, its relevant documents r1 and r2, and AP:

              r1   r2    u    v    w                 ranking        AP
    a          0    3    4    2   -6        x < 2    u r2 v r1 w    (1/2 + 2/4) / 2 = .500
    b          1    0    0    0    2    2 < x < 3    u r2 r1 v w    (1/2 + 2/3) / 2 = .583
                                        3 < x < 4    u r1 r2 v w    (1/2 + 2/3) / 2 = .583
    r1 passes v at 2, r2 at 3, u at 4.  4 < x < 4.5  r1 u r2 v w    (1/1 + 2/3) / 2 = .833
    w passes r2 at 4.5, and r1 at 6.    4.5 < x < 6  r1 u w r2 v    (1/1 + 2/4) / 2 = .750
    (w passes v at 4 and u at 5,        6 < x        w r1 u r2 v    (1/2 + 2/4) / 2 = .500
    neither of which is relevant.)

The best step is the middle of the best interval, 4.25. Few of the crossings need to be looked at to find it:

1. Survey: the x axis is divided into buckets. One pass counts each relevant document's swaps by bucket and direction,
   which gives the measure at the left end of each bucket exactly. Within the bucket a document can rise at most as if
   all its upward swaps came first, which bounds the measure there. Buckets whose bound is below a value that the
   measure takes elsewhere cannot hold the maximum. Surveys of some queries tell where buckets should be narrow.

   With the ends 3.5 and 4.2: in the first bucket, r1 rises past v and r2, and r2 falls past r1. So r1 has at least u
   above it and at most both relevant documents down to it, H <= 2/3, and so has r2, H <= 2/3: the bound is .667. In the
   second one, r1 rises past u, H <= 1, and r2 stays at 2/3: .833. The third one begins with .833 at 4.2, and there are
   only falls. As .667 < .833, the first bucket and its three crossings are ruled out.
2. Sweep: the swaps of the buckets that are left are put into narrow bins, which are bounded in the same way. Only the
   swaps of bins that may hold the maximum are sorted and followed one by one: 4 (+.25), 4.5 (-.083), 6 (-.25).

With a cut-off, most documents never come to the ranks that count, and the first step is taken without them
(`kernels.may_count`). It is so fast then that the buckets which are left are divided again, until few swaps are left.

Memory is bounded: at most `MAX_SWAPS` swaps are held at a time, or those of one bucket if there are more. The loops
over pairs and swaps, and the layout of their arrays, are in `greylag.learning.linesearch.kernels`.

References
----------
Metzler 2007, section 4 (Algorithm 1, line 5, which leaves the method of the search open).
Och, Minimum error rate training in statistical machine translation, ACL 2003 (the sweep over all crossings).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from greylag.base import FloatArray, IntArray
from greylag.learning.data import RankingData
from greylag.learning.linesearch import kernels
from greylag.learning.linesearch.kernels import END_TOLERANCE, ROUNDING
from greylag.learning.linesearch.objectives import Objective

# These constants change the time and the memory that a search takes, and not its result. Those without a bound below
# are compromises, which `plugin/benchmarks/line_search.py` measures.

# Up to this number of pairs, all swaps are swept, since a survey would take longer.
MAX_SWEPT_PAIRS = 1 << 15
# The most buckets of a survey of all ranks, so that a slot (two for each, and three) fits in a byte.
BUCKETS = 120
# Fewer if a query has fewer than this many documents for each: the work is per relevant document and bucket.
DOCUMENTS_PER_BUCKET = 3
# So many rough surveys, of some queries, show where the buckets of the survey of all queries should be narrow.
ROUGH_SURVEYS = 2
# They take every `SAMPLE_EVERY`-th query, or fewer if these would be more than `MAX_SAMPLED`, which is good enough.
SAMPLE_EVERY, MAX_SAMPLED = 6, 300
# They count differences of the measure at this fraction, since the measure over all queries may have its maximum
# elsewhere.
DIFFERENCE_SHARE = 0.4
# One pair in `PAIRS_PER_SAMPLED` is in the sample whose crossings show how to divide the x axis, but at least
# `MIN_SAMPLED_PAIRS` and at most `MAX_SAMPLED_PAIRS` pairs: an estimate will do, since bounds hold wherever the ends of
# buckets are.
PAIRS_PER_SAMPLED, MIN_SAMPLED_PAIRS, MAX_SAMPLED_PAIRS = 256, 64, 1 << 14

# Documents that never come to the ranks that count are left out of surveys if there are `DOCUMENTS_PER_DEPTH` times as
# many as these ranks, as most are needed else; and if a query has on average more than `FEW_RELEVANT` relevant
# documents, as the swaps of a few are counted sooner.
DOCUMENTS_PER_DEPTH, FEW_RELEVANT = 16, 12
# The most further surveys then, and the fraction of all swaps that is swept without another one.
MAX_DIVISIONS, MIN_DIVIDED_SWAPS = 3, 0.002

# The most swaps that are held at a time: 16 bytes each, and as much again while they are sorted, are 32 MB.
MAX_SWAPS = 1 << 20
# Buckets that are ruled out are swept with those around them if they have at most this fraction of all swaps: one more
# pass over all pairs would cost more.
MAX_GAP_SWAPS = 0.01
# Swaps of a bin, on average: bins are narrow enough to be ruled out, and sorting one that is not takes little.
SWAPS_PER_BIN = 512

# Scales are powers of two with exponents of at most this magnitude, far from overflow at 1,024.
MAX_EXPONENT = 900
# The number of cells of positive x below `kernels.MAX_CROSSING`, which is 2^(181 - 127): 127 is the bias of float32's
# exponents.
CELLS = 181 << kernels.CELL_BITS
# The best interval before any is known: its middle, the measure, its width.
NOTHING = 0.0, -np.inf, 0.0


class Optimum(NamedTuple):
    """The best step along a line, and the mean of the measure there."""

    step: float
    value: float


class Problem(NamedTuple):
    """The data and objective of line searches, prepared once; `greylag.learning.linesearch.kernels` has the layout."""

    code: int  # the measure's
    divisor: FloatArray  # by rank
    offsets: IntArray  # shape (q + 1,), the data's
    gains: FloatArray  # shape (n,), by row of the data
    sorted_gains: FloatArray  # shape (n,), in the order of `rows`
    weights: FloatArray  # shape (q,), the objective's normalisers, divided by q
    rows: IntArray  # shape (n,), by query, the relevant ones of each query first
    relevant_offsets: IntArray  # shape (q + 1,), numbers the relevant rows, by query
    sample: IntArray  # shape (2, m), the rows of pairs of a relevant document and another one of its query

    @property
    def pairs(self) -> int:
        """The number of pairs of a relevant document and another one of its query, an upper bound of the swaps."""
        return int(np.diff(self.offsets) @ np.diff(self.relevant_offsets))

    @property
    def depth(self) -> int:
        """The last rank that counts."""
        return int(np.isfinite(self.divisor).sum())

    @property
    def top(self) -> bool:
        """Whether many documents may never come to the ranks that count, and finding them saves work."""
        only_top = self.code == kernels.RR or DOCUMENTS_PER_DEPTH * self.depth <= len(self.divisor)
        return only_top and int(self.relevant_offsets[-1]) > FEW_RELEVANT * len(self.weights)


class Survey(NamedTuple):
    """The result of a pass over all pairs: bounds of the measure along a line, for B buckets."""

    scale: float  # a power of two, by which the direction is multiplied so that crossings are about 1
    ends: FloatArray  # shape (B + 1,), of the buckets, in units of `scale`, increasing from -infinity to infinity
    values: FloatArray  # shape (B,), what the measure reaches in each bucket, such as at its left end, or less
    bounds: FloatArray  # shape (B,), upper bounds of the measure within each bucket
    numbers: IntArray  # shape (B,), the swaps in each bucket, about
    crossings: FloatArray  # a sample, sorted, in units of `scale`

    @property
    def reached(self) -> float:
        """A value that the measure takes, less rounding; on an interval that may be too narrow for a step."""
        return float(self.values.max()) - ROUNDING

    def left(self, floor: float) -> Any:
        """Return which buckets may hold a value of at least `floor`, shape (B,)."""
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
    """Draw the rows of a sample of pairs of a relevant document and another one of its query."""
    sizes, relevant, rng = np.diff(offsets), np.diff(relevant_offsets), np.random.default_rng(0)
    queries = np.flatnonzero(relevant)
    number = np.clip(int(sizes @ relevant) // PAIRS_PER_SAMPLED, MIN_SAMPLED_PAIRS, MAX_SAMPLED_PAIRS)
    query = queries[rng.integers(len(queries), size=number)] if len(queries) else queries
    return rows[offsets[query] + np.stack([rng.integers(relevant[query]), rng.integers(sizes[query])])]


def mean(problem: Problem, scores: FloatArray) -> float:
    """Compute the mean of the measure when documents are ranked by `scores`."""
    return float(
        kernels.evaluate(problem.code, problem.divisor, problem.offsets, scores, problem.gains, problem.weights).sum()
    )


def line_search(
    problem: Problem, scores: FloatArray, direction: FloatArray, *, first: Survey | None = None, floor: float = -np.inf
) -> Optimum:
    """Find the x that maximises the measure of ``scores + x direction``, both of shape (n,), over all real x.

    The result is the middle of the best interval between two crossings, of the widest one among equally good ones
    (to 1e-12), and of the leftmost one among these. An unbounded interval is taken to extend from its end by twice
    that end's distance from 0, and at least by 2. Intervals that rounding could close, of relative width below
    1e-10, are skipped; around 0, the width is relative to the median crossing, or to 1 if that is less.

    `first` is the result of `survey` for the same line, if it is known. Values below `floor` are of no interest: if
    there are no others, the result is (0, -infinity).
    """
    surveyed = first or _undivided(problem, scores, direction)
    lines = _lines(problem, scores, direction, surveyed.scale)
    if divides := problem.pairs > MAX_SWEPT_PAIRS:
        near = _near_top(problem, lines)
        surveyed = first or _divided(problem, *near, surveyed)
    if divides and problem.top:
        surveyed = _maxima(*near, _refined(problem, *near, surveyed, floor), floor)
    reached = max(floor, surveyed.reached)
    step, value = _search(problem, lines, surveyed, reached)
    if value < reached - ROUNDING and floor < reached:  # it was reached on an interval that is too narrow for a step
        step, value = _search(problem, lines, surveyed, max(floor, value))
    if value < floor - ROUNDING:
        return Optimum(0.0, -np.inf)
    return Optimum(step, mean(problem, scores + step * direction))


def survey(problem: Problem, scores: FloatArray, direction: FloatArray) -> Survey:
    """Bound the measure along a line, in one pass over all pairs; a small problem is one bucket without a bound."""
    whole = _undivided(problem, scores, direction)
    if problem.pairs <= MAX_SWEPT_PAIRS:
        return whole
    return _divided(problem, *_near_top(problem, _lines(problem, scores, direction, whole.scale)), whole)


def _undivided(problem: Problem, scores: FloatArray, direction: FloatArray) -> Survey:
    """Return a survey of one bucket without a bound."""
    a, d = problem.sample
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        crossings = (scores[d] - scores[a]) / (direction[a] - direction[d])
    crossings = np.sort(crossings[np.isfinite(crossings) & (crossings != 0)])
    middle = np.round(np.log2(np.median(np.abs(crossings)))) if len(crossings) else 0
    # Powers of two, so that scaling loses no digit.
    even = _exponent(scores) - _exponent(direction)
    scale = float(
        2.0 ** np.clip(np.clip(middle, even - MAX_EXPONENT, even + MAX_EXPONENT), -MAX_EXPONENT, MAX_EXPONENT)
    )
    ends, low = np.array([-np.inf, np.inf]), np.array([-np.inf])
    return Survey(scale, ends, low, -low, np.array([problem.pairs]), crossings / scale)


def _divided(problem: Problem, near: Problem, lines: Any, whole: Survey) -> Survey:
    """Survey buckets that are narrow where surveys of some queries show that this rules out more."""
    number = int(np.clip(len(problem.rows) / len(problem.weights) / DOCUMENTS_PER_BUCKET, 16, BUCKETS))
    cells, density = _cell_numbers(whole.crossings), np.ones(len(whole.crossings))
    stride = max(SAMPLE_EVERY, len(problem.weights) // MAX_SAMPLED)
    for _ in range(ROUGH_SURVEYS):
        rough = _survey(near, lines, whole, _cuts(cells, density, number), stride)
        bucket = np.searchsorted(rough.ends, whole.crossings, side="right") - 1
        density = (_parts(rough, number) / np.maximum(1, np.bincount(bucket, minlength=len(rough.values))))[bucket]
    return _survey(near, lines, whole, _cuts(cells, density, number), 1)


def _lines(problem: Problem, scores: FloatArray, direction: FloatArray, scale: float) -> Any:
    """Return the lines of all documents, as `greylag.learning.linesearch.kernels` has them."""
    rows, unit = problem.rows, -_exponent(scores)  # powers of two change no crossing
    s, v = np.ldexp(scores[rows], unit), np.ldexp(direction[rows], unit + int(np.log2(scale)))
    return s, v, rows, problem.offsets, problem.relevant_offsets


def _near_top(problem: Problem, lines: Any) -> tuple[Problem, Any]:
    """Leave out documents that are below the ranks that count at every x, which no value of the measure depends on."""
    if not problem.top:
        return problem, lines
    s, v, rows, offsets, relevant_offsets = lines
    kept = kernels.may_count(problem.code == kernels.RR, problem.depth, lines)
    before = np.append(0, np.cumsum(kept))  # of the documents kept, by place
    relevant = before[offsets[:-1] + np.diff(relevant_offsets)] - before[offsets[:-1]]
    near = problem._replace(
        sorted_gains=problem.sorted_gains[kept],
        rows=rows[kept],
        offsets=before[offsets],
        relevant_offsets=np.append(0, np.cumsum(relevant)),
    )
    return near, (s[kept], v[kept], near.rows, near.offsets, near.relevant_offsets)


def _exponent(values: Any) -> int:
    """Return the largest binary exponent; 0 if there are only zeros."""
    return int(np.frexp(np.abs(values).max(initial=0.0))[1])


def _cell_numbers(x: FloatArray) -> IntArray:
    """Number the cells of x from left to right: 0 and the smallest positive numbers are in cell `CELLS`."""
    bits = x.astype(np.float32).view(np.int32) >> kernels.CELL_SHIFT
    size = np.minimum(bits & (kernels.SIGN - 1), CELLS - 1)
    return np.asarray(np.where(bits < 0, CELLS - 1 - size, CELLS + size).astype(np.int64))


def _parts(rough: Survey, number: int) -> FloatArray:
    """Return into how many intervals to divide each bucket, `number` in sum, such that few may hold the maximum.

    A bucket's slack is shared by its intervals. So they are ruled out if there are more of them than the slack divided
    by what the bucket's ends are below the maximum. The same number is added to all these differences, since there are
    not enough intervals for the buckets around the maximum.
    """
    highest = np.maximum(rough.values, np.append(rough.values[1:], rough.values[-1]))
    slack, below = np.maximum(rough.bounds - highest, 0.0), DIFFERENCE_SHARE * (highest.max() - highest)
    low, high = 0.0, float(slack.sum()) or 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (slack / (below + middle)).sum() > number else (low, middle)
    return np.asarray(slack / (below + high))


def _cuts(cells: IntArray, density: FloatArray, number: int) -> IntArray:
    """Number the cells with which buckets begin, such that each holds about as much of the density."""
    total = np.cumsum(density)
    cuts = cells[np.searchsorted(total, np.arange(1, number) / number * total[-1])] if len(cells) else cells
    return np.unique(cuts[(cuts > 0) & (cuts != CELLS)])  # the cells around 0 are in one bucket, as -0 equals 0


def _ends(cuts: IntArray) -> FloatArray:
    """Return the least x in float32, infinite or not, of the buckets that begin with these cells, and infinity."""
    size = np.where(cuts > CELLS, cuts - CELLS, CELLS - cuts).astype(np.int32)
    edges = (size << kernels.CELL_SHIFT).view(np.float32)
    least = np.where(cuts > CELLS, edges, np.nextafter(-edges, np.float32(0.0)))
    return np.concatenate([[-np.inf], least.astype(np.float64), [np.inf]])


def _slots(cuts: IntArray) -> Any:
    """Return the slot of each cell, as `greylag.learning.linesearch.kernels` numbers them."""
    bucket = np.repeat(np.arange(0, 2 * len(cuts) + 2, 2, dtype=np.uint8), np.diff(cuts, prepend=0, append=2 * CELLS))
    never = 2 * (len(cuts) + 1)
    slots = np.empty((2, 2, kernels.SIGN), dtype=np.uint8)  # by the signs of the slope and of x
    slots[1, 0, :CELLS], slots[1, 1, :CELLS] = bucket[CELLS:], bucket[CELLS - 1 :: -1]
    slots[1, 0, CELLS:], slots[1, 1, CELLS:] = never, never + 1
    np.bitwise_xor(slots[1], 1, out=slots[0])
    slots[:, :, (255 << kernels.CELL_BITS) + 1 :] = never + 2  # 0 / 0
    return slots.ravel()


def _survey(problem: Problem, lines: Any, whole: Survey, cuts: IntArray, stride: int) -> Survey:
    """Survey the buckets that begin with these cells."""
    start, change, slack, numbers = kernels.survey(
        problem.code, problem.divisor, lines, problem.sorted_gains, problem.weights, _slots(cuts),
        len(cuts) + 1, stride,
    )  # fmt: skip
    values = start + np.concatenate([[0.0], np.cumsum(change)[:-1]])
    bounds = values + slack
    return whole._replace(ends=_ends(cuts), values=values, bounds=bounds, numbers=numbers)


def _refined(problem: Problem, near: Problem, lines: Any, surveyed: Survey, floor: float) -> Survey:
    """Divide the buckets that may hold a value of at least `floor`, as long as they hold more than a few swaps."""
    crossings = surveyed.crossings
    cells = _cell_numbers(crossings)
    for _ in range(MAX_DIVISIONS):
        left = surveyed.left(max(floor, surveyed.reached))
        inside = left[np.searchsorted(surveyed.ends, crossings, side="right") - 1]
        if inside.sum() <= MIN_DIVIDED_SWAPS * len(crossings):
            break
        surveyed = _combined(surveyed, _survey(near, lines, surveyed, _cuts(cells, inside, BUCKETS), 1))
    shares: IntArray = np.diff(np.searchsorted(crossings, surveyed.ends))  # of the swaps of all documents
    return surveyed._replace(numbers=shares * problem.pairs // max(1, len(crossings)))


def _combined(first: Survey, second: Survey) -> Survey:
    """Return what is known of all parts of the buckets of two surveys of a line."""
    ends = np.union1d(first.ends, second.ends)
    a, b = (np.searchsorted(each.ends, ends[:-1], side="right") - 1 for each in (first, second))
    values = np.where(first.ends[a] == ends[:-1], first.values[a], second.values[b])
    bounds = np.minimum(first.bounds[a], second.bounds[b])
    return first._replace(ends=ends, values=values, bounds=bounds)


def _maxima(near: Problem, lines: Any, surveyed: Survey, floor: float) -> Survey:
    """Lower the bounds of buckets that may hold a value of at least `floor` to what the measure reaches there."""
    bounds, values = surveyed.bounds.copy(), surveyed.values.copy()
    todo = surveyed.left(max(floor, surveyed.reached))
    while todo.any():
        run, least = _run(todo, surveyed, 0.0), max(floor, float(values.max())) - 3 * ROUNDING
        value = _sweep(near, lines, surveyed, run, least, NOTHING)[1]
        bounds[run] = np.minimum(bounds[run], max(value, least - ROUNDING))
        values[run.start] = max(values[run.start], value)
        todo[run] = False
        todo &= surveyed.bounds >= max(floor, float(values.max())) - 3 * ROUNDING
    return surveyed._replace(bounds=bounds, values=values)


def _points(lines: Any, ends: tuple[float, float]) -> FloatArray:
    """Return points (c, d) of x = d / c, as in `kernels.collect`, around two ends; c s + d v is at most about 1."""
    s, v = (float(np.abs(line).max(initial=0.0)) or 1.0 for line in lines[:2])
    finite = np.isfinite(ends)
    x = np.where(finite, ends, 0.0)
    x += END_TOLERANCE * np.abs(x) * np.array([-1.0, 1.0])  # crossings may be rounded to the ends from either side
    c = np.where(finite, 1.0 / (s + np.abs(x) * v), 0.0)
    return np.stack([c, np.where(finite, x * c, np.copysign(1.0 / v, ends))], axis=1)


def _search(problem: Problem, lines: Any, surveyed: Survey, floor: float) -> tuple[float, float]:
    """Find the middle of the best interval between crossings, and its measure, among all that may reach `floor`."""
    todo = surveyed.left(floor)
    best = NOTHING
    while todo.any():
        run = _run(todo, surveyed, MAX_GAP_SWAPS)
        best = _sweep(problem, lines, surveyed, run, floor, best)
        todo[run] = False
        todo &= surveyed.bounds >= best[1] - ROUNDING
    return best[0], best[1]


def _run(todo: Any, surveyed: Survey, gap: float) -> slice:
    """Return the bucket with the highest bound, and those around it, as long as there is room for their swaps.

    Those between them have at most a fraction `gap` of all swaps.
    """
    numbers = surveyed.numbers
    first = int(np.argmax(np.where(todo, surveyed.bounds, -np.inf)))
    end, left = first + 1, np.flatnonzero(todo)
    for more in left[left >= end]:
        if numbers[end:more].sum() > gap * numbers.sum() or numbers[first : more + 1].sum() > MAX_SWAPS:
            break
        end = int(more) + 1
    for more in left[left < first][::-1]:
        if numbers[more + 1 : first].sum() > gap * numbers.sum() or numbers[more:end].sum() > MAX_SWAPS:
            break
        first = int(more)
    return slice(first, end)


def _sweep(
    problem: Problem, lines: Any, surveyed: Survey, run: slice, floor: float, best: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Return `best`, or the best interval that begins within a run of buckets."""
    code, gains = problem.code, problem.sorted_gains
    ends = surveyed.ends[run.start], surveyed.ends[run.stop]
    state, steps, events = kernels.collect(
        code == kernels.ERR, lines, gains, ends, _points(lines, ends), int(surveyed.numbers[run].sum())
    )
    steps, events, bins = kernels.sort_by_bin(code == kernels.AP, steps, events, ends, 1 + len(steps) // SWAPS_PER_BIN)
    relevant = np.diff(problem.relevant_offsets)
    owners = np.repeat(problem.offsets[:-1] - problem.relevant_offsets[:-1], relevant) + np.arange(relevant.sum())
    weights = np.repeat(problem.weights, relevant)
    swept: tuple[float, float, float] = kernels.sweep(
        code, problem.divisor, lines, gains[owners], weights, state, steps, events, bins, surveyed.scale,
        (run.start == 0, run.stop == len(surveyed.values)), floor, best,
    )  # fmt: skip
    return swept
