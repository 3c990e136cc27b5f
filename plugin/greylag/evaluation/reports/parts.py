"""Tables of several collections or categories: a row for each run and measure, a column for each of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from greylag.base import Marked, ParameterError, Row, Table
from greylag.evaluation.reports.names import short_names
from greylag.evaluation.reports.scores import (
    baseline_letters,
    marks_notes,
    means_column,
    means_columns,
    notes,
    ranked,
    spans_note,
)
from greylag.evaluation.scoring.measures import Measure
from greylag.evaluation.scoring.scores import Scores
from greylag.evaluation.scoring.significance import EXACT_NOTE, MIN_TOPICS_OF_T, Comparison, Significance, marked_p

Tested = Mapping[str, tuple[Mapping[str, Scores], Significance | None]]
"""By collection, scores by run with their tests; all have the same runs and measures."""


def check_part_names(what: str, names: Iterable[str]) -> None:
    """Raise `ParameterError` for a name that another column of tables has, or all topics of a gate."""
    if taken := [name for name in names if name in ("run", "against", "measure", "mean", "collection", "all")]:
        raise ParameterError(f"a {what} is named {taken[0]!r}, as columns or all topics are: give it another name")


def runs_and_measures(tested: Tested) -> tuple[list[str], tuple[Measure, ...]]:
    """Return the runs and measures, in the order of the first collection."""
    scores, _ = next(iter(tested.values()))
    return list(scores), next(iter(scores.values())).measures


def joint_means(tested: Tested) -> Table:
    """Tabulate means with their marks, and the mean of them over collections."""
    runs, measures = runs_and_measures(tested)
    columns = _columns(tested)
    rows: list[Row] = [(run, str(m), *(column[run] for column in columns[m])) for m in measures for run in runs]
    lines = [f"{name}: {line}" for name, (scores, _) in tested.items() for line in notes(scores)]
    lines.append("Column mean: the mean over collections, each with the same weight.")
    lines += marks_notes(runs, next(tests for _, tests in tested.values()))
    lines += spans_note(chain.from_iterable(columns.values()))
    return Table("\n".join(lines), ("run", "measure", *tested, "mean"), rows)


def paper_table(tested: Tested) -> Table:
    """Make the table of a paper, of measures or, with a heading for each of these, of several collections."""
    runs, measures = runs_and_measures(tested)
    scores, tests = next(iter(tested.values()))
    columns, labels = _columns(tested, signed=True), short_names(runs)
    order = [*ranked(scores)] if tests and tests.all_pairs and len(tested) == 1 else runs
    if len(tested) == 1:
        rows: list[Row] = [(labels[run], *(columns[measure][0][run] for measure in measures)) for run in order]
        return Table(notes(scores)[0], ("run", *map(str, measures)), rows)
    rows = []
    for measure in measures:
        rows += [(str(measure),)] if len(measures) > 1 else []
        rows += [(labels[run], *(column[run] for column in columns[measure])) for run in runs]
    caption = "Means over judged queries" + (f" of {measures[0]}" if len(measures) == 1 else "")
    return Table(f"{caption}; the last column is the mean over collections.", ("run", *tested, "mean"), rows)


def paper_note(tested: Tested) -> str:
    """Say what bold numbers and signs mean."""
    scores, tests = next(iter(tested.values()))
    note = " ".join(["Best in bold.", *(line for line in notes(scores) if line.startswith("Lower"))])
    if tests is None:
        return note
    spans = spans_note(chain.from_iterable(_columns(tested).values()))
    signs = " ".join(["Runs without a common letter differ significantly.", *spans])
    if not tests.all_pairs:
        names, letters = short_names(scores), baseline_letters(tests)
        better = ", ".join(names[baseline] for baseline in letters)
        signs = f"Raised {', '.join(letters.values())}: significantly better than {better}; lowered: worse."
    return f"{note} {signs} {tests.method.replace('; * below', ', below')}"


def _columns(tested: Tested, *, signed: bool = False) -> dict[Measure, list[dict[str, Marked]]]:
    """Return columns of means by run, by measure: one of each collection, and the mean over them."""
    runs, measures = runs_and_measures(tested)
    by_part = [means_columns(scores, tests, signed=signed) for scores, tests in tested.values()]
    by_measure = {measure: [columns[place] for columns in by_part] for place, measure in enumerate(measures)}
    for measure, columns in by_measure.items():
        over = {run: float(np.mean([column[run].value for column in columns])) for run in runs}
        columns.append(means_column(measure, over, {}))
    return by_measure


def joint_comparisons(tested: Tested) -> list[Table]:
    """Tabulate differences of means, with stars, corrected p, and exact p and p of equivalence if there are any."""
    by_pair: dict[tuple[str, str, str], list[Comparison]] = {}
    for _, tests in tested.values():
        for c in tests.comparisons if tests else ():
            by_pair.setdefault((c.run, c.baseline, str(c.measure)), []).append(c)
    header, differences = ("run", "against", "measure", *tested), list[Row]()
    p, exact, same = list[Row](), list[Row](), list[Row]()
    for key, compared in by_pair.items():
        cells = [Marked(c.difference, "+.4f", "*" if c.significant else "") for c in compared]
        differences.append((*key, *cells, Marked(float(np.mean([c.difference for c in compared])), "+.4f")))
        p.append((*key, *(None if c.not_run else c.corrected_p for c in compared)))
        exact += [(*key, *(c.exact_p for c in compared))] if any(c.exact_p is not None for c in compared) else []
        same += [(*key, *(marked_p(c.equivalence_p) for c in compared))] if compared[0].margin is not None else []
    tables = [
        Table("table: differences of means.", (*header, "mean"), differences),
        Table("table: corrected p.", header, p),
        Table(f"table: {EXACT_NOTE}; of fewer than {MIN_TOPICS_OF_T} topics.", header, exact),
        Table("table: corrected p of equivalence within the margin.", header, same),
    ]
    shown = [table for table in tables if table.rows]
    order = ("Second", "Third", "Fourth", "Fifth")
    return [replace(table, caption=f"{nth} {table.caption}") for nth, table in zip(order, shown, strict=False)]


def stacked(tables: Mapping[str, Table]) -> Table:
    """Put tables of the same columns below each other, with the collection as the first column."""
    first = next(iter(tables.values()))
    rows = [(name, *row) for name, table in tables.items() for row in table.rows]
    notes = {name: table.caption for name, table in tables.items() if table.caption}
    lines = [f"{name}: {note}" for name, note in notes.items()] if len({*notes.values()}) > 1 else [*notes.values()][:1]
    return Table("\n".join(lines), ("collection", "run", *first.header[1:]), rows)


def scores_by_category(scores: Mapping[str, Scores], categories: Mapping[str, str]) -> dict[str, dict[str, Scores]]:
    """Return the scores on the topics of each category, in the order of the categories."""
    qids = next(iter(scores.values())).qids
    named = [categories.get(qid) for qid in qids]
    check_part_names("category", filter(None, named))
    if not any(named):
        raise ParameterError(f"no judged topic has a category ({qids[0]!r} against {next(iter(categories), None)!r})")
    parts = dict[str, dict[str, Scores]]()
    for category in dict.fromkeys(categories.values()):
        rows = np.flatnonzero([name == category for name in named])
        if len(rows):
            kept = tuple(qids[row] for row in rows)
            parts[category] = {n: replace(run, qids=kept, values=run.values[rows]) for n, run in scores.items()}
    return parts


def with_teams(table: Table, teams: Mapping[str, str]) -> Table:
    """Add a column of the runs' teams after that of runs, if there are both."""
    if not teams or "run" not in table.header:
        return table
    place = list(table.header).index("run") + 1
    rows = [
        row if len(row) == 1 < len(table.header) else [*row[:place], teams.get(str(row[place - 1]), ""), *row[place:]]
        for row in table.rows  # a heading has one cell
    ]
    return replace(table, header=[*table.header[:place], "team", *table.header[place:]], rows=rows)


def means_by_topics(whole: Table, parts: Mapping[str, Mapping[str, Scores]]) -> Table:
    """Put means of each category below those of all topics, with a column that says which."""
    place = list(whole.header).index("run") + 1
    header = (*whole.header[:place], "topics", *whole.header[place:])
    empty = {column: "" for column in header if column.startswith("letters")}  # frames tell text from numbers
    rows: list[Row] = [(*row[:place], "all", *row[place:]) for row in whole.rows]
    for category, scores in parts.items():
        for name, run in scores.items():
            cells: dict[str, str | float] = {"run": name, "topics": category, **run.by_measure}
            rows.append([cells.get(column, empty.get(column)) for column in header])
    return Table(whole.caption, header, rows)


def category_table(scores: Mapping[str, Scores], parts: Mapping[str, Mapping[str, Scores]]) -> Table:
    """Tabulate means by category: a row for each run and measure, a column for each category."""
    table = joint_means({category: (part, None) for category, part in parts.items()})
    whole, *numbers = (len(next(iter(part.values())).qids) for part in (scores, *parts.values()))
    counts = ", ".join(f"{category} {number}" for category, number in zip(parts, numbers, strict=True))
    counts += f"; {rest} without a category" if (rest := whole - sum(numbers)) else ""
    rows = [row[: len(parts) + 2] for row in table.rows]  # without the mean over parts
    return Table(f"Means by category; topics: {counts}.", table.header[:-1], rows)
