"""The constraints that inference has returned so far, and the optima of one or more members under them."""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.base import FloatArray
from greylag.learning.structured.model import Constraint, TrainingSet

IDLE_LIMIT = 20  # a constraint is dropped if no member gives it weight in this many successive searches
MAX_ROUNDS = 200  # a solution may be left unfinished and resumed after the next constraints


class ConstraintPool:
    """Constraints w' a_p >= b_p - xi_i of n examples, with a problem for each of M members:

        min over w_m:  ||w_m - c_m||² / 2 + sum_i C_mi max over example i's constraints p of (b_p - a_p' w_m),

    and w_mj >= 0 for the weights j that the model declares non-negative.

    The problems are solved by their duals: weights alpha_mp >= 0, which sum to C_mi over the constraints of example i,
    with w_m = c_m + sum_p alpha_mp a_p. Each example starts with the constraint of its target: a = 0, b = its loss. The
    sign constraints follow: a = a unit vector, b = 0, with any alpha_mp >= 0.
    """

    def __init__(self, training: TrainingSet[Any, Any, Any], members: int) -> None:
        self._training = training
        n, d = training.target_features.shape
        signs = np.zeros((len(training.nonnegative), d))
        signs[np.arange(len(signs)), training.nonnegative] = 1.0
        self._normals = np.vstack([np.zeros((n, d)), signs])
        self._losses = np.append(training.target_losses, np.zeros(len(signs)))
        self._owners = np.append(np.arange(n), np.full(len(signs), n))  # sign constraints belong to no example
        # Inner products by einsum here and below: BLAS would sum in an order that depends on the number of threads.
        self._gram = np.einsum("pd,qd->pq", self._normals, self._normals)
        self._alpha = np.zeros((members, len(self._owners)))
        self._idle = np.zeros(len(self._owners), dtype=np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of examples and that of weights."""
        return len(self._training.examples), self._normals.shape[1]

    def hinge_losses(self, weights: FloatArray) -> FloatArray:
        """Compute H_i(w_m) under the known constraints, shape (M, n), for weights of shape (M, d)."""
        n = len(self._training.examples)
        hinges = np.full((len(weights), n + 1), -np.inf)
        np.maximum.at(hinges.T, self._owners, self._violations(weights).T)
        return hinges[:, :n]

    def search(self, weights: FloatArray, costs: FloatArray, epsilon: float) -> tuple[bool, FloatArray]:
        """Add the most violated constraint of each member and example with a positive cost.

        It is added if it is violated by more than `epsilon` beyond the known constraints. Returns whether any is, and
        the hinge losses under the known constraints and all that were met, shape (M, n).
        """
        self._drop_idle()
        hinges, met = self.hinge_losses(weights), {}
        for m, example in np.argwhere(costs > 0).tolist():
            constraint = self._training.most_violated(example, weights[m])
            violation = constraint.violation(weights[m])
            if violation > hinges[m, example] + epsilon:
                # Members often find the same constraint, which all of them share.
                met[example, constraint.normal.tobytes()] = constraint
            hinges[m, example] = max(hinges[m, example], violation)
        if met:
            self._add([example for example, _ in met], list(met.values()))
        return bool(met), hinges

    def solve(self, centres: FloatArray, costs: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Find the optimal weights, shape (M, d), and lower bounds of the members' optima from their duals, shape (M,).

        Centres c have shape (M, d), costs C shape (M, n). The solver stops when the violations of any two constraints
        that could exchange weight differ by at most `tolerance`.
        """
        # Numba, which learners without constraints do not need.
        from greylag.learning.structured.dual_steps import climb

        self._share_out(costs)
        order = np.argsort(self._owners, kind="stable")
        starts = np.searchsorted(self._owners[order], np.arange(costs.shape[1] + 1))
        violations = self._violations(centres + self._combined())
        # Members do not interact here: each has its own dual over the common constraints.
        for alpha, row in zip(self._alpha, violations, strict=True):
            climb(self._gram, row, order, starts, alpha, tolerance, MAX_ROUNDS)
        combined = self._combined()
        lower = (
            np.einsum("mp,mp->m", self._alpha, self._violations(centres))
            - np.einsum("md,md->m", combined, combined) / 2
        )
        return self._training.project(centres + combined), lower

    def _violations(self, weights: FloatArray) -> FloatArray:
        """Compute b_p - a_p' w_m, shape (M, K)."""
        return np.asarray(self._losses - np.einsum("md,pd->mp", weights, self._normals))

    def _combined(self) -> FloatArray:
        """Compute sum_p alpha_mp a_p, shape (M, d)."""
        return np.asarray(np.einsum("mp,pd->md", self._alpha, self._normals))

    def _add(self, owners: list[int], constraints: list[Constraint]) -> None:
        normals = np.array([constraint.normal for constraint in constraints])
        self._normals = np.vstack([self._normals, normals])
        self._losses = np.append(self._losses, [constraint.loss for constraint in constraints])
        self._owners = np.append(self._owners, owners)
        # Only the new rows; the whole matrix would cost the square of all constraints at each search.
        products = np.einsum("pd,qd->pq", normals, self._normals)
        self._gram = np.block([[self._gram, products[:, : len(self._gram)].T], [products]])
        self._alpha = np.pad(self._alpha, ((0, 0), (0, len(owners))))
        self._idle = np.pad(self._idle, (0, len(owners)))

    def _share_out(self, costs: FloatArray) -> None:
        """Scale alpha to sum to the cost of each example; without any weight, all goes to the target's constraint."""
        for member, cost in enumerate(costs):
            sums = np.bincount(self._owners, weights=self._alpha[member], minlength=len(cost))[: len(cost)]
            factors = np.divide(cost, sums, out=np.zeros_like(cost), where=sums > 0)
            self._alpha[member] *= np.append(factors, 1.0)[self._owners]  # multipliers of signs stay
            self._alpha[member, : len(cost)] += np.where(sums > 0, 0.0, cost)

    def _drop_idle(self) -> None:
        """Drop constraints without weight for `IDLE_LIMIT` searches, but never those of targets and signs."""
        # A constraint without weight does not change an optimum, but costs a row of every later solution.
        self._idle = np.where(self._alpha.any(axis=0), 0, self._idle + 1)
        stays = self._idle < IDLE_LIMIT
        stays[: len(self._training.examples) + len(self._training.nonnegative)] = True
        if not stays.all():
            numbers = np.flatnonzero(stays)
            self._normals, self._losses, self._owners = self._normals[stays], self._losses[stays], self._owners[stays]
            self._gram = self._gram.take(numbers, 0).take(numbers, 1)
            self._alpha, self._idle = self._alpha.take(numbers, 1), self._idle[stays]
