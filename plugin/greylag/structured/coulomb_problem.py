"""What the solvers of the Coulomb structured SVM share: its risk, its repulsion, and its assignments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from greylag.ranking import FloatArray
from greylag.structured.assignment import (
    Assignment,
    best_shares,
    draw_examples,
    draw_members,
    member_costs,
    sampling_shares,
)
from greylag.structured.electrostatics import directions, displacements, energy_descent, lengths, riesz_energy
from greylag.structured.model import TrainingSet, task_losses

Repulsion = Literal["displacement", "gradient"]

SETTLED = 1e-2  # relative to the mean length of the weights (half a degree), and for shares of examples


@dataclass(frozen=True, eq=False)
class CoulombProblem:
    """A training set with the parameters of `greylag.structured.Coulomb`."""

    training: TrainingSet[Any, Any, Any]
    C: float
    alpha: float
    s: float
    repulsion: Repulsion
    assignment: Assignment

    def targets(self, weights: FloatArray) -> FloatArray:
        """T, shape (M, d), where the repulsion alone draws the weights: a solution is w_m = T_m + C mean_i a_mi."""
        repel = displacements if self.repulsion == "displacement" else energy_descent
        return repel(weights, self.alpha, self.s)

    def energy(self, weights: FloatArray) -> float:
        """Alpha E_s."""
        return self.alpha * riesz_energy(weights, self.s) if self.alpha else 0.0

    def objective(self, weights: FloatArray, hinges: FloatArray, costs: FloatArray) -> float:
        """Alpha E_s + sum_m (||w_m||² / 2 + sum_i costs_mi H_i(w_m)), with hinge losses H and costs of shape (M, n)."""
        return float(self.energy(weights) + (weights**2).sum() / 2 + (costs * hinges).sum())

    def costs(self, shares: FloatArray) -> FloatArray:
        """The costs of the examples, shape (M, n), see `greylag.structured.assignment.member_costs`."""
        return member_costs(shares, self.C)

    def drawn_shares(self, weights: FloatArray, before: FloatArray, rng: np.random.Generator) -> FloatArray:
        """The assignment sigma of Table 1 after the assignment `before`, shape (M, n), 0 or 1."""
        if self.assignment == "all":
            return np.ones_like(before)
        if self.assignment == "stochastic":
            return draw_examples(len(before), before.shape[1], rng)
        if self.assignment == "best":
            return best_shares(self._losses(weights), before, rng)
        return draw_members(sampling_shares(self._losses(weights)), rng)

    def expected_shares(
        self, weights: FloatArray, before: FloatArray, epoch: int, rng: np.random.Generator
    ) -> FloatArray:
        """The expectation of the assignment, shape (M, n), over the draws of the epochs 1 to `epoch`.

        "sampled" gives the mean of q over the epochs, and "stochastic" equals "all"; "best" does not draw members.
        """
        if self.assignment == "sampled":
            return np.asarray(before + (sampling_shares(self._losses(weights)) - before) / epoch)
        if self.assignment == "best":
            return best_shares(self._losses(weights), before, rng)
        return np.ones_like(before)

    def return_to_spheres(self, moved: FloatArray, weights: FloatArray) -> FloatArray:
        """The directions of `moved`, made feasible, with the lengths of the weights; kept where a direction is 0."""
        units = directions(self.training.project(moved))
        return np.where(units.any(axis=1, keepdims=True), lengths(weights)[:, None] * units, weights)

    def relative(self, distances: FloatArray, weights: FloatArray) -> float:
        """The greatest length of `distances`, shape (M, d), relative to the mean length of the weights."""
        return float(lengths(distances).max() / max(lengths(weights).mean(), 1e-300))

    def _losses(self, weights: FloatArray) -> FloatArray:
        return task_losses(self.training.model, self.training.examples, weights)
