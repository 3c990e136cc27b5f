"""Figures that are drawn as SVG."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from greylag.evaluation import line_figure
from greylag.evaluation.reports.figures import COLOURS, ticks

SVG = "{http://www.w3.org/2000/svg}"


def parsed(figure):
    return ElementTree.fromstring(figure.svg)


def texts(figure):
    return [text.text for text in parsed(figure).iter(f"{SVG}text")]


def lines(figure):
    """The points of each curve, by name."""
    return {
        line[0].text: [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
        for line in parsed(figure).iter(f"{SVG}polyline")
    }


def test_points_are_drawn_where_they_are():
    """Twice as many topics are as far to the right each time, and higher is higher."""
    panel = {"x": {10: 0.1, 20: 0.2, 40: 0.3}, "y": {10: 0.3}}, {}
    drawn = line_figure("caption", "topics", "", {"a < b & c": panel}, log=True)
    (left, low), (middle, between), (right, high) = lines(drawn)["x"]
    assert middle - left == pytest.approx(right - middle)
    assert low - between == pytest.approx(between - high)
    assert low > high
    assert lines(drawn)["y"] == [(left, high)]
    assert {"a < b & c", "x", "y", "topics", "10", "20", "40"} <= set(texts(drawn))
    (one, _), (two, _), (three, _) = lines(line_figure("caption", "topics", "", {"": panel}))["x"]
    assert two - one == pytest.approx((three - two) / 2, abs=0.2)  # rounded to tenths of pixels


def test_panels_have_one_y_axis_or_their_own():
    panels = {"low": ({"c": {1: 0.0, 2: 0.5}}, {}), "high": ({"d": {1: 0.5, 2: 1.0}}, {"level": 0.5})}
    alike = lines(line_figure("caption", "x", "y", panels))
    assert alike["c"][1][1] == alike["d"][0][1]
    drawn = line_figure("caption", "x", "y", panels, alike=False)
    own = lines(drawn)
    assert [y for _, y in own["c"]] == [y for _, y in own["d"]]
    [level] = re.findall(r'd="M[\d.]+ ([\d.]+)H[\d.]+" stroke="#767676" stroke-dasharray', drawn.svg)
    assert float(level) == own["d"][0][1]


def test_the_table_has_what_is_drawn():
    panels = {"p": ({"c": {1: 0.25, 3: 0.5}}, {"level": 0.4}), "q": ({"c": {2: 0.75}}, {})}
    table = line_figure("caption", "x", "y", panels).data
    assert table.header == ("x", "c (p)", "level (p)", "c (q)")
    assert [tuple(row) for row in table.rows] == [(1, 0.25, 0.4, None), (2, None, 0.4, 0.75), (3, 0.5, 0.4, None)]


def test_bars_reach_a_deviation_above_and_below():
    deviations = {"": {"c": {1: 0.2}}}
    drawn = line_figure("caption", "x", "y", {"": ({"c": {1: 0.5, 2: 0.5}}, {})}, deviations=deviations)
    (bar,) = re.findall(rf'd="M([\d.]+) ([\d.]+)V([\d.]+)" stroke="{COLOURS[0]}"', drawn.svg)
    x, low, high = map(float, bar)
    (at, middle), _ = lines(drawn)["c"]
    assert x == at
    assert (low + high) / 2 == pytest.approx(middle, abs=0.1)
    assert low > middle > high


def test_labels_stand_apart():
    many = {"c": {x / 40: 0.5 for x in range(41)}}, {}
    for log in (False, True):
        panel = {"c": {2.0**x: 0.5 for x in range(41)}}, {}
        drawn = line_figure("caption", "x", "y", {"": panel if log else many}, log=log)
        middle = f'{SVG}text[@text-anchor="middle"]'
        places = [float(text.get("x", "")) for text in parsed(drawn).findall(f".//{middle}") if text.text != "x"]
        assert len(places) >= 3
        assert all(right - left >= 30 for left, right in pairwise(places))


def test_ticks_are_between_the_ends():
    rng = np.random.default_rng(1)
    for _ in range(50):
        low, size = rng.uniform(-5, 5), 10.0 ** rng.uniform(-3, 3)
        found = [value for value, _ in ticks(low, low + size)]
        assert len(found) >= 2
        assert low - 1e-6 * size <= found[0] < found[-1] <= low + size * (1 + 1e-6)
