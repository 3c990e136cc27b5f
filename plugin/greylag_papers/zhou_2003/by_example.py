"""Ranking by example: queries drawn from a class, scored by ROC area (Zhou et al. 2003, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import single
from scipy.spatial.distance import squareform
from sklearn.metrics import roc_auc_score

from greylag import ParameterError
from greylag.base import FloatArray, IntArray
from greylag.evaluation import holm
from greylag.rankers import AffinityGraph, spread_iterates
from greylag.studies import Table, means_table
from greylag_papers.contrasts import contrasts

PAGERANK = "eq. 12, k = 1"  # for one query, D^1/2 f*


def connecting(distances: FloatArray) -> NDArray[np.bool_]:
    """Mark the pairs that step 1 of the algorithm joins: in ascending order of distance, until all are connected."""
    # The last merger of single linkage is the longest edge of the minimum spanning tree.
    joined = distances <= single(squareform(distances, checks=False))[-1, 2]
    np.fill_diagonal(joined, False)
    return np.asarray(joined)


def draw_queries(rng: np.random.Generator, classes: NDArray[Any], label: Any, count: int) -> IntArray:
    """Draw `count` points of the class `label` without replacement."""
    members = np.flatnonzero(classes == label)
    if len(members) <= count:
        raise ParameterError(f"class {label} has {len(members)} points: draw fewer than {count} queries")
    return rng.choice(members, count, replace=False)


def query_columns(n: int, queries: IntArray) -> FloatArray:
    """Return the vectors y of q queries, each on its own: the columns of an array of shape (n, q)."""
    Y = np.zeros((n, len(queries)))
    Y[queries, np.arange(len(queries))] = 1.0
    return Y


def roc_areas(scores: FloatArray, classes: NDArray[Any], queries: Sequence[int | IntArray]) -> FloatArray:
    """Compute ROC areas of rankings; queries themselves are not ranked."""
    areas = np.empty(len(queries))
    for i, (column, points) in enumerate(zip(scores.T, queries, strict=True)):
        ranked = np.ones(len(classes), dtype=bool)
        # A query is close to itself by every method, and finding it again is no merit.
        ranked[points] = False
        areas[i] = roc_auc_score(classes[ranked] == classes[np.ravel(points)[0]], column[ranked])
    return areas


def class_means(areas: Mapping[str, NDArray[Any]], classes: Sequence[str]) -> dict[str, dict[str, float]]:
    """Compute means by ranking and class of values of shape (classes, ...)."""
    return {
        name: dict(zip(classes, values.mean(axis=tuple(range(1, values.ndim))).tolist(), strict=True))
        for name, values in areas.items()
    }


def class_means_table(caption: str, areas: Mapping[str, NDArray[Any]], classes: Sequence[str]) -> Table:
    """Return a row for each ranking, with a column for each class and one for all classes."""
    means = class_means(areas, classes)
    rows = {name: {**means[name], "all": float(values.mean())} for name, values in areas.items()}
    return means_table(caption, rows)


def compare_by_class(
    areas: Mapping[str, FloatArray], pairs: Sequence[tuple[str, str]], classes: Sequence[str]
) -> dict[str, dict[str, float]]:
    """`contrasts` of rankings in each class, with areas of shape (classes, trials, ...), means over the last axes."""
    means = {name: values.reshape(*values.shape[:2], -1).mean(axis=-1) for name, values in areas.items()}
    rows: dict[str, dict[str, float]] = {}
    for pair in pairs:
        for i, label in enumerate(classes):
            rows |= contrasts({name: means[name][i] for name in pair}, [pair], where=f", {label}")
    # Over all pairs and classes together, as the paper's claim is about all of them.
    corrected = holm([row["p"] for row in rows.values()]).tolist()
    return {name: {**row, "p": p} for (name, row), p in zip(rows.items(), corrected, strict=True)}


def areas_by_step(
    W: AffinityGraph, classes: NDArray[Any], queries: IntArray, steps: Sequence[int], alpha: float
) -> dict[int, FloatArray]:
    """Compute ROC areas of f(t) for each t of `steps`, each query on its own, shape of `queries`."""
    wanted = islice(spread_iterates(W, query_columns(len(classes), queries.ravel()), alpha=alpha), max(steps) + 1)
    points = queries.ravel().tolist()
    return {t: roc_areas(f, classes, points).reshape(queries.shape) for t, f in enumerate(wanted) if t in steps}
