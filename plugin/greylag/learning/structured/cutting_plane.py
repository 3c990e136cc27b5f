"""Structured SVM training by cutting planes.

The problem is that of Tsochantaridis et al. (2005) with margin rescaling, OP 1 of Yue & Joachims (2008):

    min over w and xi >= 0:  ||w||² / 2 + C / n sum_i xi_i
    such that for all i, y:  w' (Psi(x_i, target_i) - Psi(x_i, y)) >= Delta(t_i, y) - xi_i,

and w_j >= 0 for the weights j that a `greylag.learning.StructuredModel` declares non-negative. There are too
many constraints to enumerate. The algorithm solves the problem under the constraints known so far, adds those that the
solution violates most, and repeats until the duality gap is small.

Algorithm 2 of Yue & Joachims solves the problem anew after each constraint. Here, a pass over the examples adds one of
each, and the problem is solved only as closely as the remaining gap needs. With exact inference the optimum is the
same. Constraints do not depend on C: the search for one C starts with those of the last.

References
----------
Yue and Joachims, Predicting diverse subsets using structural SVMs, ICML 2008. Tsochantaridis, Joachims, Hofmann and
Altun, Large margin methods for structured and interdependent output variables, JMLR 6, 2005.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from greylag.base import FloatArray, check_counts, check_positive
from greylag.learning.structured.constraint_pool import ConstraintPool
from greylag.learning.structured.model import Input, Output, StructuredModel, TrainingSet, Truth

GAP_SHARE = 0.2  # a problem is solved to this share of the last duality gap
MIN_GAP_SHARE = 0.2  # and no closer than this share of the tolerated gap

_log = logging.getLogger("greylag")


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights with their distance from the optimum."""

    weights: FloatArray
    # ||w||² / 2 + C times the mean hinge loss that inference finds
    objective: float
    # `objective` minus a lower bound of the optimum. If loss-augmented inference is exact, the objective is within the
    # gap of the optimum; if not, of the optimum under the constraints that it returned.
    gap: float
    iterations: int
    # Whether the gap is at most epsilon times the objective
    converged: bool


@dataclass(frozen=True)
class CuttingPlane:
    """Learn a structured SVM, such as SVM-div, by cutting planes.

    If loss-augmented inference is approximate, as the greedy one of SVM-div is, the optimum is that under the
    constraints that it returns, which depend, in `fit_path`, on the smaller C, too. It can be below that of OP 1, whose
    most violated constraints are missed, and the gap says nothing about the distance from the latter.

    Parameters
    ----------
    C : float > 0, default 1.0
        Weight of the mean hinge loss relative to ||w||² / 2.
    epsilon : float > 0, default 1e-3
        Tolerated duality gap, relative to the objective.
    max_iterations : int >= 1, default 1000
        Maximum number of passes over the examples; reaching it logs a warning.
    """

    C: float = 1.0
    _: KW_ONLY
    epsilon: float = 1e-3
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        check_positive(C=self.C, epsilon=self.epsilon)
        check_counts(max_iterations=self.max_iterations)

    def fit(self, model: StructuredModel[Input, Truth, Output], examples: Sequence[tuple[Input, Truth]]) -> Solution:
        """Find the optimal weights for pairs of input and truth."""
        return next(self.fit_path(model, examples, [self.C]))[1]

    def fit_path(
        self,
        model: StructuredModel[Input, Truth, Output],
        examples: Sequence[tuple[Input, Truth]],
        grid: Collection[float],
    ) -> Iterator[tuple[float, Solution]]:
        """Find the optimal weights for each C of `grid`, ascending; constraints met for smaller C are the start."""
        learners = [replace(self, C=C) for C in sorted(grid)]
        # Eager, so that a wrong model is refused by the call and not by the first step of the iterator.
        pool = ConstraintPool(TrainingSet(model, examples), 1)
        return ((learner.C, learner._optimum(pool)) for learner in learners)

    def solve(self, training: TrainingSet[Any, Any, Any]) -> Solution:
        """Find the optimal weights for a training set, whose targets may be shared with other learners."""
        return self._optimum(ConstraintPool(training, 1))

    def _optimum(self, pool: ConstraintPool) -> Solution:
        n, d = pool.shape
        costs, centre = np.full((1, n), self.C / n), np.zeros((1, d))
        gap, objective, converged, passes = np.inf, 0.0, False, 0
        while not converged and passes < self.max_iterations:
            passes += 1
            # A closer solution would be wasted: the constraints that come next move the optimum by about the gap. In
            # the first pass the gap is infinite and only targets have constraints, which w = 0 solves.
            tolerance = max(GAP_SHARE * gap, MIN_GAP_SHARE * self.epsilon * objective) / self.C
            weights, lower = pool.solve(centre, costs, tolerance)
            # A constraint that is violated by less than a tenth of the tolerated gap cannot keep the gap above it.
            _, hinges = pool.search(weights, costs, 0.1 * self.epsilon * objective / self.C)
            objective = float(np.einsum("md,md->", weights, weights) / 2 + (costs * hinges).sum())
            gap = objective - float(lower[0])
            converged = gap <= self.epsilon * objective
        if not converged:
            _log.warning(
                "the cutting plane stopped at its limit of %d iterations with a duality gap of %.3g at objective "
                "%.6g (C %g, epsilon %g): raise max_iterations or epsilon, or lower C",
                self.max_iterations, gap, objective, self.C, self.epsilon,
            )  # fmt: skip
        return Solution(weights[0], objective, gap, passes, converged)
