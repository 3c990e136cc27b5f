"""Random vectors around the structured SVM that are as diverse as a learned ensemble, or fit the training data as well.

Pick-best loss falls with the angle between members and rises with their training loss, whatever the members are. What
learning adds is therefore seen against random members at the same angle, and at the same training loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from greylag import parallel_map
from greylag.evaluation import Scores, compare
from greylag.experiments import Table, comparison_table, means_table
from greylag.structured import ComparingModel, TrainingSet
from greylag_papers.schiegg_2016.methods import EnsembleLearner, Perturbed
from greylag_papers.schiegg_2016.report import LOSS
from greylag_papers.schiegg_2016.trials import Task, Trial, TrialTable, Unit, optimum, run_trial

ANGLE, TRAINING = "random, angle of", "random, training loss of"
SPREADS = (1e-3, 1e2)
"""The range of the distance of random vectors from the structured SVM, relative to its length."""
HALVINGS = 14


def matched_trials(
    model: ComparingModel[Any, Any, Any],
    tasks: Sequence[Task],
    table: TrialTable,
    methods: Sequence[str],
    *,
    n_jobs: int | None = None,
) -> TrialTable:
    """For each method at its largest M and each task, two trials of random vectors that match the chosen ensemble.

    The random vectors surround the structured SVM with the C of the ensemble. Their spread is the largest at which
    their mean angle (`ANGLE`) or mean training loss (`TRAINING`) is not above that of the ensemble.
    """
    chosen = [
        (method, {trial.task: trial for trial in table.chosen(method, table.largest(method))}) for method in methods
    ]
    work = [(task, method, trials[task.name]) for method, trials in chosen for task in tasks]
    pairs = parallel_map(
        lambda match: _match(model, *match), work, what="random vectors", n_jobs=n_jobs, prefer="processes"
    )
    return TrialTable(tuple(trial for pair in pairs for trial in pair))


def _match(model: ComparingModel[Any, Any, Any], task: Task, method: str, trial: Trial) -> list[Trial]:
    C, training = cast(EnsembleLearner, trial.learner).C, TrainingSet(model, task.training)
    start = optimum(model, task, C)

    def angle(spread: float) -> float:
        return Perturbed(trial.M, C, spread).solve(training, start).mean_angle

    def loss(spread: float) -> float:
        return float(Perturbed(trial.M, C, spread).solve(training, start).mean_losses(model, task.training).mean())

    matches = (ANGLE, largest_spread(angle, trial.mean_angle)), (TRAINING, largest_spread(loss, trial.training))
    return [
        run_trial(model, task, f"{name} {method}", trial.M, Perturbed(trial.M, C, spread), start)
        for name, spread in matches
    ]


def largest_spread(quantity: Callable[[float], float], limit: float) -> float:
    """The largest spread in `SPREADS` at which a quantity that grows with it is at most `limit`, by bisection.

    The lower end if the quantity is above the limit everywhere, the upper end if it is nowhere.
    """
    low, high = np.log(SPREADS)
    if quantity(SPREADS[1]) <= limit:
        return SPREADS[1]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if quantity(float(np.exp(middle))) <= limit else (low, middle)
    return float(np.exp(low))


def control_tables(
    table: TrialTable, matched: TrialTable, methods: Sequence[str], where: str, unit: Unit = "example"
) -> list[Table]:
    """Each method at its largest M beside its random vectors, and Wilcoxon's tests of their pick-best losses."""
    rows, tests = {}, []
    for method in methods:
        M, scores = table.largest(method), {}
        for name in (method, f"{ANGLE} {method}", f"{TRAINING} {method}"):
            source = table if name == method else matched
            trials = source.chosen(name, M)
            rows[name] = {
                "angle": float(np.mean([trial.mean_angle for trial in trials])),
                "training": float(np.mean([trial.training for trial in trials])),
                "pick-best": source.score(name, M),
                "mean": source.score(name, M, "mean"),
            }
            scores[name] = Scores.single(LOSS, source.by_unit(name, M, unit))
        tests.append(compare(scores, method, test="wilcoxon"))
    return [
        means_table(f"Random vectors that match in angle or training loss, {where}", rows),
        comparison_table(f"Pick-best loss of matching random vectors, {where}", *tests),
    ]
