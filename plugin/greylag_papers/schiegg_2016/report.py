"""Tables and figures of the losses of ensembles, after Figure 3 of Schiegg, Diego & Hamprecht (2016).

Pick-best loss falls with the angle between members and rises with their training loss, whatever the members are. What
learning adds is therefore seen against random vectors of the same angle, and of the same training loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from greylag.learning.structured import Coulomb, StructuredModel, TrainingSet
from greylag.ranking import FloatArray
from greylag.reports import Figure, Panel, line_figure
from greylag.runtime import parallel_map
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
    Unit,
    optimum,
    run_trial,
)


def size_table(table: TrialTable, methods: Sequence[str], caption: str, quantity: Quantity = "pick-best") -> Table:
    """Return a row for each method, a column for each number of members."""
    scores = {method: {str(M): table.score(method, M, quantity) for M in table.sizes(method)} for method in methods}
    return means_table(caption, scores)


def member_tables(table: TrialTable, methods: Sequence[str], where: str) -> list[Table]:
    """Return all members, not only the best ones, at the largest M of each method."""
    several = [method for method in methods if table.largest(method) > 1]
    M = max(map(table.largest, methods))
    return [
        size_table(table, several, f"Mean loss of the members by M, {where}", "mean"),
        rank_table(table, methods, f"Mean and ordered losses and angle in degrees, M = {M}, {where}"),
        wins_table(table, several, f"Shares of wins, M = {M}, {where}"),
        angle_table(table, M, f"Angle in degrees and loss by C and alpha, M = {M}, {where}"),
    ]


def rank_table(table: TrialTable, methods: Sequence[str], caption: str) -> Table:
    """Tabulate mean and ordered losses, mean angle and mean training loss, for each method at its largest M."""
    rows: dict[str, dict[str, float]] = {}
    for method in methods:
        ordered = np.mean([*table.ordered(method).values()], axis=0)
        rows[method] = {"mean": float(ordered.mean()), **_by_rank(ordered)}
        if angle := float(np.mean([trial.mean_angle for trial in table.chosen(method)])):
            rows[method]["angle"] = angle
        if np.isfinite(training := float(np.mean([trial.training for trial in table.chosen(method)]))):
            rows[method]["training"] = training
    return means_table(caption, rows, decimals=3)


def wins_table(table: TrialTable, methods: Sequence[str], caption: str) -> Table:
    """Tabulate the members' shares of wins, descending, for each method at its largest M."""
    shares = {method: _by_rank(table.wins(method)) for method in methods}
    return means_table(caption, shares, decimals=3)


def _by_rank(values: FloatArray) -> dict[str, float]:
    return {str(rank): value for rank, value in enumerate(values.tolist(), 1)}


def angle_table(table: TrialTable, M: int, caption: str) -> Table:
    """Tabulate angle, training loss, pick-best and mean test loss by assignment, C and alpha of `Coulomb`."""
    by_parameters: dict[tuple[str, float, float], list[tuple[float, ...]]] = {}
    for trial in table.trials:
        if isinstance(trial.learner, Coulomb) and trial.M == M:
            key = trial.method, trial.learner.C, trial.learner.alpha
            losses = trial.losses
            values = trial.mean_angle, trial.training, losses.min(axis=0).mean(), losses.mean()
            by_parameters.setdefault(key, []).append(values)
    rows = [
        (method, f"{C:g}", f"{alpha:g}", *np.mean(values, axis=0).tolist())
        for (method, C, alpha), values in by_parameters.items()
    ]
    return Table(caption, ("", "C", "alpha", "mean angle", "training", "pick-best", "mean"), rows)


def claims(
    table: TrialTable,
    matched: TrialTable,
    methods: Sequence[str],
    others: Sequence[str],
    unit: Unit,
    quantities: Iterable[Quantity] = QUANTITIES,
) -> dict[str, dict[str, float]]:
    """Return `contrasts` of methods at their largest M with others and with matching random vectors, by quantity."""
    rows: dict[str, dict[str, float]] = {}
    for quantity in quantities:
        values = {
            # Sorted by unit: `contrasts` pairs values by their position.
            name: [loss for _, loss in sorted(source.by_unit(name, unit, quantity).items())]
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


def histogram_figure(
    tables: Mapping[str, TrialTable], methods: Sequence[str], M: int, caption: str, xlabel: str
) -> Figure:
    """Draw shares of the losses of all M members on all test examples, by middle of a bin, a panel for each table."""
    bins = np.linspace(0, 1, 21)
    middles = (0.5 * (bins[1:] + bins[:-1])).round(3).tolist()
    panels: dict[str, Panel] = {}
    for name, table in tables.items():
        losses = {m: np.concatenate([trial.losses.ravel() for trial in table.chosen(m, M)]) for m in methods}
        counts = {method: np.histogram(values, bins)[0] for method, values in losses.items()}
        shares = {method: (count / count.sum()).tolist() for method, count in counts.items()}
        panels[name] = {method: dict(zip(middles, share, strict=True)) for method, share in shares.items()}, {}
    return line_figure(caption, xlabel, "share of members and images", panels)


def error_bar_figure(table: TrialTable, methods: Sequence[str], caption: str, ylabel: str) -> Figure:
    """Draw mean and standard deviation over tasks of the pick-best test loss by M."""
    by_task = {method: {M: [*table.by_task(method, M).values()] for M in table.sizes(method)} for method in methods}
    curves = {method: {M: float(np.mean(losses)) for M, losses in of.items()} for method, of in by_task.items()}
    bars = {method: {M: float(np.std(losses, ddof=1)) for M, losses in of.items()} for method, of in by_task.items()}
    return line_figure(caption, "M", ylabel, {"": (curves, {})}, deviations={"": bars})


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
    # The lower end if the quantity is above the limit everywhere, the upper end if it is nowhere.
    low, high = np.log(SPREADS)  # bisected by ratios, as the range spans five powers of ten
    if quantity(SPREADS[1]) <= limit:
        return SPREADS[1]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if quantity(float(np.exp(middle))) <= limit else (low, middle)
    return float(np.exp(low))


def control_table(table: TrialTable, matched: TrialTable, methods: Sequence[str], where: str) -> Table:
    """Return each method at its largest M beside its random vectors."""
    rows: dict[str, dict[str, float]] = {}
    for method in methods:
        for name in (method, f"{ANGLE} {method}", f"{TRAINING} {method}"):
            source = table if name == method else matched
            trials = source.chosen(name)
            rows[name] = {
                "angle": float(np.mean([trial.mean_angle for trial in trials])),
                "training": float(np.mean([trial.training for trial in trials])),
                "pick-best": source.score(name),
                "mean": source.score(name, quantity="mean"),
            }
    return means_table(f"Random vectors that match in angle or training loss, {where}", rows)
