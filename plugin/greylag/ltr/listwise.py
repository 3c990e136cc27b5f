"""Listwise regression: a weight for every feature, by the likelihood of relevant documents and a ridge penalty."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from greylag.errors import ParameterError
from greylag.ltr.data import RankingData, linear_scores
from greylag.ltr.learner import Selection
from greylag.ltr.objectives import Objective
from greylag.ranking import FloatArray


@dataclass(frozen=True)
class ListwiseRegression:
    """Learns a weight for every feature by a ridge-penalised conditional logit.

    With s(d) = w'x(d), the weights minimise the convex function

        sum over q of sum over d of -g(d) / G(q) log(exp s(d) / sum over d' of exp s(d'))  +  penalty / 2 |w|^2

    where d and d' are the documents of query q, g(d) is the objective's gain of d (1 for a relevant document by AP, its
    grade by nDCG), and G(q) is their sum. Queries without a gain are left out. Features are divided by the root mean
    square around their query means. As the penalty is not divided by the number of queries, it counts the less, the
    more of them there are: it is a normal prior of variance 1 / penalty.

    Parameters
    ----------
    objective : Objective or str
        The measure, whose gains are used. Stored as an `Objective`.
    penalty : float > 0, default 30
        The larger it is, the more are the weights those of single features, and the less of their combination.

    References
    ----------
    McFadden, Conditional logit analysis of qualitative choice behavior, 1974 (the likelihood).
    Cao, Qin, Liu, Tsai and Li, Learning to rank: from pairwise approach to listwise approach, ICML 2007, section 4
    (cross-entropy of top-one probabilities; there, the probabilities of judgements are those of exp g).
    """

    objective: Objective | str
    _: KW_ONLY
    penalty: float = 30.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        if not 0 < self.penalty < np.inf:
            raise ParameterError(f"penalty is {self.penalty}; it must be a finite number above 0")

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> Selection:
        """Learn a weight for every feature of `data`, in one round; the result does not depend on `n_jobs`."""
        from scipy.optimize import minimize  # slow to import
        from threadpoolctl import threadpool_limits

        objective, columns = Objective.parse(self.objective), tuple(range(len(data.specs)))
        gains = objective.gains(data)
        totals = _by_query(np.add, gains, data)
        if not totals.any():
            raise ParameterError("no document that is ranked is relevant: there is nothing to learn from")
        units = 1.0 / _spreads(data)
        with threadpool_limits(1, "blas"):  # sums depend on the number of threads
            found = minimize(
                _loss, np.zeros(len(columns)), (data, gains, totals, units, self.penalty), jac=True, method="L-BFGS-B",
                options={"maxiter": 500, "ftol": 1e-10, "gtol": 1e-4},
            )  # fmt: skip
        weights = found.x * units
        value = float(objective.evaluate(data, linear_scores(data, columns, weights)).mean())
        return Selection(columns, (tuple(weights.tolist()),), (value,))


def _loss(
    weights: FloatArray, data: RankingData, gains: FloatArray, totals: FloatArray, units: FloatArray, penalty: float
) -> tuple[float, FloatArray]:
    """The function to minimise and its gradient, for weights of features multiplied by `units`."""
    sizes = np.diff(data.offsets)
    scores = data.features @ (weights * units)
    scores -= np.repeat(_by_query(np.maximum, scores, data), sizes)
    shares = np.exp(scores)
    sums = np.maximum(_by_query(np.add, shares, data), 1e-300)
    shares *= np.repeat((totals > 0) / sums, sizes)
    targets = gains / np.repeat(np.where(totals > 0, totals, 1.0), sizes)
    loss = np.log(sums[totals > 0]).sum() - targets @ scores + penalty / 2 * weights @ weights
    return float(loss), ((shares - targets) @ data.features) * units + penalty * weights


def _by_query(reduce: np.ufunc, values: FloatArray, data: RankingData) -> FloatArray:
    """The values of each query's documents, reduced, shape (q,); 0 for a query without documents."""
    filled, out = np.diff(data.offsets) > 0, np.zeros(len(data.qids))
    out[filled] = reduce.reduceat(values, data.offsets[:-1][filled])
    return out


def _spreads(data: RankingData) -> FloatArray:
    """The root mean squares of features around their query means, shape (f,); infinite if a feature is constant."""
    squares = np.zeros(len(data.specs))
    for first, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        if end > first:
            rows = data.features[first:end]
            squares += ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
    spreads = np.sqrt(squares / max(1, len(data.docids)))
    constant = spreads <= 1e-12 * np.maximum(1.0, np.abs(data.features).max(axis=0, initial=0.0))
    return np.where(constant, np.inf, spreads)
