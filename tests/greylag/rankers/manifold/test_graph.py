"""The graph of documents and its compiled products.

Tests `products`.
"""

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from greylag.rankers import affinity_graph, manifold_ranking
from greylag.rankers.manifold.graph import InnerProductGraph
from greylag.rankers.manifold.products import pair_terms
from tests.greylag.rankers.manifold.points import GRAPHS, dense, distances_of, random_points


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("neighbours", [1, 4, 39])
@pytest.mark.parametrize("mutual", [False, True])
def test_knn_graph_joins_nearest_neighbours(form, neighbours, mutual):
    X = np.random.default_rng(3).random((40, 12))
    distances = distances_of(X)
    np.fill_diagonal(distances, np.inf)
    near = np.zeros_like(distances)
    np.put_along_axis(near, np.argsort(distances, axis=1)[:, :neighbours], 1, axis=1)
    joined = near * near.T if mutual else np.maximum(near, near.T)
    settings = {"graph": "mutual_knn" if mutual else "knn", "neighbours": neighbours}
    W = affinity_graph(form(X), **settings, sigma=0.9)
    assert isinstance(W, sparse.csr_array)
    np.testing.assert_allclose(dense(W), joined * np.exp(-(distances**2) / (2 * 0.9**2)), rtol=1e-12)
    products = affinity_graph(form(X), **settings, affinity="inner_product")
    np.testing.assert_allclose(dense(products), joined * (X @ X.T), rtol=1e-12)


def test_block_size_does_not_change_the_graph(monkeypatch):
    X, settings = random_points(4, n=60, m=12), [{"graph": graph} for graph in GRAPHS]
    whole = [dense(affinity_graph(sparse.csr_array(X), **setting)) for setting in settings]
    monkeypatch.setattr("greylag.rankers.manifold.graph.BLOCK_NUMBERS", 100)
    for expected, setting in zip(whole, settings, strict=True):
        np.testing.assert_array_equal(dense(affinity_graph(sparse.csr_array(X), **setting)), expected)


def test_median_heuristic_is_the_median_length_of_the_edges():
    X = np.array([[0.0], [0.0], [1.0], [3.0], [7.0]])
    # Positive lengths: 1, 1, 2, 3, 3, 4, 6, 7, 7 of all pairs; 1, 2, 4 with one neighbour.
    for graph, sigma in (("full", 3.0), ("knn", 2.0)):
        given = affinity_graph(X, graph=graph, neighbours=1, sigma=sigma)
        np.testing.assert_allclose(dense(affinity_graph(X, graph=graph, neighbours=1)), dense(given), rtol=1e-15)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("affinity", ["rbf", "inner_product"])
def test_affinities_are_symmetric_without_loops_and_the_same_for_dense_and_sparse_points(graph, affinity):
    X = random_points(11, n=60, m=30)
    expected = dense(affinity_graph(X, graph=graph, affinity=affinity))
    assert expected.any()
    for form in (np.array, sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        W = affinity_graph(form(X), graph=graph, affinity=affinity)
        assert not isinstance(W, sparse.csr_array) or (W.data > 0).all()
        np.testing.assert_array_equal(dense(W), dense(W).T)
        assert not dense(W).diagonal().any()
        np.testing.assert_allclose(dense(W), expected, atol=1e-12)


def test_all_inner_products_of_sparse_points_are_never_formed():
    X = random_points(5, n=30, m=50)
    X[4] = 0
    X[:, 10] = 0
    X[4, 10] = 1  # point 4 shares its only word with nobody
    W = affinity_graph(sparse.csr_array(X), graph="full", affinity="inner_product")
    assert isinstance(W, InnerProductGraph)
    expected = X @ X.T - np.diag((X**2).sum(axis=1))
    np.testing.assert_allclose(W.toarray(), expected, atol=1e-14)
    vectors = np.random.default_rng(0).random((30, 3))
    np.testing.assert_allclose(W @ vectors, expected @ vectors, rtol=1e-13)
    np.testing.assert_allclose(W @ vectors[:, 0], expected @ vectors[:, 0], rtol=1e-13)
    assert (W @ np.ones(30))[4] == 0


def test_a_term_of_one_document_changes_nothing():
    X = random_points(14, n=30, m=50)
    private = np.zeros((30, 1))
    private[7] = 1e8
    settings = {"graph": "full", "affinity": "inner_product"}
    f = manifold_ranking(sparse.csr_array(np.hstack([private, X])), [3], **settings)
    np.testing.assert_array_equal(f, manifold_ranking(sparse.csr_array(X), [3], **settings))


def test_sparse_points_that_differ_by_rounding_are_equal():
    row = np.random.default_rng(0).random(50)
    X = np.array([row * (1 + i * np.finfo(float).eps) for i in range(40)])
    np.testing.assert_array_equal(affinity_graph(sparse.csr_array(X), graph="full"), 1 - np.eye(40))


def test_points_are_not_modified():
    X = sparse.csr_array((np.array([1.0, 0.0, 2.0]), np.array([1, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    before = X.data.copy(), X.indices.copy()
    manifold_ranking(X, [0], graph="full", affinity="inner_product")
    np.testing.assert_array_equal(X.data, before[0])
    np.testing.assert_array_equal(X.indices, before[1])


def test_equal_distances_give_the_same_neighbours_on_any_number_of_threads():
    X = np.random.default_rng(0).integers(0, 2, size=(600, 20)).astype(float)
    graphs = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            graphs.append(affinity_graph(X, graph="knn"))
    assert all((graph != graphs[0]).nnz == 0 for graph in graphs)


def sparse_points(seed, n=80, m=60, density=0.3):
    points = sparse.random_array((n, m), density=density, format="csr", rng=np.random.default_rng(seed))
    points.sort_indices()
    return points


def arrays(points):
    return points.indptr, points.indices, points.data


@pytest.mark.parametrize("block_numbers", [2**22, 100])
@pytest.mark.parametrize("form", [sparse.csr_array, np.asarray])
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("k", [1, 3, 10])
def test_of_points_at_equal_distances_the_first_are_neighbours(k, seed, form, block_numbers, monkeypatch):
    """By sorting all distances, which are exact for small whole numbers."""
    monkeypatch.setattr("greylag.rankers.manifold.graph.BLOCK_NUMBERS", block_numbers)
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 2, (30, 3 + seed % 4)).astype(float)  # many are equal
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    expected = np.zeros((30, 30), dtype=bool)
    np.put_along_axis(expected, np.argsort(squares, axis=1, kind="stable")[:, :k], True, axis=1)
    W = affinity_graph(form(points), graph="knn", neighbours=k, sigma=1.0)
    np.testing.assert_array_equal(W.toarray() > 0, expected | expected.T)


@pytest.mark.parametrize("shift", [0.0, 1e3])
@pytest.mark.parametrize("m", [2, 50])
def test_neighbours_of_dense_points_are_those_of_scikit_learn(m, shift):
    """Far from the origin, too, where products lose digits that differences keep."""
    points = np.random.default_rng(m).standard_normal((200, m)) + shift
    neighbours = NearestNeighbors(n_neighbors=7, algorithm="kd_tree").fit(points).kneighbors_graph()
    W = affinity_graph(points, graph="knn", neighbours=7, sigma=100.0)
    np.testing.assert_array_equal(W.toarray() > 0, neighbours.maximum(neighbours.T).toarray() > 0)


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_terms_of_pairs_have_the_bits_of_scipy_when_summed(density):
    points = sparse_points(1, m=300, density=density)
    points.data[::7] = 0.0
    rows, columns = np.triu_indices(80, 1)
    terms, offsets = pair_terms(arrays(points), 300, rows, columns)
    expected = (points[rows] * points[columns]).sum(axis=1)
    some = np.diff(offsets) > 0
    assert not expected[~some].any()
    np.testing.assert_array_equal(np.add.reduceat(terms, offsets[:-1][some]), expected[some])
