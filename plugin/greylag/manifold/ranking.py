"""Ranking the points of an affinity graph by the scores that spread over it from the queries.

The second half of manifold ranking; the graph is `greylag.manifold.graph`'s or any symmetric, non-negative matrix. For
weights W with degrees D = diag(W 1) and S = D^-1/2 W D^-1/2 the scores are the limit of

    f(t + 1) = alpha S f(t) + (1 - alpha) y,        f* = (1 - alpha) (I - alpha S)^-1 y,

where y marks the queries. With P^T = W D^-1 instead of S, the limit is personalised PageRank's. A point without edges
is treated as one of degree 1, which leaves its row of S zero: it keeps (1 - alpha) y_i.

Source: D. Zhou, J. Weston, A. Gretton, O. Bousquet and B. Schölkopf, Ranking on Data Manifolds, NIPS 2003.
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
from greylag.manifold.graph import Affinity, AffinityGraph, Graph, InnerProductGraph, affinity_graph
from greylag.manifold.solvers import conjugate_gradients, direct, inverse_root_degree, iteration, spreading, steps
from greylag.ranking import FloatArray

Solver = Literal["auto", "direct", "cg", "iteration"]

HIGHEST_ALPHA = 1 - 1e-10
# Up to so many points of a dense and of a sparse graph, a factor is worth its cost beside conjugate gradients.
DENSE_DIRECT, SPARSE_DIRECT = 10_000, 2_000


def manifold_ranking(
    X: ArrayLike | sparse.sparray | sparse.spmatrix,
    queries: ArrayLike,
    *,
    confidences: ArrayLike | None = None,
    alpha: float = 0.99,
    graph: Graph = "connecting",
    k: int = 10,
    affinity: Affinity = "rbf",
    sigma: float | None = None,
    solver: Solver = "auto",
) -> FloatArray:
    """Scores of points for one or more queries among them (Zhou et al. 2003, section 2).

    Parameters
    ----------
    X : array-like or sparse, shape (n, m). One row a point; the queries are rows too.
    queries, confidences : the queries' rows, and what they count: see `query_vector`.
    graph, k, affinity, sigma : see `affinity_graph`.
    alpha, solver : see `rank`.

    Returns
    -------
    ndarray, shape (n,)
        f*; a higher score is a better rank. Non-negative but for rounding; exactly 0 for points that no path joins to
        a query.

    Raises
    ------
    ParameterError
        An argument outside its domain.

    Examples
    --------
    >>> manifold_ranking([[0.0], [1.0], [2.0], [9.0]], [0], graph="knn", k=1, alpha=0.5).round(3).tolist()
    [0.583, 0.236, 0.083, 0.0]
    """
    W = affinity_graph(X, graph=graph, k=k, affinity=affinity, sigma=sigma)
    y = query_vector(W.shape[0], queries, confidences)
    return _rank(W, y, alpha, 0.5, solver, overwrite=True)


def query_vector(n: int, queries: ArrayLike, confidences: ArrayLike | None = None) -> FloatArray:
    """The vector y that marks the queries among n points.

    Parameters
    ----------
    n : points.
    queries : one or more rows in 0, ..., n - 1, each once.
    confidences : a number for each query, non-negative and not all 0; only their proportions matter to the ranking.
        None: 1 for each.

    Returns
    -------
    ndarray, shape (n,)
        A query's confidence in its row, 0 elsewhere.

    Raises
    ------
    ParameterError
        An argument outside its domain.
    """
    rows = np.atleast_1d(np.asarray(queries))
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise ParameterError(f"queries are {queries!r}; they must be one or more row numbers")
    if rows.min() < 0 or rows.max() >= n:
        wrong = rows[(rows < 0) | (rows >= n)][0]
        raise ParameterError(f"query {wrong} is not a row of X, which has rows 0 to {n - 1}")
    if len(np.unique(rows)) != len(rows):
        raise ParameterError(f"queries are {rows.tolist()}; each may stand there once; use confidences to weight them")
    weights = np.ones(len(rows)) if confidences is None else np.atleast_1d(np.asarray(confidences, dtype=np.float64))
    if weights.shape != rows.shape:
        raise ParameterError(f"{len(rows)} queries but confidences of shape {weights.shape}; give one for each query")
    if not ((weights >= 0) & (weights < np.inf)).all() or not weights.any():
        raise ParameterError(f"confidences are {weights.tolist()}; they must be finite, non-negative and not all 0")
    y = np.zeros(n)
    y[rows] = weights
    return y


def rank(
    W: AffinityGraph, y: ArrayLike, *, alpha: float = 0.99, degree_exponent: float = 0.5, solver: Solver = "auto"
) -> FloatArray:
    """The scores that spread from y over a graph.

    f* = (1 - alpha) (I - alpha S_k)^-1 y with S_k = D^-k W D^(k-1) and k = `degree_exponent`:

    - k = 1/2: S_k = S, manifold ranking (Zhou et al. 2003, section 2).
    - k = 0: S_k = P^T = W D^-1, the walker of personalised PageRank (eq. 7 to 9).
    - k = 1: S_k = P = D^-1 W, for one query the ranking by (D - alpha W)^-1 y.

    Powers of D generalise personalised PageRank (after eq. 11 and 12): S_k = D^-k P^T D^k, so f* = D^-k r* for the r*
    that personalised PageRank gives to D^k y. The higher k, the less are points of high degree favoured. With one
    query, D^k y is a multiple of y and this is the ranking by D^-k r*; for several, give y = D^-k y' to have D^-k r*
    for y'.

    Parameters
    ----------
    W : ndarray, sparse or InnerProductGraph, shape (n, n), symmetric, non-negative.
    y : array-like, shape (n,) or (n, q), finite: one ranking, or q of them, a column each.
    alpha : in [0, 1 - 1e-10]: how far scores spread. The iteration shrinks the error by alpha a step.
    degree_exponent : k, finite.
    solver : all agree to 1e-8 of the highest score up to alpha = 0.999; errors grow as 1 / (1 - alpha).

        - "direct": the closed form by Cholesky's factor of I - alpha S (one n x n matrix more; an InnerProductGraph is
          formed first), O(n³) once and O(n²) a column. Where W is sparse, by a sparse LU factor, whose cost depends on
          the graph: low where the points have few dimensions, and beyond bounds where they have many.
        - "cg": conjugate gradients, at most about 20 / sqrt(1 - alpha) products with W a column; no n x n copy.
        - "iteration": f(t) from f(0) = y, for as many steps as bring it to the limit (3,350 for alpha = 0.99).
        - "auto": "direct" for a dense W of up to 10,000 points and a sparse one of up to 2,000, otherwise "cg".

        Only "direct" keeps the digits, and so the order, of scores below 1e-12 of the highest; by "cg" they may come
        out negative, by "iteration" 0.

    Returns
    -------
    ndarray, shape of y
        f*. Exactly 0 in a component of the graph where y is 0.

    Raises
    ------
    ParameterError
        An argument outside its domain, or conjugate gradients that do not converge (alpha too near 1).
    """
    return _rank(_checked(W), y, alpha, degree_exponent, solver)


def personalised_pagerank(
    W: AffinityGraph, y: ArrayLike, *, alpha: float = 0.85, solver: Solver = "auto"
) -> FloatArray:
    """The stationary distribution of a walker who returns to the queries (Zhou et al. 2003, eq. 7 to 9).

    r* = (1 - alpha) (I - alpha P^T)^-1 y with P = D^-1 W: at each step the walker follows an edge with probability
    alpha, in proportion to its weight, and else restarts from y.

    Parameters
    ----------
    W, alpha, solver : see `rank`.
    y : array-like, shape (n,) or (n, q), non-negative, no column all 0: where the walker restarts; scaled to sum to 1.

    Returns
    -------
    ndarray, shape of y
        r*; its columns sum to 1, less what is lost at restarts in isolated points: alpha y_i of each.

    Raises
    ------
    ParameterError
        An argument outside its domain.
    """
    restart = np.atleast_1d(np.asarray(y, dtype=np.float64))
    if not (restart >= 0).all() or not restart.any(axis=0).all():
        raise ParameterError(
            "y must be non-negative, with a positive entry in every column, to say where walks restart"
        )
    return rank(W, restart / restart.sum(axis=0), alpha=alpha, degree_exponent=0.0, solver=solver)


def iterates(W: AffinityGraph, y: ArrayLike, *, alpha: float = 0.99) -> Iterator[FloatArray]:
    """f(0) = y, f(1), f(2), ...: the iteration of Zhou et al. 2003, section 2, without end.

    Parameters and errors are those of `rank`; ``next(islice(iterates(W, y), t, None))`` is f(t).
    """
    W = _checked(W)
    f = _sources(y, W.shape[0], alpha)
    return iteration(spreading(W, inverse_root_degree(W)), f, alpha)


def _rank(
    W: AffinityGraph, y: ArrayLike, alpha: float, degree_exponent: float, solver: Solver, *, overwrite: bool = False
) -> FloatArray:
    """`rank` on a graph that is known to be one; `overwrite` allows a dense W to be lost."""
    source = _sources(y, W.shape[0], alpha)
    if not math.isfinite(degree_exponent):
        raise ParameterError(f"degree_exponent is {degree_exponent}; it must be finite")
    if solver not in get_args(Solver):
        raise ParameterError(f"solver is {solver!r}; it must be one of {', '.join(get_args(Solver))}")
    if solver == "auto":
        solver = "direct" if W.shape[0] <= _direct_up_to(W) else "cg"
    root = inverse_root_degree(W)
    # S_k = D^(1/2-k) S D^(k-1/2), so that one symmetric system serves every k.
    scale = root ** (2 * degree_exponent - 1)
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


def _checked(W: Any) -> AffinityGraph:
    """W as a float64 ndarray, CSR array or InnerProductGraph."""
    if isinstance(W, InnerProductGraph):
        return W
    W = sparse.csr_array(W, dtype=np.float64) if sparse.issparse(W) else np.asarray(W, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1] or 0 in W.shape:
        raise ParameterError(f"W has shape {W.shape}; it must be square, with a row for each point")
    if not (W.min() >= 0 and W.max() < np.inf):
        raise ParameterError(f"W holds values from {W.min()} to {W.max()}; weights must be non-negative and finite")
    if not _is_symmetric(W):
        raise ParameterError("W is not symmetric; join a point to those that are joined to it, by W + W.T or a maximum")
    return W


def _is_symmetric(W: FloatArray | sparse.csr_array) -> bool:
    from scipy.linalg import issymmetric

    return bool((W != W.T).nnz == 0 if sparse.issparse(W) else issymmetric(W))


def _sources(y: ArrayLike, n: int, alpha: float) -> FloatArray:
    """Y as a float64 array, where it and alpha are in their domains."""
    source = np.asarray(y, dtype=np.float64)
    if source.ndim not in (1, 2) or len(source) != n:
        raise ParameterError(f"y has shape {source.shape}; it must have a row for each of the {n} points of the graph")
    if not np.isfinite(source).all():
        raise ParameterError(f"y holds {source[~np.isfinite(source)][0]}; it must be finite")
    if not 0 <= alpha <= HIGHEST_ALPHA:
        raise ParameterError(f"alpha is {alpha}; it must be in [0, 1), and at most 1 - 1e-10 to be told from 1")
    return source
