"""Assignments, the risk and three solvers of the Coulomb structured SVM (see `Coulomb`).

`walk` takes the paper's steps, `relax` goes to the fixed points of the displacement form, and `descend` to stationary
points of the objective, which the gradient form has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from greylag.base import FloatArray, IntArray
from greylag.learning import ConstraintPool, TrainingSet, task_losses
from greylag_papers.schiegg_2016.electrostatics import (
    directions,
    displacements,
    energy_descent,
    lengths,
    riesz_energy,
)
from greylag_papers.schiegg_2016.ensemble import Ensemble

Assignment = Literal["all", "best", "sampled", "stochastic"]
Repulsion = Literal["displacement", "gradient"]

CONVERGENCE_TOLERANCE = 1e-2  # relative to the mean length of the weights (half a degree), and for shares of examples
MAX_STEP = 0.5  # of `relax`: of the distance of a centre from its target
STEPS, STEPS_WHILE_SEARCHING = 50, 5  # of `descend`, between searches for constraints, without and with success
MIN_RHO = 1e-2
BACKTRACKS = 60


@dataclass(frozen=True, eq=False)
class CoulombProblem:
    """A training set with the parameters of `Coulomb`.

    An assignment is an array of shares, shape (M, n): whether, or with which probability, a member learns from an
    example. The costs of a member's examples sum to C, or to 0 if it has none (eq. 10).
    """

    training: TrainingSet[Any, Any, Any]
    C: float
    alpha: float
    s: float
    repulsion: Repulsion
    assignment: Assignment
    epochs: int
    epsilon: float

    def targets(self, weights: FloatArray) -> FloatArray:
        """Compute T, shape (M, d), where the repulsion alone draws the weights: w_m = T_m + C mean_i a_mi solves."""
        repel = displacements if self.repulsion == "displacement" else energy_descent
        return repel(weights, self.alpha, self.s)

    def energy(self, weights: FloatArray) -> float:
        """Compute alpha E_s."""
        return self.alpha * riesz_energy(weights, self.s) if self.alpha else 0.0

    def drawn_shares(self, weights: FloatArray, before: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the assignment sigma of Table 1 after the assignment `before`, shape (M, n), 0 or 1."""
        if self.assignment == "all":
            return np.ones_like(before)
        if self.assignment == "stochastic":
            drawn = rng.integers(before.shape[1], size=len(before))
            return np.asarray(np.arange(before.shape[1]) == drawn[:, None], dtype=np.float64)
        if self.assignment == "best":
            return best_shares(self._losses(weights), before, rng)
        cumulated = sampling_shares(self._losses(weights)).cumsum(axis=0)
        return _one_member_each((cumulated <= rng.random(before.shape[1]) * cumulated[-1]).sum(axis=0), len(before))

    def expected_shares(
        self, weights: FloatArray, before: FloatArray, epoch: int, rng: np.random.Generator
    ) -> FloatArray:
        """Return the mean of the assignment over the epochs from 1 to this one."""
        if self.assignment == "sampled":
            return np.asarray(before + (sampling_shares(self._losses(weights)) - before) / epoch)
        if self.assignment == "best":
            # Otherwise members that go on swapping examples would never settle.
            return best_shares(self._losses(weights), before, rng) if epoch <= max(1, self.epochs // 2) else before
        return np.ones_like(before)

    def expected_costs(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean costs of a member's steps with examples, shape (M, n), and their share, shape (M, 1).

        A member that has drawn no example is repelled but does not learn. Where it learns in a share p of the steps,
        the mean step is T + p (C mean_i a_mi - w), which vanishes at w = T / p + C mean_i a_mi.
        """
        if self.assignment == "sampled":
            return sampled_costs(shares, self.C)
        return member_costs(shares, self.C), np.asarray(shares.any(axis=1, keepdims=True), dtype=np.float64)

    def return_to_spheres(self, moved: FloatArray, weights: FloatArray) -> FloatArray:
        """Rescale feasible directions of `moved` to the lengths of `weights`, which stay where a direction is 0."""
        units = directions(self.training.project(moved))
        return np.where(units.any(axis=1, keepdims=True), lengths(weights)[:, None] * units, weights)

    def relative(self, distances: FloatArray, weights: FloatArray) -> float:
        """Return the greatest length of `distances`, shape (M, d), relative to the mean length of the weights."""
        return float(lengths(distances).max() / max(lengths(weights).mean(), 1e-300))

    def _losses(self, weights: FloatArray) -> FloatArray:
        return task_losses(self.training.model, self.training.examples, weights)


def best_shares(losses: FloatArray, before: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Assign each example to the member of lowest loss, from losses and the last assignment of shape (M, n)."""
    tied = losses == losses.min(axis=0)
    return _one_member_each(np.where(tied, before + rng.random(losses.shape), -1.0).argmax(axis=0), len(losses))


def sampling_shares(losses: FloatArray) -> FloatArray:
    """Compute q, shape (M, n): the probability that an example is assigned to a member,

        q_i^m = (1 - pi_i^m) / sum_j (1 - pi_i^j),    pi_i^m = Delta_i^m / sum_j Delta_i^j.

    The normalisation of pi makes any losses >= 0 probabilities, so that q_i^m = (1 - pi_i^m) / (M - 1). If all members
    have a loss of 0, all are equally probable. With one member, q is 1.
    """
    members = len(losses)
    if members == 1:
        return np.ones_like(losses)
    totals = losses.sum(axis=0)
    normalised = np.divide(losses, totals, out=np.full_like(losses, 1.0 / members), where=totals > 0)
    return np.asarray((1.0 - normalised) / (members - 1))


def member_costs(shares: FloatArray, C: float) -> FloatArray:
    """Return the cost of each example for each member, shape (M, n): C times a mean over its examples (eq. 10)."""
    sums = shares.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(C * shares, sums, out=np.zeros_like(shares), where=sums > 0))


def sampled_costs(shares: FloatArray, C: float) -> tuple[FloatArray, FloatArray]:
    """Compute `CoulombProblem.expected_costs` if examples are drawn with probabilities q, shape (M, n).

    An example costs C / |S| if the set S of the member's examples has it. Given that, 1 / |S| has the mean
    integral over t in [0, 1] of prod over j != i of (1 - q_j + q_j t), a polynomial, which Gauss's rule sums exactly.
    """
    # n // 2 + 1 nodes sum polynomials of degree up to n, and this product has degree n - 1.
    nodes, node_weights = np.polynomial.legendre.leggauss(shares.shape[1] // 2 + 1)
    factors = 1.0 - shares[..., None] + shares[..., None] * (nodes + 1.0) / 2.0
    # All factors but the example's own; none is 0, as the nodes are inside (-1, 1).
    means = (factors.prod(axis=1, keepdims=True) / factors * node_weights / 2.0).sum(axis=2)
    learning = 1.0 - (1.0 - shares).prod(axis=1, keepdims=True)
    return np.divide(C * shares * means, learning, out=np.zeros_like(shares), where=learning > 0), learning


def _one_member_each(chosen: IntArray, members: int) -> FloatArray:
    return np.asarray(np.arange(members)[:, None] == chosen, dtype=np.float64)


def walk(problem: CoulombProblem, weights: FloatArray, reach: float, rng: np.random.Generator) -> Ensemble:
    """Take steps w_m <- P(w_m + eta (T_m - w_m + C mean_i a_mi)), with P the projection to the required signs (eq. 8).

    eta is 1 / (t + t_0) at step t, with t_0 such that the first step is no longer than `reach`. The result is the mean
    over the second half of the steps (suffix averaging). An epoch is one step, or n if each member draws its example.
    """
    n = len(problem.training.examples)
    count, delay = problem.epochs * (n if problem.assignment == "stochastic" else 1), 0.0
    total, shares = np.zeros_like(weights), np.zeros((len(weights), n))
    for step in range(count):
        shares = problem.drawn_shares(weights, shares, rng)
        costs = member_costs(shares, problem.C)
        learning = costs.any(axis=1, keepdims=True)
        # A member that drew no example is only repelled.
        slope = problem.targets(weights) + np.where(learning, _pull(problem, weights, costs) - weights, 0.0)
        # Set once, from the first slope. Later steps shrink as 1 / t, whatever the slopes.
        delay = delay or max(1.0, float(lengths(slope).max()) / reach)
        moved = weights + slope / (step + delay)
        # Repulsion alone would lengthen the weights without bound, since nothing pulls them back to 0.
        free = problem.training.project(moved)
        weights = np.where(learning, free, problem.return_to_spheres(moved, weights))
        if 2 * (step + 1) > count:
            total += weights
    return Ensemble(total / (count - count // 2), problem.epochs, converged=False)


def _pull(problem: CoulombProblem, weights: FloatArray, costs: FloatArray) -> FloatArray:
    """Compute sum_i costs_mi a_mi, shape (M, d), with a_mi the normal of the constraint that w_m violates most."""
    pull = np.zeros_like(weights)
    for m, example in np.argwhere(costs > 0).tolist():
        pull[m] += costs[m, example] * problem.training.most_violated(example, weights[m]).normal
    return pull


def _svm_objectives(weights: FloatArray, centres: FloatArray | float, hinges: FloatArray, costs: FloatArray) -> float:
    """Sum ||w_m - c_m||² / 2 + sum_i costs_mi H_i(w_m) over members with examples."""
    return float(((weights - centres) ** 2)[costs.any(axis=1)].sum() / 2 + (costs * hinges).sum())


def relax(problem: CoulombProblem, weights: FloatArray, centres: FloatArray, rng: np.random.Generator) -> Ensemble:
    """Alternate optima around centres c, min ||w_m - c_m||² / 2 + risk, and steps of the centres to their targets T.

    At c = T(W), each member stands still under the steps of eq. 8. A member without examples moves along its sphere.
    Where the risk has a kink, the optimum is the same for many centres: members that do not move any more are tested
    for being optimal around T(W) itself.
    """
    pool, n = ConstraintPool(problem.training, len(weights)), len(problem.training.examples)
    steps, pull = np.full(len(weights), MAX_STEP), np.zeros_like(centres)
    shares = np.zeros((len(weights), n))
    for epoch in range(1, problem.epochs + 1):
        before, last, start = shares, pull, weights
        shares = problem.expected_shares(weights, before, epoch, rng)
        costs, often = problem.expected_costs(shares)
        learning = often > 0
        # There are no constraints yet, and the tolerance depends on their hinge losses.
        if epoch == 1:
            _, hinges = pool.search(weights, costs, 0.0)
        # Each unit of cost may be off by as much, so that the sum stays within a tenth of the requested gap.
        tolerance = (
            problem.epsilon * _svm_objectives(weights, 0.0, hinges, costs) / max(float(costs.sum()), 1e-300) / 10
        )
        # One step of the alternation: the optima around the centres, then new constraints, then where the centres go.
        around, lower = pool.solve(centres, costs, tolerance)
        weights = np.where(learning, around, weights)
        _, hinges = pool.search(weights, costs, tolerance)
        targets = problem.targets(weights) / np.where(learning, often, 1.0)
        # Members that do not learn have no centre: the repulsion itself moves them.
        pull = np.where(learning, targets - centres, targets)
        gap = _svm_objectives(weights, centres, hinges, costs) - float(lower[learning[:, 0]].sum())
        if (
            gap <= problem.epsilon * _svm_objectives(weights, 0.0, hinges, costs)
            and np.abs(shares - before).max() <= CONVERGENCE_TOLERANCE
        ):
            # The centres still move but the weights do not, as at a kink. If the optimum around the targets themselves
            # is where the weights are, the members stand still under eq. 8, and the centres need not arrive.
            if (
                problem.relative(pull, weights)
                > CONVERGENCE_TOLERANCE
                >= 10 * problem.relative(weights - start, weights)
            ):
                away = pool.solve(targets, costs, tolerance)[0] - weights
            else:
                away = pull
            if problem.relative(np.where(learning, away, pull), weights) <= CONVERGENCE_TOLERANCE:
                return Ensemble(weights, epoch, converged=True)
        # Steps are halved where the pull turned back and is about as strong as before, past its target, as at a kink of
        # the hinge losses, where two members can share an optimum until their centres have moved far apart.
        swings = (np.einsum("md,md->m", pull, last) < 0) & (lengths(pull) > 0.7 * lengths(last))
        steps = np.where(swings, steps / 2, np.minimum(MAX_STEP, 1.2 * steps))
        moves = steps[:, None] * pull
        centres = np.where(learning, centres + moves, targets)
        weights = np.where(learning, weights, problem.return_to_spheres(weights + moves, weights))
    return Ensemble(weights, problem.epochs, converged=False)


def descend(problem: CoulombProblem, weights: FloatArray, rng: np.random.Generator) -> Ensemble:
    """Alternate searches for violated constraints and descent under the known constraints, to a stationary point of

        alpha E_s + sum_m p_m (||w_m||² / 2 + sum_i costs_mi H_i(w_m)),

    with p_m the share of steps in which member m learns. With T = -alpha grad E_s, the energy around weights v is at
    most alpha E_s(v) - T(v)'(w - v) + rho ||w - v||² / 2 if rho is large enough, and the optimum of this bound plus the
    rest is that around a centre. rho is raised until the bound holds, so that no step raises the objective. Each member
    has its own, in proportion to 1 / ||v_m||².

    The objectives of the result are the lowest so far after each epoch; they restart when the assignment changes. If
    the descent under too few constraints has led astray, it resumes from the lowest.
    """
    pool, n = ConstraintPool(problem.training, len(weights)), len(problem.training.examples)
    shares, objectives = np.zeros((len(weights), n)), []
    lowest = distance = np.inf
    rho, tolerance = 1.0, 0.0
    for epoch in range(1, problem.epochs + 1):
        before, shares = shares, problem.expected_shares(weights, shares, epoch, rng)
        costs, often = problem.expected_costs(shares)
        # Objectives under two assignments cannot be compared.
        if not np.array_equal(shares, before):
            lowest = np.inf
        added, hinges = pool.search(weights, costs, tolerance)
        risk = _svm_objectives(weights, 0.0, hinges, costs)
        tolerance = problem.epsilon * risk / max(float(costs.sum()), 1e-300)
        squares = (weights**2).sum(axis=1) / 2 + (costs * hinges).sum(axis=1)
        objective = problem.energy(weights) + float((np.where(often > 0, often, 1.0)[:, 0] * squares).sum())
        if objective <= lowest:
            best, lowest = weights, objective
        objectives.append(lowest)
        # Stationary under all known constraints, and none is violated: done, unless an earlier point was lower.
        if not added and distance <= CONVERGENCE_TOLERANCE and np.abs(shares - before).max() <= CONVERGENCE_TOLERANCE:
            if objective <= lowest + problem.epsilon * risk:
                return Ensemble(weights, epoch, converged=True, objectives=tuple(objectives))
            weights = best
            pool.search(weights, costs, tolerance)  # those of its constraints that have been dropped
        # Few steps while constraints still come, since they change the objective that the steps descend.
        for _ in range(STEPS_WHILE_SEARCHING if added else STEPS):
            weights, distance, rho = _bounded_step(problem, pool, weights, costs, often, rho, tolerance / 10)
            if distance <= CONVERGENCE_TOLERANCE / 2:
                break
    return Ensemble(best, problem.epochs, converged=False, objectives=tuple(objectives))


def _bounded_step(
    problem: CoulombProblem,
    pool: ConstraintPool,
    weights: FloatArray,
    costs: FloatArray,
    often: FloatArray,
    rho: float,
    tolerance: float,
) -> tuple[FloatArray, float, float]:
    """Return the optimum of the first bound that holds, its distance from stationarity, and a rho for the next step.

    Members without examples stay on their spheres. The optimum is around T(v) - rho (w - v), and its distance is
    that from T(w). The next rho is that at which the bound would have been equal, but at least a quarter of the last.
    """
    learning, energy, targets = often > 0, problem.energy(weights), problem.targets(weights)
    share = np.where(learning, often, 1.0)
    squares = np.maximum((weights**2).sum(axis=1, keepdims=True), 1e-300)
    scales = squares.mean() / squares  # the curvature of the energy falls with the squared lengths
    for _ in range(BACKTRACKS):
        rhos = rho * scales
        centres = (rhos * weights + targets) / (share + rhos)
        around, _ = pool.solve(centres, share * costs / (share + rhos), tolerance)
        moved = np.where(learning, around, problem.return_to_spheres(weights + targets / rhos, weights))
        move = moved - weights
        # By how much the energy exceeds its linear model; the bound holds while this is at most rho times the move.
        excess = problem.energy(moved) - energy + float((targets * move).sum()) if np.isfinite(energy) else 0.0
        curvature = 2.0 * excess / max(float((scales * move**2).sum()), 1e-300)
        # The second condition is rounding: near a stationary point the differences of energies have no digits left.
        if curvature <= rho or excess <= 1e-12 * abs(energy):
            distance = problem.relative((problem.targets(moved) - targets + rhos * move) / share, moved)
            return moved, distance, max(MIN_RHO, rho / 4, min(curvature, rho))
        # At least doubled, so that the loop ends, and at once to the curvature met unless that is absurd.
        rho = max(2.0 * rho, 1.1 * min(curvature, 1e3 * rho))
    return weights, np.inf, rho
