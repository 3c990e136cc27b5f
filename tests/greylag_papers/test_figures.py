"""Figures that only studies of papers have."""

import base64
import re
import struct
import zlib
from xml.etree import ElementTree

import numpy as np

from greylag_papers.figures import EDGE, SIZE, TOP, Cloud, picture_figure, point_figure

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


def png_rows(figure):
    """The bytes of the picture, by the definition of PNG."""
    (data,) = re.findall(r"base64,([^\"]+)", figure.svg)
    png = base64.b64decode(data)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        name, content = png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        assert struct.unpack(">I", png[place + 8 + length : place + 12 + length]) == (zlib.crc32(name + content),)
        chunks[name], place = content, place + 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert depth == 8
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3) if colour == 2 else rows[:, 1:]


def test_pictures_keep_their_pixels():
    rng = np.random.default_rng(0)
    for shape in ((3, 5), (4, 2, 3)):
        picture = rng.random(shape)
        drawn = picture_figure("caption", {"title": picture}, rows=["above", "below"])
        assert np.abs(png_rows(drawn) / 255 - picture).max() <= 0.5 / 255 + 1e-12
        assert {"title", "above", "below"} == set(texts(drawn))
