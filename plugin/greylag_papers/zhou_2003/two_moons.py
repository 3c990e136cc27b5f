"""Two moons: does the query's moon precede the other, whichever point is the query? (Zhou et al. 2003, section 5.1).

Compares the iteration f(t), its limit f*, the ranking by distance, and the ranking by shortest paths on the same graph.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import numpy as np
from pydantic import Field
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.datasets import make_moons

from greylag.base import FloatArray, IntArray
from greylag.evaluation import Section
from greylag.rankers import spread_iterates, spread_scores
from greylag.studies import Context, Experiment, Outcome, Positive, Seed, Study, means_table
from greylag_papers.zhou_2003.by_example import connecting, roc_areas


class Settings(Experiment):
    """The points and the ranking."""

    points: Positive = 200
    """Number of points."""
    noise: Annotated[float, Field(ge=0)] = 0.05
    """Standard deviation of the noise; the radius of a moon is 1."""
    seed: Seed = 0
    """Seed of the points."""
    sigma: float = 0.15
    """Kernel width of the connecting graph."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.99
    """The alpha of manifold ranking."""
    steps: tuple[Positive, ...] = (5, 10, 50, 100)
    """The t of each f(t), ascending."""


def draw_points(settings: Settings, context: Context) -> tuple[FloatArray, IntArray]:
    """Draw points, shape (n, 2), and the moon of each, 0 or 1."""
    X, moons = make_moons(settings.points, noise=settings.noise, random_state=settings.seed)
    return X, moons


def run(settings: Settings, points: tuple[FloatArray, IntArray], context: Context) -> Outcome:
    """Rank all points for each point as the query."""
    X, moons = points
    D = cdist(X, X)
    W = np.where(connecting(D), np.exp(-0.5 * (D / settings.sigma) ** 2), 0.0)
    scores = score(X, W, settings)
    means = {
        name: {
            "separated": float(separates(columns, moons).mean()),
            "ROC area": float(roc_areas(columns, moons, range(len(X))).mean()),
        }
        for name, columns in scores.items()
    }
    falls = falling(scores["f*"], scores["shortest paths"], moons)
    means["f*"]["falls along the moon"] = float(falls.mean())
    context.progress(f"two moons: {len(X)} points ranked for each of them, by {len(scores)} methods")
    caption = "Means over all points as the query: share of queries whose whole moon is ranked first, and ROC area"
    table = means_table(caption, means)
    return Outcome(
        scores=means,
        results=means,
        title="Manifold ranking of two moons",
        sections=[Section("Every point as the query", parts=[table])],
    )


def score(X: FloatArray, W: FloatArray, settings: Settings) -> dict[str, FloatArray]:
    """Compute scores by distance, by shortest paths, by f(t) and by f*: a column for each point as the query."""
    queries = np.eye(len(X))
    steps = islice(spread_iterates(W, queries, alpha=settings.alpha), max(settings.steps) + 1)
    by_step = {f"f({t})": f for t, f in enumerate(steps) if t in settings.steps}
    limit = spread_scores(W, queries, alpha=settings.alpha)
    return {"distance": -cdist(X, X), "shortest paths": -path_lengths(X, W), **by_step, "f*": limit}


def path_lengths(X: FloatArray, W: FloatArray) -> FloatArray:
    """Compute the lengths of the shortest paths between all points, edges being as long as their ends' distance."""
    return np.asarray(shortest_path(np.where(W > 0, cdist(X, X), np.inf), directed=False))


def separates(scores: FloatArray, moons: IntArray) -> FloatArray:
    """Return 1 for each column (query) in which its whole moon scores above the whole other moon, else 0."""
    same = moons[:, np.newaxis] == moons
    lowest = np.where(same, scores, np.inf).min(axis=0)
    highest = np.where(same, -np.inf, scores).max(axis=0)
    return np.where(lowest > highest, 1.0, 0.0)


def falling(scores: FloatArray, nearness: FloatArray, moons: IntArray) -> FloatArray:
    """Compute, for each query, the rank correlation of the scores of its moon with the nearness on the graph."""
    correlations = np.empty(len(moons))
    for query, moon in enumerate(moons):
        same_moon = moons == moon
        same_moon[query] = False  # the query itself is first by both
        correlations[query] = spearmanr(scores[same_moon, query], nearness[same_moon, query]).statistic
    return correlations


STUDY = Study(Settings, draw_points, run)
