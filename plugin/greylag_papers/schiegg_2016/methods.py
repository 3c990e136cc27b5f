"""The methods that train ensembles, and the candidates for their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Protocol, get_args

import numpy as np
from pydantic import Field

from greylag import ParameterError
from greylag.experiments import Experiment, Positive
from greylag.structured import (
    Assignment,
    ComparingModel,
    Coulomb,
    CuttingPlane,
    Ensemble,
    MultipleChoice,
    Update,
    directions,
    lengths,
)

Example = tuple[Any, Any]
SSVM = "ssvm"
COULOMB = tuple(f"cssvm-{assignment}" for assignment in get_args(Assignment))
METHODS = (SSVM, "perturbed", "mcl", "mcl-perturbed", "divmcl", *COULOMB)


class EnsembleLearner(Protocol):
    """A learner of ensembles, such as `Coulomb` and `MultipleChoice`."""

    def fit(self, model: ComparingModel[Any, Any, Any], examples: Sequence[Example], /) -> Ensemble:
        """Train on pairs of input and truth."""


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

    def fit(self, model: ComparingModel[Any, Any, Any], examples: Sequence[Example], /) -> Ensemble:
        """Train the structured SVM and draw the members."""
        weights = CuttingPlane(self.C).fit(model, examples).weights
        noise = directions(np.random.default_rng(self.seed).standard_normal((self.M, len(weights))))
        return Ensemble(weights + self.spread * lengths(weights) * noise, epochs=0, converged=True)


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
    alphas, diversities, spreads : tuple of float
        Second parameter of `Coulomb`, of `MultipleChoice` as DivMCL and of `Perturbed`; ascending and of equal number.
    seed : int >= 0, default 0
    rounds : int >= 1, default `MultipleChoice.rounds`
        Maximum number of rounds of DivMCL, which seldom converges.
    """

    sizes: Annotated[tuple[Positive, ...], Field(min_length=1)] = tuple(range(1, 11))
    costs: tuple[float, ...]
    ensemble_costs: tuple[float, ...]
    alphas: tuple[float, ...]
    diversities: tuple[float, ...]
    spreads: tuple[float, ...]
    seed: Annotated[int, Field(ge=0)] = 0
    rounds: Positive = MultipleChoice.rounds


def candidates(settings: EnsembleSettings, M: int) -> dict[str, list[EnsembleLearner]]:
    """The candidates of each method for M members; the structured SVM always has one member.

    Raises
    ------
    ParameterError
        If the methods differ in their number of candidates.
    """
    costs, seed = settings.costs, settings.seed

    def grid(values: Sequence[float]) -> list[tuple[float, float]]:
        return list(product(settings.ensemble_costs, values))

    found: dict[str, list[EnsembleLearner]] = {
        SSVM: [Perturbed(1, C, 0.0) for C in costs],
        "perturbed": [Perturbed(M, C, spread, seed) for C, spread in grid(settings.spreads)],
        "mcl": [MultipleChoice(M, C=C, seed=seed) for C in costs],
        "mcl-perturbed": [MultipleChoice(M, C=C, start="perturbed", seed=seed) for C in costs],
        "divmcl": [
            MultipleChoice(M, C=C, diversity=diversity, rounds=settings.rounds, seed=seed)
            for C, diversity in grid(settings.diversities)
        ],
    }
    for assignment in get_args(Assignment):
        update: Update = "subgradient" if assignment == "stochastic" else "exact"  # eq. 9 is a kind of step
        found[f"cssvm-{assignment}"] = [
            Coulomb(M, alpha=alpha, C=C, assignment=assignment, update=update, seed=seed)
            for C, alpha in grid(settings.alphas)
        ]
    if len(set(map(len, found.values()))) > 1:
        counts = ", ".join(f"{method} {len(learners)}" for method, learners in found.items())
        raise ParameterError(f"all methods need the same number of candidates, but there are: {counts}")
    return found
