"""Ranking the points of an affinity graph by scores that spread over it from the queries.

This is the second half of manifold ranking. The graph is one of `greylag.rankers.manifold.graph` or any
symmetric, non-negative matrix. For weights W with degrees D = diag(W 1) and S = D^-1/2 W D^-1/2, the scores are the
limit of

    f(t + 1) = alpha S f(t) + (1 - alpha) y,        f* = (1 - alpha) (I - alpha S)^-1 y,

where y marks the queries. A point without edges is treated as one of degree 1, which leaves its row of S zero and its
score (1 - alpha) y_i.

References
----------
D. Zhou, J. Weston, A. Gretton, O. Bousquet and B. Schölkopf, Ranking on Data Manifolds, NIPS 2003.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from greylag.base import FloatArray, ParameterError, check_choice, check_counts, one_blas_thread
from greylag.rankers.manifold.graph import Affinity, AffinityGraph, Graph, InnerProductGraph, affinity_graph

Solver = Literal["auto", "direct", "cg"]

HIGHEST_ALPHA = 1 - 1e-10
# The number of points of a dense and of a sparse graph up to which a factorisation beats conjugate gradients.
DENSE_DIRECT, SPARSE_DIRECT = 10_000, 2_000
TOLERANCE = 1e-12  # of the residual in conjugate gradients, relative to y
BLAS_SPLITS_FROM = 10_000  # terms of a sum, which BLAS then adds up on several threads


def manifold_ranking(
    X: ArrayLike | sparse.sparray | sparse.spmatrix,
    queries: ArrayLike,
    *,
    confidences: ArrayLike | None = None,
    alpha: float = 0.99,
    graph: Graph = "knn",
    neighbours: int = 10,
    affinity: Affinity = "rbf",
    sigma: float | None = None,
    exponent: float = 0.5,
    steps: int | None = None,
    solver: Solver = "auto",
) -> FloatArray:
    """Score points by one or more queries among them (Zhou et al. 2003, section 2).

    X, graph, neighbours, affinity and sigma are those of `affinity_graph`, with the queries among the points; queries
    and confidences, the rows of the queries and their weights, are those of `query_vector`, and alpha, exponent and
    solver those of `spread_scores`. With `steps` = t, an int >= 1, f(t) of `spread_iterates` takes the place of its
    limit f*.

    Returns
    -------
    ndarray, shape (n,)
        f*, where a higher score is a better rank. Non-negative up to rounding, and exactly 0 for points that no path
        joins to a query.

    Examples
    --------
    >>> manifold_ranking([[0.0], [1.0], [2.0], [9.0]], [0], graph="knn", neighbours=1, alpha=0.5).round(3).tolist()
    [0.583, 0.236, 0.083, 0.0]
    """
    W = affinity_graph(X, graph=graph, neighbours=neighbours, affinity=affinity, sigma=sigma)
    y = query_vector(W.shape[0], queries, confidences)
    return solve(W, y, alpha, exponent, solver, steps=steps, overwrite=True)


def query_vector(n: int, queries: ArrayLike, confidences: ArrayLike | None = None) -> FloatArray:
    """Return the vector y, shape (n,), with the confidence of each query in its row and 0 elsewhere.

    Queries are one or more distinct rows in 0, ..., n - 1. Confidences are non-negative, not all 0, and by default all
    1; only their proportions affect the ranking.
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


def spread_scores(
    W: AffinityGraph, y: ArrayLike, *, alpha: float = 0.99, exponent: float = 0.5, solver: Solver = "auto"
) -> FloatArray:
    """Compute the scores that spread from y over a graph (Zhou et al. 2003, Theorem 1, and eq. 9 to 12).

    f* = (1 - alpha) (I - alpha S_k)^-1 y with S_k = D^-k W D^(k-1) and k = `exponent`. The paper's eq. 2 omits the
    factor 1 - alpha, which does not affect the ranking.

    - k = 1/2: S_k = S, manifold ranking.
    - k = 0: S_k = P^T = W D^-1, personalised PageRank (eq. 9), a walk that restarts from y. For D^j y instead of y,
      it is eq. 12 with the exponent j.
    - k = 1: S_k = P = D^-1 W, by which the paper does not rank. For one query, this is the ranking by D^-1/2 f*, with
      f* of k = 1/2.

    A higher k favours points of high degree less. For the r* of eq. 12 with the exponent k, f* = D^-k r*.

    Parameters
    ----------
    W : ndarray, sparse or InnerProductGraph, shape (n, n)
        Symmetric, non-negative.
    y : array-like, shape (n,) or (n, q)
        Finite; one ranking, or one per column. Points labelled 1 and -1 give a classifier by the sign of f*.
    alpha : float in [0, 1 - 1e-10], default 0.99
        How far scores spread. Each step of the iteration shrinks the error by this factor.
    exponent : float, default 0.5
        k, finite.
    solver : "auto", "direct" or "cg", default "auto"
        They agree to 1e-8 of the highest score up to alpha = 0.999; errors grow as 1 / (1 - alpha).

        - "direct": the closed form by a Cholesky factorisation of I - alpha S, O(n³) once and O(n²) per column. For
          sparse W, a sparse LU factorisation: cheap for points of few dimensions, prohibitive for many.
        - "cg": conjugate gradients, at most about 20 / sqrt(1 - alpha) products with W per column; no n x n copy.
        - "auto": "direct" for a dense W of up to 10,000 points and a sparse one of up to 2,000, otherwise "cg".

        Only "direct" preserves the digits, and so the order, of scores below 1e-12 of the highest; "cg" may return
        negative values for them.

    Returns
    -------
    ndarray, shape of y
        f*. Exactly 0 in a component of the graph where y is 0.
    """
    return solve(_checked_graph(W), y, alpha, exponent, solver)


def graph_degrees(W: AffinityGraph) -> FloatArray:
    """Return the degree of each point, the sum of its row of W, shape (n,); 1 for an isolated point.

    ``spread_scores(W, y) / np.sqrt(graph_degrees(W))`` is the degree-corrected ranking D^-1/2 f*.
    """
    return _inverse_root_degree(_checked_graph(W)) ** -2


def spread_iterates(
    W: AffinityGraph, y: ArrayLike, *, alpha: float = 0.99, exponent: float = 0.5
) -> Iterator[FloatArray]:
    """Iterate f(0) = y, f(1), ... without end (Zhou et al. 2003, section 2), by the parameters of `spread_scores`."""
    return _iterate(_checked_graph(W), y, alpha, exponent)


def _iterate(W: AffinityGraph, y: ArrayLike, alpha: float, exponent: float) -> Iterator[FloatArray]:
    source, root = _checked_sources(y, W.shape[0], alpha), _inverse_root_degree(W)
    scale, spread = _scale(root, exponent), _spreading(W, root)
    f = source
    while True:
        yield f
        f = alpha * (spread((f.T / scale).T).T * scale).T + (1 - alpha) * source


def solve(
    W: AffinityGraph, y: ArrayLike, alpha: float, exponent: float, solver: Solver, *, steps: int | None = None,
    overwrite: bool = False,
) -> FloatArray:  # fmt: skip
    """Solve `spread_scores` for a valid graph, or take `steps` of `spread_iterates`; a dense W may be overwritten."""
    if steps is not None:
        check_counts(steps=steps)
        return next(islice(_iterate(W, y, alpha, exponent), steps, None))
    source = _checked_sources(y, W.shape[0], alpha)
    check_choice("solver", solver, get_args(Solver))
    if solver == "auto":
        # A factorisation of a graph that is never formed would need it formed.
        most = 0 if isinstance(W, InnerProductGraph) else SPARSE_DIRECT if sparse.issparse(W) else DENSE_DIRECT
        solver = "direct" if W.shape[0] <= most else "cg"
    root = _inverse_root_degree(W)
    scale = _scale(root, exponent)
    # Divided here and multiplied at the end: the system itself is symmetric for every exponent.
    right = (source.T / scale).T
    if solver == "direct":
        limit = _direct(W, root, right, alpha, overwrite=overwrite)
    else:
        limit = _conjugate_gradients(_spreading(W, root), right, alpha)
    return (limit.T * scale).T


def _scale(root: FloatArray, exponent: float) -> FloatArray:
    """Compute D^(1/2-k), shape (n,): S_k = D^(1/2-k) S D^(k-1/2), so that one symmetric system serves every k."""
    if not math.isfinite(exponent):
        raise ParameterError(f"exponent is {exponent}; it must be finite")
    return root ** (2 * exponent - 1)


def _checked_graph(W: Any) -> AffinityGraph:
    """Check W; return it as a float64 ndarray, CSR array or InnerProductGraph, symmetric and non-negative."""
    from scipy.linalg import issymmetric

    if isinstance(W, InnerProductGraph):
        return W
    W = sparse.csr_array(W, dtype=np.float64) if sparse.issparse(W) else np.asarray(W, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1] or 0 in W.shape:
        raise ParameterError(f"W has shape {W.shape}; it must be square, with one row per point")
    if not (W.min() >= 0 and W.max() < np.inf):
        raise ParameterError(f"W has values from {W.min()} to {W.max()}; weights must be non-negative and finite")
    if not ((W != W.T).nnz == 0 if sparse.issparse(W) else issymmetric(W)):
        raise ParameterError("W is not symmetric; symmetrise it, for example by W + W.T")
    graph: AffinityGraph = W
    return graph


def _checked_sources(y: ArrayLike, n: int, alpha: float) -> FloatArray:
    """Check Y and alpha; return Y as a float64 array."""
    source = np.asarray(y, dtype=np.float64)
    if source.ndim not in (1, 2) or len(source) != n:
        raise ParameterError(f"y has shape {source.shape}; it must have a row for each of the {n} points of the graph")
    if not np.isfinite(source).all():
        raise ParameterError(f"y contains {source[~np.isfinite(source)][0]}; it must be finite")
    if not 0 <= alpha <= HIGHEST_ALPHA:
        raise ParameterError(f"alpha is {alpha}; it must be in [0, 1), and at most 1 - 1e-10")
    return source


def _inverse_root_degree(W: AffinityGraph) -> FloatArray:
    """Return the diagonal of D^-1/2, shape (n,), 1 for isolated points."""
    degree = W @ np.ones(W.shape[0])
    return np.where(degree > 0, degree, 1.0) ** -0.5


def _spreading(W: AffinityGraph, root: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the map f -> S f."""
    # S itself is never formed: W may be sparse, or inner products that are not formed either.
    return lambda f: (root * (W @ (root * f.T).T).T).T


def _conjugate_gradients(spread: Callable[[FloatArray], FloatArray], y: FloatArray, alpha: float) -> FloatArray:
    """Solve for f*, one column at a time, from products with S alone."""
    from scipy.sparse.linalg import LinearOperator, cg

    limit, shape = np.empty_like(y), (len(y), len(y))
    system = LinearOperator(shape, matvec=lambda f: f - alpha * spread(f), dtype=np.float64)
    # BLAS splits long sums over threads, which is slower here and makes the last bits depend on their number.
    long = len(y) > BLAS_SPLITS_FROM
    with one_blas_thread() if long else nullcontext():
        for column, target in zip(limit.reshape(len(y), -1).T, y.reshape(len(y), -1).T, strict=True):
            column[:], unfinished = cg(system, (1 - alpha) * target, rtol=TOLERANCE, atol=0.0)
            if unfinished:
                raise ParameterError(f"conjugate gradients do not converge for alpha = {alpha}; use solver='direct'")
    return limit


def _direct(W: AffinityGraph, root: FloatArray, y: FloatArray, alpha: float, *, overwrite: bool) -> FloatArray:
    """Solve for f* by a factorisation of I - alpha S; a dense W may be overwritten."""
    # A matrix made here is nobody else's, so that its factor may take its place.
    if isinstance(W, InnerProductGraph):
        W, overwrite = W.toarray(), True
    solution = _sparse_lu(W, root, y, alpha) if sparse.issparse(W) else _cholesky(W, root, y, alpha, overwrite)
    return (1 - alpha) * solution


def _cholesky(W: FloatArray, root: FloatArray, y: FloatArray, alpha: float, overwrite: bool) -> FloatArray:
    from scipy.linalg import cho_factor, cho_solve

    system = np.multiply(W, root, out=W if overwrite else None)
    system *= -alpha * root[:, np.newaxis]
    system.flat[:: len(root) + 1] += 1
    # The transpose is the same matrix in the memory order that LAPACK factorises in place.
    factor = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, y, check_finite=False))


def _sparse_lu(W: sparse.csr_array, root: FloatArray, y: FloatArray, alpha: float) -> FloatArray:
    from scipy.sparse.linalg import splu

    scale = sparse.diags_array(root)
    system = (sparse.eye_array(len(root)) - alpha * scale @ W @ scale).tocsc()
    # SuperLU's settings for a symmetric, diagonally dominant matrix.
    factor = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return np.asarray(factor.solve(y))
