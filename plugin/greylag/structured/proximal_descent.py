"""Stationary points of the objective of the Coulomb structured SVM (eq. 1), by proximal gradient descent.

With T = -alpha grad E_s, the energy around weights v is at most alpha E_s(v) - T(v)'(w - v) + rho ||w - v||² / 2 if rho
is large enough. The optimum of this bound plus the regulariser and the risk is that of ||w - c||² / 2 plus the risk at
costs / (1 + rho), with the centre c = (rho v + T(v)) / (1 + rho). It is found under the known constraints. rho is
doubled until the bound holds, so that no step raises the objective. Predictions then show whether constraints were
missing.
"""

from __future__ import annotations

import numpy as np

from greylag.ranking import FloatArray
from greylag.structured.constraint_pool import ConstraintPool
from greylag.structured.coulomb_problem import SETTLED, CoulombProblem
from greylag.structured.ensemble import Ensemble

STEPS = 50  # per search for constraints
LEAST_RHO = 1e-2
BACKTRACKS = 60


def descend(
    problem: CoulombProblem, weights: FloatArray, *, epochs: int, epsilon: float, rng: np.random.Generator
) -> Ensemble:
    """Descend under the known constraints, add the violated ones, and keep the result if the objective has not risen.

    The objectives of the result are those after each epoch, with hinge losses up to epsilon. They never rise while the
    assignment does not change.
    """
    pool, n = ConstraintPool(problem.training, len(weights)), len(problem.training.examples)
    shares, rho, objectives = np.zeros((len(weights), n)), 1.0, []
    for epoch in range(1, epochs + 1):
        before = shares
        if problem.assignment != "best" or epoch <= max(1, epochs // 2):
            shares = problem.expected_shares(weights, shares, epoch, rng)
        costs = problem.costs(shares)
        if not np.array_equal(shares, before):
            pool.extend(weights, costs, epsilon)
            objective = problem.objective(weights, pool.hinge_losses(weights), costs)
        moved, rho, distance = _descend(problem, pool, weights, costs, rho, epsilon / 10)
        found = pool.extend(moved, costs, epsilon)
        reached = problem.objective(moved, pool.hinge_losses(moved), costs)
        if reached <= objective:
            weights, objective = moved, reached
        objectives.append(objective)
        if not found and distance <= SETTLED and np.abs(shares - before).max() <= SETTLED:
            return Ensemble(weights, epoch, converged=True, objectives=tuple(objectives))
    return Ensemble(weights, epochs, converged=False, objectives=tuple(objectives))


def _descend(
    problem: CoulombProblem, pool: ConstraintPool, weights: FloatArray, costs: FloatArray, rho: float, tolerance: float
) -> tuple[FloatArray, float, float]:
    """Weights after up to `STEPS` steps under the known constraints, the last rho, and the distance from stationarity.

    The weights are optimal around T(v) - rho (w - v). The distance is that of this centre from T(w).
    """
    targets, distance = problem.targets(weights), np.inf
    for _ in range(STEPS):
        moved, rho = _step(problem, pool, weights, targets, costs, rho, tolerance)
        reached = problem.targets(moved)
        distance = problem.relative(reached - targets + rho * (moved - weights), moved)
        weights, targets = moved, reached
        if distance <= SETTLED / 2:
            break
        rho = max(LEAST_RHO, rho / 2)
    return weights, rho, distance


def _step(
    problem: CoulombProblem,
    pool: ConstraintPool,
    weights: FloatArray,
    targets: FloatArray,
    costs: FloatArray,
    rho: float,
    tolerance: float,
) -> tuple[FloatArray, float]:
    """The optimum of the first bound that holds, and its rho; members without examples stay on their spheres."""
    learning, energy = costs.any(axis=1, keepdims=True), problem.energy(weights)
    for _ in range(BACKTRACKS):
        around = pool.solve((rho * weights + targets) / (1.0 + rho), costs / (1.0 + rho), tolerance)
        moved = np.where(learning, around, problem.return_to_spheres(weights + targets / rho, weights))
        move = moved - weights
        bound = energy - (targets * move).sum() + rho / 2 * (move**2).sum()
        if problem.energy(moved) <= bound + 1e-12 * abs(energy):
            return moved, rho
        rho *= 2.0
    return weights, rho
