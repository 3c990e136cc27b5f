"""Tables and figures of the losses of ensembles, after Figure 3 of Schiegg, Diego & Hamprecht (2016).

Pick-best loss falls with the angle between members and rises with their training loss, whatever the members are. What
learning adds is therefore seen against random vectors of the same angle, and of the same training loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np

from greylag.base import parallel_map
from greylag.evaluation import Figure, line_figure
from greylag.learning import StructuredModel, TrainingSet
from greylag.studies import Table, means_table
from greylag_papers.contrasts import contrasts
from greylag_papers.schiegg_2016.trials import (
    COULOMB,
    QUANTITIES,
    SSVM,
    EnsembleLearner,
    Perturbed,
    Quantity,
    Task,
    Trial,
    TrialTable,
    optimum,
    run_trial,
)


def size_table(table: TrialTable, methods: Sequence[str], caption: str, quantity: Quantity = "pick-best") -> Table:
    """Return a row for each method, a column for each number of members."""
    scores = {method: {str(M): table.score(method, M, quantity) for M in table.sizes(method)} for method in methods}
    return means_table(caption, scores)


def claims(
    table: TrialTable,
    matched: TrialTable,
    methods: Sequence[str],
    others: Sequence[str],
    unit: Literal["example", "task"],
    quantities: Iterable[Quantity] = QUANTITIES,
) -> dict[str, dict[str, float]]:
    """Return `contrasts` of methods at their largest M with others and with matching random vectors, by quantity."""
    rows: dict[str, dict[str, float]] = {}
    by = TrialTable.by_example if unit == "example" else TrialTable.by_task
    for quantity in quantities:
        values = {
            # Sorted by unit: `contrasts` pairs values by their position.
            name: [loss for _, loss in sorted(by(source, name, quantity=quantity).items())]
            for source in (table, matched)
            for name in dict.fromkeys(trial.method for trial in source.trials)
        }
        for method in methods:
            random = [f"{name} {method}" for name in (ANGLE, TRAINING)] if method in COULOMB else []
            pairs = [(method, other) for other in others if other != method]
            # Two families, so that the paper's claims are not corrected for our own controls.
            for family in (pairs, [(method, other) for other in random]):
                rows |= contrasts(values, family, test="wilcoxon", where=f", {quantity}")
    return rows


def size_figure(tables: Mapping[str, TrialTable], methods: Sequence[str], caption: str, ylabel: str) -> Figure:
    """Pick-best loss by M: a panel for each table, a curve for each method, and the structured SVM as a level line."""
    panels = {
        name: (
            {method: {float(M): table.score(method, M) for M in table.sizes(method)} for method in methods},
            {SSVM: table.score(SSVM, 1)},
        )
        for name, table in tables.items()
    }
    return line_figure(caption, "M", ylabel, panels)


ANGLE, TRAINING = "random, angle of", "random, training loss of"
SPREADS = (1e-3, 1e2)
"""The range of the distance of random vectors from the structured SVM, relative to its length."""
HALVINGS = 14


def matched_trials(
    model: StructuredModel[Any, Any, Any],
    tasks: Sequence[Task],
    table: TrialTable,
    methods: Sequence[str],
    *,
    n_jobs: int | None = None,
) -> TrialTable:
    """Draw, per method at its largest M and per task, two trials of random vectors that match the ensemble.

    The random vectors surround the structured SVM with the C of the ensemble. Their spread is the largest at which
    their mean angle (`ANGLE`) or mean training loss (`TRAINING`) is not above that of the ensemble.
    """
    chosen = {(method, trial.task): trial for method in methods for trial in table.chosen(method)}
    work = [(task, method, chosen[method, task.name]) for method in methods for task in tasks]
    pairs = parallel_map(
        lambda match: _match(model, *match), work, what="random vectors", n_jobs=n_jobs, prefer="processes"
    )
    return TrialTable(tuple(trial for pair in pairs for trial in pair))


def _match(model: StructuredModel[Any, Any, Any], task: Task, method: str, trial: Trial) -> list[Trial]:
    C, training = cast(EnsembleLearner, trial.learner).C, TrainingSet(model, task.training)
    start = optimum(model, task, C)

    def angle(spread: float) -> float:
        return Perturbed(trial.M, C, spread).solve(training, start).mean_angle

    def loss(spread: float) -> float:
        return float(Perturbed(trial.M, C, spread).solve(training, start).losses(model, task.training).mean())

    matches = (ANGLE, largest_spread(angle, trial.mean_angle)), (TRAINING, largest_spread(loss, trial.training))
    return [
        run_trial(model, task, f"{name} {method}", trial.M, Perturbed(trial.M, C, spread), start)
        for name, spread in matches
    ]


def largest_spread(quantity: Callable[[float], float], limit: float) -> float:
    """Find by bisection the largest spread in `SPREADS` at which a growing quantity is at most `limit`."""

    # Means that are equal on paper differ in their last bits.
    def matches(spread: float) -> bool:
        return round(quantity(spread), 12) <= round(limit, 12)

    # The lower end if the quantity is above the limit everywhere, the upper end if it is nowhere.
    low, high = np.log(SPREADS)  # bisected by ratios, as the range spans five powers of ten
    if matches(SPREADS[1]):
        return SPREADS[1]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if matches(float(np.exp(middle))) else (low, middle)
    return float(np.exp(low))
