"""Listwise regression: a weight for every feature, by the likelihood of relevant documents and a ridge penalty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

import numpy as np

from greylag.base import (
    FloatArray,
    ParameterError,
    check_counts,
    check_positive,
    each,
    guided,
    one_blas_thread,
    reached,
)
from greylag.learning.data import RankingData, measure_spreads
from greylag.learning.learner import Selection
from greylag.learning.linesearch.objectives import Objective

MAX_STEPS = 200  # of Newton's method; about five are usual
LAST_STEP = 1e-6  # in units of the weights
BLOCK_ROWS = 1000  # of features, about


@guided
@dataclass(frozen=True)
class ListwiseRegression:
    """Learns a weight for every feature by a ridge-penalised conditional logit.

    With s(d) = w'x(d), the weights minimise the convex function

        sum over q of sum over d of -g(d) / G(q) log(exp s(d) / sum over d' of exp s(d'))  +  penalty / 2 |w - c|^2

    where d and d' are the documents of query q, g(d) is the objective's gain of d (1 for a relevant document by AP, its
    grade by nDCG), G(q) is their sum, and c is the centre of the penalty, 0 by default. Queries without a gain are left
    out. Features are divided by the root mean square around their query means, and w and c are in these units. As the
    penalty is not divided by the number of queries, it counts the less, the more of them there are: it is a normal
    prior with mean c and variance 1 / penalty.

    Parameters
    ----------
    objective : Objective or str
        The measure, whose gains are used. Stored as an `Objective`.
    penalty : float > 0, default 30
        The larger it is, the more are the weights those of single features, and the less of their combination.
    max_features : int >= 1, optional
        The largest number of features; all by default. While there are more, the half with the smaller weights (in
        units of the features' spreads), or fewer, is dropped, and the others' weights are learned again.
    centre : mapping of str to float, optional
        Weights by the name of a feature, in the feature's own units, such as those of a model that was learned on other
        collections. Other features have 0, and features that the data lacks count for nothing. A feature that is
        constant within every query keeps its weight.

    References
    ----------
    McFadden, Conditional logit analysis of qualitative choice behavior, 1974 (the likelihood).
    Cao, Qin, Liu, Tsai and Li, Learning to rank: from pairwise approach to listwise approach, ICML 2007, section 4
    (cross-entropy of top-one probabilities; there, the probabilities of judgements are those of exp g).
    """

    objective: Objective | str
    _: KW_ONLY
    penalty: float = 30.0
    max_features: int | None = None
    centre: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        check_positive(penalty=self.penalty)
        if self.max_features is not None:
            check_counts(max_features=self.max_features)
        if not all(map(isfinite, self.centre.values())):
            raise ParameterError("the weights of centre must be finite numbers")

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> Selection:
        """Learn the weights, in one round; the result does not depend on `n_jobs`."""
        (selection,) = self.path(data, (self.penalty,))
        return selection

    def path(self, data: RankingData, penalties: Sequence[float]) -> list[Selection]:
        """Fit each penalty in turn; each begins where the one before ended, which saves most of the steps."""
        objective = Objective.parse(self.objective)
        gains = objective.gains(data)
        totals = _by_query(np.add, gains, data)
        if not totals.any():
            raise ParameterError("no document that is ranked is relevant: there is nothing to learn from")
        spreads = measure_spreads(data.features, data.offsets)
        # Divided by a spread that is rounding alone, a constant feature would have the largest values of all.
        constant = spreads <= 1e-12 * np.maximum(1.0, np.abs(data.complete).max(axis=0, initial=0.0))
        spreads[constant] = np.inf
        units, centre_weights = 1.0 / spreads, np.array([self.centre.get(name, 0.0) for name in data.names])
        centre = centre_weights * np.where(units > 0, spreads, 0.0)
        most, start, selections = self.max_features or len(data.specs), centre, []
        for penalty in each(penalties, "penalties of listwise regression"):
            columns, weights = np.arange(len(data.specs)), start
            while True:
                seen = data if len(columns) == len(data.specs) else data.select_features(columns.tolist())
                # Sums over threads would change the last digits, and with them the order of equal documents.
                with one_blas_thread():
                    problem = _Problem(seen, gains, totals, units[columns], penalty, centre[columns])
                    weights = _minimum(weights, problem)
                if len(columns) == len(data.specs):  # the next penalty begins with all features
                    start = weights
                if len(columns) <= most:
                    break
                kept = np.sort(np.argsort(-np.abs(weights), kind="stable")[: max(most, len(columns) // 2)])
                columns, weights = columns[kept], weights[kept]
            # Nothing is known of a feature that is constant within every query.
            learned = np.where(units[columns] > 0, weights * units[columns], centre_weights[columns])
            selections.append(Selection.of(learned, data, objective, columns.tolist()))
        return selections


class _Problem(NamedTuple):
    """Training data in the units of the weights."""

    data: RankingData
    gains: FloatArray  # of each document
    totals: FloatArray  # of each query's gains
    units: FloatArray
    penalty: float
    centre: FloatArray


def _minimum(weights: FloatArray, problem: _Problem) -> FloatArray:
    """Minimise `_loss` from these weights on, by Newton's method with steps that are halved until they lead down."""
    loss, gradient, shares = _loss(weights, problem)
    for number in range(1, MAX_STEPS + 1):
        reached("step", number, None)
        try:
            step = np.linalg.solve(_curvature(shares, problem), gradient)
        except np.linalg.LinAlgError:  # lost in rounding, the penalty does not tell equal features apart
            raise ParameterError(f"penalty {problem.penalty:g} is too small for these features; raise it") from None
        if np.abs(step).max(initial=0.0) <= LAST_STEP:  # the error after a step is about the square of the step
            return weights - step
        # Armijo's rule. Near the minimum, losses differ by rounding alone, which must not refuse the step.
        size, slope = 1.0, gradient @ step
        rounding = 1e-12 * abs(loss)
        while True:
            value, after, shares = _loss(weights - size * step, problem)
            if not value > loss - 1e-4 * size * slope + rounding:
                break
            size /= 2
        weights, loss, gradient = weights - size * step, value, after
    return weights


def _curvature(shares: FloatArray, problem: _Problem) -> FloatArray:
    """Return the second derivatives of `_loss`: each query's covariance by the shares of its documents."""
    data, units = problem.data, problem.units
    out = np.zeros((len(units), len(units)))
    inner = np.searchsorted(data.offsets, np.arange(BLOCK_ROWS, data.offsets[-1], BLOCK_ROWS)).tolist()
    for first, end in pairwise(dict.fromkeys((0, *inner, len(data.qids)))):  # queries whose rows stay in the cache
        starts = data.offsets[first : end + 1]
        rows, weights = data.features[starts[0] : starts[-1]] * units, shares[starts[0] : starts[-1], None]
        # `reduceat` would give a query without documents the first row of the next one.
        sizes = np.diff(starts)
        means = np.add.reduceat(rows * weights, starts[:-1][sizes > 0] - starts[0])
        rows -= np.repeat(means, sizes[sizes > 0], axis=0)
        rows *= np.sqrt(weights)
        out += rows.T @ rows
    out[np.diag_indices_from(out)] += problem.penalty
    return out


def _loss(weights: FloatArray, problem: _Problem) -> tuple[float, FloatArray, FloatArray]:
    """Return the function to minimise, its gradient, and the documents' shares."""
    data, gains, totals, units, penalty, centre = problem
    sizes = np.diff(data.offsets)
    scores = data.features @ (weights * units)
    # Shares depend on differences alone, and exp of scores below 0 does not overflow.
    scores -= np.repeat(_by_query(np.maximum, scores, data), sizes)
    shares = np.exp(scores)
    # The sum of a query is at least 1, unless it has no documents.
    sums = np.maximum(_by_query(np.add, shares, data), 1e-300)
    shares *= np.repeat((totals > 0) / sums, sizes)
    targets = gains / np.repeat(np.where(totals > 0, totals, 1.0), sizes)
    away = weights - centre
    loss = np.log(sums[totals > 0]).sum() - targets @ scores + penalty / 2 * away @ away
    return float(loss), ((shares - targets) @ data.features) * units + penalty * away, shares


def _by_query(reduce: np.ufunc, values: FloatArray, data: RankingData) -> FloatArray:
    """Reduce the values of each query's documents, shape (q,); 0 for a query without documents."""
    filled, out = np.diff(data.offsets) > 0, np.zeros(len(data.qids))
    out[filled] = reduce.reduceat(values, data.offsets[:-1][filled])
    return out
