"""Coordinate ascent on a rank measure, by exact line searches.

References
----------
Metzler & Croft, Linear feature-based models for information retrieval, Information Retrieval 10(3), 2007, section 4.
Golub & Van Loan, Matrix Computations, section 8.5 (Jacobi's method).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np

from greylag.base import FloatArray, check_counts, check_non_negative, compiled, parallel_map
from greylag.learning.data import RankingData, centred, linear_scores
from greylag.learning.learner import Selection
from greylag.learning.linesearch.kernels import MEAN_TOLERANCE
from greylag.learning.linesearch.line_search import Problem, line_search, mean, prepare
from greylag.learning.linesearch.objectives import Objective

SMALLEST_TURN = 1e-15
"""An inner product of this share of the largest one, or less, is rounding."""


@dataclass(frozen=True)
class CoordinateAscent:
    """Learns a weight for every feature by coordinate ascent with restarts (Metzler & Croft 2007, section 4).

    The first start has weight 1 for every feature, and the others are drawn from a standard normal distribution. Both
    are divided by the root mean square of the feature around its query means, so that the scales of features do not
    matter. Weights that no single feature improves are seldom optimal, since features are correlated. So line searches
    along the principal axes of the features, scaled and centred in the same way, precede each cycle through the
    features. The start that reaches the highest training mean is kept, and the earliest of equal ones.

    Parameters
    ----------
    objective : Objective or str
        The measure to maximise, such as ``"nDCG@10"``. Stored as an `Objective`.
    restarts : int >= 1, default 3
        The number of starts.
    seed : int >= 0, default 0
        The seed of the random starts.
    tolerance : float >= 0, default 1e-3
        A start ends when a cycle through all axes and features raises the mean by no more than this.
    """

    objective: Objective | str
    _: KW_ONLY
    restarts: int = 3
    seed: int = 0
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        check_counts(restarts=self.restarts)
        check_non_negative(seed=self.seed, tolerance=self.tolerance)

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> Selection:
        """Learn a weight for every feature of `data`, in one round; the result does not depend on `n_jobs`."""
        objective, columns = Objective.parse(self.objective), range(len(data.specs))
        units, axes = _axes(data)
        starts = np.random.default_rng(self.seed).standard_normal((self.restarts, len(columns)))
        starts[0] = 1.0
        explore = partial(ascend, objective=objective, columns=columns, axes=axes, tolerance=self.tolerance)
        ends = list(parallel_map(explore, starts * units, data, what="restarts", n_jobs=n_jobs))
        values = [np.mean(objective.evaluate(data, linear_scores(data, columns, end))) for end in ends]
        best = int(np.argmax(np.array(values) >= max(values) - MEAN_TOLERANCE))
        return Selection.of(ends[best], data, objective)


def _axes(data: RankingData) -> tuple[FloatArray, FloatArray]:
    """Return the features' inverse root mean squares around query means, shape (f,), and principal axes as rows."""
    # An axis has a weight for each feature; the axes are in descending order of variance.
    scaled = centred(data)
    scales = np.sqrt(np.mean(scaled**2, axis=1))
    units = 1.0 / np.where(scales > 0, scales, 1.0)
    scaled *= units[:, None]
    variances, axes = _diagonalise(_products(scaled))
    return units, axes[np.argsort(-variances, kind="stable")] * units


# The last digits of BLAS and LAPACK depend on the processor, and a search multiplies a difference about tenfold with
# each line: weights of 42 features differed in their third digit. These two loops give the same digits everywhere.


@compiled()
def _products(columns: FloatArray) -> FloatArray:
    """Return the inner products of the rows of an array."""
    f, n = columns.shape
    products, here = np.zeros((f, f)), np.empty(f)
    for d in range(n):
        here[:] = columns[:, d]
        for i in range(f):
            for j in range(f):
                products[i, j] += here[i] * here[j]
    return products


@compiled()
def _diagonalise(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix, and its eigenvectors as rows, by cyclic Jacobi rotations."""
    a, vectors = matrix.copy(), np.eye(len(matrix))
    smallest, turned = SMALLEST_TURN * np.diag(matrix).max(), True
    while turned:
        turned = False
        for p in range(len(a)):
            for q in range(p + 1, len(a)):
                if abs(a[p, q]) > smallest:
                    turned = True
                    # The smaller of the two angles that make a[p, q] zero, by its tangent.
                    theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
                    t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
                    t = t if theta >= 0.0 else -t
                    c = 1.0 / np.sqrt(t * t + 1.0)
                    for k in range(len(a)):
                        a[k, p], a[k, q] = c * (a[k, p] - t * a[k, q]), c * (t * a[k, p] + a[k, q])
                    for k in range(len(a)):
                        a[p, k], a[q, k] = c * (a[p, k] - t * a[q, k]), c * (t * a[p, k] + a[q, k])
                        vectors[p, k], vectors[q, k] = (
                            c * (vectors[p, k] - t * vectors[q, k]), c * (t * vectors[p, k] + vectors[q, k]),
                        )  # fmt: skip
                    a[p, q] = a[q, p] = 0.0
    return np.diag(a).copy(), vectors


def ascend(
    weights: FloatArray,
    data: RankingData,
    objective: Objective,
    columns: Sequence[int],
    *,
    axes: Sequence[FloatArray] | FloatArray = (),
    tolerance: float = 1e-4,
) -> FloatArray:
    """Search along the axes and each weight in turn, by exact line searches, until all gain at most `tolerance`."""
    # The measure never falls, and weights change only if others are better. As only their ratios matter, they are
    # rescaled to keep the sum of their magnitudes.
    problem, best = prepare(data, objective), weights
    value = mean(problem, linear_scores(data, columns, best))
    while True:
        before, scores = value, linear_scores(data, columns, best)
        for axis in axes:
            optimum = line_search(problem, scores, linear_scores(data, columns, axis), floor=value)
            if optimum.value > value + MEAN_TOLERANCE:
                # The weights that are kept decide: rounding may put documents in another order than along the line.
                trial = best + optimum.step * axis
                moved = linear_scores(data, columns, trial)
                reached = mean(problem, moved)
                if reached > value:
                    best, scores, value = trial, moved, reached
        best, value = _cycle(problem, data, columns, best, value)
        if value - before <= tolerance:
            return best


def _cycle(
    problem: Problem, data: RankingData, columns: Sequence[int], weights: FloatArray, value: float
) -> tuple[FloatArray, float]:
    """Search along each weight in turn; the better weights, scaled to keep their sum of magnitudes, and the mean."""
    total = np.abs(weights).sum() or 1.0
    trial, reached = weights.copy(), value
    scores = linear_scores(data, columns, weights)
    for place, column in enumerate(columns):
        optimum = line_search(problem, scores, data.columns[column], floor=reached)
        if optimum.value > reached + MEAN_TOLERANCE:
            trial[place] += optimum.step
            scores += optimum.step * data.columns[column]
            scale = total / (np.abs(trial).sum() or 1.0)
            trial, scores, reached = trial * scale, scores * scale, optimum.value
    reached = mean(problem, linear_scores(data, columns, trial))  # as increments accumulate rounding errors
    return (trial, reached) if reached > value else (weights, value)
