"""A picture of what the members of ensembles make of one image, after Figure 5 of Schiegg, Diego & Hamprecht (2016)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from greylag import FloatArray, IntArray
from greylag.experiments import Figure, draw_figure
from greylag_papers.schiegg_2016.potts import PottsModel, Superpixels

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

GREY = 0.75


def draw_gallery(caption: str, colours: FloatArray, labels: IntArray, ensembles: Mapping[str, FloatArray]) -> Figure:
    """An image and its labels (white is the object), then a row for each ensemble: its members' labels, best first."""
    x, model = Superpixels.from_colours(colours), PottsModel()

    def tile(y: IntArray) -> FloatArray:
        return np.broadcast_to(y.reshape(*x.shape, 1), colours.shape).astype(np.float64)

    rows = {"image, labels": [colours, tile(labels)]}
    for name, members in ensembles.items():
        found = sorted((model.infer(x, weights) for weights in members), key=lambda y: model.loss(labels, y))
        rows[name] = [tile(y) for y in found]

    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.imshow(mosaic([*rows.values()]), interpolation="none")
        height = x.shape[0] + 1
        axes.set_yticks(np.arange(len(rows)) * height + height / 2, list(rows))
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)

    return draw_figure(caption, draw)


def mosaic(rows: Sequence[Sequence[FloatArray]]) -> FloatArray:
    """Images of the same shape (r, c, 3) side by side, with a grey line below and to the right of each."""
    r, c, _ = rows[0][0].shape
    joined = np.full((len(rows) * (r + 1), max(map(len, rows)) * (c + 1), 3), GREY)
    for i, row in enumerate(rows):
        for j, image in enumerate(row):
            joined[i * (r + 1) : i * (r + 1) + r, j * (c + 1) : j * (c + 1) + c] = image
    return joined
