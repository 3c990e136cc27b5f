"""Structured SVM training by cutting planes, with one slack variable or n.

The problem is that of Tsochantaridis et al. (2005) with margin rescaling, OP 1 of Yue & Joachims (2008):

    min over w and xi >= 0:  ||w||² / 2 + C / n sum_i xi_i
    such that for all i, y:  w' (Psi(x_i, target_i) - Psi(x_i, y)) >= Delta(t_i, y) - xi_i,

and w_j >= 0 for the weights j that a `greylag.structured.SignedModel` declares non-negative. There are too many
constraints to enumerate. The algorithm solves the problem under a working set of constraints, adds the ones that the
solution violates most, and repeats until none is violated by more than epsilon.

References
----------
Yue and Joachims, Predicting diverse subsets using structural SVMs, ICML 2008. Joachims, Finley and Yu, Cutting-plane
training of structural SVMs, Machine Learning 77, 2009. Tsochantaridis, Joachims, Hofmann and Altun, Large margin
methods for structured and interdependent output variables, JMLR 6, 2005.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from greylag.errors import ModelError
from greylag.ranking import FloatArray
from greylag.structured.checks import check_choice, check_counts, check_model, check_positive
from greylag.structured.model import Constraint, Input, Output, StructuredModel, TrainingSet, Truth, inner
from greylag.structured.n_slack import NSlack

Slack = Literal["one", "n"]

IDLE_LIMIT = 20  # a constraint is dropped after this many solutions without weight
CACHED = 10  # constraints cached for each example
_NO_SHARE = 1e-7  # relative to C; smaller weights are rounding errors of the solver

_log = logging.getLogger("greylag")


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights with their distance from the optimum.

    Parameters
    ----------
    weights : array, shape (d,)
        w.
    objective : float
        ||w||² / 2 + C times the mean hinge loss that inference finds.
    gap : float
        The duality gap, `objective` minus a lower bound of the optimum. If loss-augmented inference is exact, the
        objective is within the gap of the optimum; if not, of the optimum under the constraints found.
    iterations : int
        Quadratic programmes solved (one slack) or passes over the examples (n slacks).
    converged : bool
        Whether the algorithm converged before the limit of iterations.
    """

    weights: FloatArray
    objective: float
    gap: float
    iterations: int
    converged: bool


@dataclass(frozen=True)
class CuttingPlane:
    """The learner of a structured SVM; the objective of its result is within C epsilon of the optimum.

    If loss-augmented inference is approximate, the optimum is that under the constraints found. Which ones are found
    depends on the formulation, and for "n" in `fit_path` on the smaller C, too.

    Parameters
    ----------
    C : float > 0, default 1.0
        Weight of the mean hinge loss relative to ||w||² / 2.
    epsilon : float > 0, default 1e-3
        Tolerated violation of a constraint, in units of the loss.
    slack : {"one", "n"}, default "one"
        The formulation; both have the same optimum.

        - "one": constraints on the mean over all examples, with one slack variable (Joachims et al. 2009, Algorithm 3).
          A joint constraint is first assembled from the last `CACHED` constraints of each example. The model is called
          only if that constraint is less than half as violated as the last one from the model (section 3.4 of the paper
          calls it if the constraint is not violated). Constraints without weight in `IDLE_LIMIT` solutions are dropped.
        - "n": constraints with one slack variable for each example (Yue & Joachims 2008, Algorithm 2), as
          `greylag.structured.n_slack` finds them. Faster for up to some hundred examples, above all at large C and for
          several C.
    max_iterations : int >= 1, default 2000
        Maximum number of iterations; reaching it logs a warning.

    Raises
    ------
    ParameterError
        If a parameter is outside its domain.
    """

    C: float = 1.0
    _: KW_ONLY
    epsilon: float = 1e-3
    slack: Slack = "one"
    max_iterations: int = 2000

    def __post_init__(self) -> None:
        check_positive(C=self.C, epsilon=self.epsilon)
        check_choice("slack", self.slack, get_args(Slack))
        check_counts(max_iterations=self.max_iterations)

    def fit(self, model: StructuredModel[Input, Truth, Output], examples: Sequence[tuple[Input, Truth]]) -> Solution:
        """Find the optimal weights for pairs of input and truth.

        Raises
        ------
        ParameterError
            If there are no examples, or if the model lacks a method that is needed.
        """
        return next(self.fit_path(model, examples, [self.C]))[1]

    def fit_path(
        self,
        model: StructuredModel[Input, Truth, Output],
        examples: Sequence[tuple[Input, Truth]],
        grid: Collection[float],
    ) -> Iterator[tuple[float, Solution]]:
        """Find the optimal weights for each C of `grid` in place of its own, in ascending order, one at a time.

        With n slacks, the constraints found for smaller C are the start for larger ones, which is several times as fast
        as starting anew.

        Raises
        ------
        ParameterError
            If there are no examples, if the model lacks a method that is needed, or if a C is outside its domain.
        """
        check_model(model, StructuredModel, self)
        learners = [replace(self, C=C) for C in sorted(grid)]
        return self._path(TrainingSet(model, examples), learners)

    def solve(self, training: TrainingSet[Any, Any, Any]) -> Solution:
        """Find the optimal weights for a training set, whose targets may be shared with other learners."""
        return next(self._path(training, [self]))[1]

    def _path(
        self, training: TrainingSet[Any, Any, Any], learners: Sequence[CuttingPlane]
    ) -> Iterator[tuple[float, Solution]]:
        known = NSlack(training, self.epsilon, self.max_iterations) if self.slack == "n" else None
        for learner in learners:
            solution = learner._solution(*known.solve(learner.C)) if known else learner._one_slack(training)
            if not solution.converged:
                _log.warning(
                    "the cutting plane stopped at its limit of %d iterations with a duality gap of %.3g at objective "
                    "%.6g (C %g, epsilon %g): raise max_iterations or epsilon, or lower C",
                    learner.max_iterations, solution.gap, solution.objective, learner.C, learner.epsilon,
                )  # fmt: skip
            yield learner.C, solution

    def _one_slack(self, training: TrainingSet[Any, Any, Any]) -> Solution:
        cache = _Cache(training)
        working = _WorkingSet(training, self.C)
        last = np.inf  # violation beyond the slack of the last constraint from the model
        for iteration in range(1, self.max_iterations + 1):
            weights, lower = working.solve()
            slack = working.slack(weights)
            constraint = cache.most_violated(weights)
            if constraint.violation(weights) - slack <= max(self.epsilon, last / 2):
                cache.refresh(weights)
                constraint = cache.most_violated(weights)
                last = constraint.violation(weights) - slack
                if last <= self.epsilon:
                    return self._solution(weights, slack + max(0.0, last), lower, iteration, True)
            working.add(constraint)
            working.drop_idle()
        cache.refresh(weights)
        hinge = cache.most_violated(weights).violation(weights)
        return self._solution(weights, hinge, lower, iteration, False)

    def _solution(self, weights: FloatArray, hinge: float, lower: float, iterations: int, converged: bool) -> Solution:
        objective = float(inner(weights, weights) / 2 + self.C * hinge)
        return Solution(weights, objective, objective - lower, iterations, converged)


class _Cache:
    """The last `CACHED` constraints of each example, initially that of its target, which is violated by its loss."""

    def __init__(self, training: TrainingSet[Any, Any, Any]) -> None:
        self._training = training
        n, d = training.target_features.shape
        self._normals = np.zeros((n, CACHED, d))
        self._losses = np.repeat(training.target_losses[:, None], CACHED, axis=1)
        self._oldest = 0

    def most_violated(self, weights: FloatArray) -> Constraint:
        """The joint constraint: the mean of the most violated constraint of each example."""
        worst = np.argmax(self._losses - inner(self._normals, weights), axis=1)
        examples = np.arange(len(worst))
        return Constraint(self._normals[examples, worst].mean(axis=0), float(self._losses[examples, worst].mean()))

    def refresh(self, weights: FloatArray) -> None:
        """Replace the oldest constraint of each example by the most violated one according to the model."""
        for example in range(len(self._losses)):
            place = example, self._oldest
            self._normals[place], self._losses[place] = self._training.most_violated(example, weights)
        self._oldest = (self._oldest + 1) % CACHED


class _WorkingSet:
    """Constraints w' a_j >= b_j - xi, and the problem under them: min ||w||² / 2 + C xi, by its dual

    max over alpha >= 0:  b' alpha - ||P(sum_j alpha_j a_j)||² / 2,   sum of alpha <= C,

    with P the projection to the weights of the required signs, and w = P(sum_j alpha_j a_j).
    """

    def __init__(self, training: TrainingSet[Any, Any, Any], C: float) -> None:
        self._training = training
        self._C = C
        self._normals = np.zeros((0, training.target_features.shape[1]))
        self._losses = np.zeros(0)
        self._gram = np.zeros((0, 0))
        self._idle = np.zeros(0, dtype=np.int64)

    def add(self, constraint: Constraint) -> None:
        """Add a constraint."""
        self._normals = np.vstack([self._normals, constraint.normal])
        self._losses = np.append(self._losses, constraint.loss)
        self._idle = np.append(self._idle, 0)
        products = inner(self._normals, constraint.normal)
        self._gram = np.block([[self._gram, products[:-1, None]], [products]])

    def slack(self, weights: FloatArray) -> float:
        """The violation of the most violated constraint, at least 0."""
        return float(max(self._losses - inner(self._normals, weights), default=0.0))

    def solve(self) -> tuple[FloatArray, float]:
        """The optimal w and the value of the dual, a lower bound of the problem under any further constraints."""
        if not len(self._losses):
            return np.zeros(self._normals.shape[1]), 0.0
        shares = _solve_dual(self._gram, self._losses, self._C, self._normals[:, self._training.nonnegative])
        self._idle = np.where(shares > _NO_SHARE, 0, self._idle + 1)
        alpha = shares * self._C
        weights = self._training.project(inner(self._normals.T, alpha))
        return weights, float(inner(self._losses, alpha) - inner(weights, weights) / 2)

    def drop_idle(self) -> None:
        """Drop constraints without weight in the last `IDLE_LIMIT` solutions."""
        kept = self._idle < IDLE_LIMIT
        if not kept.all():
            self._normals, self._losses = self._normals[kept], self._losses[kept]
            self._gram, self._idle = self._gram[np.ix_(kept, kept)], self._idle[kept]


def _solve_dual(gram: FloatArray, losses: FloatArray, C: float, signed: FloatArray) -> FloatArray:
    """The optimum of the dual as shares alpha_j / C, non-negative and summing to at most 1.

    The projection of the dual is the addition of a multiplier for each non-negative weight, the components of which in
    the normals are `signed`, shape (m, n_signed).
    """
    import clarabel
    from scipy.sparse import csc_matrix

    (m, n_signed), scale = signed.shape, np.full(len(losses), C)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads, settings.direct_solve_method = False, 1, "qdldl"
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    products = np.block([[gram, signed], [signed.T, np.eye(n_signed)]])
    scales = np.append(scale, np.full(n_signed, C))
    quadratic = csc_matrix(np.triu(products * np.outer(scales, scales) / C))
    places, variables = np.arange(m), np.arange(m + n_signed)
    signs = np.concatenate([np.full(len(variables), -1.0), np.ones(m)])
    entries = (signs, (np.append(variables, np.full(m, len(variables))), np.append(variables, places)))
    rows = csc_matrix(entries, shape=(len(variables) + 1, len(variables)))
    bounds = np.append(np.zeros(len(variables)), 1.0)
    linear = np.append(-losses * scale / C, np.zeros(n_signed))
    cones = [clarabel.NonnegativeConeT(len(bounds))]
    # If the solver misses its tolerances, its result is made feasible anyway, and the duality gap shows it.
    found = clarabel.DefaultSolver(quadratic, linear, rows, bounds, cones, settings).solve().x
    shares = np.clip(np.asarray(found)[:m], 0.0, 1.0)
    if not np.isfinite(shares).all():
        raise ModelError(
            f"the quadratic programme with {m} constraints has no finite solution: scale the features down"
        )
    return np.asarray(shares / max(1.0, np.bincount(np.zeros(m, dtype=np.int64), weights=shares)[0]))
