"""The fixed points of the displacement form of the Coulomb structured SVM, by relaxation of centres."""

from __future__ import annotations

import numpy as np

from greylag.ranking import FloatArray
from greylag.structured.constraint_pool import ConstraintPool
from greylag.structured.coulomb_problem import SETTLED, CoulombProblem
from greylag.structured.electrostatics import lengths
from greylag.structured.ensemble import Ensemble

LONGEST_STEP = 0.5  # of the distance of a centre from its target


def relax(
    problem: CoulombProblem,
    weights: FloatArray,
    centres: FloatArray,
    *,
    epochs: int,
    epsilon: float,
    rng: np.random.Generator,
) -> Ensemble:
    """Alternate optima around centres c, min ||w_m - c_m||² / 2 + risk, and steps of the centres to their targets T.

    At c = T(W), each member stands still under the steps of eq. 8. A member without examples moves along its sphere.
    """
    pool, n = ConstraintPool(problem.training, len(weights)), len(problem.training.examples)
    steps, pull, shares = np.full(len(weights), LONGEST_STEP), np.zeros_like(centres), np.zeros((len(weights), n))
    for epoch in range(1, epochs + 1):
        before, last = shares, pull
        if problem.assignment != "best" or epoch <= max(1, epochs // 2):
            shares = problem.expected_shares(weights, shares, epoch, rng)
        costs = problem.costs(shares)
        learning = costs.any(axis=1, keepdims=True)
        found = pool.extend(weights, costs, epsilon)
        weights = np.where(learning, pool.solve(centres, costs, epsilon / 10), weights)
        targets = problem.targets(weights)
        pull = np.where(learning, targets - centres, targets)
        settled = problem.relative(pull, weights) <= SETTLED and np.abs(shares - before).max() <= SETTLED
        if settled and not found:
            return Ensemble(weights, epoch, converged=True)
        steps = _adapt(steps, pull, last)
        moves = steps[:, None] * pull
        centres = np.where(learning, centres + moves, targets)
        weights = np.where(learning, weights, problem.return_to_spheres(weights + moves, weights))
    return Ensemble(weights, epochs, converged=False)


def _adapt(steps: FloatArray, pull: FloatArray, before: FloatArray) -> FloatArray:
    """Adapt the steps of the centres: halved if the pull reversed without weakening, else up to 1.2 times as long.

    At a kink of the hinge losses, two members can share an optimum until their centres have moved far apart.
    """
    swings = (np.einsum("md,md->m", pull, before) < 0) & (lengths(pull) > 0.7 * lengths(before))
    return np.where(swings, steps / 2, np.minimum(LONGEST_STEP, 1.2 * steps))
