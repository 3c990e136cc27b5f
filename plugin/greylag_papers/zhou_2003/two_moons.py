"""Two moons: does the query's moon come before the other, whichever point is the query? (Zhou et al. 2003, section 2).

The graph and the iteration at work where they can be seen, beside the ranking by distance.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from greylag.experiments import config
from greylag.experiments.report import (
    Section,
    Table,
    as_text,
    check_dependencies,
    draw_figure,
    provenance,
    write_report,
    write_results,
)
from greylag.experiments.study import Result, Say
from greylag.manifold import affinity_graph, iterates, rank
from greylag.ranking import FloatArray, IntArray
from greylag_papers.zhou_2003.by_example import roc_areas

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

DISTANCE, LIMIT = "distance", "f*"


class Settings(config.Experiment):
    """The points, and the ranking.

    Parameters
    ----------
    points, noise, seed : of `sklearn.datasets.make_moons`; `noise` is a standard deviation, and a moon's radius is 1.
    sigma, alpha : of the ranking, on the paper's connecting graph.
    steps : the t for which f(t) is shown, ascending.
    """

    points: config.Positive = 200
    noise: Annotated[float, Field(ge=0)] = 0.05
    seed: int = 0
    sigma: float = 0.15
    alpha: float = 0.99
    steps: tuple[config.Positive, ...] = (5, 10, 50, 100)


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``results.json`` and ``report.html`` to `out`."""
    from sklearn.datasets import make_moons

    check_dependencies()
    X, moons = make_moons(settings.points, noise=settings.noise, random_state=settings.seed)
    scores = score(X, settings)
    results = {
        name: {
            "separated": float(separates(columns, moons).mean()),
            "ROC area": float(roc_areas(columns, moons, range(len(X))).mean()),
        }
        for name, columns in scores.items()
    }
    say(f"two moons: each of {len(X)} points ranked for each, in {len(scores)} ways")
    table = Table(
        "Means over all points as the query: how often its whole moon comes first, and the area under the ROC curve",
        ("ranked by", "separated", "ROC area"),
        [(name, *measures.values()) for name, measures in results.items()],
    )
    write_results(out, results)
    query = int(np.argmin(X[:, 0]))
    shown = {name: columns[:, query] for name, columns in scores.items()}
    limits = {name: shown.pop(name) for name in (DISTANCE, LIMIT)}
    caption = "The query is the cross. The darker a point, the higher its score: by {}."
    figures = [
        draw_figure(
            caption.format("distance, and in the limit"),
            lambda canvas: draw_scores(canvas, X, limits, query),
            height=2.2,
        ),
        draw_figure(caption.format("f(t)"), lambda canvas: draw_scores(canvas, X, shown, query), height=1.5),
    ]
    sections = [Section("Every point as the query", parts=[table]), Section("One query", parts=figures)]
    write_report(out / "report.html", "Manifold ranking of two moons", sections, provenance(settings))
    return Result(results, as_text(table))


def score(X: FloatArray, settings: Settings) -> dict[str, FloatArray]:
    """Scores of every point for every query, a column each: by distance, by f(t), and by the limit f*."""
    from scipy.spatial.distance import cdist

    W = affinity_graph(X, sigma=settings.sigma)
    queries = np.eye(len(X))
    steps = islice(iterates(W, queries, alpha=settings.alpha), max(settings.steps) + 1)
    by_step = {f"f({t})": f for t, f in enumerate(steps) if t in settings.steps}
    return {DISTANCE: -cdist(X, X), **by_step, LIMIT: rank(W, queries, alpha=settings.alpha)}


def separates(scores: FloatArray, moons: IntArray) -> FloatArray:
    """For each query, a column of `scores`: 1 where every point of its moon scores above all of the other, else 0."""
    same = moons[:, np.newaxis] == moons
    lowest = np.where(same, scores, np.inf).min(axis=0)
    highest = np.where(same, -np.inf, scores).max(axis=0)
    return np.where(lowest > highest, 1.0, 0.0)


def draw_scores(canvas: Canvas, X: FloatArray, scores: Mapping[str, FloatArray], query: int) -> None:
    """A panel for each of `scores`; colours span those of the points other than the query."""
    others = np.arange(len(X)) != query
    for axes, (name, values) in zip(canvas.subplots(1, len(scores)), scores.items(), strict=True):
        axes.scatter(*X[others].T, s=12, c=values[others], cmap="viridis_r", linewidths=0)
        axes.plot(*X[query], "x", color="C3", markersize=9, markeredgewidth=2)
        axes.set_title(name)
        axes.set_aspect("equal")
        axes.set_axis_off()
