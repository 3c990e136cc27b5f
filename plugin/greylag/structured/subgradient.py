"""The subgradient steps of the Coulomb structured SVM (eq. 8 to 10)."""

from __future__ import annotations

import numpy as np

from greylag.ranking import FloatArray
from greylag.structured.coulomb_problem import CoulombProblem
from greylag.structured.electrostatics import lengths
from greylag.structured.ensemble import Ensemble


def walk(
    problem: CoulombProblem, weights: FloatArray, reach: float, *, epochs: int, rng: np.random.Generator
) -> Ensemble:
    """Take steps w_m <- P(w_m + eta (T_m - w_m + C mean_i a_mi)), with P the projection to the required signs.

    eta is 1 / (t + t_0) at step t, with t_0 such that the first step is no longer than `reach`. The result is the mean
    over the second half of the steps (suffix averaging). An epoch is one step, or n if each member draws its example.
    """
    n = len(problem.training.examples)
    count, delay = epochs * (n if problem.assignment == "stochastic" else 1), 0.0
    total, shares = np.zeros_like(weights), np.zeros((len(weights), n))
    for step in range(count):
        shares = problem.drawn_shares(weights, shares, rng)
        costs = problem.costs(shares)
        learning = costs.any(axis=1, keepdims=True)
        slope = problem.targets(weights) + np.where(learning, _pull(problem, weights, costs) - weights, 0.0)
        delay = delay or max(1.0, float(lengths(slope).max()) / reach)
        moved = weights + slope / (step + delay)
        free = problem.training.project(moved)
        weights = np.where(learning, free, problem.return_to_spheres(moved, weights))
        if 2 * (step + 1) > count:
            total += weights
    return Ensemble(total / (count - count // 2), epochs, converged=False)


def _pull(problem: CoulombProblem, weights: FloatArray, costs: FloatArray) -> FloatArray:
    """sum_i costs_mi a_mi, shape (M, d), with a_mi the normal of the constraint that w_m violates most."""
    pull = np.zeros_like(weights)
    for m, example in np.argwhere(costs > 0).tolist():
        pull[m] += costs[m, example] * problem.training.most_violated(example, weights[m]).normal
    return pull
