"""Ranking the points of an affinity graph by scores that spread over it from the queries.

This is the second half of manifold ranking. The graph is one of `greylag.manifold.graph` or any symmetric, non-negative
matrix. For weights W with degrees D = diag(W 1) and S = D^-1/2 W D^-1/2, the scores are the limit of

    f(t + 1) = alpha S f(t) + (1 - alpha) y,        f* = (1 - alpha) (I - alpha S)^-1 y,

where y marks the queries. A point without edges is treated as one of degree 1, which leaves its row of S zero and its
score (1 - alpha) y_i.

References
----------
D. Zhou, J. Weston, A. Gretton, O. Bousquet and B. Schölkopf, Ranking on Data Manifolds, NIPS 2003.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from greylag.errors import ParameterError
from greylag.manifold.choices import Graph
from greylag.manifold.graph import Affinity, AffinityGraph, InnerProductGraph, affinity_graph
from greylag.manifold.solvers import conjugate_gradients, direct, inverse_root_degree, iteration, spreading, steps
from greylag.ranking import FloatArray

Solver = Literal["auto", "direct", "cg", "iteration"]

HIGHEST_ALPHA = 1 - 1e-10
# The number of points of a dense and of a sparse graph up to which a factorisation beats conjugate gradients.
DENSE_DIRECT, SPARSE_DIRECT = 10_000, 2_000


def manifold_ranking(
    X: ArrayLike | sparse.sparray | sparse.spmatrix,
    queries: ArrayLike,
    *,
    confidences: ArrayLike | None = None,
    alpha: float = 0.99,
    graph: Graph = "connecting",
    neighbours: int = 10,
    affinity: Affinity = "rbf",
    sigma: float | None = None,
    solver: Solver = "auto",
) -> FloatArray:
    """Score points by one or more queries among them (Zhou et al. 2003, section 2).

    Parameters
    ----------
    X : array-like or sparse, shape (n, m)
        One row per point, the queries included.
    queries : int or array-like of int
        The rows of the queries; see `query_vector`.
    confidences : array-like of float, optional
        The weights of the queries; see `query_vector`.
    alpha : float in [0, 1 - 1e-10], default 0.99
        How far scores spread.
    graph, neighbours, affinity, sigma
        See `affinity_graph`.
    solver
        See `rank`.

    Returns
    -------
    ndarray, shape (n,)
        f*, where a higher score is a better rank. Non-negative up to rounding, and exactly 0 for points that no path
        joins to a query.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.

    Examples
    --------
    >>> manifold_ranking([[0.0], [1.0], [2.0], [9.0]], [0], graph="knn", neighbours=1, alpha=0.5).round(3).tolist()
    [0.583, 0.236, 0.083, 0.0]
    """
    W = affinity_graph(X, graph=graph, neighbours=neighbours, affinity=affinity, sigma=sigma)
    y = query_vector(W.shape[0], queries, confidences)
    return solve(W, y, alpha, 0.5, solver, overwrite=True)


def query_vector(n: int, queries: ArrayLike, confidences: ArrayLike | None = None) -> FloatArray:
    """Return the vector y that marks the queries among n points.

    Parameters
    ----------
    n : int
        The number of points.
    queries : int or array-like of int
        One or more distinct rows in 0, ..., n - 1.
    confidences : array-like of float, optional
        A weight for each query, non-negative and not all 0; only their proportions affect the ranking. By default, 1
        for each.

    Returns
    -------
    ndarray, shape (n,)
        The confidence of a query in its row, 0 elsewhere.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    """
    rows = np.atleast_1d(np.asarray(queries))
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise ParameterError(f"queries are {queries!r}; they must be one or more row numbers")
    if rows.min() < 0 or rows.max() >= n:
        wrong = rows[(rows < 0) | (rows >= n)][0]
        raise ParameterError(f"query {wrong} is not a row of X, which has rows 0 to {n - 1}")
    if len(np.unique(rows)) != len(rows):
        raise ParameterError(f"queries are {rows.tolist()}; they must be distinct; use confidences to weight them")
    weights = np.ones(len(rows)) if confidences is None else np.atleast_1d(np.asarray(confidences, dtype=np.float64))
    if weights.shape != rows.shape:
        raise ParameterError(f"{len(rows)} queries but confidences of shape {weights.shape}; give one for each query")
    if not ((weights >= 0) & (weights < np.inf)).all() or not weights.any():
        raise ParameterError(f"confidences are {weights.tolist()}; they must be finite, non-negative and not all 0")
    y = np.zeros(n)
    y[rows] = weights
    return y


def rank(W: AffinityGraph, y: ArrayLike, *, alpha: float = 0.99, solver: Solver = "auto") -> FloatArray:
    """Compute the scores that spread from y over a graph (Zhou et al. 2003, section 2, Theorem 1).

    f* = (1 - alpha) (I - alpha S)^-1 y with S = D^-1/2 W D^-1/2. The paper's eq. 2 omits the factor 1 - alpha, which
    does not affect the ranking.

    Parameters
    ----------
    W : ndarray, sparse or InnerProductGraph, shape (n, n)
        Symmetric, non-negative.
    y : array-like, shape (n,) or (n, q)
        Finite; one ranking, or one per column. Points labelled 1 and -1 give a classifier by the sign of f*.
    alpha : float in [0, 1 - 1e-10], default 0.99
        How far scores spread. Each iteration shrinks the error by this factor.
    solver : "auto", "direct", "cg" or "iteration", default "auto"
        All agree to 1e-8 of the highest score up to alpha = 0.999; errors grow as 1 / (1 - alpha).

        - "direct": the closed form by a Cholesky factorisation of I - alpha S (one more n x n matrix; an
          InnerProductGraph is formed first), O(n³) once and O(n²) per column. For sparse W, a sparse LU factorisation,
          whose cost depends on the graph: low for points of few dimensions, prohibitive for many.
        - "cg": conjugate gradients, at most about 20 / sqrt(1 - alpha) products with W per column; no n x n copy.
        - "iteration": f(t) from f(0) = y, for as many steps as convergence takes (3,350 for alpha = 0.99).
        - "auto": "direct" for a dense W of up to 10,000 points and a sparse one of up to 2,000, otherwise "cg".

        Only "direct" preserves the digits, and so the order, of scores below 1e-12 of the highest; "cg" may return
        negative values for them, "iteration" 0.

    Returns
    -------
    ndarray, shape of y
        f*. Exactly 0 in a component of the graph where y is 0.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, or conjugate gradients do not converge (alpha too close to 1).
    """
    return solve(checked_graph(W), y, alpha, 0.5, solver)


def normalised_rank(
    W: AffinityGraph, y: ArrayLike, *, alpha: float = 0.99, exponent: float = 0.5, solver: Solver = "auto"
) -> FloatArray:
    """Compute the scores that spread from y under any normalisation of the graph by degrees.

    f* = (1 - alpha) (I - alpha S_k)^-1 y with S_k = D^-k W D^(k-1) and k = `exponent`. This family is not the paper's,
    but contains three of its rankings:

    - k = 1/2: S_k = S, manifold ranking, as by `rank`.
    - k = 0: S_k = P^T = W D^-1, the walk of personalised PageRank (eq. 9).
    - k = 1: S_k = P = D^-1 W. For one query, this is the ranking by D^-1/2 f*, with f* of `rank`.

    Since S_k = D^-k P^T D^k, f* = D^-k r* for the r* of `generalised_pagerank` with the same exponent. A higher k
    favours points of high degree less.

    Parameters
    ----------
    W, y, alpha, solver
        See `rank`.
    exponent : float, default 0.5
        k, finite.

    Returns
    -------
    ndarray, shape of y

    Raises
    ------
    ParameterError
        If an argument is outside its domain, or conjugate gradients do not converge (alpha too close to 1).
    """
    return solve(checked_graph(W), y, alpha, exponent, solver)


def degrees(W: AffinityGraph) -> FloatArray:
    """The degree of each point, the sum of its row of W, shape (n,); 1 for an isolated point.

    ``rank(W, y) / np.sqrt(degrees(W))`` is the degree-corrected ranking D^-1/2 f*.
    """
    return inverse_root_degree(checked_graph(W)) ** -2


def iterates(W: AffinityGraph, y: ArrayLike, *, alpha: float = 0.99) -> Iterator[FloatArray]:
    """Iterate f(0) = y, f(1), f(2), ... without end (Zhou et al. 2003, section 2).

    Parameters and errors are those of `rank`. ``next(islice(iterates(W, y), t, None))`` is f(t).
    """
    W = checked_graph(W)
    f = checked_sources(y, W.shape[0], alpha)
    return iteration(spreading(W, inverse_root_degree(W)), f, alpha)


def solve(
    W: AffinityGraph, y: ArrayLike, alpha: float, exponent: float, solver: Solver, *, overwrite: bool = False
) -> FloatArray:
    """`normalised_rank` for a valid graph; `overwrite` permits overwriting a dense W."""
    source = checked_sources(y, W.shape[0], alpha)
    if not math.isfinite(exponent):
        raise ParameterError(f"exponent is {exponent}; it must be finite")
    if solver not in get_args(Solver):
        raise ParameterError(f"solver is {solver!r}; it must be one of {', '.join(get_args(Solver))}")
    if solver == "auto":
        solver = "direct" if W.shape[0] <= _direct_up_to(W) else "cg"
    root = inverse_root_degree(W)
    # S_k = D^(1/2-k) S D^(k-1/2), so one symmetric system serves every k.
    scale = root ** (2 * exponent - 1)
    right = (source.T / scale).T
    if solver == "direct":
        limit = direct(W, root, right, alpha, overwrite=overwrite)
    elif solver == "cg":
        limit = conjugate_gradients(spreading(W, root), right, alpha)
    else:
        limit = next(islice(iteration(spreading(W, root), right, alpha), steps(alpha), None))
    return (limit.T * scale).T


def _direct_up_to(W: AffinityGraph) -> int:
    if isinstance(W, InnerProductGraph):
        return 0
    return SPARSE_DIRECT if sparse.issparse(W) else DENSE_DIRECT


def checked_graph(W: Any) -> AffinityGraph:
    """W as a float64 ndarray, CSR array or InnerProductGraph, symmetric and non-negative."""
    if isinstance(W, InnerProductGraph):
        return W
    matrix = checked_weights(W)
    if not _is_symmetric(matrix):
        raise ParameterError("W is not symmetric; symmetrise it, for example by W + W.T")
    return matrix


def checked_weights(W: Any) -> FloatArray | sparse.csr_array:
    """W as a float64 ndarray or CSR array, square and non-negative."""
    W = sparse.csr_array(W, dtype=np.float64) if sparse.issparse(W) else np.asarray(W, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1] or 0 in W.shape:
        raise ParameterError(f"W has shape {W.shape}; it must be square, with one row per point")
    if not (W.min() >= 0 and W.max() < np.inf):
        raise ParameterError(f"W has values from {W.min()} to {W.max()}; weights must be non-negative and finite")
    return W


def _is_symmetric(W: FloatArray | sparse.csr_array) -> bool:
    from scipy.linalg import issymmetric

    return bool((W != W.T).nnz == 0 if sparse.issparse(W) else issymmetric(W))


def checked_sources(y: ArrayLike, n: int, alpha: float) -> FloatArray:
    """Y as a float64 array, after checking it and alpha."""
    source = np.asarray(y, dtype=np.float64)
    if source.ndim not in (1, 2) or len(source) != n:
        raise ParameterError(f"y has shape {source.shape}; it must have a row for each of the {n} points of the graph")
    if not np.isfinite(source).all():
        raise ParameterError(f"y contains {source[~np.isfinite(source)][0]}; it must be finite")
    if not 0 <= alpha <= HIGHEST_ALPHA:
        raise ParameterError(f"alpha is {alpha}; it must be in [0, 1), and at most 1 - 1e-10")
    return source
