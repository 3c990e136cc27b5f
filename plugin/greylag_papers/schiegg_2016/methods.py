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
from greylag.structured import Assignment, Coulomb, Ensemble, MultipleChoice, TrainingSet, Update, directions, lengths

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
    """

    M: int  # number of members
    C: float  # cost of the structured SVM
    spread: float  # distance of the members from w, relative to ||w||
    seed: int = 0  # seed of u

    def solve(self, training: TrainingSet[Any, Any, Any], optimum: FloatArray) -> Ensemble:
        """Draw the members; weights that must be non-negative are projected."""
        noise = directions(np.random.default_rng(self.seed).standard_normal((self.M, len(optimum))))
        members = training.project(optimum + self.spread * lengths(optimum) * noise)
        return Ensemble(members, epochs=0, converged=True)


class EnsembleSettings(Experiment):
    """Ensemble sizes, and the values that the parameters of each method are chosen from."""

    sizes: Annotated[tuple[Positive, ...], Field(min_length=1)] = tuple(range(1, 11))
    """Numbers of members M, ascending."""
    costs: tuple[float, ...]
    """C of the methods without other parameters, as many as there are pairs for the other methods."""
    ensemble_costs: tuple[float, ...]
    """C of the other methods, each paired with each value of their second parameter."""
    alphas: tuple[float, ...]
    """Alpha of `Coulomb` by displacement, ascending; as many as of the next three."""
    gradient_alphas: tuple[float, ...]
    """Alpha of `Coulomb` by gradient, ascending."""
    diversities: tuple[float, ...]
    """The diversity of `MultipleChoice` as DivMCL, ascending."""
    spreads: tuple[float, ...]
    """The spread of `Perturbed`, ascending."""
    s: Annotated[float, Field(gt=0)] = Coulomb.s
    """Exponent of the Riesz energy; 1 is the paper's."""
    epochs: Positive = Coulomb.epochs
    """Maximum number of epochs of `Coulomb`."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the learners."""
    rounds: Positive = MultipleChoice.rounds
    """Maximum number of rounds of MCL and DivMCL."""


def candidates(settings: EnsembleSettings, M: int) -> dict[str, list[EnsembleLearner]]:
    """The candidates of each method for M members; the structured SVM always has one member."""
    costs, rounds, seed = settings.costs, settings.rounds, settings.seed

    def grid(values: Sequence[float]) -> list[tuple[float, float]]:
        return list(product(settings.ensemble_costs, values))

    by_method: dict[str, list[EnsembleLearner]] = {
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
        by_method[f"cssvm-{assignment}"] = [
            Coulomb(M, alpha=alpha, C=C, assignment=assignment, update=update, **common)
            for C, alpha in grid(settings.alphas)
        ]
    by_method["cssvm-gradient"] = [
        Coulomb(M, alpha=alpha, C=C, repulsion="gradient", **common) for C, alpha in grid(settings.gradient_alphas)
    ]
    if len(set(map(len, by_method.values()))) > 1:
        counts = ", ".join(f"{method} {len(learners)}" for method, learners in by_method.items())
        raise ParameterError(f"all methods need the same number of candidates, but there are: {counts}")
    return by_method
