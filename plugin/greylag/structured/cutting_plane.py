"""Training a structured SVM by cutting planes: one-slack and n-slack.

The problem is that of Tsochantaridis et al. (2005) with margin rescaling, OP 1 of Yue & Joachims (2008):

    min over w and xi >= 0:  ||w||² / 2 + C / n sum_i xi_i
    such that for all i, y:  w' (Psi(x_i, target_i) - Psi(x_i, y)) >= Delta(t_i, y) - xi_i.

The constraints are too many to list. A cutting plane solves the problem under a few of them, the working set, adds what
the solution violates most, and repeats until nothing is violated by more than epsilon.

References
----------
Yue and Joachims, Predicting diverse subsets using structural SVMs, ICML 2008. Joachims, Finley and Yu, Cutting-plane
training of structural SVMs, Machine Learning 77, 2009. Tsochantaridis, Joachims, Hofmann and Altun, Large margin
methods for structured and interdependent output variables, JMLR 6, 2005.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from greylag.errors import ModelError, ParameterError
from greylag.ranking import FloatArray, IntArray
from greylag.structured.model import Constraint, Input, Output, StructuredModel, TrainingSet, Truth, inner

Slack = Literal["one", "n"]

IDLE_LIMIT = 20  # solutions without weight after which a constraint is dropped
CACHED = 10  # constraints remembered for each example
_NO_SHARE = 1e-7  # of C: below, a weight is the solver's rounding

_log = logging.getLogger("greylag")


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights, and how near they are to the optimum.

    Parameters
    ----------
    weights : shape (d,).
    objective : ||w||² / 2 + C times the mean hinge loss, as far as the model's inference finds it.
    gap : the duality gap: `objective` less a lower bound of the optimum. Where the model's loss-augmented inference is
        exact, the objective is within this of the optimum; where it is not, of the optimum over the constraints found.
    iterations : quadratic programmes solved (one-slack) or passes over the examples (n-slack).
    converged : False where the limit of iterations was hit first.
    """

    weights: FloatArray
    objective: float
    gap: float
    iterations: int
    converged: bool


@dataclass(frozen=True)
class CuttingPlane:
    """A structured SVM's learner; its result is within C epsilon of the optimum.

    Parameters
    ----------
    C : weight of the mean hinge loss against ||w||² / 2, > 0.
    epsilon : by how much a constraint may be violated at the end, > 0, in units of the loss.
    slack : how the problem is divided; both ways reach the same optimum.

        - "one": a constraint on the mean over all examples, and one slack variable (Joachims et al. 2009, Algorithm 3).
          The model is asked for a new one when the best of those put together from each example's last `CACHED`
          constraints is less than half as violated as what the model gave last (after section 3.4, there: when it is
          not violated). Constraints without weight in `IDLE_LIMIT` solutions are dropped.
        - "n": constraints and a slack variable for each example (Yue & Joachims 2008, Algorithm 2).
    max_iterations : where to give up, >= 1, with a warning.
    """

    C: float = 1.0
    epsilon: float = 1e-3
    slack: Slack = "one"
    max_iterations: int = 2000

    def __post_init__(self) -> None:
        for name, value in (("C", self.C), ("epsilon", self.epsilon)):
            if not 0 < value < np.inf:
                raise ParameterError(f"{name} has to be a number above 0, not {value}")
        if self.slack not in get_args(Slack):
            raise ParameterError(f"slack has to be one of {', '.join(get_args(Slack))}, not {self.slack!r}")
        if self.max_iterations < 1:
            raise ParameterError(f"max_iterations has to be at least 1, not {self.max_iterations}")

    def fit(self, model: StructuredModel[Input, Truth, Output], examples: Sequence[tuple[Input, Truth]]) -> Solution:
        """The weights that minimise the problem above over `examples`, pairs of input and truth.

        Raises
        ------
        ParameterError
            Where there is no example.
        """
        return self.solve(TrainingSet(model, examples))

    def solve(self, training: TrainingSet[Any, Any, Any]) -> Solution:
        """`fit` to a training set, whose targets are found once, whoever else uses it."""
        solution = self._one_slack(training) if self.slack == "one" else self._n_slack(training)
        if not solution.converged:
            _log.warning(
                "the cutting plane stopped at its limit of %d iterations, %.3g above the bound of its objective %.6g "
                "(C %g, epsilon %g): raise the limit or epsilon, or lower C",
                self.max_iterations, solution.gap, solution.objective, self.C, self.epsilon,
            )  # fmt: skip
        return solution

    def _one_slack(self, training: TrainingSet[Any, Any, Any]) -> Solution:
        cache = _Cache(training)
        working = _WorkingSet(training.target_features.shape[1], np.array([self.C]))
        last = np.inf  # the violation, beyond the slack, of what the model gave last
        for iteration in range(1, self.max_iterations + 1):
            weights, lower = working.solve()
            slack = float(working.slacks(weights)[0])
            constraint = cache.most_violated(weights)
            if constraint.violation(weights) - slack <= max(self.epsilon, last / 2):
                cache.refresh(weights)
                constraint = cache.most_violated(weights)
                last = constraint.violation(weights) - slack
                if last <= self.epsilon:
                    return self._solution(weights, slack + max(0.0, last), lower, iteration, converged=True)
            working.add(constraint, 0)
            working.drop_idle()
        cache.refresh(weights)
        hinge = cache.most_violated(weights).violation(weights)
        return self._solution(weights, hinge, lower, iteration, converged=False)

    def _n_slack(self, training: TrainingSet[Any, Any, Any]) -> Solution:
        n = len(training.examples)
        working = _WorkingSet(training.target_features.shape[1], np.full(n, self.C / n))
        weights, lower = working.solve()
        iteration, changed = 0, True
        while changed and iteration < self.max_iterations:
            iteration, changed = iteration + 1, False
            for example in range(n):
                constraint = training.most_violated(example, weights)
                if constraint.violation(weights) > working.slacks(weights)[example] + self.epsilon:
                    working.add(constraint, example)
                    weights, lower = working.solve()
                    changed = True
        hinge = float(np.maximum(training.hinge_losses(weights), working.slacks(weights)).mean())
        return self._solution(weights, hinge, lower, iteration, converged=not changed)

    def _solution(
        self, weights: FloatArray, hinge: float, lower: float, iterations: int, *, converged: bool
    ) -> Solution:
        objective = float(inner(weights, weights) / 2 + self.C * hinge)
        return Solution(weights, objective, objective - lower, iterations, converged)


class _Cache:
    """The last `CACHED` constraints found for each example; at first its target, which is violated by its own loss."""

    def __init__(self, training: TrainingSet[Any, Any, Any]) -> None:
        self._training = training
        n, d = training.target_features.shape
        self._normals = np.zeros((n, CACHED, d))
        self._losses = np.repeat(training.target_losses[:, None], CACHED, axis=1)
        self._oldest = 0

    def most_violated(self, weights: FloatArray) -> Constraint:
        """The joint constraint: the mean over the examples of the one that `weights` violate most."""
        worst = np.argmax(self._losses - inner(self._normals, weights), axis=1)
        examples = np.arange(len(worst))
        return Constraint(self._normals[examples, worst].mean(axis=0), float(self._losses[examples, worst].mean()))

    def refresh(self, weights: FloatArray) -> None:
        """Ask the model for each example's most violated constraint, in place of its oldest."""
        for example in range(len(self._losses)):
            place = example, self._oldest
            self._normals[place], self._losses[place] = self._training.most_violated(example, weights)
        self._oldest = (self._oldest + 1) % CACHED


class _WorkingSet:
    """Constraints w' a_j >= b_j - xi_g(j), and the problem under them: min ||w||² / 2 + sum_g C_g xi_g, by its dual

    max over alpha >= 0:  b' alpha - ||sum_j alpha_j a_j||² / 2,   sum of group g's alpha <= C_g.
    """

    def __init__(self, n_features: int, costs: FloatArray) -> None:
        self._costs = costs
        self._normals = np.zeros((0, n_features))
        self._losses = np.zeros(0)
        self._groups = np.zeros(0, dtype=np.int64)
        self._gram = np.zeros((0, 0))
        self._idle = np.zeros(0, dtype=np.int64)

    def add(self, constraint: Constraint, group: int) -> None:
        """Add a constraint to a group."""
        self._normals = np.vstack([self._normals, constraint.normal])
        self._losses = np.append(self._losses, constraint.loss)
        self._groups = np.append(self._groups, group)
        self._idle = np.append(self._idle, 0)
        products = inner(self._normals, constraint.normal)
        self._gram = np.block([[self._gram, products[:-1, None]], [products]])

    def slacks(self, weights: FloatArray) -> FloatArray:
        """What each group's most violated constraint lacks, at least 0: shape (groups,)."""
        slacks = np.zeros(len(self._costs))
        np.maximum.at(slacks, self._groups, self._losses - inner(self._normals, weights))
        return slacks

    def solve(self) -> tuple[FloatArray, float]:
        """The optimal w, and the dual's value: a lower bound of the problem under any more constraints."""
        if not len(self._losses):
            return np.zeros(self._normals.shape[1]), 0.0
        shares = _solve_dual(self._gram, self._losses, self._groups, self._costs)
        self._idle = np.where(shares > _NO_SHARE, 0, self._idle + 1)
        alpha = shares * self._costs[self._groups]
        weights = inner(self._normals.T, alpha)
        return weights, float(inner(self._losses, alpha) - inner(weights, weights) / 2)

    def drop_idle(self) -> None:
        """Drop the constraints that have had no weight in the last `IDLE_LIMIT` solutions."""
        kept = self._idle < IDLE_LIMIT
        if not kept.all():
            self._normals, self._losses, self._groups = self._normals[kept], self._losses[kept], self._groups[kept]
            self._gram, self._idle = self._gram[np.ix_(kept, kept)], self._idle[kept]


def _solve_dual(gram: FloatArray, losses: FloatArray, groups: IntArray, costs: FloatArray) -> FloatArray:
    """The dual's optimum as shares alpha_j / C_g(j): not negative, and of no group more than 1 in sum."""
    import clarabel
    from scipy.sparse import csc_matrix

    m, total, scale = len(losses), costs.sum(), costs[groups]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads, settings.direct_solve_method = False, 1, "qdldl"
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    quadratic = csc_matrix(np.triu(gram * np.outer(scale, scale) / total))
    places = np.arange(m)
    entries = (np.repeat([-1.0, 1.0], m), (np.concatenate([places, m + groups]), np.concatenate([places, places])))
    rows = csc_matrix(entries, shape=(m + len(costs), m))
    bounds = np.concatenate([np.zeros(m), np.ones(len(costs))])
    cones = [clarabel.NonnegativeConeT(len(bounds))]
    # Where the solver stops short of its tolerances, what it has is made feasible all the same, and the gap tells.
    found = clarabel.DefaultSolver(quadratic, -losses * scale / total, rows, bounds, cones, settings).solve().x
    shares = np.clip(np.asarray(found), 0.0, 1.0)
    if not np.isfinite(shares).all():
        raise ModelError(f"the quadratic programme of {m} constraints cannot be solved: scale the features down")
    excess = np.maximum(1.0, np.bincount(groups, weights=shares, minlength=len(costs)))
    return np.asarray(shares / excess[groups])
