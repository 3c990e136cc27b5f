"""Choice of parameters by leave-one-query-out, for two or more queries (after Zhou et al. 2003, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from greylag.errors import ParameterError
from greylag.manifold.choices import Graph
from greylag.manifold.graph import Affinity, affinity_graph
from greylag.manifold.random_walks import generalised_pagerank
from greylag.manifold.ranking import degrees, query_vector
from greylag.ranking import FloatArray, IntArray


class Choice(NamedTuple):
    """Parameters, and the mean over held-out queries of the share of other points that they rank below the query."""

    sigma: float | None
    alpha: float
    exponent: float
    score: float


def leave_one_query_out(scores: FloatArray, queries: ArrayLike) -> FloatArray:
    """Score each query as ranked by the other queries.

    Rankings are linear in the queries, so the scores by all queries but one are sums of scores by single queries.

    Parameters
    ----------
    scores : array, shape (n, q)
        Column j is the ranking of all points by query j alone.
    queries : array-like of int, shape (q,)
        The rows of the queries, at least 2.

    Returns
    -------
    ndarray, shape (q,)
        The share of points, other than queries, that score below the held-out query; a tie counts one half. This is the
        ROC area with the held-out query as the only relevant point.

    Raises
    ------
    ParameterError
        If there are fewer than two queries.
    """
    rows = np.asarray(queries)
    if rows.ndim != 1 or len(rows) < 2:
        raise ParameterError(f"queries are {queries!r}; leave-one-query-out needs at least 2")
    by_others = scores.sum(axis=1, keepdims=True) - scores
    others = np.delete(by_others, rows, axis=0)
    held_out = by_others[rows, np.arange(len(rows))]
    shares: FloatArray = ((others < held_out).mean(axis=0) + (others <= held_out).mean(axis=0)) / 2
    return shares


def scores_by_exponent(
    pagerank: FloatArray, degree: FloatArray, queries: IntArray, exponents: Sequence[float]
) -> dict[float, FloatArray]:
    """`normalised_rank` for several exponents, from one solution.

    Parameters
    ----------
    pagerank : array, shape (n, q)
        `generalised_pagerank` of each query alone, with exponent 0.
    degree : array, shape (n,)
    queries : int array, shape (q,)
    exponents : sequence of float
    """
    return {k: pagerank * degree[:, np.newaxis] ** -k * degree[queries] ** k for k in exponents}


def choose_parameters(
    X: ArrayLike,
    queries: ArrayLike,
    *,
    sigmas: Sequence[float | None] = (None,),
    alphas: Sequence[float] = (0.5, 0.9, 0.99, 0.999),
    exponents: Sequence[float] = (0.0, 0.5, 1.0),
    graph: Graph = "connecting",
    neighbours: int = 10,
    affinity: Affinity = "rbf",
) -> Choice:
    """Choose the parameters of `normalised_rank` by `leave_one_query_out`.

    Parameters
    ----------
    X : array-like or sparse, shape (n, m)
        One row per point, the queries included.
    queries : array-like of int, shape (q,)
        The rows of the queries, at least 2.
    sigmas, alphas, exponents : sequences
        The values to try; see `affinity_graph` and `normalised_rank`.
    graph, neighbours, affinity
        See `affinity_graph`.

    Returns
    -------
    Choice
        The first of the best, sigma varying slowest and the exponent fastest.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, or there are fewer than two queries.
    """
    tried: list[Choice] = []
    rows = np.atleast_1d(np.asarray(queries))
    for sigma in sigmas:
        W = affinity_graph(X, graph=graph, neighbours=neighbours, affinity=affinity, sigma=sigma)
        Y = np.stack([query_vector(W.shape[0], row) for row in rows], axis=1)
        for alpha in alphas:
            by_exponent = scores_by_exponent(generalised_pagerank(W, Y, alpha=alpha), degrees(W), rows, exponents)
            tried += [
                Choice(sigma, alpha, k, float(leave_one_query_out(scores, rows).mean()))
                for k, scores in by_exponent.items()
            ]
    return max(tried, key=lambda choice: choice.score)
