"""Means by categories of topics."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from greylag.core.tables import Table
from greylag.errors import FormatError, ParameterError
from greylag.evaluation.scores import Scores
from greylag.reports.parts import joint_means
from greylag.runtime.files import Faults, read_text

HEADS = "qid", "query_id", "query-id", "topic", "topic_id", "id"
"""What the first column of a header is called."""


def read_categories(path: str | Path | Mapping[str, str]) -> dict[str, str]:
    """Read the category of each topic: lines of qid and category, parted by a tab or as CSV, with a header or not."""
    if isinstance(path, Mapping):
        return dict(path)
    with Faults(path, lenient=False) as faults:
        lines = read_text(path, faults).decode().splitlines()
    rows, categories = csv.reader(lines, delimiter="\t" if "\t" in "".join(lines[:1]) else ","), dict[str, str]()
    for row in rows:
        cells = [cell.strip() for cell in row]
        if not any(cells) or (not categories and cells[0].lower() in HEADS):
            continue
        if len(cells) != 2 or not all(cells):
            raise FormatError(path, rows.line_num, f"{row} is not a qid and a category: part the two by a tab or comma")
        if categories.setdefault(cells[0], cells[1]) != cells[1]:
            raise FormatError(path, rows.line_num, f"topic {cells[0]!r} has two categories: keep one")
    return categories


def by_category(scores: Mapping[str, Scores], categories: Mapping[str, str]) -> dict[str, dict[str, Scores]]:
    """Return the scores on the topics of each category, in the order of the categories."""
    qids = next(iter(scores.values())).qids
    named = [categories.get(qid) for qid in qids]
    if not any(named):
        raise ParameterError(f"no judged topic has a category ({qids[0]!r} against {next(iter(categories), None)!r})")
    found = dict[str, dict[str, Scores]]()
    for category in dict.fromkeys(categories.values()):
        rows = np.flatnonzero([name == category for name in named])
        if len(rows):
            kept = tuple(qids[row] for row in rows)
            found[category] = {n: replace(run, qids=kept, values=run.values[rows]) for n, run in scores.items()}
    return found


def category_table(scores: Mapping[str, Scores], parts: Mapping[str, Mapping[str, Scores]]) -> Table:
    """Tabulate means by category: a row for each run and measure, a column for each category."""
    table = joint_means({category: (of_one, None) for category, of_one in parts.items()})
    whole, *numbers = (len(next(iter(of_one.values())).qids) for of_one in (scores, *parts.values()))
    sizes, rest = dict(zip(parts, numbers, strict=True)), whole - sum(numbers)
    counts = ", ".join(f"{category} {size}" for category, size in (sizes | ({"without": rest} if rest else {})).items())
    rows = [row[: len(parts) + 2] for row in table.rows]  # without the mean over parts
    return Table(f"Means by category; topics: {counts}.", table.header[:-1], rows)
