"""The exact line search as it is defined: start here. `line_search` finds the same, and looks at few of the crossings.

Along ``scores + x direction`` each document is a line in x. Documents of a query are ranked by the heights of their
lines, and swap ranks where two lines cross. A rank measure is a sum over relevant documents, and changes only where one
of these crosses another line. So between two neighbouring crossings of all queries the measure is constant, and its
maximum over all x is that over one point of each interval. `line_search` has an example.

References
----------
Metzler 2007, section 4 (Algorithm 1, line 5). Och, Minimum error rate training in statistical machine translation,
ACL 2003.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from greylag.base import FloatArray
from greylag.learning.linesearch import kernels
from greylag.learning.linesearch.kernels import MEAN_TOLERANCE, MIN_RELATIVE_WIDTH
from greylag.learning.linesearch.line_search import Optimum, Problem, mean


def line_search(problem: Problem, scores: FloatArray, direction: FloatArray) -> Optimum:
    """Maximise as `line_search.line_search` does, in the time of a ranking for each crossing; shapes (n,)."""
    queries_at = crossings(problem, scores, direction)
    if not queries_at:
        return Optimum(0.0, mean(problem, scores))
    ends = sorted(queries_at)
    # The outer intervals are unbounded: they are taken to extend by twice the distance of their end from 0.
    before, after = ends[0] - 2 * max(1.0, abs(ends[0])), ends[-1] + 2 * max(1.0, abs(ends[-1]))
    values, changed = np.zeros(len(problem.weights)), set(range(len(problem.weights)))
    step, best, widest = 0.0, -np.inf, 0.0
    for left, right in pairwise([before, *ends, after]):
        changed |= queries_at.get(left, set())
        middle, width = left + 0.5 * (right - left), right - left
        if left != before and width <= MIN_RELATIVE_WIDTH * max(1.0, abs(left)):
            continue  # so narrow that lines could be in another order at its rounded middle
        for query in changed:  # the others are ranked as in the interval before
            values[query] = value_at(problem, query, scores, direction, middle)
        changed.clear()
        value = float(values.sum())
        # Of equally good intervals the widest wins, and of equally wide ones the leftmost.
        if value > best + MEAN_TOLERANCE or (value > best - MEAN_TOLERANCE and width > widest):
            step, best, widest = middle, max(value, best), width
    return Optimum(step, best)


def crossings(problem: Problem, scores: FloatArray, direction: FloatArray) -> dict[float, set[int]]:
    """Find the x at which a relevant document crosses another one of its query, and the queries where it does."""
    queries_at: dict[float, set[int]] = {}
    for query, (first, end) in enumerate(pairwise(problem.offsets.tolist())):
        for a in range(first, end):
            for d in range(first, end):
                if problem.gains[a] > 0 and direction[a] != direction[d]:  # parallel lines never cross
                    x = float((scores[d] - scores[a]) / (direction[a] - direction[d]))
                    queries_at.setdefault(x, set()).add(query)
    return queries_at


def value_at(problem: Problem, query: int, scores: FloatArray, direction: FloatArray, x: float) -> float:
    """Evaluate a query at x, times its weight in the mean; ties go to the document that comes first."""
    rows = slice(*problem.offsets[query : query + 2])
    heights, gains = scores[rows] + x * direction[rows], problem.gains[rows]
    weight = problem.weights[query : query + 1]
    return float(kernels.evaluate(problem.code, problem.divisor, np.array([0, len(gains)]), heights, gains, weight)[0])
