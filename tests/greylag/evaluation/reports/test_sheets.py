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
    assert [*topic_sheet(found, {}).header] == ["qid", *(f"{end} {measure}" for end in ("best", "median", "worst"))]
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


def test_the_page_of_topics_links_those_of_teams_which_name_no_other(monkeypatch):
    monkeypatch.setattr("sys.argv", ["greylag", "evaluate", "other.run"])
    cases = [samples.random_case(np.random.default_rng(seed)) for seed in range(4)]
    qrels, runs = cases[0][1], dict(zip("abcd", (case[0] for case in cases), strict=True))
    found = compare(runs, qrels, ["AP(rel=2)", "P@5"])
    files = found.of_teams(TEAMS).sheets()
    stems = ["participant-1-z", "participant-2-d", "participant-3-x-y", "topics"]
    assert sorted(files) == sorted(f"{stem}.{end}" for stem in stems for end in ("csv", "html"))
    for stem in stems:
        page = files[f"{stem}.html"]
        links = re.findall(r'<a href="([^"#]+)">([^<]+)</a>', page)
        names = ["&lt;z&gt;", "d", "x/y"]
        assert links == ([*zip((f"{s}.html" for s in stems[:3]), names, strict=True)] if stem == "topics" else [])
        assert ("other.run" in page) == (stem == "topics")
        if stem != "topics":
            del names[stems.index(stem)]
            assert not any(f">{name}<" in page for name in names)
        assert page.count("<svg ") == 2
    rows = [*csv.DictReader(files["participant-3-x-y.csv"].splitlines())]
    by_qid = {name: evaluate(run, qrels, ["AP(rel=2)"]).by_query for name, run in runs.items()}
    for row in rows:
        qid = row["qid"]
        assert int(row["relevant"]) == sum(grade > 1 for grade in qrels[qid].values())
        middle = median(of[qid] for of in by_qid.values())
        assert float(row["b AP(rel=2) less median"]) == pytest.approx(by_qid["b"][qid] - middle, abs=1e-11)
        assert (float(row["a AP(rel=2)"]), float(row["median AP(rel=2)"])) == pytest.approx((by_qid["a"][qid], middle))
    second = compare(runs, qrels, ["P@5"]).of_teams(TEAMS).sheets()["participant-3-x-y.csv"]
    for row in csv.DictReader(second.splitlines()):
        joined = next(other for other in rows if other["qid"] == row["qid"])
        assert all(joined[name] == value for name, value in row.items() if name != "relevant")
    assert len(found.sheets()) == 10
    names = {"a": "東京", "b": "京都", "c": "e\u0301quipe हिन्दी", "d": "../\udcff"}
    assert {name for name in found.of_teams(names).sheets() if name.endswith(".csv")} == {
        *(
            "participant-1.csv",
            "participant-2-équipe-हिन्दी.csv",
            "participant-3-京都.csv",
            "participant-4-東京.csv",
            "topics.csv",
        )
    }
    assert files == found.of_teams(TEAMS).sheets()


def test_a_run_with_the_name_of_another_column_is_refused():
    """Readers of CSV by column would take its scores for those of the best."""
    for name in ("best", "median", "worst"):
        found = Evaluation(scores(np.random.default_rng(0), ["a", name], ["AP"]))
        refuses(lambda: found.of_teams({"a": "t", name: "t"}).sheets(), ParameterError, f"run {name!r}")  # noqa: B023
