"""Figures that only studies of papers have."""

import re
from xml.etree import ElementTree

import numpy as np

from greylag_papers.figures import EDGE, SIZE, TOP, Cloud, point_figure

SVG = "{http://www.w3.org/2000/svg}"


def parsed(figure):
    return ElementTree.fromstring(figure.svg)


def texts(figure):
    return [text.text for text in parsed(figure).iter(f"{SVG}text")]


def test_points_of_the_plane_with_their_shades_edges_and_a_cross():
    cloud = Cloud(
        np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [5.0, 5.0]]),
        shades=np.array([0.0, 1.0, 0.5, 99.0]),
        edges=np.array([[0, 1], [0, 2]]),
        marked=3,
    )
    drawn = point_figure("caption", {"moons": cloud})
    fills = [circle.get("fill", "") for circle in parsed(drawn).iter(f"{SVG}circle")]
    # the marked point is no circle, and its shade does not count
    assert fills == ["#bedcfa", "#0a286e", "#6482b4"]
    assert drawn.svg.count('stroke-width="0.4"') == 2
    assert texts(drawn) == ["moons"]
    labelled = point_figure(
        "caption", {"": Cloud(np.array([[0.2, 0.4], [0.6, 0.5]]))}, xlabel="a", ylabel="b", diagonal=True
    )
    assert {"a", "b"} <= set(texts(labelled))
    axis = re.search(r'd="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" stroke="#808080"', labelled.svg)
    assert axis is not None
    left, bottom, right, top = map(float, axis.groups())
    assert (left, bottom, right, top) == (EDGE, TOP + SIZE, EDGE + SIZE, TOP)
