"""The picture of the learning curves is what the experiment files expect; GREYLAG_GOLDEN=write writes it anew."""

import os

from greylag_papers.beyond.ranker_curve import curve_figure, points
from tests.docs import DOCS, load

PICTURE = DOCS / "ranker-curve.svg"


def test_the_picture_is_that_of_the_expected_scores() -> None:
    found = load("tables").curve_points()
    svg = curve_figure("", {f"{title}, nDCG@10": points(figures) for title, figures in found.items()}).svg + "\n"
    if os.environ.get("GREYLAG_GOLDEN") == "write":
        PICTURE.write_text(svg)
    assert PICTURE.read_text() == svg
