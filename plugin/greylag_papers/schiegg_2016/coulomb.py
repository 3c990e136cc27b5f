"""The Coulomb structured SVM (Schiegg, Diego & Hamprecht 2016): M structured SVMs that repel each other.

    min over w_1, ..., w_M:  alpha E_s(w_1, ..., w_M) + sum_m (||w_m||² / 2 + C mean over i of H_i(w_m))         (eq. 1)

H_i is the hinge loss of example i, E_s the Riesz energy of the directions of the weights (eq. 3; section 3.2 sets s to
1), and the mean is over the examples that are assigned to member m (eq. 10). Eq. 1 also divides the risk by M, which
the steps of eq. 8 do not. With a_mi the normal of the constraint of example i that w_m violates most, the subgradient
step is

    w_m <- w_m + eta (T_m - w_m + C mean over i of a_mi),                                                    (eq. 8, 10)

or the same with one random example for each member instead of the mean (eq. 9). T is the effect of the repulsion. The
paper replaces minus the gradient of alpha E_s by a displacement of the weights along their spheres (eq. 6, Figure 2).
A fixed point w_m = T_m + C mean a_mi is optimal for ||w - T_m||² / 2 instead of ||w||² / 2.

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

from greylag import ParameterError
from greylag.base import FloatArray
from greylag.learning import CuttingPlane, StructuredModel, TrainingSet
from greylag_papers.schiegg_2016.coulomb_solvers import Assignment, CoulombProblem, Repulsion, descend, relax, walk
from greylag_papers.schiegg_2016.electrostatics import lengths
from greylag_papers.schiegg_2016.ensemble import Ensemble, perturbations

Update = Literal["exact", "subgradient"]

MIN_ANGLE = 0.1  # degrees
MAX_EXPONENT = 1e100

_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class Coulomb:
    """Learn an ensemble of structured SVMs that repel each other.

    With M = 1, or with alpha = 0 and all examples, each member is the structured SVM. Members start from
    the optimum w* of the structured SVM (`CuttingPlane`) plus a random vector of a tenth of its length (of length 0.1
    if w* is 0).

    Parameters
    ----------
    M : int >= 1, default 5
        Number of members.
    alpha : float >= 0, default 0.1
        Strength of the repulsion.
    C : float > 0, default 1.0
        Weight of the mean hinge loss of a member over its examples relative to ||w||² / 2.
    s : float > 0, default 1.0
        Exponent of the Riesz energy, the sum over pairs of ||u_m - u_k||^-s (eq. 3). 1 is the Coulomb energy of the
        paper; larger exponents repel close members more and distant ones less.
    repulsion : {"displacement", "gradient"}, default "displacement"
        T, with u_m the direction of w_m, F_m the force on it (eq. 4), and P(v) = v / ||v||.

        - "displacement": ||w_m|| (P(u_m + alpha F_m) - u_m), the paper's (eq. 6, Figure 2). It is bounded for any
          alpha, and so are the angles between members that learn from the same examples: about 45 degrees on average
          in our experiments, but next to 0 where C is so large that the structured SVM has many active constraints,
          which hold all members: a warning says so. It is not a gradient, and no objective is tracked.
        - "gradient": (alpha / ||w_m||) (I - u_m u_m') F_m, minus the gradient of alpha E_s (eq. 1). It is not bounded;
          useful values of alpha grow with the squared length of the weights. If it outweighs the risk, the lengths of
          the weights go to 0, where eq. 1 has no minimum.
    assignment : {"all", "best", "sampled", "stochastic"}, default "all"
        The members that learn from an example, decided after each step or epoch by the task losses of their predictions
        (section 3.4, Table 1). The cost of a member is C times the mean over its own examples. A member without
        examples is only repelled; its length does not change.

        - "all": every member.
        - "best": the member of lowest loss. Ties are drawn at random, but an example stays with its member while no
          other has a lower loss.
        - "sampled": one member, drawn with probabilities q that fall with the member's share of the sum of losses.
        - "stochastic": every member, but each takes its steps on an example that it draws for itself (eq. 9).
    update : {"exact", "subgradient"}, default "exact"
        How the weights move.

        - "exact": to the point where the mean step vanishes. "sampled" has the expected costs of a step in which the
          member learns, and its repulsion is divided by the share of such steps, with q the mean over the epochs so
          far; "stochastic" equals "all". "best" is frozen after half the epochs, where the paper's steps may go on
          changing it. Training stops if the duality gap is at most epsilon times the objective, no share of an example
          changes by more than 0.01, and no member is further from being optimal around T_m than 0.01 of the mean length
          of the weights.
        - "subgradient": the paper's steps, one in each epoch, or n for "stochastic", with new draws at each step. The
          result is the mean over the second half of the steps. They always run for `epochs`, which may have to be
          hundreds, and never report convergence.
    epochs : int >= 1, default 100
        Maximum number of passes over the examples.
    epsilon : float > 0, default 1e-3
        Tolerated duality gap, relative to the objective, for the "exact" update and the start.
    seed : int >= 0, default 0
        Seed of the random vectors and assignments.
    """

    M: int = 5
    _: KW_ONLY
    alpha: float = 0.1
    C: float = 1.0
    s: float = 1.0
    repulsion: Repulsion = "displacement"
    assignment: Assignment = "all"
    update: Update = "exact"
    epochs: int = 100
    epsilon: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        CuttingPlane(self.C, epsilon=self.epsilon)  # checks both
        for name in ("M", "epochs"):
            self._check(name, getattr(self, name) >= 1, "an integer of at least 1")
        for name in ("alpha", "seed"):
            self._check(name, 0 <= getattr(self, name) < np.inf, "a finite number of at least 0")
        self._check("s", 0 < self.s <= MAX_EXPONENT, f"a number above 0 and at most {MAX_EXPONENT:g}")
        for name, kind in (("repulsion", Repulsion), ("assignment", Assignment), ("update", Update)):
            choices = get_args(kind)
            self._check(name, getattr(self, name) in choices, f"one of {', '.join(choices)}")

    def _check(self, name: str, met: bool, domain: str) -> None:
        """Refuse a parameter outside its domain."""
        if not met:
            raise ParameterError(f"{name} must be {domain}, not {getattr(self, name)!r}")

    def fit(self, model: StructuredModel[Any, Any, Any], examples: Sequence[tuple[Any, Any]]) -> Ensemble:
        """Train the members on pairs of input and truth."""
        training = TrainingSet(model, examples)
        return self.solve(training, CuttingPlane(self.C, epsilon=self.epsilon).solve(training).weights)

    def solve(self, training: TrainingSet[Any, Any, Any], optimum: FloatArray) -> Ensemble:
        """Train the members from w*, the optimum for the same C, which may be shared with other learners."""
        rng = np.random.default_rng(self.seed)
        away = perturbations(optimum, self.M, rng)
        start = training.project(optimum + away)
        problem = CoulombProblem(
            training, self.C, self.alpha, self.s, self.repulsion, self.assignment, self.epochs, self.epsilon
        )
        if self.update == "subgradient":
            return walk(problem, start, float(lengths(away).max()), rng)
        ensemble = descend(problem, start, rng) if self.repulsion == "gradient" else relax(problem, start, away, rng)
        if self.alpha and self.M > 1 and ensemble.mean_angle < MIN_ANGLE:
            _log.warning(
                "the members of the Coulomb structured SVM coincide (mean angle %.2g degrees, alpha %g, C %g, "
                "repulsion %s): the repulsion does not outweigh the constraints; lower C, or use repulsion gradient",
                ensemble.mean_angle, self.alpha, self.C, self.repulsion,
            )  # fmt: skip
        if not ensemble.converged:
            _log.warning(
                "the Coulomb structured SVM stopped at its limit of %d epochs before it converged (alpha %g, C %g, "
                "repulsion %s, assignment %s): raise epochs or lower alpha",
                self.epochs, self.alpha, self.C, self.repulsion, self.assignment,
            )  # fmt: skip
        return ensemble
