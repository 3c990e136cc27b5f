"""Methods that train ensembles, and their trials: each candidate is trained, validated and tested on each task.

These are pure functions for any structured model. `run_trials` measures losses; `TrialTable` chooses each method's
candidates by validation and sums up their losses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import Field

from greylag import ParameterError
from greylag.base import FloatArray, parallel_map
from greylag.learning import CuttingPlane, StructuredModel, TrainingSet
from greylag.studies import Experiment, Positive
from greylag_papers.schiegg_2016.coulomb import Coulomb, Update
from greylag_papers.schiegg_2016.coulomb_solvers import Assignment
from greylag_papers.schiegg_2016.electrostatics import directions, lengths
from greylag_papers.schiegg_2016.ensemble import Ensemble
from greylag_papers.schiegg_2016.multiple_choice import MultipleChoice

Example = tuple[Any, Any]
SSVM = "ssvm"
COULOMB = (*(f"cssvm-{assignment}" for assignment in get_args(Assignment)), "cssvm-gradient")
METHODS = (SSVM, "perturbed", "mcl", "mcl-perturbed", "divmcl", *COULOMB)


@dataclass(frozen=True)
class Perturbed:
    """M random weight vectors around the optimum of the structured SVM: the gain of an ensemble by chance alone.

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


EnsembleLearner = Perturbed | MultipleChoice | Coulomb


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
    diversities: tuple[Annotated[float, Field(ge=0)], ...]
    """The diversity of `MultipleChoice` as DivMCL, ascending."""
    spreads: tuple[float, ...]
    """The spread of `Perturbed`, ascending."""
    epochs: Positive = Coulomb.epochs
    """Maximum number of epochs of `Coulomb`."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the learners."""
    rounds: Positive = MultipleChoice.rounds
    """Maximum number of rounds of MCL and DivMCL."""


def candidates(settings: EnsembleSettings, M: int) -> dict[str, list[EnsembleLearner]]:
    """Return the candidates of each method for M members; the structured SVM always has one member."""
    costs, rounds, seed = settings.costs, settings.rounds, settings.seed

    def grid(values: Sequence[float]) -> list[tuple[float, float]]:
        return list(product(settings.ensemble_costs, values))

    by_method: dict[str, list[EnsembleLearner]] = {
        SSVM: [Perturbed(1, C, 0.0) for C in costs],  # an ensemble of one, so that trials need no special case
        "perturbed": [Perturbed(M, C, spread, seed) for C, spread in grid(settings.spreads)],
        "mcl": [MultipleChoice(M, C=C, rounds=rounds, seed=seed) for C in costs],
        "mcl-perturbed": [MultipleChoice(M, C=C, start="perturbed", rounds=rounds, seed=seed) for C in costs],
        "divmcl": [
            MultipleChoice(M, C=C, diversity=diversity, rounds=rounds, seed=seed)
            for C, diversity in grid(settings.diversities)
        ],
    }
    common: Mapping[str, Any] = {"epochs": settings.epochs, "seed": seed}
    for assignment in get_args(Assignment):
        update: Update = "subgradient" if assignment == "stochastic" else "exact"  # eq. 9 is a kind of step
        by_method[f"cssvm-{assignment}"] = [
            Coulomb(M, alpha=alpha, C=C, assignment=assignment, update=update, **common)
            for C, alpha in grid(settings.alphas)
        ]
    by_method["cssvm-gradient"] = [
        Coulomb(M, alpha=alpha, C=C, repulsion="gradient", **common) for C, alpha in grid(settings.gradient_alphas)
    ]
    # The best of more candidates is better by chance: every method chooses among as many.
    if len(set(map(len, by_method.values()))) > 1:
        counts = ", ".join(f"{method} {len(learners)}" for method, learners in by_method.items())
        raise ParameterError(f"all methods need the same number of candidates, but there are: {counts}")
    return by_method


Quantity = Literal["pick-best", "mean", "worst"]
QUANTITIES: Mapping[Quantity, Callable[[FloatArray], float]] = {
    "pick-best": lambda ordered: float(ordered[0]),
    "mean": lambda ordered: float(ordered.mean()),
    "worst": lambda ordered: float(ordered[-1]),
}
"""Summaries of the members' losses on an example, given in ascending order."""


def win_shares(losses: FloatArray) -> FloatArray:
    """Count the share of examples on which each member is best, shape (M,), from losses of shape (M, examples).

    Losses that agree to 12 decimals tie, and ties share an example.
    """
    rounded = np.round(losses, 12)
    best = rounded == rounded.min(axis=0)
    return np.asarray((best / best.sum(axis=0)).mean(axis=1))


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
    fitted: float  # share of the members that predict all training examples without an error; NaN likewise
    weights: FloatArray | None  # shape (M, d): the members; None if nothing is learned
    ids: tuple[str, ...]  # the n test examples
    losses: FloatArray  # shape (M, n): loss of each member on each test example


def run_trials(
    model: StructuredModel[Any, Any, Any],
    tasks: Sequence[Task],
    settings: EnsembleSettings,
    *,
    methods: Collection[str] = METHODS,
    n_jobs: int | None = None,
) -> list[Trial]:
    """Train every candidate of the methods, for each ensemble size, on every task."""
    by_size = {M: candidates(settings, M) for M in settings.sizes}
    learners = {(method, 1 if method == SSVM else M): by_size[M][method] for method in methods for M in settings.sizes}
    # The structured SVM is trained once for each task and C.
    costs = dict.fromkeys(learner.C for method_learners in learners.values() for learner in method_learners)
    pairs = list(product(tasks, costs))
    starts = parallel_map(
        lambda pair: optimum(model, *pair), pairs, what="structured SVMs", n_jobs=n_jobs, prefer="processes"
    )
    optima = dict(zip(pairs, starts, strict=True))
    # All ensembles of a task and C start from one optimum, so that methods differ by what they do after it.
    work = [
        (task, method, M, learner, optima[task, learner.C])
        for (method, M), method_learners in learners.items()
        for learner in method_learners
        for task in tasks
    ]
    trials = parallel_map(
        lambda trial: run_trial(model, *trial), work, what="trials", n_jobs=n_jobs, prefer="processes"
    )
    return list(trials)


def optimum(model: StructuredModel[Any, Any, Any], task: Task, C: float) -> FloatArray:
    """Return the weights of the structured SVM, from which all ensembles of this C start."""
    with _without_warnings():
        return CuttingPlane(C).fit(model, task.training).weights


def run_trial(
    model: StructuredModel[Any, Any, Any], task: Task, method: str, M: int, learner: EnsembleLearner, start: FloatArray
) -> Trial:
    """Train a learner on a task from the structured SVM's weights, validate it and test it."""
    with _without_warnings():
        ensemble = learner.solve(TrainingSet(model, task.training), start)
    trained = ensemble.losses(model, task.training)
    return Trial(
        method,
        M,
        task.name,
        learner,
        float(ensemble.losses(model, task.validation).min(axis=0).mean()),
        ensemble.converged,
        ensemble.mean_angle,
        float(trained.mean()),
        float((trained == 0).all(axis=1).mean()),
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
        """Return the trials of some tasks."""
        return TrialTable(tuple(trial for trial in self.trials if trial.task in tasks))

    def chosen(self, method: str, M: int | None = None) -> list[Trial]:
        """Return each task's candidate of M members with the lowest validation loss; the first of equal ones."""
        # Here and below, M is by default the largest of the method.
        M = self.sizes(method)[-1] if M is None else M
        best: dict[str, Trial] = {}
        for trial in self.trials:
            if (trial.method, trial.M) == (method, M):
                best[trial.task] = min(best.get(trial.task, trial), trial, key=lambda candidate: candidate.validation)
        if not best:
            raise ParameterError(f"the table has no losses of {method!r} with {M} members")
        return [*best.values()]

    def sizes(self, method: str) -> list[int]:
        """Return the values of M of a method, ascending."""
        return sorted({trial.M for trial in self.trials if trial.method == method})

    def ordered(self, method: str, M: int | None = None) -> dict[str, FloatArray]:
        """Return the losses on each test example, ascending, shape (M,); means over the tasks that test the example."""
        rows: dict[str, list[FloatArray]] = {}
        for trial in self.chosen(method, M):
            for example, losses in zip(trial.ids, np.sort(trial.losses.T, axis=1), strict=True):
                rows.setdefault(example, []).append(losses)
        return {example: np.mean(losses, axis=0) for example, losses in rows.items()}

    def by_example(self, method: str, M: int | None = None, quantity: Quantity = "pick-best") -> dict[str, float]:
        """Return the lowest or mean loss of the members on each test example."""
        return {example: QUANTITIES[quantity](losses) for example, losses in self.ordered(method, M).items()}

    def by_task(self, method: str, M: int | None = None, quantity: Quantity = "pick-best") -> dict[str, float]:
        """Return the mean over the test examples of each task."""
        tasks = dict.fromkeys(trial.task for trial in self.trials)
        return {task: self.restrict([task]).score(method, M, quantity) for task in tasks}

    def score(self, method: str, M: int | None = None, quantity: Quantity = "pick-best") -> float:
        """Score the mean of `by_example`."""
        return float(np.mean([*self.by_example(method, M, quantity).values()]))

    def scores(self, method: str) -> dict[str, float]:
        """``pick-best@M``, ``mean@M`` and ``worst@M`` for each M, and ``stopped@M`` where learners did not converge."""
        losses = {
            f"{quantity}@{M}": self.score(method, M, quantity) for quantity in QUANTITIES for M in self.sizes(method)
        }
        stopped = {
            # The share of ensembles that stopped at their learner's limit
            f"stopped@{M}": float(np.mean([not trial.converged for trial in self.chosen(method, M)]))
            for M in self.sizes(method)
        }
        return losses | {name: share for name, share in stopped.items() if share}

    def chosen_learners(self, methods: Collection[str]) -> dict[str, dict[str, str]]:
        """Return, by method and task, the candidate that was chosen at the largest M."""
        return {method: {trial.task: str(trial.learner) for trial in self.chosen(method)} for method in methods}

    def wins(self, method: str, M: int | None = None) -> FloatArray:
        """Return the shares of test examples on which members are best, descending, shape (M,); means over tasks."""
        shares = [np.sort(win_shares(trial.losses))[::-1] for trial in self.chosen(method, M)]
        return np.asarray(np.mean(shares, axis=0))
