"""Exact line search on rank measures.

Along scores a + x b a measure changes only where a relevant document swaps with another one, at
x = (a_j - a_i) / (b_i - b_j). Sorting these crossings over all queries and sweeping through them gives the measure on
every open interval between two crossings, and hence its global maximum over x.

References
----------
Metzler 2007, section 4 (Algorithm 1, line 5, which leaves the method of the search open).
Och, Minimum error rate training in statistical machine translation, ACL 2003 (the sweep).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greylag.ltr.data import RankingData
from greylag.ltr.kernels import crossings, evaluate, sweep
from greylag.ltr.objectives import Objective
from greylag.ranking import FloatArray, IntArray


class Optimum(NamedTuple):
    """The best step along a line, and the mean of the measure there."""

    step: float
    value: float


class Problem(NamedTuple):
    """The data and objective of line searches, prepared once.

    Parameters
    ----------
    code, depth : int
        The objective's, for the compiled functions.
    offsets : int array, shape (q + 1,)
        The data's.
    relevant : int array, shape (r,)
        Rows with a gain.
    relevant_offsets : int array, shape (q + 1,)
        The relevant rows of query i are ``relevant[relevant_offsets[i]:relevant_offsets[i + 1]]``.
    gains : float array, shape (n,)
    normalisers : float array, shape (q,)
        Divided by q.
    """

    code: int
    depth: int
    offsets: IntArray
    relevant: IntArray
    relevant_offsets: IntArray
    gains: FloatArray
    normalisers: FloatArray


def prepare(data: RankingData, objective: Objective) -> Problem:
    """Prepare line searches that maximise the mean of the objective over the queries."""
    gains = objective.gains(data)
    relevant = np.flatnonzero(gains > 0)
    relevant_offsets = np.searchsorted(relevant, data.offsets)
    normalisers = objective.normalisers(data) / len(data.qids)
    return Problem(objective.code, objective.depth, data.offsets, relevant, relevant_offsets, gains, normalisers)


def line_search(problem: Problem, scores: FloatArray, direction: FloatArray) -> Optimum:
    """Find the x that maximises the measure of ``scores + x direction``, both of shape (n,), over all real x.

    The result is the middle of the best interval between two crossings, and of the widest one among equally good ones
    (to 1e-12). An unbounded interval is taken to extend from its end by twice that end's distance from 0, and at least
    by 2. Intervals that rounding could close, of relative width below 1e-10, are skipped.
    """
    state, steps, events = crossings(*problem, scores, direction)
    order = np.argsort(steps)
    step = sweep(problem.code, problem.depth, *state, steps[order], events[order])  # type: ignore[call-arg]
    return Optimum(step, mean(problem, scores + step * direction))


def mean(problem: Problem, scores: FloatArray) -> float:
    """The mean of the measure when documents are ranked by `scores`."""
    p = problem
    return float(evaluate(p.code, p.depth, p.offsets, scores, p.gains, p.normalisers).sum())
