"""Means by categories of topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from greylag.base import ParameterError, Table
from greylag.evaluation.reports.parts import check_part_names, joint_means
from greylag.evaluation.scoring.scores import Scores


def by_category(scores: Mapping[str, Scores], categories: Mapping[str, str]) -> dict[str, dict[str, Scores]]:
    """Return the scores on the topics of each category, in the order of the categories."""
    qids = next(iter(scores.values())).qids
    named = [categories.get(qid) for qid in qids]
    check_part_names("category", filter(None, named))
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
    counts = ", ".join(f"{category} {number}" for category, number in zip(parts, numbers, strict=True))
    counts += f"; {rest} without a category" if (rest := whole - sum(numbers)) else ""
    rows = [row[: len(parts) + 2] for row in table.rows]  # without the mean over parts
    return Table(f"Means by category; topics: {counts}.", table.header[:-1], rows)
