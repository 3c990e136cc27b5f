"""Sheets of topics and participants against medians and counts in plain Python."""

import csv
import re
from statistics import median

import numpy as np
import pytest

from greylag.base import ParameterError
from greylag.evaluation import Evaluation, compare, evaluate
from greylag.evaluation.reports.sheets import participant_sheet, standing, topic_sheet
from tests.greylag.evaluation.reports.test_verdict import scores
from tests.greylag.evaluation.scoring import samples
from tests.refusals import refuses

TEAMS = {"a": "x/y", "b": "x/y", "c": "<z>", "d": "d"}


def numbers(row):
    """The cells of a row as numbers."""
    return [float(getattr(cell, "value", cell)) for cell in row]


@pytest.mark.parametrize("names", ["abcd", "abc", "a"])
@pytest.mark.parametrize("measure", ["AP", "subtopic-loss@5"])
def test_topics_are_hardest_first_with_best_median_and_worst(names, measure):
    found = scores(np.random.default_rng(len(names)), names, [measure, "P@5"])
    relevant = {str(n): n for n in range(30)}
    by_qid = {qid: [run.values[n, 0] for run in found.values()] for n, qid in enumerate(found["a"].qids)}
    best, worst = (min, max) if measure != "AP" else (max, min)
    hardest = sorted(by_qid, key=lambda qid: median(by_qid[qid]) * (-1 if measure != "AP" else 1))
    sheet = topic_sheet(found, relevant)
    assert [row[0] for row in sheet.rows] == hardest
    for row in sheet.rows:
        values = by_qid[row[0]]
        assert numbers(row[1:]) == [relevant[row[0]], best(values), pytest.approx(median(values)), worst(values)]
    assert [*topic_sheet(found, {}).header] == ["qid", "best", "median", "worst"]
    own = participant_sheet(sheet, found, names[:2])
    for row in own.rows:
        values = by_qid[row[0]][:2]
        assert numbers(row[5:]) == pytest.approx([*values, *(value - median(by_qid[row[0]]) for value in values)])
    for name, mean, *counts in standing(sheet, found, names[:2]).rows:
        mine = {qid: values[names.index(name)] for qid, values in by_qid.items()}
        gaps = [(mine[qid] - median(values)) * (1 if measure == "AP" else -1) for qid, values in by_qid.items()]
        bests = sum(mine[qid] == best(values) for qid, values in by_qid.items())
        assert mean.value == pytest.approx(np.mean([*mine.values()]))
        assert counts == [bests, *(sum(np.sign(round(gap, 12)) == sign for gap in gaps) for sign in (1, 0, -1))]


def test_pages_link_each_other_and_have_a_chart_each():
    cases = [samples.random_case(np.random.default_rng(seed)) for seed in range(4)]
    qrels, runs = cases[0][1], dict(zip("abcd", (case[0] for case in cases), strict=True))
    found = compare(runs, qrels, ["AP(rel=2)", "P@5"])
    files = found.of_teams(TEAMS).sheets()
    stems = ["participant-1-z", "participant-2-d", "participant-3-x-y", "topics"]
    assert sorted(files) == sorted(f"{stem}.{end}" for stem in stems for end in ("csv", "html"))
    for stem in stems:
        page = files[f"{stem}.html"]
        links = re.findall(r'<a href="([^"#]+)">([^<]+)</a>', page)
        assert links == [
            ("topics.html", "Topics"),
            *zip((f"{s}.html" for s in stems), ("&lt;z&gt;", "d", "x/y"), strict=False),
        ]
        assert page.count("<svg ") == 1
    rows = [*csv.DictReader(files["participant-3-x-y.csv"].splitlines())]
    by_qid = {name: evaluate(run, qrels, ["AP(rel=2)"]).by_query for name, run in runs.items()}
    for row in rows:
        qid = row["qid"]
        assert int(row["relevant"]) == sum(grade > 1 for grade in qrels[qid].values())
        middle = median(of[qid] for of in by_qid.values())
        assert float(row["b less median"]) == pytest.approx(by_qid["b"][qid] - middle, abs=1e-11)
        assert (float(row["a"]), float(row["median"])) == pytest.approx((by_qid["a"][qid], middle))
    assert len(found.sheets()) == 10
    assert found.of_teams({**TEAMS, "c": "日本"}).sheets().keys() >= {"participant-3.csv", "participant-3.html"}
    assert files == found.of_teams(TEAMS).sheets()


def test_a_run_with_the_name_of_another_column_is_refused():
    """Readers of CSV by column would take its scores for those of the best."""
    for name in ("best", "median", "qid", "a less median"):
        found = Evaluation(scores(np.random.default_rng(0), ["a", name], ["AP"]))
        refuses(lambda: found.of_teams({"a": "t", name: "t"}).sheets(), ParameterError, f"run {name!r}")  # noqa: B023
