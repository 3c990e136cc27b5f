"""The Coulomb structured SVM (Schiegg, Diego & Hamprecht, ECCV 2016): M structured SVMs that repel each other.

    min over w_1, ..., w_M:  sum_m (||w_m||² / 2 + C / n sum_i sigma_mi H_i(w_m)) + alpha E(w_1, ..., w_M)  (eq. 1, 10)

H_i is the hinge loss of example i, E the Coulomb energy of the weights' directions, and sigma says which member learns
from which example. E acts by the displacements G of `greylag.structured.electrostatics`. The paper's subgradient step
is, with a_mi the normal of the constraint of example i that w_m violates most,

    w_m <- w_m + eta ( G_m - w_m + C / n sum_i sigma_mi a_mi ),                                             (eq. 8)

or with one example instead of the mean over all (eq. 9). It stands still where w_m = G_m + C / n sum_i sigma_mi a_mi:
where w_m is optimal for ||w - G_m||² / 2 in place of ||w||² / 2. The exact update goes there by solving that problem.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from greylag.errors import ParameterError
from greylag.ranking import FloatArray, IntArray
from greylag.structured.constraint_pool import ConstraintPool
from greylag.structured.cutting_plane import CuttingPlane
from greylag.structured.electrostatics import directions, displacements, lengths
from greylag.structured.ensemble import Ensemble
from greylag.structured.model import Input, Output, StructuredModel, TrainingSet, Truth

Assignment = Literal["all", "best", "sampled", "stochastic"]
Update = Literal["exact", "subgradient", "stochastic"]

PERTURBATION = 0.1  # of the single optimum's length
LONGEST_STEP = 0.5  # of a centre's way to G
DRAWS = 10  # epochs after which an exact update holds what it drew
SETTLED = 1e-2  # of the weights' mean length: half a degree

_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class Coulomb:
    """A learner of M diverse members; with M = 1, or alpha = 0, each is the structured SVM.

    It starts from the structured SVM's optimum w* (`CuttingPlane`), to which each member adds a random vector of a
    tenth of its length (of length 0.1, where w* is 0).

    Parameters
    ----------
    M : the number of members, >= 1.
    alpha : how strongly they repel each other, >= 0; directions have length 1. G is bounded however large alpha is, and
        with it the angles between members that learn from the same examples: 45 degrees on average in our studies.
    C : weight of the mean hinge loss against ||w||² / 2, > 0.
    assignment : which members learn from an example, sigma, decided anew in each epoch (section 3.4; of Table 1's
        choices, the paper's names are kept, and what they mean is our reading).

        - "all": every member.
        - "best": the member of least hinge loss; of equal ones the first.
        - "sampled": one, drawn with a probability proportional to exp(-hinge loss).
        - "stochastic": one, each as likely.
    update : how the weights move.

        - "exact": w_m is the optimum for ||w - c_m||² / 2 in place of ||w||² / 2, where the centre c_m, at first the
          random vector, goes half the way to G_m after each epoch, or less where that swings to and fro. What is drawn
          is held after `DRAWS` epochs. It stops when no constraint is violated by more than epsilon beyond those known,
          no assignment changes, and no centre is further from G_m than 0.01 of the members' mean length.
        - "subgradient": eq. 8 once an epoch. - "stochastic": eq. 9 for each example, in random order, each epoch. Step
          t has eta = 1 / (t + t_0), where t_0 makes the first step no longer than the random vector. The result is the
          mean over the second half of all steps (suffix averaging). It takes all `epochs`, of which hundreds may be
          needed, and never calls itself converged.
    epochs : passes over the examples at most, >= 1.
    epsilon : by how much a constraint may be violated at the end, > 0, in units of the loss ("exact", and the start).
    seed : of the random vectors and of what is drawn, >= 0.
    """

    M: int = 5
    alpha: float = 0.1
    C: float = 1.0
    assignment: Assignment = "all"
    update: Update = "exact"
    epochs: int = 100
    epsilon: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.M < 1:
            raise ParameterError(f"M, the number of models, has to be at least 1, not {self.M}")
        if self.epochs < 1:
            raise ParameterError(f"epochs has to be at least 1, not {self.epochs}")
        if not 0 <= self.alpha < np.inf:
            raise ParameterError(f"alpha has to be a number from 0, not {self.alpha}")
        for name, choices in (("assignment", Assignment), ("update", Update)):
            if getattr(self, name) not in get_args(choices):
                wanted = ", ".join(get_args(choices))
                raise ParameterError(f"{name} has to be one of {wanted}, not {getattr(self, name)!r}")
        if self.seed < 0:
            raise ParameterError(f"seed has to be at least 0, not {self.seed}")
        CuttingPlane(self.C, self.epsilon)  # which checks these

    def fit(self, model: StructuredModel[Input, Truth, Output], examples: Sequence[tuple[Input, Truth]]) -> Ensemble:
        """The members' weights after training on `examples`, pairs of input and truth.

        Raises
        ------
        ParameterError
            Where there is no example.
        """
        training = TrainingSet(model, examples)
        optimum = CuttingPlane(self.C, self.epsilon).solve(training).weights
        rng = np.random.default_rng(self.seed)
        reach = PERTURBATION * (float(lengths(optimum)) or 1.0)
        away = reach * directions(rng.standard_normal((self.M, len(optimum))))
        if self.update == "exact":
            return self._exact(training, optimum, away, rng)
        return self._subgradient(training, optimum + away, reach, rng)

    def _exact(
        self, training: TrainingSet[Any, Any, Any], optimum: FloatArray, centres: FloatArray, rng: np.random.Generator
    ) -> Ensemble:
        pool, steps, pull = ConstraintPool(training, self.M), np.full(self.M, LONGEST_STEP), np.zeros_like(centres)
        weights, assigned = optimum + centres, np.zeros((self.M, len(training.examples)))
        for epoch in range(1, self.epochs + 1):
            found = pool.extend(weights, self.epsilon)
            last = assigned
            if self.assignment in ("all", "best") or epoch <= DRAWS:
                assigned = self.assign(pool.hinge_losses(weights), rng)
            weights = pool.solve(centres, self.C * assigned / len(training.examples), self.epsilon / 10)
            before, pull = pull, displacements(weights, self.alpha) - centres
            distance = float(lengths(pull).max() / max(lengths(weights).mean(), 1e-300))
            if not found and distance <= SETTLED and np.array_equal(assigned, last):
                return Ensemble(weights, epoch, converged=True)
            steps = _adapt(steps, pull, before)
            centres = centres + steps[:, None] * pull
        _log.warning(
            "the Coulomb structured SVM stopped at its limit of %d epochs, %.2g of the weights' length from a point of "
            "rest (alpha %g, C %g, assignment %s)", self.epochs, distance, self.alpha, self.C, self.assignment,
        )  # fmt: skip
        return Ensemble(weights, self.epochs, converged=False)

    def _subgradient(
        self, training: TrainingSet[Any, Any, Any], weights: FloatArray, reach: float, rng: np.random.Generator
    ) -> Ensemble:
        n, step, delay = len(training.examples), 0, 0.0
        visits = self.epochs * (n if self.update == "stochastic" else 1)
        total = np.zeros_like(weights)
        for _ in range(self.epochs):
            for batch in rng.permutation(n)[:, None] if self.update == "stochastic" else [np.arange(n)]:
                slope = self._slope(training, weights, batch, rng) + displacements(weights, self.alpha) - weights
                delay = delay or max(1.0, float(lengths(slope).max()) / reach)
                weights = weights + slope / (step + delay)
                step += 1
                if 2 * step > visits:
                    total += weights
        return Ensemble(total / (visits - visits // 2), self.epochs, converged=False)

    def _slope(
        self, training: TrainingSet[Any, Any, Any], weights: FloatArray, batch: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """C times the mean over the batch of sigma_mi a_mi, shape (M, d)."""
        found = [[training.most_violated(example, member) for example in batch] for member in weights]
        pairs = zip(found, weights, strict=True)
        hinges = np.array([[constraint.violation(member) for constraint in row] for row, member in pairs])
        normals = np.array([[constraint.normal for constraint in row] for row in found])
        return np.asarray(self.C / len(batch) * np.einsum("mi,mid->md", self.assign(hinges, rng), normals))

    def assign(self, hinges: FloatArray, rng: np.random.Generator) -> FloatArray:
        """sigma, 0 or 1, for hinge losses, both of shape (M, n)."""
        members, n = hinges.shape
        if self.assignment == "all":
            return np.ones((members, n))
        if self.assignment == "best":
            chosen = hinges.argmin(axis=0)
        elif self.assignment == "stochastic":
            chosen = rng.integers(members, size=n)
        else:
            shares = np.exp(hinges.min(axis=0) - hinges).cumsum(axis=0)
            chosen = (shares <= rng.random(n) * shares[-1]).sum(axis=0)
        return np.asarray(np.arange(members)[:, None] == chosen, dtype=np.float64)


def _adapt(steps: FloatArray, pull: FloatArray, before: FloatArray) -> FloatArray:
    """The centres' steps: half of what they were where the pull has turned and is hardly weaker, else up to 1.2 times.

    At a kink of the hinge losses two members can have the same optimum until their centres have moved far apart.
    """
    swings = (np.einsum("md,md->m", pull, before) < 0) & (lengths(pull) > 0.7 * lengths(before))
    return np.where(swings, steps / 2, np.minimum(LONGEST_STEP, 1.2 * steps))
