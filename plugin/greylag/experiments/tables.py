"""Tables of results, for the terminal and for reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from greylag.evaluation import Scores, Significance, aligned

Row = Sequence[str | float | None]


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Parameters
    ----------
    caption : what the numbers are, and over what.
    header : the columns' names.
    rows : cells: text, whole numbers, numbers (shown with `decimals`), or None for an empty one.
    decimals : of the numbers that are not whole by type.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]
    decimals: int = 4


def as_text(table: Table | str) -> str:
    """A table for the terminal, its caption first; text as it is."""
    if isinstance(table, str):
        return table
    rows = [table.header, *([cell_text(value, table.decimals) for value in row] for row in table.rows)]
    return "\n".join([table.caption, *aligned(rows)]) + "\n"


def cell_text(value: str | float | None, decimals: int) -> str:
    """A cell as it is shown."""
    if value is None:
        return ""
    if isinstance(value, float) and 0 < value < 0.5 * 10**-decimals:
        return f"<{10**-decimals:.{decimals}f}"  # a p of 0 would be a false claim
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def means(scores: Mapping[str, Scores]) -> dict[str, dict[str, float]]:
    """Means by system and measure."""
    return {system: found.by_measure for system, found in scores.items()}


def merge_scores(parts: Iterable[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """One mapping of system to measure to score from several, such as those of relevance and of diversity."""
    merged: dict[str, dict[str, float]] = {}
    for part in parts:
        for system, values in part.items():
            merged.setdefault(system, {}).update(values)
    return merged


def means_table(caption: str, scores: Mapping[str, Mapping[str, float]], *, decimals: int = 4) -> Table:
    """A row for each system and a column for each measure; systems may lack measures."""
    measures = list(dict.fromkeys(measure for values in scores.values() for measure in values))
    rows = [(system, *(values.get(measure) for measure in measures)) for system, values in scores.items()]
    return Table(caption, ("", *measures), rows, decimals)


def comparison_table(caption: str, significance: Significance) -> Table:
    """The differences from one baseline: a row for each run and measure."""
    rows = [
        (
            found.run,
            str(found.measure),
            found.difference,
            found.wins,
            found.ties,
            found.losses,
            found.p,
            found.corrected_p,
        )
        for found in significance.comparisons
    ]
    header = ("", "measure", "difference", "better", "equal", "worse", "p", "corrected p")
    return Table(caption, header, rows)
