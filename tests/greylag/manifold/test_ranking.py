"""Affinity graphs and the rankings on them, against brute force, closed forms and scikit-learn."""

from __future__ import annotations

import doctest
import tracemalloc
from itertools import combinations, islice

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_moons
from sklearn.semi_supervised import LabelSpreading
from threadpoolctl import threadpool_limits

import greylag.manifold.ranking
from greylag.errors import ParameterError
from greylag.manifold import (
    InnerProductGraph,
    affinity_graph,
    iterates,
    manifold_ranking,
    personalised_pagerank,
    query_vector,
    rank,
)

GRAPHS = ("connecting", "knn", "mutual_knn", "full")
ALPHAS = (0.1, 0.5, 0.9, 0.99)
SOLVERS = ("direct", "cg", "iteration")


def random_points(seed, n=40, m=5):
    """Non-negative points, about half of their coordinates 0, so that they make a dense and a sparse X."""
    rng = np.random.default_rng(seed)
    return rng.random((n, m)) * (rng.random((n, m)) < 0.5)


def dense(W):
    return W if isinstance(W, np.ndarray) else W.toarray()


def distances_of(X):
    return np.array([[np.sqrt(((a - b) ** 2).sum()) for b in X] for a in X])


def joined_pairs(W):
    return {(int(i), int(j)) for i, j in np.argwhere(W) if i < j}


def closed_form(W, y, alpha, exponent=0.5):
    """(1 - alpha) (I - alpha D^-k W D^(k-1))^-1 y by a general dense solve; an isolated point has degree 1."""
    degree = W.sum(axis=1)
    degree[degree == 0] = 1
    spread = degree[:, None] ** -exponent * W * degree ** (exponent - 1)
    return (1 - alpha) * np.linalg.solve(np.eye(len(W)) - alpha * spread, y)


# Graphs


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("seed", range(5))
def test_connecting_graph_joins_pairs_in_ascending_order_until_it_is_connected(form, seed):
    X = random_points(seed, m=12)
    distances = distances_of(X)
    joined = np.zeros_like(distances)
    for i, j in sorted(combinations(range(len(X)), 2), key=lambda pair: distances[pair]):
        joined[i, j] = joined[j, i] = 1
        if connected_components(joined)[0] == 1:
            break
    expected = joined * np.exp(-(distances**2) / (2 * 0.7**2))
    np.testing.assert_allclose(dense(affinity_graph(form(X), sigma=0.7)), expected, atol=1e-12)
    weights = dense(affinity_graph(form(X), affinity="inner_product"))
    np.testing.assert_allclose(weights, joined * (X @ X.T), atol=1e-12)


def test_connecting_graph_joins_every_pair_as_long_as_the_longest_edge():
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert joined_pairs(dense(affinity_graph(square))) == {(0, 1), (0, 2), (1, 3), (2, 3)}


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("k", [1, 4, 39])
@pytest.mark.parametrize("mutual", [False, True])
def test_knn_graph_joins_nearest_neighbours(form, k, mutual):
    X = np.random.default_rng(3).random((40, 12))
    distances = distances_of(X)
    np.fill_diagonal(distances, np.inf)
    near = np.zeros_like(distances)
    np.put_along_axis(near, np.argsort(distances, axis=1)[:, :k], 1, axis=1)
    joined = near * near.T if mutual else np.maximum(near, near.T)
    settings = {"graph": "mutual_knn" if mutual else "knn", "k": k}
    W = affinity_graph(form(X), **settings, sigma=0.9)
    assert isinstance(W, sparse.csr_array)
    np.testing.assert_allclose(dense(W), joined * np.exp(-(distances**2) / (2 * 0.9**2)), rtol=1e-12)
    products = affinity_graph(form(X), **settings, affinity="inner_product")
    np.testing.assert_allclose(dense(products), joined * (X @ X.T), rtol=1e-12)


def test_rows_are_worked_through_in_blocks_without_a_seam(monkeypatch):
    X, settings = random_points(4, n=60, m=12), [{"graph": graph} for graph in GRAPHS]
    whole = [dense(affinity_graph(sparse.csr_array(X), **setting)) for setting in settings]
    monkeypatch.setattr("greylag.manifold.graph.BLOCK", 100)
    for expected, setting in zip(whole, settings, strict=True):
        np.testing.assert_array_equal(dense(affinity_graph(sparse.csr_array(X), **setting)), expected)


def test_median_heuristic_is_the_median_length_of_the_edges():
    X = np.array([[0.0], [0.0], [1.0], [3.0], [7.0]])
    # Positive lengths: 1, 1, 2, 3, 3, 4, 6, 7, 7 of all pairs; those up to 4, the tree's longest; 1, 2, 4 for k = 1.
    for graph, sigma in (("full", 3.0), ("connecting", 2.5), ("knn", 2.0)):
        given = affinity_graph(X, graph=graph, k=1, sigma=sigma)
        np.testing.assert_allclose(dense(affinity_graph(X, graph=graph, k=1)), dense(given), rtol=1e-15)


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


@pytest.mark.parametrize("affinity", ["rbf", "inner_product"])
def test_the_matrix_is_sparse_where_few_pairs_are_joined(affinity):
    line = np.arange(60.0)[:, np.newaxis]
    assert isinstance(affinity_graph(line, affinity=affinity), sparse.csr_array)
    assert isinstance(affinity_graph(line, affinity=affinity, graph="full"), np.ndarray)
    assert isinstance(affinity_graph(line[:10], affinity=affinity), np.ndarray)


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


def test_a_word_that_no_other_document_has_changes_nothing():
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


def test_the_points_given_are_left_alone():
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


@pytest.mark.parametrize(
    ("graph", "affinity"), [("connecting", "rbf"), ("full", "rbf"), ("connecting", "inner_product")]
)
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_all_pairs_take_one_matrix_and_half_of_another(graph, affinity, form, monkeypatch):
    monkeypatch.setattr("greylag.manifold.graph.BLOCK", 2**16)
    X, n = random_points(0, n=1500, m=8), 1500
    settings = {"graph": graph, "affinity": affinity, "solver": "direct"} | (
        {"sigma": 0.5} if affinity == "rbf" else {}
    )
    manifold_ranking(form(X[:10]), [0], **settings)  # imports
    tracemalloc.start()
    manifold_ranking(form(X), [0], **settings)
    peak = tracemalloc.get_traced_memory()[1] / (8 * n**2)
    tracemalloc.stop()
    assert peak < 1.8, f"{peak:.2f} n x n matrices"


def test_twenty_thousand_points_on_a_knn_graph():
    X = np.random.default_rng(0).random((20_000, 3))
    tracemalloc.start()
    f = manifold_ranking(X, [0], graph="knn")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert f.argmax() == 0
    assert peak < 100e6  # a matrix of 20,000 x 20,000 bits would be 50 MB, of numbers 3.2 GB


# Scores


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("affinity", ["rbf", "inner_product"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_solvers_agree_with_the_closed_form(graph, affinity, alpha):
    X = sparse.csr_array(random_points(7, n=50, m=20))
    W = affinity_graph(X, graph=graph, k=4, affinity=affinity)
    Y = np.random.default_rng(1).random((50, 3))
    expected = closed_form(dense(W), Y, alpha)
    for solver in (*SOLVERS, "auto"):
        np.testing.assert_allclose(rank(W, Y, alpha=alpha, solver=solver), expected, rtol=1e-8)
        one = manifold_ranking(X, [3], graph=graph, k=4, affinity=affinity, alpha=alpha, solver=solver)
        wanted = closed_form(dense(W), query_vector(50, [3]), alpha)
        np.testing.assert_allclose(one, wanted, atol=1e-8 * wanted.max(), rtol=0)


def test_solvers_agree_up_to_the_alpha_that_is_promised():
    W = affinity_graph(random_points(7, n=50), graph="knn", k=4)
    expected = closed_form(dense(W), query_vector(50, 3), 0.999)
    for solver in SOLVERS:
        f = rank(W, query_vector(50, 3), alpha=0.999, solver=solver)
        np.testing.assert_allclose(f, expected, atol=1e-8 * expected.max(), rtol=0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", [np.array, np.asfortranarray, sparse.coo_array, sparse.csr_matrix])
def test_rank_takes_any_symmetric_matrix_and_leaves_it_alone(solver, form):
    W = dense(affinity_graph(random_points(8)))
    given, y = form(W), query_vector(len(W), [0, 5])
    np.testing.assert_allclose(rank(given, y, solver=solver), closed_form(W, y, 0.99), rtol=1e-8)
    np.testing.assert_array_equal(given if isinstance(given, np.ndarray) else given.toarray(), W)


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_points(solver):
    for alpha in (0.0, *ALPHAS):
        f = manifold_ranking([[0.0], [3.0]], [0], alpha=alpha, solver=solver)
        np.testing.assert_allclose(f, [1 / (1 + alpha), alpha / (1 + alpha)], rtol=1e-10)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_equal_points_have_affinity_one_and_equal_scores(graph, form):
    n, alpha = 6, 0.8
    X = form(np.tile([0.3, 0.1, 0.7], (n, 1)))
    W = dense(affinity_graph(X, graph=graph))
    np.testing.assert_array_equal(W, 1 - np.eye(n))
    # S = (J - I) / (n - 1) has the eigenvalue 1 on 1 and -1 / (n - 1) on its complement.
    other = (1 - (1 - alpha) / (1 + alpha / (n - 1))) / n
    np.testing.assert_allclose(manifold_ranking(X, [2], graph=graph, alpha=alpha)[[0, 1, 3, 4, 5]], other, rtol=1e-10)


def test_more_duplicates_than_neighbours():
    X = np.concatenate([np.zeros((30, 2)), np.ones((1, 2))])
    W = affinity_graph(X, graph="knn", k=3)
    assert not W.diagonal().any()
    assert (W[:30, :30].data == 1).all()
    assert W[[30]].nnz == 3


@pytest.mark.parametrize("solver", SOLVERS)
def test_isolated_points_keep_what_they_are_given(solver):
    X = sparse.csr_array([[1.0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 5]])
    for graph in GRAPHS:
        for points in (X, X.toarray()):  # row 1 is an empty document, and row 4 shares no word with any other
            settings = {"graph": graph, "affinity": "inner_product", "k": 4, "alpha": 0.9, "solver": solver}
            f = manifold_ranking(points, [0], **settings)
            assert f[1] == f[4] == 0
            assert min(f[0], f[2], f[3]) > 0
            f = manifold_ranking(points, [1, 4], confidences=[1, 2], **settings)
            np.testing.assert_allclose(f, [0, 0.1, 0, 0, 0.2], rtol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_scores_do_not_leave_their_component(solver):
    X = np.concatenate([random_points(0, n=20), random_points(1, n=20) + 100])
    f = manifold_ranking(X, [0, 1], graph="knn", k=3, solver=solver)
    W = affinity_graph(X, graph="knn", k=3)
    component = connected_components(W)[1]
    reached = np.isin(component, component[[0, 1]])
    assert reached.sum() < 40
    assert (f[reached] > 0).all()
    assert (f[~reached] == 0).all()


def test_an_empty_document_is_a_point_to_the_rbf():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    assert joined_pairs(dense(affinity_graph(sparse.csr_array(X)))) == {(0, 1), (1, 2)}


def test_points_without_a_common_word_are_not_joined():
    for form in (np.array, sparse.csr_array):
        assert affinity_graph(form(np.eye(3)), graph="knn", affinity="inner_product").nnz == 0
        assert not dense(affinity_graph(form(np.eye(3)), graph="full", affinity="inner_product")).any()
        f = manifold_ranking(form(np.eye(3)), [1], graph="full", affinity="inner_product", alpha=0.75)
        np.testing.assert_array_equal(f, [0, 0.25, 0])


def test_an_affinity_that_underflows_is_no_edge():
    W = affinity_graph([[0.0], [1.0], [1.0], [2.5]], sigma=0.01)
    assert joined_pairs(dense(W)) == {(1, 2)}
    np.testing.assert_allclose(rank(W, [1, 0, 0, 0], alpha=0.75), [0.25, 0, 0, 0])


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("affinity", ["rbf", "inner_product"])
def test_one_point(graph, affinity):
    np.testing.assert_allclose(manifold_ranking([[2.0]], 0, graph=graph, affinity=affinity, alpha=0.75), [0.25])


def test_scores_are_linear_in_the_queries_and_their_confidences():
    X = random_points(2)
    each = [manifold_ranking(X, [query]) for query in (3, 7, 20)]
    np.testing.assert_allclose(manifold_ranking(X, [3, 7, 20]), sum(each), rtol=1e-9)
    together = manifold_ranking(X, [3, 7, 20], confidences=[0.5, 0, 2])
    np.testing.assert_allclose(together, 0.5 * each[0] + 2 * each[2], rtol=1e-9)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("solver", ["direct", "auto"])
def test_far_points_keep_their_order(form, solver):
    alpha = 0.1
    path = np.eye(60, k=1) + np.eye(60, k=-1)
    f = rank(form(path), query_vector(60, 0), alpha=alpha, solver=solver)
    # Inside a path 2 f_i = alpha (f_(i-1) + f_(i+1)), a geometric sequence; f_50 is about 1e-65.
    ratio = (1 - np.sqrt(1 - alpha**2)) / alpha
    np.testing.assert_allclose(f[2:51] / f[1:50], ratio, rtol=1e-12)


def test_label_spreading_gives_the_same_scores():
    X = random_points(6, n=80)
    W = affinity_graph(X, sigma=0.5)
    labels = np.full(80, -1)
    labels[[0, 9]] = 0, 1
    model = LabelSpreading(kernel=lambda *_: dense(W), alpha=0.9, max_iter=10_000, tol=1e-13).fit(X, labels)
    F = rank(W, np.eye(80)[:, [0, 9]], alpha=0.9)
    np.testing.assert_allclose(model.label_distributions_, F / F.sum(axis=1, keepdims=True), rtol=1e-8)


def test_two_moons():
    X, moon = make_moons(200, noise=0.05, random_state=0)
    for query in (int(np.flatnonzero(moon == 0)[0]), int(np.flatnonzero(moon == 1)[-1])):
        f = manifold_ranking(X, query, sigma=0.1)
        same = moon == moon[query]
        assert f[same].min() > f[~same].max()
        distance = np.sqrt(((X - X[query]) ** 2).sum(axis=1))
        assert distance[same].max() > distance[~same].min()


def test_iterates_are_the_papers_recursion():
    W, y = dense(affinity_graph(random_points(9))), query_vector(40, [1, 2], [3, 1])
    root = W.sum(axis=1) ** -0.5
    f = y
    for iterate in islice(iterates(W, y, alpha=0.7), 12):
        np.testing.assert_allclose(iterate, f, rtol=1e-12, atol=1e-15)
        f = 0.7 * (root[:, None] * W * root) @ f + 0.3 * y
    late = next(islice(iterates(W, y, alpha=0.7), 100, None))
    np.testing.assert_allclose(late, rank(W, y, alpha=0.7), rtol=1e-8)


# PageRank


@pytest.mark.parametrize("solver", SOLVERS)
def test_personalised_pagerank_is_the_walkers_stationary_distribution(solver):
    W = affinity_graph(random_points(10), graph="knn", k=6)
    y = query_vector(40, [4, 30], [1, 3])
    walk = dense(W) / dense(W).sum(axis=1, keepdims=True)
    transitions = 0.85 * walk + 0.15 * y / y.sum()
    r = y / y.sum()
    for _ in range(300):
        r = transitions.T @ r
    np.testing.assert_allclose(personalised_pagerank(W, y, solver=solver), r, rtol=1e-8, atol=1e-12)
    assert r.sum() == pytest.approx(1)
    columns = personalised_pagerank(W, np.column_stack([7 * y, np.ones(40)]), solver=solver)
    np.testing.assert_allclose(columns[:, 0], r, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(columns.sum(axis=0), 1)


def test_walks_that_restart_in_isolated_points_are_lost():
    W = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]])
    r = personalised_pagerank(W, [0, 0.75, 0.25], alpha=0.8)
    assert r[2] == pytest.approx(0.2 * 0.25)
    assert r.sum() == pytest.approx(1 - 0.8 * 0.25)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.3, 0.5, 1.0, 2.0])
def test_degree_exponents(solver, exponent):
    W = dense(affinity_graph(random_points(12), graph="knn", k=5, sigma=0.5))
    degree = W.sum(axis=1)
    Y = np.random.default_rng(2).random((40, 2))
    f = rank(W, Y, alpha=0.9, degree_exponent=exponent, solver=solver)
    np.testing.assert_allclose(f, closed_form(W, Y, 0.9, exponent), rtol=1e-8)
    scale = (degree**exponent)[:, None]
    np.testing.assert_allclose(f, rank(W, scale * Y, alpha=0.9, degree_exponent=0) / scale, rtol=1e-8)


def test_degree_exponent_one_ranks_by_the_inverse_of_d_minus_alpha_w():
    W = dense(affinity_graph(random_points(13), sigma=0.5))
    f = rank(W, query_vector(40, 8), degree_exponent=1)
    inverse = np.linalg.inv(np.diag(W.sum(axis=1)) - 0.99 * W)
    np.testing.assert_allclose(f / f[8], inverse[:, 8] / inverse[8, 8], rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_theorem_2_without_queries_the_ranking_is_pageranks_by_degree(seed):
    """Without queries f <- S f, the limit of alpha -> 1, whatever y it starts from; for PageRank f <- P^T f."""
    W = dense(affinity_graph(random_points(seed), sigma=0.5))
    degree = W.sum(axis=1)
    y = np.random.default_rng(seed).random(40)
    f = rank(W, y, alpha=1 - 1e-9)
    r = personalised_pagerank(W, y, alpha=1 - 1e-9)
    np.testing.assert_allclose(f / np.linalg.norm(f), np.sqrt(degree / degree.sum()), rtol=1e-5)
    np.testing.assert_allclose(r, degree / degree.sum(), rtol=1e-5)
    np.testing.assert_array_equal(np.argsort(f), np.argsort(degree))
    np.testing.assert_array_equal(np.argsort(r), np.argsort(degree))
    # A walker who restarts in proportion to degree has that distribution for any alpha, as S has it for D^1/2 1.
    np.testing.assert_allclose(personalised_pagerank(W, degree, alpha=0.5), degree / degree.sum(), rtol=1e-12)
    np.testing.assert_allclose(rank(W, np.sqrt(degree), alpha=0.5), np.sqrt(degree), rtol=1e-12)


# Arguments


def test_query_vector():
    np.testing.assert_array_equal(query_vector(4, 2), [0, 0, 1, 0])
    np.testing.assert_array_equal(query_vector(4, np.array([3, 0]), [0.5, 2]), [2, 0, 0, 0.5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": [1.0, 2.0]}, r"shape \(2,\)"),
        ({"X": np.empty((0, 3))}, r"shape \(0, 3\)"),
        ({"X": [[1.0], [np.nan]]}, "nan"),
        ({"X": sparse.csr_array([[1.0], [np.inf]])}, "inf"),
        ({"graph": "ring"}, "'ring'.*connecting, knn, mutual_knn, full"),
        ({"affinity": "cosine"}, "'cosine'.*rbf, inner_product"),
        ({"k": 0}, "k is 0"),
        ({"sigma": 0}, "sigma is 0"),
        ({"sigma": np.nan}, "sigma is nan"),
        ({"sigma": 1.0, "affinity": "inner_product"}, "no width"),
        ({"X": [[1.0], [-2.0]], "affinity": "inner_product"}, "-2.0"),
        ({"alpha": 1.0}, "alpha is 1.0"),
        ({"alpha": 1 - 1e-11}, "told from 1"),
        ({"alpha": np.nan}, "alpha is nan"),
        ({"alpha": -0.1}, "alpha is -0.1"),
        ({"solver": "svd"}, "'svd'.*auto, direct, cg, iteration"),
        ({"queries": []}, "one or more"),
        ({"queries": [0.5]}, "row numbers"),
        ({"queries": [2]}, "query 2 .* 0 to 1"),
        ({"queries": [-1]}, "query -1"),
        ({"queries": [1, 1]}, r"\[1, 1\]"),
        ({"queries": [0, 1], "confidences": [1.0]}, r"shape \(1,\)"),
        ({"confidences": [-1.0]}, "-1.0"),
        ({"confidences": [0.0]}, "not all 0"),
        ({"confidences": [np.inf]}, "inf"),
    ],
)
def test_arguments_outside_their_domain(arguments, message):
    with pytest.raises(ParameterError, match=message):
        manifold_ranking(**{"X": [[1.0], [2.0]], "queries": [0]} | arguments)


@pytest.mark.parametrize(
    ("W", "y", "settings", "message"),
    [
        (np.ones((2, 3)), [1, 0], {}, r"shape \(2, 3\)"),
        (-np.ones((2, 2)), [1, 0], {}, "-1.0"),
        ([[0, np.nan], [np.nan, 0]], [1, 0], {}, "nan"),
        ([[0, 1], [2, 0]], [1, 0], {}, "symmetric"),
        (sparse.csr_array([[0, 1], [2, 0]]), [1, 0], {}, "symmetric"),
        (np.ones((2, 2)), [1, 0, 0], {}, r"shape \(3,\)"),
        (np.ones((2, 2)), [np.nan, 0], {}, "nan"),
        (np.ones((2, 2)), [1, 0], {"degree_exponent": np.inf}, "inf"),
    ],
)
def test_graphs_and_sources_outside_their_domain(W, y, settings, message):
    with pytest.raises(ParameterError, match=message):
        rank(W, y, **settings)


def test_pagerank_needs_somewhere_to_restart():
    for y in ([0.0, 0.0], [1.0, -1.0], [[1.0, 0.0], [0.0, 0.0]], [np.nan, 1.0]):
        with pytest.raises(ParameterError, match="restart"):
            personalised_pagerank(np.ones((2, 2)), y)


def test_conjugate_gradients_that_do_not_converge_say_so(monkeypatch):
    monkeypatch.setattr("scipy.sparse.linalg.cg", lambda system, b, **_: (b, 7))
    with pytest.raises(ParameterError, match=r"0\.99.*direct"):
        rank(np.ones((2, 2)), [1, 0], solver="cg")


def test_examples():
    assert doctest.testmod(greylag.manifold.ranking).failed == 0
