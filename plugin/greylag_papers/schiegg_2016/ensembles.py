"""Ensembles of structured models held against each other: from examples to losses, for any `ComparingModel`.

Pure functions, which the studies of the Coulomb structured SVM share. A `Task` says what to train on, to choose by and
to test; `run_trials` trains every candidate of every method; `TrialTable` has each method's chosen candidates' losses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import product
from typing import Annotated, Any, Literal, Protocol, get_args

import numpy as np
from pydantic import Field

from greylag.errors import ParameterError
from greylag.evaluation import pick_best
from greylag.experiments import config
from greylag.ranking import FloatArray
from greylag.structured import (
    Assignment,
    ComparingModel,
    Coulomb,
    CuttingPlane,
    Ensemble,
    MultipleChoice,
    directions,
    lengths,
)

Example = tuple[Any, Any]
Quantity = Literal["pick-best", "mean"]
QUANTITIES: Mapping[Quantity, Callable[[FloatArray], float]] = {
    "pick-best": lambda ordered: float(ordered[0]),
    "mean": lambda ordered: float(ordered.mean()),
}
"""What is made of the members' losses on an example, least first."""


class EnsembleLearner(Protocol):
    """`Coulomb`, `MultipleChoice` and their like."""

    def fit(self, model: ComparingModel[Any, Any, Any], examples: Sequence[Example], /) -> Ensemble:
        """Train on pairs of input and truth."""


@dataclass(frozen=True)
class Perturbed:
    """M random weight vectors around the SSVM's optimum w: what an ensemble gains from chance alone.

    Each is w + spread ||w|| u, u uniform on the unit sphere. M = 1 with no spread is the SSVM.

    Parameters
    ----------
    M : members, >= 1.
    C : of the SSVM.
    spread : >= 0; at 1 a member is as far from w as w from 0.
    seed : of u.
    """

    M: int
    C: float
    spread: float
    seed: int = 0

    def fit(self, model: ComparingModel[Any, Any, Any], examples: Sequence[Example], /) -> Ensemble:
        """Train the SSVM and draw the members."""
        weights = CuttingPlane(self.C).fit(model, examples).weights
        noise = directions(np.random.default_rng(self.seed).standard_normal((self.M, len(weights))))
        return Ensemble(weights + self.spread * lengths(weights) * noise, epochs=0, converged=True)


@dataclass(frozen=True)
class Grid:
    """What each method's parameters are chosen from; all methods have as many candidates.

    Parameters
    ----------
    costs : C of the methods that have no other parameter, as many as there are pairs for the others.
    ensemble_costs : C of the others, each with each of their other parameter's values, which are as many for each.
    alphas, diversities, spreads : of `Coulomb`, of `MultipleChoice` as DivMCL, and of `Perturbed`; ascending.
    seed : of all of them.
    rounds : of `MultipleChoice` as DivMCL, which seldom comes to rest.

    Raises
    ------
    ParameterError
        Where one method has more candidates than another.
    """

    costs: tuple[float, ...]
    ensemble_costs: tuple[float, ...]
    alphas: tuple[float, ...]
    diversities: tuple[float, ...]
    spreads: tuple[float, ...]
    seed: int = 0
    rounds: int = MultipleChoice.rounds

    def __post_init__(self) -> None:
        numbers = {len(self.costs)} | {
            len(self.ensemble_costs) * len(values) for values in (self.alphas, self.diversities, self.spreads)
        }
        if len(numbers) > 1:
            raise ParameterError(f"each method needs as many candidates as any other, not {sorted(numbers)}: {self}")

    def pairs(self, values: tuple[float, ...]) -> list[tuple[float, float]]:
        """Each of the ensembles' C with each of `values`."""
        return list(product(self.ensemble_costs, values))


class EnsembleSettings(config.Experiment):
    """What the studies' experiment files say of ensembles.

    Parameters
    ----------
    sizes : numbers of members M, ascending.
    costs, ensemble_costs, alphas, diversities, spreads, seed, rounds : of `Grid`.
    """

    sizes: Annotated[tuple[config.Positive, ...], Field(min_length=1)] = tuple(range(1, 11))
    costs: tuple[float, ...]
    ensemble_costs: tuple[float, ...]
    alphas: tuple[float, ...]
    diversities: tuple[float, ...]
    spreads: tuple[float, ...]
    seed: Annotated[int, Field(ge=0)] = 0
    rounds: config.Positive = MultipleChoice.rounds

    @property
    def grid(self) -> Grid:
        """What the methods' parameters are chosen from."""
        return Grid(**{field.name: getattr(self, field.name) for field in fields(Grid)})


def _coulomb(assignment: Assignment) -> Callable[[Grid, int], list[EnsembleLearner]]:
    return lambda grid, M: [
        Coulomb(M, alpha=alpha, C=C, assignment=assignment, seed=grid.seed) for C, alpha in grid.pairs(grid.alphas)
    ]


METHODS: Mapping[str, Callable[[Grid, int], list[EnsembleLearner]]] = {
    "ssvm": lambda grid, _: [Perturbed(1, C, 0.0) for C in grid.costs],
    "perturbed": lambda grid, M: [Perturbed(M, C, spread, grid.seed) for C, spread in grid.pairs(grid.spreads)],
    "mcl": lambda grid, M: [MultipleChoice(M, C=C, seed=grid.seed) for C in grid.costs],
    "divmcl": lambda grid, M: [
        MultipleChoice(M, C=C, diversity=diversity, rounds=grid.rounds, seed=grid.seed)
        for C, diversity in grid.pairs(grid.diversities)
    ],
    **{f"cssvm-{assignment}": _coulomb(assignment) for assignment in get_args(Assignment)},
}
"""The methods' candidates, by name, for M members; the SSVM has one, whatever M."""
COULOMB = tuple(name for name in METHODS if name.startswith("cssvm"))


@dataclass(frozen=True, eq=False)
class Task:
    """Examples to train on, to choose by, and, by identifier, to test."""

    name: str
    training: Sequence[Example]
    validation: Sequence[Example]
    test: Mapping[str, Example]


@dataclass(frozen=True, eq=False)
class Trial:
    """One candidate of a method, trained on one task.

    Parameters
    ----------
    method, M, task : a name of `METHODS` (or another), the number of members, the task's name.
    learner : the candidate, None where nothing is learned.
    validation : its pick-best loss on the validation examples.
    converged : False where the learner stopped at its limit.
    mean_angle : degrees between two of its members, on average; 0 where there is one.
    ids : the test examples.
    losses : Delta of each member's prediction for each of them, shape (M, n).
    """

    method: str
    M: int
    task: str
    learner: EnsembleLearner | None
    validation: float
    converged: bool
    mean_angle: float
    ids: tuple[str, ...]
    losses: FloatArray


def run_trials(
    model: ComparingModel[Any, Any, Any],
    tasks: Sequence[Task],
    sizes: Sequence[int],
    grid: Grid,
    *,
    methods: Sequence[str] = tuple(METHODS),
    n_jobs: int = 1,
) -> list[Trial]:
    """Every candidate of every method and size, trained on every task.

    Parameters
    ----------
    sizes : values of M, >= 1; the SSVM has one member only.
    methods : names of `METHODS`.
    n_jobs : processes. The result does not depend on it.
    """
    from joblib import Parallel, delayed

    wanted = [(method, 1 if method == "ssvm" else M) for method in methods for M in sizes]
    candidates = [(method, M, learner) for method, M in dict.fromkeys(wanted) for learner in METHODS[method](grid, M)]
    work = (delayed(run_trial)(model, task, *candidate) for candidate in candidates for task in tasks)
    return list(Parallel(n_jobs=n_jobs)(work))


def run_trial(model: ComparingModel[Any, Any, Any], task: Task, method: str, M: int, learner: EnsembleLearner) -> Trial:
    """`learner`, of `method` and M, trained on a task, validated and tested."""
    with _quiet():
        ensemble = learner.fit(model, task.training)
    validation = pick_best(ensemble.losses(model, task.validation), larger=False).at(1)
    losses = ensemble.losses(model, list(task.test.values()))
    return Trial(
        method, M, task.name, learner, validation, ensemble.converged, ensemble.mean_angle, tuple(task.test), losses
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """No warnings of learners that stop at their limits: a study counts them."""
    log = logging.getLogger("greylag")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


@dataclass(frozen=True, eq=False)
class TrialTable:
    """Losses by method and number of members."""

    trials: tuple[Trial, ...]

    def chosen(self, method: str, M: int) -> list[Trial]:
        """For each task the candidate of least pick-best loss on its validation examples; of equal ones the first.

        Raises
        ------
        ParameterError
            Where the table has none.
        """
        found = [trial for trial in self.trials if (trial.method, trial.M) == (method, M)]
        if not found:
            raise ParameterError(f"the table has no losses of {method!r} with {M} members")
        tasks = dict.fromkeys(trial.task for trial in found)
        return [min((t for t in found if t.task == task), key=lambda t: t.validation) for task in tasks]

    def sizes(self, method: str) -> list[int]:
        """The values of M of a method, ascending."""
        return sorted({trial.M for trial in self.trials if trial.method == method})

    def largest(self, method: str) -> int:
        """The largest M of a method."""
        return self.sizes(method)[-1]

    def ordered(self, method: str, M: int) -> dict[str, FloatArray]:
        """Each test example's losses, least first, shape (M,): means over the tasks that test it."""
        rows: dict[str, list[FloatArray]] = {}
        for trial in self.chosen(method, M):
            for example, losses in zip(trial.ids, pick_best(trial.losses, larger=False).ordered, strict=True):
                rows.setdefault(example, []).append(losses)
        return {example: np.mean(losses, axis=0) for example, losses in rows.items()}

    def by_example(self, method: str, M: int, quantity: Quantity = "pick-best") -> dict[str, float]:
        """Each test example's least loss, or its mean loss over the members."""
        return {example: QUANTITIES[quantity](losses) for example, losses in self.ordered(method, M).items()}

    def score(self, method: str, M: int, quantity: Quantity = "pick-best") -> float:
        """The mean of `by_example`."""
        return float(np.mean([*self.by_example(method, M, quantity).values()]))

    def scores(self, method: str) -> dict[str, float]:
        """``pick-best@M`` and ``mean@M`` at each M."""
        return {
            f"{quantity}@{M}": self.score(method, M, quantity) for quantity in QUANTITIES for M in self.sizes(method)
        }

    def wins(self, method: str, M: int) -> FloatArray:
        """The share of test examples that the members win, from the most winning to the least, shape (M,).

        Members of different tasks have nothing to do with each other; this is the mean over the tasks.
        """
        shares = [np.sort(pick_best(trial.losses, larger=False).wins)[::-1] for trial in self.chosen(method, M)]
        return np.asarray(np.mean(shares, axis=0))
