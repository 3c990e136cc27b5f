"""Sheets of a task, as in the appendices of TREC's proceedings: of topics over all runs, and of each participant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from greylag.base import FloatArray, Marked, Row, Table, as_tsv
from greylag.evaluation.reports.figures import Figure, bar_figure, interval_figure
from greylag.evaluation.reports.report import Part, Section, report_page
from greylag.evaluation.scoring.scores import DIFFERENCE_DECIMALS, Scores


def topic_sheet(scores: Mapping[str, Scores], relevant: Mapping[str, int]) -> Table:
    """Tabulate the best, median and worst score over runs of each topic by the first measure, hardest first.

    The hardest is that with the worst median. `relevant` has the number of relevant documents by qid, if it is known.
    """
    first = next(iter(scores.values()))
    loss = first.measures[0].family.lower_is_better
    ordered = np.sort([run.values[:, 0] for run in scores.values()], axis=0)
    best, worst = (ordered[0], ordered[-1]) if loss else (ordered[-1], ordered[0])
    median = np.median(ordered, axis=0)
    hardness = np.round(median if loss else -median, DIFFERENCE_DECIMALS)  # equal on paper, equally hard
    counts = [[relevant[qid]] if qid in relevant else [] for qid in first.qids]
    rows: list[Row] = [
        [first.qids[n], *counts[n], *map(Marked, (float(best[n]), float(median[n]), float(worst[n])))]
        for n in np.argsort(-hardness, kind="stable").tolist()
    ]
    header = ["qid", *(["relevant"] if relevant else []), "best", "median", "worst"]
    caption = f"{first.measures[0]} of {len(scores)} runs by topic, the lowest median first"
    return Table(caption.replace("lowest", "highest") if loss else caption, header, rows)


def participant_sheet(topics: Table, scores: Mapping[str, Scores], runs: Sequence[str]) -> Table:
    """Add a participant's runs to the sheet of topics: their scores, and how far these are from the median."""
    by_run = {name: scores[name].by_query for name in runs}
    rows: list[Row] = []
    for row in topics.rows:
        found = [by_qid[str(row[0])] for by_qid in by_run.values()]
        gaps = [Marked(_gap(value, row), "+.4f") for value in found]
        rows.append([*row, *map(Marked, found), *gaps])
    header = [*topics.header, *runs, *(f"{name} less median" for name in runs)]
    return replace(topics, header=header, rows=rows)


def standing(topics: Table, scores: Mapping[str, Scores], runs: Sequence[str]) -> Table:
    """Count the topics on which runs are the best of all, above the median, at it and below."""
    loss, rows = next(iter(scores.values())).measures[0].family.lower_is_better, list[Row]()
    for name in runs:
        by_qid = scores[name].by_query
        signs = np.sign([(-1 if loss else 1) * _gap(by_qid[str(row[0])], row) for row in topics.rows])
        bests = sum(by_qid[str(row[0])] == _value(row[-3]) for row in topics.rows)
        counts = [int((signs == sign).sum()) for sign in (1, 0, -1)]
        rows.append([name, Marked(float(scores[name].means[0])), bests, *counts])
    measure = next(iter(scores.values())).measures[0]
    return Table(
        "Topics by the run's score", ["run", str(measure), "best", "better than median", "equal", "worse"], rows
    )


def make_sheets(
    scores: Mapping[str, Scores], relevant: Mapping[str, int], teams: Mapping[str, str], origin: Mapping[str, Any]
) -> dict[str, str]:
    """Make pages and CSV by name of file: of topics, and of each team, or run if it has none; pages link each other."""
    members = dict[str, list[str]]()
    for name in scores:
        members.setdefault(teams.get(name, name), []).append(name)
    topics, measure = topic_sheet(scores, relevant), next(iter(scores.values())).measures[0]
    stems = {
        team: f"participant-{number}-{re.sub('[^A-Za-z0-9]+', '-', team)[-40:].strip('-')}"
        for number, team in enumerate(sorted(members), 1)
    }
    links = {"Topics": "topics.html", **{team: f"{stem}.html" for team, stem in stems.items()}}
    files = {"topics.csv": as_tsv(topics, "excel")}
    sections = [Section("Topics", parts=[topics, _topic_chart(topics, str(measure))])]
    files["topics.html"] = report_page("Topics", sections, origin, links)
    for team, stem in stems.items():
        runs, loss = members[team], measure.family.lower_is_better
        own = participant_sheet(topics, scores, runs)
        gaps = {name: scores[name].by_query for name in runs}
        panels = {
            name: sorted(
                (
                    (str(row[0]), gap, (gap > 0) != loss)
                    for row in topics.rows
                    for gap in [_gap(by_qid[str(row[0])], row)]
                ),
                key=lambda bar: -bar[1],
            )
            for name, by_qid in gaps.items()
        }
        chart = bar_figure(f"{measure} less the median of all runs, by topic", f"{measure} less median", panels, own)
        files[f"{stem}.csv"] = as_tsv(own, "excel")
        parts: list[Part] = [standing(topics, scores, runs), chart, own]
        files[f"{stem}.html"] = report_page(team, [Section("Runs against the median", parts=parts)], origin, links)
    return files


def _topic_chart(topics: Table, measure: str) -> Figure:
    """Draw each topic's median with a line from the worst to the best."""
    ends = {str(row[0]): [_value(cell) for cell in row[-3:]] for row in topics.rows}
    rows = {qid: (median, (min(best, worst), max(best, worst)), 0) for qid, (best, median, worst) in ends.items()}
    return interval_figure(f"{topics.caption}: median, and a line from worst to best", measure, rows)


def _value(cell: Any) -> float:
    return float(cell.value)


def _gap(value: float, row: Row) -> float:
    """Return a score less the median of its topic; 0 if they are equal but for rounding."""
    gap: FloatArray = np.round(value - _value(row[-2]), DIFFERENCE_DECIMALS)
    return float(gap) + 0.0
