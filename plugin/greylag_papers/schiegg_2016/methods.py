"""The methods that train ensembles, and the candidates for their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Protocol, get_args

import numpy as np
from pydantic import Field

from greylag import FloatArray, ParameterError
from greylag.experiments import Experiment, Positive
from greylag.structured import (
    Assignment,
    Coulomb,
    Ensemble,
    MultipleChoice,
    TrainingSet,
    Update,
    directions,
    lengths,
)

Example = tuple[Any, Any]
SSVM = "ssvm"
COULOMB = (*(f"cssvm-{assignment}" for assignment in get_args(Assignment)), "cssvm-gradient")
METHODS = (SSVM, "perturbed", "mcl", "mcl-perturbed", "divmcl", *COULOMB)


class EnsembleLearner(Protocol):
    """A learner of ensembles that starts from the structured SVM, such as `Coulomb` and `MultipleChoice`."""

    @property
    def C(self) -> float:  # noqa: N802
        """The cost of the structured SVM."""

    def solve(self, training: TrainingSet[Any, Any, Any], optimum: FloatArray, /) -> Ensemble:
        """Train from the weights of the structured SVM."""


@dataclass(frozen=True)
class Perturbed:
    """M random weight vectors around the optimum of the structured SVM: what an ensemble gains by chance alone.

    Each one is w + spread ||w|| u, where w is the optimum and u is uniform on the unit sphere. M = 1 and spread = 0
    give the structured SVM.

    Parameters
    ----------
    M : int >= 1
        Number of members.
    C : float > 0
        Cost of the structured SVM.
    spread : float >= 0
        Distance of the members from w, relative to ||w||.
    seed : int >= 0, default 0
        Seed of u.
    """

    M: int
    C: float
    spread: float
    seed: int = 0

    def solve(self, training: TrainingSet[Any, Any, Any], optimum: FloatArray) -> Ensemble:
        """Draw the members; weights that must be non-negative are projected."""
        noise = directions(np.random.default_rng(self.seed).standard_normal((self.M, len(optimum))))
        members = training.project(optimum + self.spread * lengths(optimum) * noise)
        return Ensemble(members, epochs=0, converged=True)


class EnsembleSettings(Experiment):
    """Ensemble sizes, and the values that the parameters of each method are chosen from.

    Parameters
    ----------
    sizes : tuple of int >= 1, default 1 to 10
        Numbers of members M, ascending.
    costs : tuple of float > 0
        C of the methods without other parameters, as many as there are pairs for the other methods.
    ensemble_costs : tuple of float > 0
        C of the other methods, each paired with each value of their second parameter.
    alphas, gradient_alphas, diversities, spreads : tuple of float
        Second parameter of `Coulomb` by displacement and by gradient, of `MultipleChoice` as DivMCL and of
        `Perturbed`; ascending and of equal number.
    s : float > 0, default 1
        Exponent of the Riesz energy; 1 is the paper's.
    epochs : int >= 1, default `Coulomb.epochs`
        Maximum number of epochs of `Coulomb`.
    seed : int >= 0, default 0
    rounds : int >= 1, default `MultipleChoice.rounds`
        Maximum number of rounds of MCL and DivMCL.
    """

    sizes: Annotated[tuple[Positive, ...], Field(min_length=1)] = tuple(range(1, 11))
    costs: tuple[float, ...]
    ensemble_costs: tuple[float, ...]
    alphas: tuple[float, ...]
    gradient_alphas: tuple[float, ...]
    diversities: tuple[float, ...]
    spreads: tuple[float, ...]
    s: Annotated[float, Field(gt=0)] = Coulomb.s
    epochs: Positive = Coulomb.epochs
    seed: Annotated[int, Field(ge=0)] = 0
    rounds: Positive = MultipleChoice.rounds


def candidates(settings: EnsembleSettings, M: int) -> dict[str, list[EnsembleLearner]]:
    """The candidates of each method for M members; the structured SVM always has one member.

    Raises
    ------
    ParameterError
        If the methods differ in their number of candidates.
    """
    costs, rounds, seed = settings.costs, settings.rounds, settings.seed

    def grid(values: Sequence[float]) -> list[tuple[float, float]]:
        return list(product(settings.ensemble_costs, values))

    found: dict[str, list[EnsembleLearner]] = {
        SSVM: [Perturbed(1, C, 0.0) for C in costs],
        "perturbed": [Perturbed(M, C, spread, seed) for C, spread in grid(settings.spreads)],
        "mcl": [MultipleChoice(M, C=C, rounds=rounds, seed=seed) for C in costs],
        "mcl-perturbed": [MultipleChoice(M, C=C, start="perturbed", rounds=rounds, seed=seed) for C in costs],
        "divmcl": [
            MultipleChoice(M, C=C, diversity=diversity, rounds=rounds, seed=seed)
            for C, diversity in grid(settings.diversities)
        ],
    }
    common: Mapping[str, Any] = {"s": settings.s, "epochs": settings.epochs, "seed": seed}
    for assignment in get_args(Assignment):
        update: Update = "subgradient" if assignment == "stochastic" else "exact"  # eq. 9 is a kind of step
        found[f"cssvm-{assignment}"] = [
            Coulomb(M, alpha=alpha, C=C, assignment=assignment, update=update, **common)
            for C, alpha in grid(settings.alphas)
        ]
    found["cssvm-gradient"] = [
        Coulomb(M, alpha=alpha, C=C, repulsion="gradient", **common) for C, alpha in grid(settings.gradient_alphas)
    ]
    if len(set(map(len, found.values()))) > 1:
        counts = ", ".join(f"{method} {len(learners)}" for method, learners in found.items())
        raise ParameterError(f"all methods need the same number of candidates, but there are: {counts}")
    return found
