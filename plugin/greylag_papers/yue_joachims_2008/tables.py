"""Tables of losses, as in Yue & Joachims (2008): their Tables 3 and 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from greylag.evaluation import Scores, Significance, compare, comparison_rows, parse_measure
from greylag.experiments.report import Table
from greylag_papers.yue_joachims_2008.comparison import BASELINES, LossTable

BOUND = "known-subtopics"
LOSS = "weighted subtopic loss"  # as figures' axes name it
METHODS = ("random", *BASELINES)


def loss_scores(table: LossTable, k: int, methods: Sequence[str]) -> dict[str, Scores]:
    """The methods' losses as scores by ``subtopic-loss@k``."""
    measure = parse_measure(f"subtopic-loss@{k}")
    found = {method: table.losses(method, k) for method in methods}
    return {method: Scores.single(measure, losses) for method, losses in found.items()}


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
    rows = comparison_rows([significance], ("run", "losses", "ties", "wins", "p", "corrected_p"))
    against = f"{significance.baseline} against"
    return Table(caption, (against, "wins", "ties", "losses", "p", "p, corrected"), rows)
