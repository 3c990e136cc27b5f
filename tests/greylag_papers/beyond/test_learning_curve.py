"""The picture of the learning curves is what the experiment files expect; GREYLAG_GOLDEN=write writes it anew."""

import os

from greylag.evaluation import split_folds
from greylag_papers.beyond.learning_curve import training_order
from greylag_papers.beyond.ranker_curve import curve_figure, points
from tests.docs import DOCS, load

PICTURE = DOCS / "ranker-curve.svg"


def test_the_picture_is_that_of_the_expected_scores():
    found = load("tables").curve_points()
    svg = curve_figure("", {f"{title}, nDCG@10": points(figures) for title, figures in found.items()}).svg + "\n"
    if os.environ.get("GREYLAG_GOLDEN") == "write":
        PICTURE.write_text(svg)
    assert PICTURE.read_text() == svg


def test_training_topics_are_outside_the_part_and_grow():
    qids = [f"q{number}" for number in range(12)]
    for part in split_folds(qids, 3, 1):
        order = training_order(qids, part, 1)
        assert sorted([*order, *part]) == sorted(qids)
    assert training_order(qids, qids[:3], 1) == training_order(qids, qids[:3], 1)
