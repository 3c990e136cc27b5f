"""Trials of ensembles: every candidate of every method is trained, validated and tested on every task.

These are pure functions for any `ComparingModel`. `run_trials` measures losses; `TrialTable` chooses each method's
candidates by validation and sums up their losses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from greylag import FloatArray, ParameterError, parallel_map
from greylag.evaluation import pick_best
from greylag.structured import ComparingModel, CuttingPlane, TrainingSet
from greylag_papers.schiegg_2016.methods import METHODS, SSVM, EnsembleLearner, EnsembleSettings, Example, candidates

Quantity = Literal["pick-best", "mean"]
Unit = Literal["example", "task"]
QUANTITIES: Mapping[Quantity, Callable[[FloatArray], float]] = {
    "pick-best": lambda ordered: float(ordered[0]),
    "mean": lambda ordered: float(ordered.mean()),
}
"""Summaries of the members' losses on an example, given in ascending order."""


@dataclass(frozen=True, eq=False)
class Task:
    """Examples to train on, to choose parameters on and, by identifier, to test on."""

    name: str
    training: Sequence[Example]
    validation: Sequence[Example]
    test: Mapping[str, Example]


@dataclass(frozen=True, eq=False)
class Trial:
    """One candidate of a method, trained on one task."""

    method: str
    M: int  # number of members
    task: str  # name of the task
    learner: EnsembleLearner | None  # the candidate; None if nothing is learned
    validation: float  # mean pick-best loss on the validation examples
    converged: bool  # whether the learner converged before it reached its limit
    mean_angle: float  # mean angle between two members, in degrees; 0 for one member
    training: float  # mean loss of the members on the training examples; NaN if nothing is learned
    weights: FloatArray | None  # shape (M, d): the members; None if nothing is learned
    ids: tuple[str, ...]  # the n test examples
    losses: FloatArray  # shape (M, n): loss of each member on each test example


def run_trials(
    model: ComparingModel[Any, Any, Any],
    tasks: Sequence[Task],
    settings: EnsembleSettings,
    *,
    methods: Collection[str] = METHODS,
    n_jobs: int | None = None,
) -> list[Trial]:
    """Train every candidate of the methods, for each ensemble size, on every task."""
    by_size = {M: candidates(settings, M) for M in settings.sizes}
    wanted = {(method, 1 if method == SSVM else M): by_size[M][method] for method in methods for M in settings.sizes}
    return run_learners(model, tasks, wanted, n_jobs=n_jobs)


def run_learners(
    model: ComparingModel[Any, Any, Any],
    tasks: Sequence[Task],
    learners: Mapping[tuple[str, int], Sequence[EnsembleLearner]],
    *,
    n_jobs: int | None = None,
) -> list[Trial]:
    """Train the learners of each method and M on every task. The structured SVM is trained once for each task and C."""
    costs = dict.fromkeys(learner.C for found in learners.values() for learner in found)
    pairs = [(i, C) for i in range(len(tasks)) for C in costs]
    starts = parallel_map(
        lambda pair: optimum(model, *pair),
        [(tasks[i], C) for i, C in pairs],
        what="structured SVMs",
        n_jobs=n_jobs,
        prefer="processes",
    )
    optima = dict(zip(pairs, starts, strict=True))
    return list(run_all(model, tasks, learners, optima, n_jobs))


def run_all(
    model: ComparingModel[Any, Any, Any],
    tasks: Sequence[Task],
    learners: Mapping[tuple[str, int], Sequence[EnsembleLearner]],
    optima: Mapping[tuple[int, float], FloatArray],
    n_jobs: int | None,
) -> Iterator[Trial]:
    """Train the learners of each method and M on every task, from the structured SVMs by task and C."""
    work = [
        (task, method, M, learner, optima[i, learner.C])
        for (method, M), found in learners.items()
        for learner in found
        for i, task in enumerate(tasks)
    ]
    return parallel_map(lambda trial: run_trial(model, *trial), work, what="trials", n_jobs=n_jobs, prefer="processes")


def optimum(model: ComparingModel[Any, Any, Any], task: Task, C: float) -> FloatArray:
    """The weights of the structured SVM, from which all ensembles of this C start."""
    with _without_warnings():
        return CuttingPlane(C).fit(model, task.training).weights


def run_trial(
    model: ComparingModel[Any, Any, Any], task: Task, method: str, M: int, learner: EnsembleLearner, start: FloatArray
) -> Trial:
    """Train a learner on a task from the structured SVM's weights, validate it and test it."""
    with _without_warnings():
        ensemble = learner.solve(TrainingSet(model, task.training), start)
    return Trial(
        method,
        M,
        task.name,
        learner,
        pick_best(ensemble.losses(model, task.validation), larger=False).at(1),
        ensemble.converged,
        ensemble.mean_angle,
        float(ensemble.mean_losses(model, task.training).mean()),
        ensemble.weights,
        tuple(task.test),
        ensemble.losses(model, list(task.test.values())),
    )


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence learners that reach their limits; `Trial.converged` counts them."""
    log = logging.getLogger("greylag")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


@dataclass(frozen=True, eq=False)
class TrialTable:
    """Losses by method and number of members M."""

    trials: tuple[Trial, ...]

    def restrict(self, tasks: Collection[str]) -> TrialTable:
        """The trials of some tasks."""
        return TrialTable(tuple(trial for trial in self.trials if trial.task in tasks))

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks, in the order of their first trials."""
        return [*dict.fromkeys(trial.task for trial in self.trials)]

    def chosen(self, method: str, M: int) -> list[Trial]:
        """For each task, the candidate with the lowest validation loss; the first of equal ones."""
        best: dict[str, Trial] = {}
        for trial in self.trials:
            if (trial.method, trial.M) == (method, M):
                best[trial.task] = min(best.get(trial.task, trial), trial, key=lambda found: found.validation)
        if not best:
            raise ParameterError(f"the table has no losses of {method!r} with {M} members")
        return [*best.values()]

    def sizes(self, method: str) -> list[int]:
        """The values of M of a method, ascending."""
        return sorted({trial.M for trial in self.trials if trial.method == method})

    def largest(self, method: str) -> int:
        """The largest M of a method."""
        return self.sizes(method)[-1]

    def ordered(self, method: str, M: int) -> dict[str, FloatArray]:
        """The losses on each test example, ascending, shape (M,); means over the tasks that test the example."""
        rows: dict[str, list[FloatArray]] = {}
        for trial in self.chosen(method, M):
            for example, losses in zip(trial.ids, pick_best(trial.losses, larger=False).ordered, strict=True):
                rows.setdefault(example, []).append(losses)
        return {example: np.mean(losses, axis=0) for example, losses in rows.items()}

    def by_example(self, method: str, M: int, quantity: Quantity = "pick-best") -> dict[str, float]:
        """The lowest or mean loss of the members on each test example."""
        return {example: QUANTITIES[quantity](losses) for example, losses in self.ordered(method, M).items()}

    def by_task(self, method: str, M: int, quantity: Quantity = "pick-best") -> dict[str, float]:
        """The mean over the test examples of each task."""
        return {task: self.restrict([task]).score(method, M, quantity) for task in self.tasks}

    def by_unit(self, method: str, M: int, unit: Unit) -> dict[str, float]:
        """The pick-best loss `by_example` or `by_task`."""
        return self.by_example(method, M) if unit == "example" else self.by_task(method, M)

    def score(self, method: str, M: int, quantity: Quantity = "pick-best") -> float:
        """The mean of `by_example`."""
        return float(np.mean([*self.by_example(method, M, quantity).values()]))

    def scores(self, method: str) -> dict[str, float]:
        """``pick-best@M`` and ``mean@M`` for each M."""
        return {
            f"{quantity}@{M}": self.score(method, M, quantity) for quantity in QUANTITIES for M in self.sizes(method)
        }

    def wins(self, method: str, M: int) -> FloatArray:
        """The shares of test examples on which the members are best, descending, shape (M,); means over the tasks."""
        shares = [np.sort(pick_best(trial.losses, larger=False).wins)[::-1] for trial in self.chosen(method, M)]
        return np.asarray(np.mean(shares, axis=0))
