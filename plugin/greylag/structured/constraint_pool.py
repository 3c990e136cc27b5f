"""Constraints found so far, which hold for every member of an ensemble, and the members' optima under them."""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.ranking import FloatArray
from greylag.structured.model import Constraint, TrainingSet

IDLE_LIMIT = 20  # solutions without weight for any member after which a constraint is dropped
MAX_PASSES = 5000  # where a solution is left as it is, to be gone on with after the next constraints


class ConstraintPool:
    """Constraints w' a_p >= b_p - xi_i of n examples, and for M members the problems

        min over w_m:  ||w_m - c_m||² / 2 + sum_i C_mi max over example i's constraints p of (b_p - a_p' w_m).

    They are solved by their duals: weights alpha_mp >= 0 of the constraints, which sum to C_mi over those of example i,
    and w_m = c_m + sum_p alpha_mp a_p. At first, each example has one constraint, its target's: a = 0, b = its loss.
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
        """H_i(w_m) as far as the constraints tell, shape (M, n), for weights of shape (M, d)."""
        hinges = np.full((len(weights), len(self._training.examples)), -np.inf)
        np.maximum.at(hinges.T, self._owners, self._violations(weights).T)
        return hinges

    def extend(self, weights: FloatArray, epsilon: float) -> bool:
        """Ask the model for each member's and example's most violated constraint.

        Those are added that are violated by more than epsilon beyond what is known. Returns whether there were any.
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
        """The optimal weights, shape (M, d), for `centres` c of shape (M, d) and `costs` C of shape (M, n).

        No two constraints of an example between which weight could move differ by more than `tolerance` at the end.
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
        """Make each example's alpha sum to its cost: in proportion, or where there was none, on its target's."""
        for member, cost in enumerate(costs):
            sums = np.bincount(self._owners, weights=self._alpha[member], minlength=len(cost))
            self._alpha[member] *= np.divide(cost, sums, out=np.zeros_like(cost), where=sums > 0)[self._owners]
            self._alpha[member, : len(cost)] += np.where(sums > 0, 0.0, cost)

    def _drop_idle(self) -> None:
        """Drop the constraints that have long had no weight, but not the targets'."""
        self._idle = np.where(self._alpha.any(axis=0), 0, self._idle + 1)
        kept = self._idle < IDLE_LIMIT
        kept[: len(self._training.examples)] = True
        if not kept.all():
            self._normals, self._losses, self._owners = self._normals[kept], self._losses[kept], self._owners[kept]
            self._gram = np.ascontiguousarray(self._gram[np.ix_(kept, kept)])
            self._alpha, self._idle = np.ascontiguousarray(self._alpha[:, kept]), self._idle[kept]
