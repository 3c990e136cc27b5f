"""Tables and figures of ensembles' losses, after Schiegg, Diego & Hamprecht (2016), Figure 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from greylag.evaluation import Family, Measure, Scores, Significance, compare, comparison_rows
from greylag.experiments.report import Figure, Table, draw_figure, line_figure
from greylag.structured import Coulomb
from greylag_papers.schiegg_2016.ensembles import COULOMB, Quantity, TrialTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Row = tuple[str | float | None, ...]
LOSS = Measure(Family("loss", lower_is_better=True))
SSVM = "ssvm"


def size_table(table: TrialTable, methods: Sequence[str], caption: str, quantity: Quantity = "pick-best") -> Table:
    """A row for each method, a column for each number of members."""
    sizes = sorted({M for method in methods for M in table.sizes(method)})
    rows: list[Row] = []
    for method in methods:
        known = table.sizes(method)
        rows.append((method, *(table.score(method, M, quantity) if M in known else None for M in sizes)))
    return Table(caption, ("M", *map(str, sizes)), rows)


def rank_table(table: TrialTable, methods: Sequence[str], caption: str) -> Table:
    """By method, at its largest M: the members' mean angle and loss, then pick-best, the second best, and so on."""
    rows: list[Row] = []
    for method in methods:
        M = table.largest(method)
        angle = float(np.mean([trial.mean_angle for trial in table.chosen(method, M)]))
        ordered = np.mean([*table.ordered(method, M).values()], axis=0)
        rows.append((method, angle if angle else None, float(ordered.mean()), *ordered.tolist()))
    ranks = range(1, max(len(row) for row in rows) - 2)
    rows = [(*row, *[None] * (len(ranks) + 3 - len(row))) for row in rows]
    return Table(caption, ("", "angle", "mean", *map(str, ranks)), rows, 3)


def wins_table(table: TrialTable, methods: Sequence[str], caption: str) -> Table:
    """By method, at its largest M: the members' shares of wins, from the most winning one to the least."""
    shares = {method: table.wins(method, table.largest(method)).tolist() for method in methods}
    columns = range(1, max(map(len, shares.values())) + 1)
    return Table(caption, ("member", *map(str, columns)), [(method, *wins) for method, wins in shares.items()], 3)


def angle_table(table: TrialTable, M: int, caption: str) -> Table:
    """For each assignment and C of `Coulomb`, by alpha: mean angle, pick-best and mean test loss, over all tasks."""
    found: dict[tuple[str, float, float], list[tuple[float, float, float]]] = {}
    for trial in table.trials:
        if isinstance(trial.learner, Coulomb) and trial.M == M:
            key = trial.method, trial.learner.C, trial.learner.alpha
            losses = trial.losses
            found.setdefault(key, []).append((trial.mean_angle, losses.min(axis=0).mean(), losses.mean()))
    rows = [
        (method, f"{C:g}", f"{alpha:g}", *np.mean(values, axis=0).tolist())
        for (method, C, alpha), values in found.items()
    ]
    return Table(caption, ("", "C", "alpha", "mean angle", "pick-best", "mean"), rows)


def limit_table(table: TrialTable, methods: Sequence[str], caption: str) -> Table:
    """By method: how many ensembles were trained, and how many of these stopped at their learner's limit."""
    rows = []
    for method in methods:
        converged = [trial.converged for trial in table.trials if trial.method == method]
        rows.append((method, len(converged), converged.count(False)))
    return Table(caption, ("", "trained", "stopped"), rows)


def compare_methods(
    table: TrialTable, baselines: Sequence[str], methods: Sequence[str], quantity: Quantity
) -> list[Significance]:
    """Methods at their largest M against each of the baselines, by Wilcoxon's test over test examples.

    Parameters
    ----------
    baselines : the first is compared with all of `methods`, the others with the Coulomb structured SVM's only.
    """
    scores = {}
    for method in dict.fromkeys((*baselines, *methods)):
        losses = table.by_example(method, table.largest(method), quantity)
        scores[method] = Scores.single(LOSS, losses)
    tests = []
    for baseline in baselines:
        others = [name for name in methods if name in COULOMB or baseline == baselines[0]]
        tests.append(compare({name: scores[name] for name in (baseline, *others)}, baseline, test="wilcoxon"))
    return tests


def comparison_table(caption: str, tests: Sequence[Significance]) -> Table:
    """Each method against each baseline: difference of the means, and wins, ties and losses of the method."""
    columns = ("run", "baseline", "difference", "wins", "ties", "losses", "p", "corrected_p")
    rows = comparison_rows(tests, columns)
    return Table(caption, ("", "against", "difference", "wins", "ties", "losses", "p", "p, corrected"), rows)


def size_figure(tables: Mapping[str, TrialTable], methods: Sequence[str], caption: str, ylabel: str) -> Figure:
    """Pick-best by M (their Figure 3): a panel for each table, a curve for each method, the SSVM as the level."""
    panels = {
        name: (
            {method: {float(M): table.score(method, M) for M in table.sizes(method)} for method in methods},
            {SSVM: table.score(SSVM, 1)},
        )
        for name, table in tables.items()
    }
    return line_figure(caption, "M", ylabel, panels)


def spread_figure(tables: Mapping[str, TrialTable], methods: Sequence[str], caption: str, ylabel: str) -> Figure:
    """How the losses of all members on all test examples are distributed, by method: quartiles, means, and outliers."""

    def draw(canvas: Canvas) -> None:
        grid = canvas.subplots(1, len(tables), sharey=True, squeeze=False).ravel()
        for axes, (name, table) in zip(grid, tables.items(), strict=True):
            chosen = [table.chosen(method, table.largest(method)) for method in methods]
            losses = [np.concatenate([trial.losses.ravel() for trial in trials]) for trials in chosen]
            axes.boxplot(losses, showmeans=True, flierprops={"markersize": 2})
            axes.set(title=name, xticks=range(1, len(methods) + 1))
            axes.set_xticklabels(methods, rotation=45, horizontalalignment="right")
        canvas.supylabel(ylabel)

    return draw_figure(caption, draw)
