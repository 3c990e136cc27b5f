"""Tables and figures of losses, as in Yue & Joachims (2008): their Tables 3 and 4, and Figures 2 to 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from greylag.evaluation import Scores, Significance, compare, parse_measure
from greylag.experiments.report import Figure, Table, draw_figure
from greylag.experiments.svmdiv import BASELINES, LossTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

BOUND = "known-subtopics"
METHODS = ("random", *BASELINES)


def loss_scores(table: LossTable, k: int, methods: Sequence[str]) -> dict[str, Scores]:
    """The methods' losses as scores by ``subtopic-loss@k``."""
    measure = parse_measure(f"subtopic-loss@{k}")
    found = {method: table.losses(method, k) for method in methods}
    return {
        method: Scores((measure,), tuple(losses), np.array([*losses.values()])[:, None], (), ())
        for method, losses in found.items()
    }


def loss_table(tables: Mapping[str, LossTable], k: int, methods: Sequence[str]) -> Table:
    """Mean losses (Table 3): a row for each method, a column for each of `tables`."""
    rows: list[tuple[str | float, ...]] = [
        (method, *(table.mean(method, k) for table in tables.values())) for method in methods
    ]
    return Table(f"Mean weighted subtopic loss of {k} documents", ("", *tables), rows)


def compare_losses(table: LossTable, k: int, learned: str, methods: Sequence[str]) -> Significance:
    """Each method but the bound against `learned`, by Wilcoxon's test."""
    others = [method for method in methods if method not in (learned, BOUND)]
    return compare(loss_scores(table, k, [learned, *others]), learned, test="wilcoxon")


def comparison_table(caption: str, significance: Significance) -> Table:
    """Wins, ties and losses of what is learned against each other method (Table 4)."""
    rows = [
        (found.run, found.losses, found.ties, found.wins, found.p, found.corrected_p)
        for found in significance.comparisons
    ]
    against = f"{significance.baseline} against"
    return Table(caption, (against, "wins", "ties", "losses", "p", "p, corrected"), rows)


def line_figure(
    caption: str,
    xlabel: str,
    panels: Mapping[str, tuple[Mapping[str, Mapping[float, float]], Mapping[str, float]]],
    *,
    log: bool = False,
) -> Figure:
    """A panel by name, each with curves (x to mean loss) and level lines, by name."""

    def draw(canvas: Canvas) -> None:
        grid = canvas.subplots(1, len(panels), sharey=True, squeeze=False).ravel()
        for axes, (name, (curves, levels)) in zip(grid, panels.items(), strict=True):
            for curve, points in curves.items():
                axes.plot(list(points), list(points.values()), "-o", markersize=3, label=curve)
            for style, (level, value) in zip(("--", ":", "-."), levels.items(), strict=False):
                axes.axhline(value, color="0.5", linewidth=0.8, linestyle=style, label=level)
            axes.set(title=name, xlabel=xlabel, xscale="log" if log else "linear")
            axes.legend(fontsize="small")
        canvas.supylabel("weighted subtopic loss")

    return draw_figure(caption, draw)
