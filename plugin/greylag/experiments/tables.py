"""Tables of results, for the terminal and for reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from greylag.evaluation import SIGNIFICANCE_LEVEL, Comparison, Scores, Significance, aligned

Row = Sequence[str | float | None]


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Parameters
    ----------
    caption : str
    header : sequence of str
        Names of the columns.
    rows : sequence of sequence of str, int, float or None
        Cells; None leaves a cell empty.
    decimals : int, default 4
        Decimals of floats. Integers have none.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Row]
    decimals: int = 4


def as_text(table: Table | str) -> str:
    """Format a table for the terminal, below its caption; text is returned unchanged."""
    if isinstance(table, str):
        return table
    rows = [table.header, *([cell_text(value, table.decimals) for value in row] for row in table.rows)]
    return "\n".join([table.caption, *aligned(rows)]) + "\n"


def cell_text(value: str | float | None, decimals: int) -> str:
    """Format a cell; a positive number that rounds to 0 is shown as a bound, such as <0.0001."""
    if value is None:
        return ""
    if isinstance(value, float) and 0 < value < 0.5 * 10**-decimals:
        return f"<{10**-decimals:.{decimals}f}"
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def means(scores: Mapping[str, Scores]) -> dict[str, dict[str, float]]:
    """Means by system and measure."""
    return {system: found.by_measure for system, found in scores.items()}


def merge_scores(parts: Iterable[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Merge mappings of system to measure to score, such as those of relevance and of diversity."""
    merged: dict[str, dict[str, float]] = {}
    for part in parts:
        for system, values in part.items():
            merged.setdefault(system, {}).update(values)
    return merged


def means_table(caption: str, scores: Mapping[str, Mapping[str, float]], *, decimals: int = 4) -> Table:
    """A table with a row for each system and a column for each measure. Systems may lack measures."""
    measures = list(dict.fromkeys(measure for values in scores.values() for measure in values))
    rows = [(system, *(values.get(measure) for measure in measures)) for system, values in scores.items()]
    return Table(caption, ("", *measures), rows, decimals)


def comparison_table(caption: str, *significances: Significance) -> Table:
    """The differences from one or more baselines: a row for each baseline, run and measure.

    A star marks a corrected p below `SIGNIFICANCE_LEVEL`. Counts are of queries.
    """
    header = ("", "against", "measure", "difference", "corrected p", "better", "equal", "worse", "p")
    rows = [
        (c.run, test.baseline, str(c.measure), _starred(c), c.corrected_p, c.wins, c.ties, c.losses, c.p)
        for test in significances
        for c in test.comparisons
    ]
    return Table(f"{caption} (* corrected p < {SIGNIFICANCE_LEVEL})", header, rows)


def _starred(comparison: Comparison) -> str:
    return f"{comparison.difference:+.4f}{'*' if comparison.corrected_p < SIGNIFICANCE_LEVEL else ''}"
