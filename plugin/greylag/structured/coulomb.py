"""The Coulomb structured SVM (Schiegg, Diego & Hamprecht 2016): M structured SVMs that repel each other.

    min over w_1, ..., w_M:  sum_m (||w_m||² / 2 + C / n sum_i sigma_mi H_i(w_m)) + alpha E(w_1, ..., w_M)  (eq. 1, 10)

H_i is the hinge loss of example i, E the Coulomb energy of the directions of the weights, and sigma assigns examples
to members. E acts through the displacements G of `greylag.structured.electrostatics`. With a_mi the normal of the
constraint of example i that w_m violates most, the subgradient step of the paper is

    w_m <- w_m + eta ( G_m - w_m + C / n sum_i sigma_mi a_mi ),                                             (eq. 8)

or the same with a single example in place of the mean (eq. 9). The fixed point w_m = G_m + C / n sum_i sigma_mi a_mi is
where w_m is optimal for ||w - G_m||² / 2 in place of ||w||² / 2. The exact update solves that problem.

References
----------
Schiegg, Diego and Hamprecht, Learning diverse models: the Coulomb structured support vector machine, ECCV 2016.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

import numpy as np

from greylag.ranking import FloatArray, IntArray
from greylag.structured.checks import check_choice, check_counts, check_model, check_non_negative
from greylag.structured.constraint_pool import ConstraintPool
from greylag.structured.cutting_plane import CuttingPlane
from greylag.structured.electrostatics import directions, displacements, lengths
from greylag.structured.ensemble import Ensemble
from greylag.structured.model import Input, Output, StructuredModel, TrainingSet, Truth

Assignment = Literal["all", "best", "sampled", "stochastic"]
Update = Literal["exact", "subgradient", "stochastic"]

PERTURBATION = 0.1  # length of the random vectors relative to the single optimum
LONGEST_STEP = 0.5  # of the distance of a centre from G
DRAWS = 10  # epochs after which random assignments are frozen by the exact update
SETTLED = 1e-2  # relative to the mean length of the weights: half a degree

_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class Coulomb:
    """A learner of M diverse members; with M = 1 or alpha = 0, each is the structured SVM.

    Members start from the optimum w* of the structured SVM (`CuttingPlane`) plus a random vector of a tenth of its
    length (of length 0.1 if w* is 0).

    Parameters
    ----------
    M : int >= 1, default 5
        Number of members.
    alpha : float >= 0, default 0.1
        Strength of the repulsion between directions, which have length 1. G is bounded for any alpha, and so are the
        angles between members that learn from the same examples: 45 degrees on average in our experiments.
    C : float > 0, default 1.0
        Weight of the mean hinge loss relative to ||w||² / 2.
    assignment : {"all", "best", "sampled", "stochastic"}, default "all"
        The members that learn from an example (sigma), decided anew in each epoch (section 3.4). The names are those of
        Table 1; their definitions are our interpretation.

        - "all": every member.
        - "best": the member of lowest hinge loss; ties go to the first.
        - "sampled": one member, drawn with probability proportional to exp(-hinge loss).
        - "stochastic": one member, drawn uniformly.
    update : {"exact", "subgradient", "stochastic"}, default "exact"
        How the weights move.

        - "exact": w_m is the optimum for ||w - c_m||² / 2 in place of ||w||² / 2. The centre c_m starts at the random
          vector and moves half the distance to G_m after each epoch, or less if it oscillates. Random assignments are
          frozen after `DRAWS` epochs. Training stops if no constraint is violated by more than epsilon beyond the known
          ones, no assignment changes, and no centre is further from G_m than 0.01 of the mean length of the weights.
        - "subgradient": eq. 8, once per epoch.
        - "stochastic": eq. 9, once for each example in random order per epoch.

        Subgradient steps use eta = 1 / (t + t_0) at step t, with t_0 such that the first step is no longer than the
        random vector. The result is the mean over the second half of the steps (suffix averaging). They always run for
        `epochs`, of which hundreds may be needed, and never report convergence.
    epochs : int >= 1, default 100
        Maximum number of passes over the examples.
    epsilon : float > 0, default 1e-3
        Tolerated violation of a constraint in units of the loss, for the "exact" update and the start.
    seed : int >= 0, default 0
        Seed of the random vectors and assignments.

    Raises
    ------
    ParameterError
        If a parameter is outside its domain.
    """

    M: int = 5
    _: KW_ONLY
    alpha: float = 0.1
    C: float = 1.0
    assignment: Assignment = "all"
    update: Update = "exact"
    epochs: int = 100
    epsilon: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        check_counts(M=self.M, epochs=self.epochs)
        check_non_negative(alpha=self.alpha, seed=self.seed)
        check_choice("assignment", self.assignment, get_args(Assignment))
        check_choice("update", self.update, get_args(Update))
        CuttingPlane(self.C, epsilon=self.epsilon)  # checks these two

    def fit(self, model: StructuredModel[Input, Truth, Output], examples: Sequence[tuple[Input, Truth]]) -> Ensemble:
        """Train the members on pairs of input and truth.

        Raises
        ------
        ParameterError
            If there are no examples, or if the model lacks a method that is needed.
        """
        check_model(model, StructuredModel, self)
        training = TrainingSet(model, examples)
        optimum = CuttingPlane(self.C, epsilon=self.epsilon).solve(training).weights
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
            "the Coulomb structured SVM stopped at its limit of %d epochs, at %.2g of the length of the weights from a "
            "fixed point (alpha %g, C %g, assignment %s)", self.epochs, distance, self.alpha, self.C, self.assignment,
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
        """The assignment sigma, 0 or 1, given hinge losses; both of shape (M, n)."""
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
    """Adapt the steps of the centres: halved if the pull reversed without weakening, else up to 1.2 times as long.

    At a kink of the hinge losses, two members can share an optimum until their centres have moved far apart.
    """
    swings = (np.einsum("md,md->m", pull, before) < 0) & (lengths(pull) > 0.7 * lengths(before))
    return np.where(swings, steps / 2, np.minimum(LONGEST_STEP, 1.2 * steps))
