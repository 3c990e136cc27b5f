"""Ranking by example, as Zhou et al. (2003, section 5) test it: queries drawn from a class, and areas under the ROC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.errors import ParameterError
from greylag.ranking import FloatArray, IntArray


def draw_queries(rng: np.random.Generator, classes: NDArray[Any], own: Any, count: int) -> IntArray:
    """Points of the class `own`, without replacement, shape (count,); at least one more is left to be found.

    Raises
    ------
    ParameterError
        Where the class is not so large.
    """
    members = np.flatnonzero(classes == own)
    if len(members) <= count:
        raise ParameterError(f"class {own} has {len(members)} points, too few to draw {count} queries and find another")
    return rng.choice(members, count, replace=False)


def query_columns(n: int, queries: IntArray) -> FloatArray:
    """A column of y for each of the queries on its own, shape (n, q)."""
    Y = np.zeros((n, len(queries)))
    Y[queries, np.arange(len(queries))] = 1.0
    return Y


def roc_areas(scores: FloatArray, classes: NDArray[Any], queries: Sequence[int | IntArray]) -> FloatArray:
    """How well each column of scores puts the points of its queries' class above all others; the queries don't count.

    Parameters
    ----------
    scores : shape (n, q).
    classes : shape (n,), numbers or names.
    queries : for each column one or more points, all of one class.

    Returns
    -------
    ndarray, shape (q,)
        The chance that a point of the class scores higher than another one, a tie counting as half.
    """
    from sklearn.metrics import roc_auc_score

    areas = np.empty(len(queries))
    for i, (column, own) in enumerate(zip(scores.T, queries, strict=True)):
        others = np.ones(len(classes), dtype=bool)
        others[own] = False
        areas[i] = roc_auc_score(classes[others] == classes[np.ravel(own)[0]], column[others])
    return areas
