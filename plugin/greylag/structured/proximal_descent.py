"""Stationary points of the objective of the Coulomb structured SVM (eq. 1), by proximal gradient descent.

With T = -alpha grad E_s, the energy around weights v is at most alpha E_s(v) - T(v)'(w - v) + rho ||w - v||² / 2 if rho
is large enough. The optimum of this bound plus the regulariser and the risk is that of ||w - c||² / 2 plus the risk at
costs / (1 + rho), with the centre c = (rho v + T(v)) / (1 + rho). It is found under the known constraints. rho is
raised until the bound holds, so that no step raises the objective. Predictions then show whether constraints were
missing. Each member has its own rho, in proportion to 1 / ||v_m||².
"""

from __future__ import annotations

import numpy as np

from greylag.ranking import FloatArray
from greylag.structured.constraint_pool import ConstraintPool
from greylag.structured.coulomb_problem import SETTLED, CoulombProblem
from greylag.structured.ensemble import Ensemble

STEPS, STEPS_WHILE_SEARCHING = 50, 5  # between searches for constraints, without and with success
LEAST_RHO = 1e-2
BACKTRACKS = 60


def descend(
    problem: CoulombProblem, weights: FloatArray, *, epochs: int, epsilon: float, rng: np.random.Generator
) -> Ensemble:
    """Alternate searches for violated constraints and descent under the known ones.

    The objectives of the result are the lowest so far after each epoch, with hinge losses up to epsilon; they restart
    when the assignment changes. If the descent under too few constraints has led astray, it resumes from the lowest.
    """
    pool, n = ConstraintPool(problem.training, len(weights)), len(problem.training.examples)
    shares, objectives, lowest = np.zeros((len(weights), n)), [], np.inf
    rho, distance = 1.0, np.inf
    for epoch in range(1, epochs + 1):
        before = shares
        if problem.assignment != "best" or epoch <= max(1, epochs // 2):
            shares = problem.expected_shares(weights, shares, epoch, rng)
        costs = problem.costs(shares)
        if not np.array_equal(shares, before):
            lowest = np.inf
        found = pool.extend(weights, costs, epsilon)
        objective = problem.objective(weights, pool.hinge_losses(weights), costs)
        if objective <= lowest:
            best, lowest = weights, objective
        objectives.append(lowest)
        if not found and distance <= SETTLED and np.abs(shares - before).max() <= SETTLED:
            if objective <= lowest + epsilon * costs.sum():
                return Ensemble(weights, epoch, converged=True, objectives=tuple(objectives))
            weights = best
            pool.extend(weights, costs, epsilon)  # those of its constraints that have been dropped
        for _ in range(STEPS_WHILE_SEARCHING if found else STEPS):
            weights, distance, rho = _step(problem, pool, weights, costs, rho, epsilon / 10)
            if distance <= SETTLED / 2:
                break
    return Ensemble(best, epochs, converged=False, objectives=tuple(objectives))


def _step(
    problem: CoulombProblem,
    pool: ConstraintPool,
    weights: FloatArray,
    costs: FloatArray,
    rho: float,
    tolerance: float,
) -> tuple[FloatArray, float, float]:
    """The optimum of the first bound that holds, its distance from stationarity, and a rho for the next step.

    Members without examples stay on their spheres. The optimum is around T(v) - rho (w - v), of which the distance is
    that from T(w). The next rho is that at which the bound would have been equal, but at least a quarter of the last.
    """
    learning, energy, targets = costs.any(axis=1, keepdims=True), problem.energy(weights), problem.targets(weights)
    squares = np.maximum((weights**2).sum(axis=1, keepdims=True), 1e-300)
    scales = squares.mean() / squares  # the curvature of the energy falls with the squared lengths
    for _ in range(BACKTRACKS):
        rhos = rho * scales
        around = pool.solve((rhos * weights + targets) / (1.0 + rhos), costs / (1.0 + rhos), tolerance)
        moved = np.where(learning, around, problem.return_to_spheres(weights + targets / rhos, weights))
        move = moved - weights
        excess = problem.energy(moved) - energy + float((targets * move).sum()) if np.isfinite(energy) else 0.0
        curvature = 2.0 * excess / max(float((scales * move**2).sum()), 1e-300)
        if curvature <= rho or excess <= 1e-12 * abs(energy):
            distance = problem.relative(problem.targets(moved) - targets + rhos * move, moved)
            return moved, distance, max(LEAST_RHO, rho / 4, min(curvature, rho))
        rho = max(2.0 * rho, 1.1 * min(curvature, 1e3 * rho))
    return weights, np.inf, rho
