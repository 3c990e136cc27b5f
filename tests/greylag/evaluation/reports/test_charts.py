"""Charts as SVG, whose bars and points are read back and compared with the numbers; and what a result says."""

import re
import struct
import sys
import time
from string import ascii_letters
from xml.etree import ElementTree

import numpy as np
import pytest

from greylag.base import DependencyError, ParameterError
from greylag.evaluation import Evaluation, Scores, compare_scores, parse_measure
from greylag.evaluation.reports.charts import (
    change_chart,
    changes_figure,
    contributions_chart,
    differences_chart,
    result,
)
from greylag.evaluation.reports.figures import BELOW, BETTER, GREY, HEIGHT, RESOLUTION, TOP, WIDE, WORSE, write_figure
from greylag.evaluation.reports.scores import group_letters
from greylag.evaluation.reports.verdict import verdict
from tests.greylag.studies.samples import Page
from tests.refusals import refuses


def test_a_value_without_an_interval_is_a_point():
    """As of equal differences; the scale has room for it, and the table empty cells."""
    named = {name: scores("AP", np.linspace(0, 0.5, 8) + gain) for name, gain in (("a", 0), ("b", 0.3), ("c", -0.3))}
    named["d"] = scores("AP", np.linspace(0, 0.6, 8))
    tests = compare_scores(named, "a")
    figure = differences_chart(named, tests.comparisons, "a")
    rows = {name: ends for name, _, *ends in figure.data.rows}
    assert (rows["b"], rows["c"]) == ([None, None], [None, None])
    assert rows["d"] == [*tests.comparisons[-1].interval]
    coloured = [line for line in elements(figure, "path") if line.attrib.get("stroke-width") == "2"]
    assert (len(coloured), len(elements(figure, "circle"))) == (1, 3)
    labels = [float(text.text) for text in elements(figure, "text") if re.fullmatch(r"-?[\d.]+", text.text)]
    assert min(labels) <= -0.3 < 0.3 <= max(labels)
    assert not re.search(r"\bnan\b", Evaluation(named, tests).format("html"))


SVG = "{http://www.w3.org/2000/svg}"


def scores(measure, values):
    return Scores.single(parse_measure(measure), {f"q<{place}>": value for place, value in enumerate(values)})


SAME = dict.fromkeys("ab", scores("AP", [0.5, 0.25]))


def number(element, name):
    return float(element.attrib[name])


def elements(figure, tag):
    return list(ElementTree.fromstring(figure.svg).iter(f"{SVG}{tag}"))


@pytest.mark.parametrize("seed", range(6))
def test_bars_are_the_changes_sorted(seed):
    rng = np.random.default_rng(seed)
    n, measure = int(rng.integers(2, 30)), ["AP", "subtopic-loss@5"][seed % 2]
    old, new = np.round(rng.random((2, n)), 1).tolist()
    figure = change_chart({"a": scores(measure, old), "b": scores(measure, new)}, "a", "b")
    changes = -np.sort(np.array(old) - np.array(new))
    changes = changes[np.abs(changes) > 1e-9]
    assert [row[3] for row in figure.data.rows] == pytest.approx(changes, abs=1e-12)
    bars = elements(figure, "rect")
    title, *labels, beside, below = [text.text for text in elements(figure, "text")]
    low, *_, high = marks = [*map(float, labels)]
    assert low <= min(changes) <= max(changes) <= high  # no bar beyond the last tick
    assert "0" in labels
    pixels, zero = (HEIGHT - BELOW - TOP - 8) / (high - low), TOP + 8 + (HEIGHT - BELOW - TOP - 8) * high / (high - low)
    assert [number(bar, "height") for bar in bars] == pytest.approx(pixels * np.abs(changes), abs=0.11)
    ends = [number(bar, "x") + number(bar, "width") for bar in bars]
    assert all(end <= number(bar, "x") for end, bar in zip(ends, bars[1:], strict=False))
    assert ends[-1] <= WIDE
    for bar, (qid, *_, change) in zip(bars, figure.data.rows, strict=True):
        top = number(bar, "y")
        assert (top if change < 0 else top + number(bar, "height")) == pytest.approx(zero, abs=0.11)
        assert bar[0].text == f"{qid}: {change:+.4f}"
        assert bar.attrib["fill"] == (BETTER if (change > 0) == (measure == "AP") else WORSE)
    assert (title, beside) == ("b against a", f"change of {measure}")
    better, worse, equal = (int((sign == np.sign(new - np.array(old))).sum()) for sign in (1, -1, 0))
    counts = (better, worse) if measure == "AP" else (worse, better)
    assert [*map(int, re.findall(r"\d+", below))] == [n, *counts, equal]
    for line, label in zip(elements(figure, "path"), marks, strict=True):
        at = float(line.attrib["d"].split()[1].partition("H")[0])
        assert at == pytest.approx(zero - pixels * label, abs=0.11)


def test_a_figure_for_a_paper_has_a_panel_for_each_comparison(tmp_path):
    runs = {name: scores("AP", np.random.default_rng(ord(name)).random(5).tolist()) for name in "abc"}
    figure = changes_figure([(runs, compare_scores(runs, "a"))])
    shared = [row[3] for run in "bc" for row in change_chart(runs, "a", run).data.rows]
    for panel, run in zip(elements(figure, "g"), "bc", strict=True):
        alone = elements(change_chart(runs, "a", run, shared), "rect")
        assert [bar.attrib for bar in panel.iter(f"{SVG}rect")] == [bar.attrib for bar in alone]
        assert panel[0].text == f"{run} against a"
    write_figure(tmp_path / "x.svg", figure)
    assert GREY not in (tmp_path / "x.svg").read_text()
    assert len(ElementTree.parse(tmp_path / "x.svg").findall(f".//{SVG}rect")) == 10
    refuses(lambda: write_figure(tmp_path / "x.jpg", figure), ParameterError, "x.jpg")


@pytest.mark.parametrize(("form", "begins"), [("pdf", b"%PDF-"), ("png", b"\x89PNG\r\n")])
def test_figures_by_cairo(tmp_path, monkeypatch, form, begins):
    figure, path = change_chart(SAME, "a", "b"), tmp_path / f"x.{form}"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cairosvg", None)
        refuses(lambda: write_figure(path, figure), DependencyError, "greylag[figures]")
    assert list(tmp_path.iterdir()) == []
    pytest.importorskip("cairosvg", exc_type=OSError)  # the library cairo may be missing
    write_figure(path, figure)
    drawn = path.read_bytes()
    time.sleep(1.1)  # a PDF has its date in seconds
    write_figure(path, figure)
    assert path.read_bytes() == drawn
    assert drawn.startswith(begins)
    if form == "png":
        assert struct.unpack(">II", drawn[16:24]) == (RESOLUTION * WIDE, RESOLUTION * HEIGHT)


def test_nothing_changes():
    figure = change_chart(SAME, "a", "b")
    assert "0 better, 0 worse, 2 equal (not drawn)" in figure.svg
    assert (elements(figure, "rect"), figure.data.rows) == ([], [])
    finding, *_ = result([(SAME, compare_scores(SAME, "a"))]).parts
    assert finding.verdict == "b has the same AP as a on every query."


def test_many_runs_share_a_chart_of_differences_from_the_best_or_the_baseline():
    values = [[0.5, 0.3, 0.1], [0.7, 0.2, 0.6], [0.6, 0.6, 0.6], [0.1, 0.2, 0.3], [0.2, 0.1, 0.6]]
    runs = {name: scores("AP", row) for name, row in zip("abcde", values, strict=True)}
    for baseline, against in ((None, "c"), ("b", "b")):
        first, _, figure, *topics = result([(runs, compare_scores(runs, baseline))]).parts
        assert first == verdict([(runs, compare_scores(runs, baseline))])
        assert sorted(topic.run for topic in topics) == [*"abcde"]
        assert all(topic.folded for topic in topics)
        assert figure.caption.startswith(f"Difference of AP from {against}, with 95 % intervals")
        expected = compare_scores({against: runs[against], **runs}, against).comparisons
        rows = sorted(((c.run, c.difference, *c.interval) for c in expected), key=lambda row: -row[1])
        assert [row[0] for row in figure.data.rows] == [row[0] for row in rows]
        shown = np.array([row[1:] for row in figure.data.rows])
        assert shown == pytest.approx(np.array([row[1:] for row in rows]))
        ends = re.findall(r'd="M([\d.]+) [\d.]+H([\d.]+)" stroke="[^"]+" stroke-width="2"', figure.svg)
        x = [number(point, "cx") for point in elements(figure, "circle")]
        slope = (x[0] - x[-1]) / (shown[0, 0] - shown[-1, 0])
        assert x == pytest.approx([x[0] + slope * (value - shown[0, 0]) for value in shown[:, 0]], abs=0.1)
        assert np.array(ends, float) == pytest.approx(x[0] + slope * (shown[:, 1:] - shown[0, 0]), abs=0.2)


def test_contributions_are_drawn_from_0():
    figure = contributions_chart("Parts", [("SD<", 2.0), ("score", -1.0), ("none", 0.0)], "difference")
    lines = re.findall(r'd="M([\d.]+) [\d.]+H([\d.]+)" stroke="([^"]+)" stroke-width="2"', figure.svg)
    (zero, right, better), (left, start, worse), (alone, *same, neither) = lines
    assert (start, *same, better, worse, neither) == (zero, zero, BETTER, WORSE, GREY)
    assert alone == zero
    assert float(right) - float(zero) == pytest.approx(2 * (float(zero) - float(left)), abs=0.2)
    names = [text.text for text in elements(figure, "text")]
    assert [*names[-4:-1], names[-1]] == ["SD<: +2.0000", "score: -1.0000", "none: +0.0000", "difference"]
    assert figure.data.rows == [("SD<", 2.0), ("score", -1.0), ("none", 0.0)]


@pytest.mark.parametrize(("measure", "sign"), [("AP", 1.0), ("subtopic-loss@5", -1.0)])
def test_verdicts(measure, sign):
    """Better, worse, and neither; what a loss means is its contrary."""
    rng = np.random.default_rng(3)
    base, noise = 0.5 + 0.1 * rng.random(30), rng.normal(0, 0.01, 30)
    by_name = {"base": base, "up": base + 0.1 + noise, "down": base - 0.1 + noise, "close": base + noise - noise.mean()}
    by_name |= {"near": by_name["close"] + sign * 1e-4, "far": by_name["close"] - sign * 1e-4}
    better, worse = ("up", "down") if sign > 0 else ("down", "up")
    for c in compare_scores({name: scores(measure, row.tolist()) for name, row in by_name.items()}, "base").comparisons:
        relation = {better: "is better than", worse: "is worse than"}.get(
            c.run, "is not shown to be better or worse than"
        )
        assert c.verdict.startswith(f"{c.run} {relation} base: its mean")
        assert c.significant == (c.run in ("up", "down"))
        assert c.significant == (f"(80 %) reveal a difference of {c.detectable:.4f}" not in c.verdict)
        assert ("higher" in c.verdict) == (c.difference > 0)
        gap = f"{abs(c.difference):.4f}" if c.difference else "the same"
        assert f"of {c.mean:.4f} is {gap} " in c.verdict
        assert f"better on {c.wins} of 30 queries and worse on {c.losses}." in c.verdict
        assert ("lower is better" in c.verdict) == (sign < 0)
        assert [*map(float, re.findall(r"[+-]0\.\d{4}", c.verdict))] == [*np.round(c.interval, 4)]


def spelt_out(letters):
    """The letters that spans stand for."""
    return re.sub(
        r"(.)\.\.(.)", lambda span: ascii_letters[slice(*map(ascii_letters.index, span.groups()))] + span[2], letters
    )


def test_a_page_has_spans_of_many_letters_and_leads_from_each_run_to_its_queries():
    values = 0.3 + 0.002 * np.arange(30)[:, None] + np.random.default_rng(4).normal(0, 0.014, (30, 24))
    runs = {f"run {n}": scores("AP", row.tolist()) for n, row in enumerate(values)}
    tests = compare_scores(runs)
    assert len({letter for letters in group_letters(runs, tests).values() for letter in letters}) > 10
    page = Page(Evaluation(runs, tests).format("html"))
    letters = {run: letters for (run, _), letters in group_letters(runs, tests).items()}
    rows = {(n, f"{one.means[0]:.4f}", letters[n]) for n, one in runs.items()}
    assert {(*row[1:3], spelt_out(row[3])) for row in page.rows[1:31]} == rows
    assert max(len(row[3]) for row in page.rows[1:31]) <= 6 < max(map(len, letters.values())), letters
    for form in ("html", "text", "latex"):
        assert "a..f: all letters from a to f." in Evaluation(runs, tests).format(form)
    raised = re.findall(r"\^\{(.*?)\}", Evaluation(runs, tests).format("latex"))
    assert {*map(spelt_out, raised)} == {*letters.values()}
    links = {value for _, name, value in page.attributes if name == "href" and "figure" in value}
    assert {f"#{value}" for tag, name, value in page.attributes if (tag, name) == ("figure", "id")} == links
    assert len(links) == 30
    plain = Page(Evaluation(runs).format("html"))
    assert [row[2] for row in plain.rows if len(row) == 3] == [f"{value:.4f}" for value in values.ravel()]
