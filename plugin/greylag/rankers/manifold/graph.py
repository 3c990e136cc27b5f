"""Affinity graphs: symmetric, non-negative weights W between n points, with W_ii = 0.

This is the first half of manifold ranking; `greylag.rankers.manifold.ranking` ranks the points of such a graph. A graph
is stored in the cheapest of three forms: dense, sparse or, for all inner products of sparse points, the points
themselves.

References
----------
D. Zhou, J. Weston, A. Gretton, O. Bousquet and B. Schölkopf, Ranking on Data Manifolds, NIPS 2003, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from greylag.base import FloatArray, IntArray, ParameterError, check_choice, check_counts, check_sequences

Graph = Literal["knn", "mutual_knn", "full"]
"""The rule that joins points; see `affinity_graph`."""
Affinity = Literal["rbf", "inner_product"]

BLOCK_NUMBERS = 2**22  # numbers in memory at once if points are processed in blocks


@dataclass(frozen=True, eq=False)
class InnerProductGraph:
    """Inner products of sparse points, W = X X' - diag(|x_1|², ..., |x_n|²), never formed; see `affinity_graph`."""

    # A product with W costs as much as two products with X, whereas W itself has up to n² entries.
    # Every column has two non-zero entries or more: others add nothing to W, and without them a point is isolated if
    # and only if its row is zero.
    X: sparse.csr_array  # shape (n, m), non-negative
    squared_norms: FloatArray  # shape (n,), |x_i|²

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return len(self.squared_norms), len(self.squared_norms)

    def __matmul__(self, vectors: FloatArray) -> FloatArray:
        """Compute W v, for `vectors` of shape (n,) or (n, q)."""
        return np.asarray(self.X @ (self._transposed @ vectors) - (self.squared_norms * vectors.T).T)

    @cached_property
    def _transposed(self) -> sparse.csc_array:
        return self.X.T

    def toarray(self) -> FloatArray:
        """Form W, shape (n, n)."""
        matrix: FloatArray = (self.X @ self._transposed).toarray()
        np.fill_diagonal(matrix, 0)
        return matrix


AffinityGraph: TypeAlias = FloatArray | sparse.csr_array | InnerProductGraph


def affinity_graph(
    X: ArrayLike | sparse.sparray | sparse.spmatrix,
    *,
    graph: Graph = "knn",
    neighbours: int = 10,
    affinity: Affinity = "rbf",
    sigma: float | None = None,
) -> AffinityGraph:
    """Compute the affinity matrix W of n points, whose entries are the strengths of pairs' edges.

    Parameters
    ----------
    X : array-like or sparse, shape (n, m)
        Finite; one row per point.
    graph : "knn", "mutual_knn" or "full", default "knn"
        Which pairs are joined, by Euclidean distance. For rows of unit length this is the order of inner products.

        - "knn": i and j if either is among the nearest neighbours of the other; "mutual_knn": if both are. The graph
          may be disconnected; a point without a pair is isolated.
        - "full": every pair.
    neighbours : int >= 1, default 10
        The number of nearest neighbours of a point. Of points at the same distance, the first ones are chosen.
    affinity : "rbf" or "inner_product", default "rbf"
        "rbf" is W_ij = exp(-|x_i - x_j|² / 2 sigma²). "inner_product" is W_ij = x_i · x_j, for non-negative X.
    sigma : float > 0, optional
        The width of the RBF, in the units of X. By default, the median length of edges of positive length, or else 1.

    Returns
    -------
    ndarray, CSR array or InnerProductGraph, shape (n, n)
        Symmetric, W_ii = 0. The kNN graphs are CSR, "full" inner products of sparse X are an `InnerProductGraph`, and
        other full graphs are dense.

    Notes
    -----
    Equal points have RBF affinity 1. A zero row (an empty document) is an ordinary point to the RBF, but isolated under
    the inner product. An affinity of 0, including an exponential that underflows, is not an edge.

    "full" takes O(n²) time and memory, the kNN graphs O(n · neighbours) memory.
    """
    points = _points(X)
    _check_graph(points, graph, neighbours, affinity, sigma)
    n = points.shape[0]
    if n == 1:
        return sparse.csr_array((1, 1))
    if graph in {"knn", "mutual_knn"}:
        rows, columns = _neighbour_pairs(points, neighbours, mutual=graph == "mutual_knn")
        if affinity == "inner_product":
            return _symmetric(_pair_products(points, rows, columns), rows, columns, n)
        squares = _by_blocks(lambda left, right: (left - right) ** 2, points, rows, columns)
        return _symmetric(_rbf(np.sqrt(squares), sigma), rows, columns, n)
    if affinity == "rbf":
        from scipy.spatial.distance import pdist, squareform

        distances = _sparse_distances(points) if sparse.issparse(points) else np.asarray(pdist(points))
        return np.asarray(squareform(_rbf(distances, sigma), checks=False))
    if sparse.issparse(points):
        # The case of documents: products are positive for most pairs, so that a matrix of them would be dense. A
        # coordinate of a single point adds to no product.
        shared = points[:, (points > 0).sum(axis=0) > 1]
        return InnerProductGraph(shared, (shared * shared).sum(axis=1))
    products: FloatArray = points @ points.T
    np.fill_diagonal(products, 0)
    return products


def _points(X: Any) -> Any:
    """Return X as a float64 ndarray, or as a CSR copy in canonical form."""
    if sparse.issparse(X):
        points = sparse.csr_array(X, dtype=np.float64, copy=True)
        # Sorted, too: sums over coordinates must not depend on how the matrix was made.
        points.sum_duplicates()
    else:
        check_sequences(X=X)
        points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or 0 in points.shape:
        raise ParameterError(f"X has shape {points.shape}; it must be n points by m coordinates, both at least 1")
    values = points.data if sparse.issparse(points) else points
    if not np.isfinite(values).all():
        raise ParameterError(f"X contains {values[~np.isfinite(values)][0]}; every coordinate must be finite")
    return points


def _check_graph(points: Any, graph: str, neighbours: int, affinity: str, sigma: float | None) -> None:
    check_choice("graph", graph, get_args(Graph))
    check_choice("affinity", affinity, get_args(Affinity))
    check_counts(neighbours=neighbours)
    if sigma is not None and not 0 < sigma < np.inf:
        raise ParameterError(f"sigma is {sigma}; it must be positive and finite, or None for the median heuristic")
    if affinity == "inner_product" and sigma is not None:
        raise ParameterError(f"sigma is {sigma}, but the inner product has no width; omit sigma")
    if affinity == "inner_product" and points.min() < 0:
        raise ParameterError(f"X contains {points.min()}; inner products are affinities only if X is non-negative")


def _neighbour_pairs(points: Any, neighbours: int, *, mutual: bool) -> tuple[IntArray, IntArray]:
    """List the kNN graph's edges (i, j), i < j."""
    n = points.shape[0]
    k = min(neighbours, n - 1)
    nearest = (_sparse_neighbours if sparse.issparse(points) else _dense_neighbours)(points, k)
    points_of, others = np.repeat(np.arange(n), k), nearest.ravel()
    pairs, times = np.unique(np.minimum(points_of, others) * n + np.maximum(points_of, others), return_counts=True)
    rows, columns = np.divmod(pairs[times == 2] if mutual else pairs, n)
    return rows, columns


def _sparse_neighbours(points: sparse.csr_array, k: int) -> IntArray:
    """Find the k nearest neighbours of every point, shape (n, k)."""
    from greylag.rankers.manifold.products import nearest

    shape = points.shape[0], k
    neighbours, squares = np.empty(shape, dtype=np.int64), np.full(shape, np.inf)
    nearest(_arrays(points), _arrays(points.tocsc()), (points * points).sum(axis=1), neighbours, squares)
    return neighbours


def _dense_neighbours(points: FloatArray, k: int) -> IntArray:
    """Find the k nearest neighbours of every point, shape (n, k)."""
    # Products by BLAS depend on its threads in the last digits: they only say which points may be the nearest, and the
    # distances that decide are sums of squares of differences.
    n, squared_norms = len(points), np.einsum("ij,ij->i", points, points)
    error = points.shape[1] * np.finfo(np.float64).eps * 8 * squared_norms.max()
    neighbours, step = np.empty((n, k), dtype=np.int64), max(1, BLOCK_NUMBERS // (4 * n))
    for start in range(0, n, step):
        block = np.arange(start, min(start + step, n))
        squares = squared_norms - 2 * (points[block] @ points.T) + squared_norms[block, None]
        squares[np.arange(len(block)), block] = np.inf
        bound = np.partition(squares, k - 1, axis=1)[:, k - 1 : k] + error
        rows, columns = np.nonzero(squares <= bound)
        exact = _by_blocks(lambda left, right: (left - right) ** 2, points, block[rows], columns)
        order = np.lexsort((columns, exact, rows))
        firsts = np.searchsorted(rows, np.arange(len(block)))
        neighbours[block] = columns[order[firsts[:, None] + np.arange(k)]]
    return neighbours


def _arrays(points: Any) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the arrays of a sparse matrix, as compiled loops take them."""
    return points.indptr, points.indices, points.data


def _pair_products(points: Any, rows: IntArray, columns: IntArray) -> FloatArray:
    if not sparse.issparse(points):
        return _by_blocks(lambda left, right: left * right, points, rows, columns)
    from greylag.rankers.manifold.products import pair_terms

    terms, offsets = pair_terms(_arrays(points), points.shape[1], rows, columns)
    products, some = np.zeros(len(rows)), np.diff(offsets) > 0
    products[some] = np.add.reduceat(terms, offsets[:-1][some])
    return products


def _by_blocks(term: Any, points: Any, rows: IntArray, columns: IntArray) -> FloatArray:
    """Sum term(x_i, x_j) over coordinates for every pair, a block of pairs at a time."""
    sums = np.empty(len(rows))
    step = max(1, BLOCK_NUMBERS // points.shape[1])
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        sums[block] = term(points[rows[block]], points[columns[block]]).sum(axis=1)
    return sums


def _sparse_distances(points: sparse.csr_array) -> FloatArray:
    """Compute n(n-1)/2 distances in the order of `scipy.spatial.distance.pdist`, which refuses sparse points."""
    n, norms, end = points.shape[0], (points * points).sum(axis=1), 0
    distances, step = np.empty(n * (n - 1) // 2), max(1, BLOCK_NUMBERS // n)
    for start in range(0, n, step):
        for i, products in enumerate((points[start : start + step] @ points.T).toarray(), start):
            both = norms[i] + norms[i + 1 :]
            squares = both - 2 * products[i + 1 :]
            # The difference of nearly equal numbers: below this it is rounding.
            squares[squares < 1e-14 * both] = 0.0
            begin, end = end, end + n - 1 - i
            distances[begin:end] = np.sqrt(squares)
    return distances


def _rbf(distances: FloatArray, sigma: float | None) -> FloatArray:
    """Compute exp(-d² / 2 sigma²), overwriting `distances`."""
    if sigma is None:
        positive = distances[distances > 0]
        sigma = float(np.median(positive, overwrite_input=True)) if positive.size else 1.0
    # In place: this is the largest array, and there is room for one copy of it.
    distances /= sigma
    distances *= distances
    distances *= -0.5
    return np.exp(distances, out=distances)


def _symmetric(weights: FloatArray, rows: IntArray, columns: IntArray, n: int) -> sparse.csr_array:
    ends = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    matrix = sparse.csr_array((np.concatenate([weights, weights]), ends), shape=(n, n))
    matrix.eliminate_zeros()
    return matrix
