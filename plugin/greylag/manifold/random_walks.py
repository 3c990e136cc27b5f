"""PageRank and its versions for queries (Zhou et al. 2003, sections 3 and 4).

The random walk follows P = D^-1 W. On an undirected graph it is the walk behind manifold ranking: f* of
`greylag.manifold.rank` is D^-1/2 r*, where r* is `generalised_pagerank` with exponent 1/2 (eq. 10).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from greylag.errors import ParameterError
from greylag.manifold.graph import AffinityGraph
from greylag.manifold.ranking import Solver, checked_graph, checked_sources, checked_weights, degrees, solve
from greylag.ranking import FloatArray


def transition_matrix(W: Any, *, epsilon: float = 0.85) -> FloatArray:
    """Compute the transition probabilities of PageRank's walk (Zhou et al. 2003, eq. 3).

    P = (1 - epsilon) U + epsilon D^-1 W: with probability epsilon the walk follows an edge, otherwise it jumps to any
    vertex. U has all entries 1/n. A vertex without outgoing edges, which eq. 3 does not cover, always jumps.

    Parameters
    ----------
    W : array-like or sparse, shape (n, n)
        Non-negative weights of the edges from row to column; not necessarily symmetric.
    epsilon : float in [0, 1], default 0.85

    Returns
    -------
    ndarray, shape (n, n)
        Rows sum to 1.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    """
    weights = checked_weights(W)
    if not 0 <= epsilon <= 1:
        raise ParameterError(f"epsilon is {epsilon}; it must be in [0, 1]")
    dense: FloatArray = weights if isinstance(weights, np.ndarray) else weights.toarray()
    out, n = dense.sum(axis=1, keepdims=True), len(dense)
    follow = np.divide(dense, out, out=np.full((n, n), 1 / n), where=out > 0)
    probabilities: FloatArray = (1 - epsilon) / n + epsilon * follow
    return probabilities


def pagerank(W: Any, *, epsilon: float = 0.85) -> FloatArray:
    """Compute PageRank without queries: the stationary distribution of `transition_matrix` (Zhou et al. 2003, eq. 3).

    On a connected undirected graph, the distribution tends to the degrees divided by their sum (eq. 4) as epsilon tends
    to 1. For a smaller epsilon eq. 4 holds only if all degrees are equal, since D 1 is not stationary under U.

    Parameters
    ----------
    W : array-like or sparse, shape (n, n)
        See `transition_matrix`.
    epsilon : float in [0, 1), default 0.85

    Returns
    -------
    ndarray, shape (n,)
        Sums to 1.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    """
    weights = checked_weights(W)
    if not 0 <= epsilon < 1:
        raise ParameterError(f"epsilon is {epsilon}; it must be in [0, 1)")
    out, n = np.asarray(weights.sum(axis=1)).ravel(), weights.shape[0]
    share = np.divide(epsilon, out, out=np.zeros(n), where=out > 0)
    # Jumps, and the walks that end in vertices without edges, both restart anywhere, so they only scale the solution.
    if sparse.issparse(weights):
        from scipy.sparse.linalg import spsolve

        followed = (sparse.eye_array(n) - weights.T @ sparse.diags_array(share)).tocsc()
        visits = np.asarray(spsolve(followed, np.ones(n)))
    else:
        visits = np.linalg.solve(np.eye(n) - weights.T * share, np.ones(n))
    distribution: FloatArray = visits / visits.sum()
    return distribution


def personalised_pagerank(
    W: AffinityGraph, y: ArrayLike, *, alpha: float = 0.85, solver: Solver = "auto"
) -> FloatArray:
    """Compute the stationary distribution of a random walk with restarts (Zhou et al. 2003, eq. 8 and 9).

    r* = (1 - alpha) (I - alpha P^T)^-1 y with P = D^-1 W: at each step the walk follows an edge with probability alpha,
    in proportion to its weight, and otherwise restarts from y.

    Parameters
    ----------
    W, solver
        See `rank`.
    y : array-like, shape (n,) or (n, q)
        The restart distribution, non-negative, with a positive entry in every column; normalised to sum to 1.
    alpha : float in [0, 1 - 1e-10], default 0.85

    Returns
    -------
    ndarray, shape of y
        r*. Columns sum to 1, minus alpha y_i for each isolated point i, where restarts are lost.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    """
    restart = np.atleast_1d(np.asarray(y, dtype=np.float64))
    if not (restart >= 0).all() or not restart.any(axis=0).all():
        raise ParameterError(
            "y must be non-negative, with a positive entry in every column, as it is where walks restart"
        )
    return generalised_pagerank(W, restart / restart.sum(axis=0), alpha=alpha, solver=solver)


def generalised_pagerank(
    W: AffinityGraph, y: ArrayLike, *, alpha: float = 0.99, exponent: float = 0.0, solver: Solver = "auto"
) -> FloatArray:
    """Compute PageRank with queries weighted by their degrees (Zhou et al. 2003, eq. 11 and 12).

    r* = (1 - alpha) (I - alpha P^T)^-1 D^k y with P = D^-1 W and k = `exponent`, the limit of
    r(t + 1) = alpha P^T r(t) + (1 - alpha) D^k y. The paper's eq. 12 omits the factor 1 - alpha. The exponent affects
    the ranking only if y has several queries, whose weights it changes in proportion to d_i^k.

    Parameters
    ----------
    W, alpha, solver
        See `rank`.
    y : array-like, shape (n,) or (n, q)
        Finite; one ranking, or one per column. For classification, 1 and -1 for labelled points of the two classes and
        0 for the others (section 4); the sign of r* is the class.
    exponent : float, default 0
        k, finite; 0 is eq. 9.

    Returns
    -------
    ndarray, shape of y
        r*.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, or conjugate gradients do not converge (alpha too close to 1).
    """
    graph = checked_graph(W)
    if not math.isfinite(exponent):
        raise ParameterError(f"exponent is {exponent}; it must be finite")
    source = checked_sources(y, graph.shape[0], alpha)
    return solve(graph, (source.T * degrees(graph) ** exponent).T, alpha, 0.0, solver)
