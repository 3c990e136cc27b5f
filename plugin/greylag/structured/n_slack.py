"""The cutting plane with a slack variable for each example (Yue & Joachims 2008, Algorithm 2), for one C after another.

Algorithm 2 solves the quadratic programme exactly, and after each new constraint. Here, a pass over the examples adds
the most violated constraint of each. An interior-point method then solves the programme, but only as closely as the
remaining duality gap needs. Its points are central, and give better constraints than vertices do, so that fewer passes
are needed. The optimum is the same. Constraints do not depend on C: the search for one C starts with those found for
the last.

References
----------
Gondzio, González-Brevis and Munari, New developments in the primal-dual column generation technique, European Journal
of Operational Research 224, 2013.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from greylag.ranking import FloatArray, IntArray
from greylag.structured.model import TrainingSet, inner

CLOSER = 0.4  # a programme is solved to this share of the last duality gap
FLOOR = 0.2  # and no closer than this share of the tolerated gap
NOTICED = 0.1  # of epsilon: a smaller violation adds no constraint
IDLE_LIMIT = 10  # a constraint is dropped after this many programmes with hardly any weight
_NO_SHARE = 1e-3  # of the mean weight of the example's constraints
_FRESH = 0.1  # of the weights is shared out evenly before a programme is solved
_MAX_STEPS = 60


class Optimum(NamedTuple):
    """w, the mean hinge loss, a lower bound of the objective, the number of passes, and whether they sufficed."""

    weights: FloatArray
    hinge: float
    lower: float
    passes: int
    converged: bool


class NSlack:
    """The constraints w' a_k >= b_k - xi_i(k) found so far for n examples, initially those of the targets: a = 0.

    The weights alpha of the dual sum to C / n over the constraints of each example, and w = P(sum_k alpha_k a_k), with
    P the projection to the weights of the required signs.

    Parameters
    ----------
    training : TrainingSet
        The model and its examples.
    epsilon : float > 0
        Tolerated violation of a constraint.
    max_passes : int >= 1
        Maximum number of passes over the examples for one C.
    """

    def __init__(self, training: TrainingSet[Any, Any, Any], epsilon: float, max_passes: int) -> None:
        n, d = training.target_features.shape
        self._training, self._epsilon, self._max_passes = training, epsilon, max_passes
        self._normals, self._losses, self._owners = np.zeros((n, d)), training.target_losses.copy(), np.arange(n)
        self._alpha, self._idle = np.full(n, 1.0 / n), np.zeros(n, dtype=np.int64)

    def solve(self, C: float) -> Optimum:
        """The optimum for C."""
        n, allowed = len(self._training.examples), C * self._epsilon
        tolerance = max(CLOSER * C * float(self._losses.max()), FLOOR * allowed)
        for passes in range(1, self._max_passes + 1):
            weights, lower = self._optimise(C / n, tolerance)
            known = np.full(n, -np.inf)
            np.maximum.at(known, self._owners, self._losses - inner(self._normals, weights))
            found = [self._training.most_violated(example, weights) for example in range(n)]
            hinges = np.maximum(known, [constraint.violation(weights) for constraint in found])
            gap = float(inner(weights, weights) / 2 + C * hinges.mean() - lower)
            new = np.flatnonzero(hinges > known + NOTICED * self._epsilon)
            converged = gap <= allowed or (not len(new) and tolerance <= FLOOR * allowed)
            if converged or passes == self._max_passes:
                break
            self._drop_idle()
            self._add(new, [found[example] for example in new])
            tolerance = max(CLOSER * gap, FLOOR * allowed)
        return Optimum(weights, float(hinges.mean()), lower, passes, converged)

    def _optimise(self, cost: float, tolerance: float) -> tuple[FloatArray, float]:
        """w, with the value of the dual."""
        from greylag.structured.interior_point import approach

        sizes = np.bincount(self._owners)
        sums = np.bincount(self._owners, weights=self._alpha)
        even = cost / sizes[self._owners]
        alpha = (1.0 - _FRESH) * cost * self._alpha / sums[self._owners] + _FRESH * even
        used = np.flatnonzero(self._normals.any(axis=0))
        signs = np.flatnonzero(np.isin(used, self._training.nonnegative))
        rows = np.ascontiguousarray(self._normals[:, used])
        rows = rows if len(signs) else _in_few_coordinates(rows)
        costs, inside = np.full(len(sizes), cost), np.zeros(0)
        if len(used):
            inside = approach(rows, self._losses, self._owners, costs, signs, alpha, tolerance, _MAX_STEPS)
        self._alpha, self._idle = alpha, np.where(alpha < _NO_SHARE * even, self._idle + 1, 0)
        weights = self._training.project(inner(self._normals.T, alpha))
        lower = float(inner(self._losses, alpha) - inner(weights, weights) / 2)
        if len(signs):  # the projection may be much worse than the point inside, which has multipliers of its own
            weights[used] = inside
        return weights, lower

    def _add(self, owners: IntArray, constraints: list[Any]) -> None:
        self._normals = np.vstack([self._normals, *(constraint.normal for constraint in constraints)])
        self._losses = np.append(self._losses, [constraint.loss for constraint in constraints])
        self._owners = np.append(self._owners, owners)
        self._alpha = np.append(self._alpha, np.zeros(len(owners)))
        self._idle = np.append(self._idle, np.zeros(len(owners), dtype=np.int64))

    def _drop_idle(self) -> None:
        """Drop constraints with hardly any weight for long, except those of the targets."""
        kept = self._idle < IDLE_LIMIT
        kept[: len(self._training.examples)] = True
        if not kept.all():
            self._normals, self._losses, self._owners = self._normals[kept], self._losses[kept], self._owners[kept]
            self._alpha, self._idle = self._alpha[kept], self._idle[kept]


def _in_few_coordinates(rows: FloatArray) -> FloatArray:
    """Rows with the same inner products in at most as many coordinates as there are rows."""
    from greylag.structured.interior_point import cholesky

    if rows.shape[1] <= len(rows):
        return rows
    gram = np.einsum("pd,qd->pq", rows, rows)
    cholesky(gram, 1e-12 * gram.diagonal().max())
    return np.tril(gram)
