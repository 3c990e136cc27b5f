"""Sheets of a task, as in the appendices of TREC's proceedings: of topics over all runs, and of each participant."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from greylag.base import Marked, ParameterError, Row, Table, as_tsv
from greylag.evaluation.reports.figures import Bar, Figure, bar_figure, interval_figure
from greylag.evaluation.reports.report import Part, Section, report_page
from greylag.evaluation.scoring.scores import DIFFERENCE_DECIMALS, Scores

BEST, MEDIAN = -3, -2  # columns of the sheet of topics; the last one is the worst


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
    ends = [f"{end} {first.measures[0]}" for end in ("best", "median", "worst")]
    header = ["qid", *(["relevant"] if relevant else []), *ends]
    caption = f"{first.measures[0]} of {len(scores)} runs by topic, the lowest median first"
    return Table(caption.replace("lowest", "highest") if loss else caption, header, rows)


def participant_sheet(topics: Table, scores: Mapping[str, Scores], runs: Sequence[str]) -> Table:
    """Add a participant's runs to the sheet of topics: their scores, and how far these are from the median."""
    measure = scores[runs[0]].measures[0]
    own = {name: (f"{name} {measure}", f"{name} {measure} less median") for name in runs}
    header = [*topics.header, *(names[0] for names in own.values()), *(names[1] for names in own.values())]
    if twice := [name for name, names in own.items() if any(header.count(column) > 1 for column in names)]:
        raise ParameterError(f"run {twice[0]!r} has the name of another column of its sheet: give it another name")
    by_run, gaps = [scores[name].by_query for name in runs], [_less(topics, scores[name], MEDIAN) for name in runs]
    rows: list[Row] = [
        [*row, *(Marked(by_qid[str(row[0])]) for by_qid in by_run), *(Marked(gap[n], "+.4f") for gap in gaps)]
        for n, row in enumerate(topics.rows)
    ]
    return replace(topics, header=header, rows=rows)


def standing(topics: Table, scores: Mapping[str, Scores], runs: Sequence[str]) -> Table:
    """Count the topics on which runs are the best of all, above the median, at it and below."""
    measure, rows = scores[runs[0]].measures[0], list[Row]()
    for name in runs:
        signs = np.sign(_less(topics, scores[name], MEDIAN)) * (-1 if measure.family.lower_is_better else 1)
        counts = [int((signs == sign).sum()) for sign in (1, 0, -1)]
        bests = _less(topics, scores[name], BEST).count(0.0)
        rows.append([name, Marked(float(scores[name].means[0])), bests, *counts])
    header = ["run", str(measure), "best", "better than median", "equal", "worse"]
    return Table("Topics by the run's score", header, rows)


def make_sheets(
    scores: Mapping[str, Scores], relevant: Mapping[str, int], teams: Mapping[str, str], origin: Mapping[str, Any]
) -> dict[str, str]:
    """Make pages and CSV by name of file: of topics, and of each team, or run if it has none; by all measures.

    The page of topics, which is the organiser's, links the others and has the origin. A participant's page names no
    other participant, and has no command.
    """
    members = dict[str, list[str]]()
    for name in scores:
        members.setdefault(teams.get(name, name), []).append(name)
    by_measure = [
        {name: replace(run, measures=(m,), values=run.values[:, [place]]) for name, run in scores.items()}
        for place, m in enumerate(next(iter(scores.values())).measures)
    ]
    topics = [topic_sheet(each, relevant) for each in by_measure]
    links, files = dict[str, str](), dict[str, str]()
    versions = {name: value for name, value in origin.items() if name != "command"}
    for number, team in enumerate(sorted(members), 1):
        runs, sections, own = members[team], list[Section](), list[Table]()
        for each, sheet in zip(by_measure, topics, strict=True):
            own.append(participant_sheet(sheet, each, runs))
            parts: list[Part] = [standing(sheet, each, runs), _gaps_chart(own[-1], sheet, each, runs), own[-1]]
            sections.append(Section(f"{each[runs[0]].measures[0]} against the median", parts=parts))
        # Letters of all scripts with their marks, so that teams can tell their files.
        kept = (c if unicodedata.category(c)[0] in "LMN" else " " for c in unicodedata.normalize("NFC", team))
        letters = "-".join("".join(kept).split())[-40:].strip("-")
        stem = f"participant-{number}-{letters}".rstrip("-")
        files[f"{stem}.csv"] = as_tsv(_joined(own, relevant), "excel")
        files[f"{stem}.html"] = report_page(team, sections, versions)
        links[team] = f"{stem}.html"
    files["topics.csv"] = as_tsv(_joined(topics, relevant), "excel")
    charts = [_topic_chart(sheet, sheet.header[-1].partition(" ")[2]) for sheet in topics]
    sections = [Section("Topics", parts=list(pair)) for pair in zip(topics, charts, strict=True)]
    return files | {"topics.html": report_page("Topics", sections, origin, links)}


def _joined(sheets: Sequence[Table], relevant: Mapping[str, int]) -> Table:
    """Join the sheets of measures by topic, in the order of the first."""
    first, *others = sheets
    shared = 2 if relevant else 1
    by_qid = [{row[0]: row[shared:] for row in sheet.rows} for sheet in others]
    rows: list[Row] = [[*row, *(cell for cells in by_qid for cell in cells[row[0]])] for row in first.rows]
    return Table("", [*first.header, *(name for sheet in others for name in sheet.header[shared:])], rows)


def _topic_chart(topics: Table, measure: str) -> Figure:
    """Draw each topic's median with a line from the worst to the best."""
    ends = {str(row[0]): [_value(cell) for cell in row[BEST:]] for row in topics.rows}
    rows = {qid: (median, (min(best, worst), max(best, worst)), 0) for qid, (best, median, worst) in ends.items()}
    return interval_figure(f"{topics.caption}: median, and a line from worst to best", measure, rows)


def _gaps_chart(own: Table, topics: Table, scores: Mapping[str, Scores], runs: Sequence[str]) -> Figure:
    """Draw how far a participant's runs are from the median on each topic."""
    measure, panels = scores[runs[0]].measures[0], dict[str, list[Bar]]()
    for name in runs:
        gaps = zip(topics.rows, _less(topics, scores[name], MEDIAN), strict=True)
        bars = [(str(row[0]), gap, (gap > 0) != measure.family.lower_is_better) for row, gap in gaps]
        panels[name] = sorted(bars, key=lambda bar: -bar[1])
    return bar_figure(f"{measure} less the median of all runs, by topic", f"{measure} less median", panels, own)


def _value(cell: Any) -> float:
    return float(cell.value)


def _less(topics: Table, run: Scores, column: int) -> list[float]:
    """Return a run's score less that of a column of the sheet, by topic; 0 if they are equal but for rounding."""
    by_qid = run.by_query
    gaps = (by_qid[str(row[0])] - _value(row[column]) for row in topics.rows)
    return [float(np.round(gap, DIFFERENCE_DECIMALS)) + 0.0 for gap in gaps]
