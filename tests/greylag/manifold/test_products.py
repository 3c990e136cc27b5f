"""Compiled inner products, against SciPy's and scikit-learn's, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import squareform
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import row_norms

from greylag.manifold.graph import affinity_graph
from greylag.manifold.products import condensed_distances, condensed_products, nearest, pair_terms


def sparse_points(seed: int, n: int = 80, m: int = 60, density: float = 0.3) -> sparse.csr_array:
    points = sparse.random_array((n, m), density=density, format="csr", rng=np.random.default_rng(seed))
    points.sort_indices()
    return points


def arrays(points: sparse.csr_array | sparse.csc_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return points.indptr, points.indices, points.data


def products_of(points: sparse.csr_array) -> np.ndarray:
    n = points.shape[0]
    products = np.empty(n * (n - 1) // 2)
    condensed_products(arrays(points), arrays(points.tocsc()), products)
    return products


def distances_of(products: np.ndarray, norms: np.ndarray) -> np.ndarray:
    distances = np.empty_like(products)
    condensed_distances(products, norms, distances)
    return distances


@pytest.mark.parametrize("seed", range(5))
def test_products_have_the_bits_of_scipy(seed: int) -> None:
    points = sparse_points(seed)
    expected = (points @ points.T).toarray()
    np.fill_diagonal(expected, 0)
    products = products_of(points)
    np.testing.assert_array_equal(squareform(products), expected)
    norms = (points * points).sum(axis=1)
    dense = points.toarray()
    distances = np.linalg.norm(dense[:, None] - dense, axis=2)
    np.testing.assert_allclose(squareform(distances_of(products, norms)), distances, atol=1e-9)


def test_equal_points_have_distance_0() -> None:
    points = sparse.csr_array(np.array([[0.1, 0.7], [0.1, 0.7], [0.7, 0.1]]))
    products = products_of(points)
    found = distances_of(products, (points * points).sum(axis=1))
    np.testing.assert_allclose(found, [0, 0.6 * 2**0.5, 0.6 * 2**0.5])
    assert found[0] == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 7, 79])
def test_neighbours_are_those_of_scikit_learn(seed: int, k: int) -> None:
    points = sparse_points(seed)
    found, tied = nearest(arrays(points), arrays(points.tocsc()), row_norms(points, squared=True), k)
    expected = NearestNeighbors(n_neighbors=k).fit(points).kneighbors(return_distance=False)
    assert not tied.any()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("k", [1, 3, 10])
def test_graphs_of_points_at_equal_distances_are_those_of_scikit_learn(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    points = sparse.csr_array(rng.integers(0, 2, (30, 3 + seed % 4)).astype(float))  # many are equal
    neighbours = NearestNeighbors(n_neighbors=k).fit(points).kneighbors_graph()
    expected = neighbours.maximum(neighbours.T).toarray()
    np.fill_diagonal(expected, 0)
    W = affinity_graph(points, graph="knn", neighbours=k, sigma=1.0).toarray()
    np.testing.assert_array_equal(W > 0, expected > 0)


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_terms_of_pairs_have_the_bits_of_scipy_when_summed(density: float) -> None:
    points = sparse_points(1, m=300, density=density)
    points.data[::7] = 0.0
    rows, columns = np.triu_indices(80, 1)
    terms, offsets = pair_terms(arrays(points), 300, rows, columns)
    expected = (points[rows] * points[columns]).sum(axis=1)
    some = np.diff(offsets) > 0
    assert not expected[~some].any()
    np.testing.assert_array_equal(np.add.reduceat(terms, offsets[:-1][some]), expected[some])
