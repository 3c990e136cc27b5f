"""Figures that only studies of papers have."""

import re

import numpy as np

from greylag_papers.figures import EDGE, SIZE, TOP, Cloud, point_figure


def test_points_of_the_plane_with_their_shades_edges_and_a_cross():
    cloud = Cloud(
        np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [5.0, 5.0]]),
        shades=np.array([0.0, 1.0, 0.5, 99.0]),
        edges=np.array([[0, 1], [0, 2]]),
        marked=3,
    )
    drawn = point_figure("caption", {"moons": cloud}).svg
    # the marked point is no circle, and its shade does not count
    assert re.findall('<circle .* fill="(.*)"', drawn) == ["#bedcfa", "#0a286e", "#6482b4"]
    assert drawn.count('stroke-width="0.4"') == 2
    assert re.findall("<text.*>(.+)</text>", drawn) == ["moons"]
    points = {"": Cloud(np.array([[0.2, 0.4], [0.6, 0.5]]))}
    labelled = point_figure("caption", points, xlabel="a", ylabel="b", diagonal=True).svg
    assert {"a", "b"} <= set(re.findall("<text.*>(.+)</text>", labelled))
    diagonal = f'd="M{EDGE:.1f} {TOP + SIZE:.1f}L{EDGE + SIZE:.1f} {TOP:.1f}"'
    assert f'{diagonal} stroke="#808080"' in labelled
