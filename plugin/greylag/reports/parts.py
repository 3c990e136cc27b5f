"""Tables of several collections: a row for each run and measure, a column for each collection."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from greylag.core.tables import Marked, Row, Table
from greylag.evaluation.measures import Measure
from greylag.evaluation.scores import Scores
from greylag.evaluation.significance import Comparison, Significance, marked_p
from greylag.reports.scores import marks_notes, marks_of, notes

Tested = Mapping[str, tuple[Mapping[str, Scores], Significance | None]]
"""By collection, scores by run with their tests; all have the same runs and measures."""


def runs_and_measures(tested: Tested) -> tuple[list[str], tuple[Measure, ...]]:
    """Return the runs and measures, in the order of the first collection."""
    scores, _ = next(iter(tested.values()))
    return list(scores), next(iter(scores.values())).measures


def joint_means(tested: Tested) -> Table:
    """Tabulate means with their marks, and the mean of them over collections."""
    runs, measures = runs_and_measures(tested)
    marks = {name: marks_of(scores, tests) for name, (scores, tests) in tested.items()}
    widths = {name: max(map(len, of_one.values()), default=0) for name, of_one in marks.items()}
    rows: list[Row] = []
    for column, measure in enumerate(measures):
        form = ".0f" if measure.family.summary == "sum" else ".4f"
        for run in runs:
            means = {name: float(scores[run].means[column]) for name, (scores, _) in tested.items()}
            # Padded, so that the numbers before the marks stay aligned.
            cells = [
                Marked(mean, form, f"{marks[name].get((run, measure), ''):<{widths[name]}}")
                for name, mean in means.items()
            ]
            rows.append((run, str(measure), *cells, Marked(float(np.mean([*means.values()])), form)))
    every = [f"{name}: {line}" for name, (scores, _) in tested.items() for line in notes(scores)]
    lines = [*every, "Column mean: the mean over collections, each with the same weight."]
    lines += marks_notes(runs, next(tests for _, tests in tested.values()))
    return Table("\n".join(lines), ("run", "measure", *tested, "mean"), rows)


def joint_comparisons(tested: Tested) -> list[Table]:
    """Tabulate differences of means, with stars, corrected p and, if it was tested, p of equivalence."""
    found: dict[tuple[str, str, str], list[Comparison]] = {}
    for _, tests in tested.values():
        for c in tests.comparisons if tests else ():
            found.setdefault((c.run, c.baseline, str(c.measure)), []).append(c)
    header, differences, p, same = ("run", "against", "measure", *tested), list[Row](), list[Row](), list[Row]()
    for key, compared in found.items():
        cells = [Marked(c.difference, "+.4f", "*" if c.significant else "") for c in compared]
        differences.append((*key, *cells, Marked(float(np.mean([c.difference for c in compared])), "+.4f")))
        p.append((*key, *(c.corrected_p for c in compared)))
        same += [(*key, *(marked_p(c.equivalence_p) for c in compared))] if compared[0].margin is not None else []
    tables = [
        Table("Second table: differences of means.", (*header, "mean"), differences),
        Table("Third: corrected p.", header, p),
        Table("Fourth: same p.", header, same),
    ]
    return [table for table in tables if table.rows]


def stacked(tables: Mapping[str, Table]) -> Table:
    """Put tables of the same columns below each other, with the collection as the first column."""
    first = next(iter(tables.values()))
    rows = [(name, *row) for name, table in tables.items() for row in table.rows]
    notes = {name: table.caption for name, table in tables.items() if table.caption}
    lines = [f"{name}: {note}" for name, note in notes.items()] if len({*notes.values()}) > 1 else [*notes.values()][:1]
    return Table("\n".join(lines), ("collection", "run", *first.header[1:]), rows)
