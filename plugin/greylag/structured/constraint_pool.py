"""The constraints found so far, shared by all members of an ensemble, and the optima under them."""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.ranking import FloatArray
from greylag.structured.model import Constraint, TrainingSet

IDLE_LIMIT = 20  # a constraint is dropped after this many solutions in which no member gives it weight
MAX_PASSES = 5000  # a solution may be left unfinished and resumed after the next constraints


class ConstraintPool:
    """Constraints w' a_p >= b_p - xi_i of n examples, with a problem for each of M members:

        min over w_m:  ||w_m - c_m||² / 2 + sum_i C_mi max over example i's constraints p of (b_p - a_p' w_m).

    The problems are solved by their duals: weights alpha_mp >= 0, which sum to C_mi over the constraints of example i,
    with w_m = c_m + sum_p alpha_mp a_p. Each example starts with the constraint of its target: a = 0, b = its loss.

    Parameters
    ----------
    training : TrainingSet
        The model and its n examples.
    members : int >= 1
        M.
    """

    def __init__(self, training: TrainingSet[Any, Any, Any], members: int) -> None:
        self._training = training
        n, d = training.target_features.shape
        self._normals = np.zeros((n, d))
        self._losses = training.target_losses.copy()
        self._owners = np.arange(n)
        self._gram = np.zeros((n, n))
        self._alpha = np.zeros((members, n))
        self._idle = np.zeros(n, dtype=np.int64)

    def hinge_losses(self, weights: FloatArray) -> FloatArray:
        """H_i(w_m) under the known constraints, shape (M, n), for weights of shape (M, d)."""
        hinges = np.full((len(weights), len(self._training.examples)), -np.inf)
        np.maximum.at(hinges.T, self._owners, self._violations(weights).T)
        return hinges

    def extend(self, weights: FloatArray, epsilon: float) -> bool:
        """Add the most violated constraint of each member and example.

        Only constraints violated by more than `epsilon` beyond the known ones are added.

        Returns
        -------
        bool
            Whether any constraint was added.
        """
        found: dict[tuple[int, bytes], Constraint] = {}
        for member, known in zip(weights, self.hinge_losses(weights), strict=True):
            for example, hinge in enumerate(known):
                constraint = self._training.most_violated(example, member)
                if constraint.violation(member) > hinge + epsilon:
                    found[example, constraint.normal.tobytes()] = constraint
        if found:
            self._add([example for example, _ in found], list(found.values()))
        return bool(found)

    def solve(self, centres: FloatArray, costs: FloatArray, tolerance: float) -> FloatArray:
        """The optimal weights, shape (M, d).

        Parameters
        ----------
        centres : array, shape (M, d)
            c.
        costs : array, shape (M, n)
            C.
        tolerance : float
            Stop when the violations of any two constraints that could exchange weight differ by at most this.
        """
        from greylag.structured.pairwise_steps import climb

        self._share_out(costs)
        order = np.argsort(self._owners, kind="stable")
        starts = np.searchsorted(self._owners[order], np.arange(costs.shape[1] + 1))
        violations = self._violations(centres + self._combined())
        for alpha, found in zip(self._alpha, violations, strict=True):
            climb(self._gram, found, order, starts, alpha, tolerance, MAX_PASSES)
        weights = centres + self._combined()
        self._drop_idle()
        return weights

    def _violations(self, weights: FloatArray) -> FloatArray:
        """b_p - a_p' w_m, shape (M, K)."""
        return np.asarray(self._losses - np.einsum("md,pd->mp", weights, self._normals))

    def _combined(self) -> FloatArray:
        """sum_p alpha_mp a_p, shape (M, d)."""
        return np.asarray(np.einsum("mp,pd->md", self._alpha, self._normals))

    def _add(self, owners: list[int], constraints: list[Constraint]) -> None:
        normals = np.array([constraint.normal for constraint in constraints])
        self._normals = np.vstack([self._normals, normals])
        self._losses = np.append(self._losses, [constraint.loss for constraint in constraints])
        self._owners = np.append(self._owners, owners)
        products = np.einsum("pd,qd->pq", normals, self._normals)
        self._gram = np.block([[self._gram, products[:, : len(self._gram)].T], [products]])
        self._alpha = np.pad(self._alpha, ((0, 0), (0, len(owners))))
        self._idle = np.pad(self._idle, (0, len(owners)))

    def _share_out(self, costs: FloatArray) -> None:
        """Scale alpha to sum to the cost of each example; without any weight, all goes to the target's constraint."""
        for member, cost in enumerate(costs):
            sums = np.bincount(self._owners, weights=self._alpha[member], minlength=len(cost))
            self._alpha[member] *= np.divide(cost, sums, out=np.zeros_like(cost), where=sums > 0)[self._owners]
            self._alpha[member, : len(cost)] += np.where(sums > 0, 0.0, cost)

    def _drop_idle(self) -> None:
        """Drop constraints that have had no weight for long, except those of the targets."""
        self._idle = np.where(self._alpha.any(axis=0), 0, self._idle + 1)
        kept = self._idle < IDLE_LIMIT
        kept[: len(self._training.examples)] = True
        if not kept.all():
            self._normals, self._losses, self._owners = self._normals[kept], self._losses[kept], self._owners[kept]
            self._gram = np.ascontiguousarray(self._gram[np.ix_(kept, kept)])
            self._alpha, self._idle = np.ascontiguousarray(self._alpha[:, kept]), self._idle[kept]
