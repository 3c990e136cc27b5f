from __future__ import annotations

import numpy as np

from greylag_papers.schiegg_2016.gallery import GREY, draw_gallery, mosaic
from greylag_papers.schiegg_2016.potts import N_FEATURES


def test_mosaic() -> None:
    black, white = np.zeros((2, 1, 3)), np.ones((2, 1, 3))
    assert mosaic([[black, white], [white]])[:, :, 0].tolist() == [
        [0.0, GREY, 1.0, GREY],
        [0.0, GREY, 1.0, GREY],
        [GREY] * 4,
        [1.0, GREY, GREY, GREY],
        [1.0, GREY, GREY, GREY],
        [GREY] * 4,
    ]


def test_gallery_has_a_row_for_each_ensemble() -> None:
    rng = np.random.default_rng(0)
    colours, labels = rng.random((4, 5, 3)), rng.integers(2, size=20)
    ensembles = {"one": rng.random((1, N_FEATURES + 2)), "three": rng.random((3, N_FEATURES + 2))}
    svg = draw_gallery("", colours, labels, ensembles).svg
    assert all(f">{name}</text>" in svg for name in ("image, labels", "one", "three"))
