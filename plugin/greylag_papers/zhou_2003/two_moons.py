"""Two moons: does the query's moon precede the other, whichever point is the query? (Zhou et al. 2003, section 5.1).

Compares the iteration f(t), its limit f*, and the ranking by distance.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons

from greylag import FloatArray, IntArray
from greylag.experiments import (
    Context,
    Experiment,
    Figure,
    Outcome,
    Positive,
    Section,
    Seed,
    Study,
    draw_figure,
    means_table,
)
from greylag.manifold import affinity_graph, iterates, rank
from greylag_papers.zhou_2003.by_example import roc_areas

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

COLUMNS = 3  # of panels in the figure


class Settings(Experiment):
    """The points and the ranking.

    Parameters
    ----------
    points : int >= 1, default 200
        Number of points.
    noise : float >= 0, default 0.05
        Standard deviation of the noise; the radius of a moon is 1.
    seed : int, default 0
    sigma : float, default 0.15
        Kernel width of the connecting graph.
    alpha : float, default 0.99
    steps : tuple of int >= 1, default (5, 10, 50, 100)
        The t of each f(t), ascending.
    """

    points: Positive = 200
    noise: Annotated[float, Field(ge=0)] = 0.05
    seed: Seed = 0
    sigma: float = 0.15
    alpha: float = 0.99
    steps: tuple[Positive, ...] = (5, 10, 50, 100)


def draw_points(settings: Settings, context: Context) -> tuple[FloatArray, IntArray]:
    """Points, shape (n, 2), and the moon of each, 0 or 1."""
    X, moons = make_moons(settings.points, noise=settings.noise, random_state=settings.seed)
    return X, moons


def run(settings: Settings, points: tuple[FloatArray, IntArray], context: Context) -> Outcome:
    """Rank all points for each point as the query."""
    X, moons = points
    scores = score(X, settings)
    means = {
        name: {
            "separated": float(separates(columns, moons).mean()),
            "ROC area": float(roc_areas(columns, moons, range(len(X))).mean()),
        }
        for name, columns in scores.items()
    }
    context.progress(f"two moons: {len(X)} points ranked for each of them, by {len(scores)} methods")
    caption = "Means over all points as the query: share of queries whose whole moon is ranked first, and ROC area"
    table = means_table(caption, means)
    return Outcome(
        scores=means,
        results=means,
        tables=[table],
        title="Manifold ranking of two moons",
        sections=[
            Section("Every point as the query", parts=[table]),
            Section("One query", parts=[scores_figure(X, scores, int(np.argmin(X[:, 0])))]),
        ],
    )


def score(X: FloatArray, settings: Settings) -> dict[str, FloatArray]:
    """Scores by distance, by f(t) and by f*: a column for each point as the query."""
    W = affinity_graph(X, sigma=settings.sigma)
    queries = np.eye(len(X))
    steps = islice(iterates(W, queries, alpha=settings.alpha), max(settings.steps) + 1)
    by_step = {f"f({t})": f for t, f in enumerate(steps) if t in settings.steps}
    return {"distance": -cdist(X, X), **by_step, "f*": rank(W, queries, alpha=settings.alpha)}


def separates(scores: FloatArray, moons: IntArray) -> FloatArray:
    """1 for each column (query) in which its whole moon scores above the whole other moon, else 0."""
    same = moons[:, np.newaxis] == moons
    lowest = np.where(same, scores, np.inf).min(axis=0)
    highest = np.where(same, -np.inf, scores).max(axis=0)
    return np.where(lowest > highest, 1.0, 0.0)


def scores_figure(X: FloatArray, scores: Mapping[str, FloatArray], query: int) -> Figure:
    """A panel for each of `scores`, with one query; colours do not depend on the query's own score."""
    others = np.arange(len(X)) != query

    def draw(canvas: Canvas) -> None:
        grid = canvas.subplots(-(-len(scores) // COLUMNS), COLUMNS, squeeze=False).ravel()
        for axes, (name, columns) in zip(grid, scores.items(), strict=False):
            axes.scatter(*X[others].T, s=12, c=columns[others, query], cmap="viridis_r", linewidths=0)
            axes.plot(*X[query], "x", color="C3", markersize=9, markeredgewidth=2)
            axes.set(title=name, aspect="equal")
        for axes in grid:
            axes.set_axis_off()

    return draw_figure("The cross is the query. The darker a point, the higher its score.", draw)


STUDY = Study(Settings, draw_points, run)
