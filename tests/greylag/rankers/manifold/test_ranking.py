"""Manifold ranking, compared with closed forms and scikit-learn."""

import doctest
import tracemalloc
from itertools import islice

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.semi_supervised import LabelSpreading

import greylag.rankers.manifold.ranking
from greylag.base import ParameterError
from greylag.rankers import (
    affinity_graph,
    graph_degrees,
    manifold_ranking,
    query_vector,
    spread_iterates,
    spread_scores,
)
from tests.greylag.rankers.manifold.points import (
    ALPHAS,
    GRAPHS,
    SOLVERS,
    closed_form,
    dense,
    joined_pairs,
    random_points,
)
from tests.refusals import refuses


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", [np.array, np.asfortranarray, sparse.coo_array, sparse.csr_matrix])
def test_rank_takes_any_symmetric_matrix_and_does_not_modify_it(solver, form):
    W = dense(affinity_graph(random_points(8)))
    given, y = form(W), query_vector(len(W), [0, 5])
    np.testing.assert_allclose(spread_scores(given, y, solver=solver), closed_form(W, y, 0.99), rtol=1e-8)
    np.testing.assert_array_equal(given if isinstance(given, np.ndarray) else given.toarray(), W)


@pytest.mark.parametrize("solver", SOLVERS)
def test_isolated_points_keep_their_source(solver):
    X = sparse.csr_array([[1.0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 5]])
    for graph in GRAPHS:
        for points in (X, X.toarray()):  # row 1 is an empty document, and row 4 shares no word with any other
            settings = {"graph": graph, "affinity": "inner_product", "neighbours": 4, "alpha": 0.9, "solver": solver}
            f = manifold_ranking(points, [0], **settings)
            assert f[1] == f[4] == 0
            assert min(f[0], f[2], f[3]) > 0
            f = manifold_ranking(points, [1, 4], confidences=[1, 2], **settings)
            np.testing.assert_allclose(f, [0, 0.1, 0, 0, 0.2], rtol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_scores_do_not_leave_their_component(solver):
    X = np.concatenate([random_points(0, n=20), random_points(1, n=20) + 100])
    f = manifold_ranking(X, [0, 1], graph="knn", neighbours=3, solver=solver)
    W = affinity_graph(X, graph="knn", neighbours=3)
    component = connected_components(W)[1]
    reached = np.isin(component, component[[0, 1]])
    assert reached.sum() < 40
    assert (f[reached] > 0).all()
    assert (f[~reached] == 0).all()


def test_an_affinity_that_underflows_is_no_edge():
    W = affinity_graph([[0.0], [1.0], [1.0], [2.5]], sigma=0.01)
    assert joined_pairs(dense(W)) == {(1, 2)}
    np.testing.assert_allclose(spread_scores(W, [1, 0, 0, 0], alpha=0.75), [0.25, 0, 0, 0])


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("affinity", ["rbf", "inner_product"])
def test_one_point(graph, affinity):
    np.testing.assert_allclose(manifold_ranking([[2.0]], 0, graph=graph, affinity=affinity, alpha=0.75), [0.25])
    np.testing.assert_allclose(spread_scores([[0.0]], [1.0], alpha=0.75), [0.25])


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("solver", ["direct", "auto"])
def test_far_points_keep_their_order(form, solver):
    alpha = 0.1
    path = np.eye(60, k=1) + np.eye(60, k=-1)
    f = spread_scores(form(path), query_vector(60, 0), alpha=alpha, solver=solver)
    # Inside a path 2 f_i = alpha (f_(i-1) + f_(i+1)), a geometric sequence; f_50 is about 1e-65.
    ratio = (1 - np.sqrt(1 - alpha**2)) / alpha
    np.testing.assert_allclose(f[2:51] / f[1:50], ratio, rtol=1e-12)


def test_label_spreading_gives_the_same_scores():
    X = random_points(6, n=80)
    W = affinity_graph(X, sigma=0.5)
    labels = np.full(80, -1)
    labels[[0, 9]] = 0, 1
    model = LabelSpreading(kernel=lambda *_: dense(W), alpha=0.9, max_iter=10_000, tol=1e-13).fit(X, labels)
    F = spread_scores(W, np.eye(80)[:, [0, 9]], alpha=0.9)
    np.testing.assert_allclose(model.label_distributions_, F / F.sum(axis=1, keepdims=True), rtol=1e-8)


def test_iterates_are_the_papers_recursion():
    W, y = dense(affinity_graph(random_points(9))), query_vector(40, [1, 2], [3, 1])
    root = W.sum(axis=1) ** -0.5
    f = y
    for iterate in islice(spread_iterates(W, y, alpha=0.7), 12):
        np.testing.assert_allclose(iterate, f, rtol=1e-12, atol=1e-15)
        f = 0.7 * (root[:, None] * W * root) @ f + 0.3 * y
    late = next(islice(spread_iterates(W, y, alpha=0.7), 100, None))
    np.testing.assert_allclose(late, spread_scores(W, y, alpha=0.7), rtol=1e-8)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("affinity", ["rbf", "inner_product"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_solvers_agree_with_the_closed_form(graph, affinity, alpha):
    X = sparse.csr_array(random_points(7, n=50, m=20))
    W = affinity_graph(X, graph=graph, neighbours=4, affinity=affinity)
    Y = np.random.default_rng(1).random((50, 3))
    expected = closed_form(dense(W), Y, alpha)
    for solver in (*SOLVERS, "auto"):
        np.testing.assert_allclose(spread_scores(W, Y, alpha=alpha, solver=solver), expected, rtol=1e-8)
        one = manifold_ranking(X, [3], graph=graph, neighbours=4, affinity=affinity, alpha=alpha, solver=solver)
        wanted = closed_form(dense(W), query_vector(50, [3]), alpha)
        np.testing.assert_allclose(one, wanted, atol=1e-8 * wanted.max(), rtol=0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_agree_up_to_the_documented_alpha(solver):
    W = affinity_graph(random_points(7, n=50), graph="knn", neighbours=4)
    expected = closed_form(dense(W), query_vector(50, 3), 0.999)
    f = spread_scores(W, query_vector(50, 3), alpha=0.999, solver=solver)
    np.testing.assert_allclose(f, expected, atol=1e-8 * expected.max(), rtol=0)


def test_conjugate_gradients_that_do_not_converge(monkeypatch):
    monkeypatch.setattr("scipy.sparse.linalg.cg", lambda system, right, **options: (right, 1))
    refuses(lambda: spread_scores(np.ones((2, 2)), [1, 0], solver="cg"), ParameterError, "direct")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.3, 0.5, 1.0, 2.0])
def test_every_exponent_has_its_closed_form_and_is_a_walk_by_degrees(solver, exponent):
    W = dense(affinity_graph(random_points(12), graph="knn", neighbours=5, sigma=0.5))
    Y = np.random.default_rng(2).standard_normal((40, 2))
    f = spread_scores(W, Y, alpha=0.9, exponent=exponent, solver=solver)
    np.testing.assert_allclose(f, closed_form(W, Y, 0.9, exponent), rtol=1e-7, atol=1e-10)
    powers = (W.sum(axis=1) ** exponent)[:, None]
    walk = spread_scores(W, powers * Y, alpha=0.9, exponent=0, solver=solver)
    np.testing.assert_allclose(walk, f * powers, rtol=1e-7, atol=1e-10)
    r, P = powers * Y, W / W.sum(axis=1, keepdims=True)
    for _ in range(400):  # eq. 11, whose limit is eq. 12
        r = 0.9 * P.T @ r + 0.1 * powers * Y
    np.testing.assert_allclose(walk, r, rtol=1e-7, atol=1e-10)


def pagerank(W, epsilon):
    """The stationary distribution of eq. 3: a walk that jumps anywhere with probability 1 - epsilon."""
    P = (1 - epsilon) / len(W) + epsilon * W / W.sum(axis=1, keepdims=True)
    values, vectors = np.linalg.eig(P.T)
    distribution = np.real(vectors[:, np.argmax(np.real(values))])
    return distribution / distribution.sum()


@pytest.mark.parametrize("seed", range(3))
def test_theorem_2_without_queries_the_ranking_is_pageranks_by_degree(seed):
    """Without queries f <- S f, the limit of alpha -> 1, whatever y it starts from; for PageRank f <- P^T f."""
    W = dense(affinity_graph(random_points(seed), sigma=0.5))
    degree = W.sum(axis=1)
    y = np.random.default_rng(seed).random(40)
    f, r = (spread_scores(W, y / y.sum(), alpha=1 - 1e-9, exponent=k) for k in (0.5, 0.0))
    np.testing.assert_allclose(f / np.linalg.norm(f), np.sqrt(degree / degree.sum()), rtol=1e-5)
    np.testing.assert_allclose(r, degree / degree.sum(), rtol=1e-5)
    np.testing.assert_array_equal(np.argsort(f), np.argsort(degree))
    np.testing.assert_array_equal(np.argsort(r), np.argsort(degree))
    np.testing.assert_allclose(pagerank(W, 1 - 1e-9), degree / degree.sum(), rtol=1e-5)
    # A walker who restarts in proportion to degree has that distribution for any alpha, as S has it for D^1/2 1.
    np.testing.assert_allclose(spread_scores(W, degree, alpha=0.5, exponent=0), degree, rtol=1e-12)
    np.testing.assert_allclose(spread_scores(W, np.sqrt(degree), alpha=0.5), np.sqrt(degree), rtol=1e-12)


def test_degrees():
    W = np.array([[0.0, 2, 0], [2, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(graph_degrees(W), [2, 2, 1])
    np.testing.assert_allclose(graph_degrees(sparse.csr_array(W)), [2, 2, 1])


def test_query_vector():
    np.testing.assert_array_equal(query_vector(4, 2), [0, 0, 1, 0])
    np.testing.assert_array_equal(query_vector(4, np.array([3, 0]), [0.5, 2]), [2, 0, 0, 0.5])


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"X": [1.0, 2.0]}, "(2,)"),
        ({"X": {1, 2}}, "X set"),
        ({"X": np.empty((0, 3))}, "(0, 3)"),
        ({"X": [[1.0], [np.nan]]}, "X nan"),
        ({"X": sparse.csr_array([[1.0], [np.inf]])}, "X inf"),
        ({"graph": "ring"}, "'ring' knn mutual_knn full"),
        ({"affinity": "cosine"}, "'cosine' rbf inner_product"),
        ({"neighbours": 0}, "neighbours 0"),
        ({"sigma": 0}, "sigma 0"),
        ({"sigma": 1.0, "affinity": "inner_product"}, "sigma 1.0"),
        ({"X": [[1.0], [-2.0]], "affinity": "inner_product"}, "X -2.0"),
        ({"alpha": 1.0}, "alpha 1.0"),
        ({"alpha": 1 - 1e-11}, "alpha 1e-10"),
        ({"alpha": -0.1}, "alpha -0.1"),
        ({"solver": "svd"}, "'svd' auto direct cg"),
        ({"queries": []}, "[]"),
        ({"queries": [0.5]}, "[0.5]"),
        ({"queries": [2]}, "2 0 1"),
        ({"queries": [1, 1]}, "[1, 1]"),
        ({"queries": [0, 1], "confidences": [1.0]}, "confidences (1,)"),
        ({"confidences": [-1.0]}, "confidences -1.0"),
        ({"confidences": [0.0]}, "confidences 0.0"),
        ({"W": np.ones((2, 3))}, "(2, 3)"),
        ({"W": -np.ones((2, 2))}, "W -1.0"),
        ({"W": [[0, np.nan], [np.nan, 0]]}, "W nan"),
        ({"W": [[0, 1], [2, 0]]}, "W symmetric"),
        ({"W": sparse.csr_array([[0, 1], [2, 0]])}, "W symmetric"),
        ({"W": np.ones((2, 2)), "y": [1, 0, 0]}, "y (3,)"),
        ({"W": np.ones((2, 2)), "y": [np.nan, 0]}, "y nan"),
        ({"W": np.ones((2, 2)), "exponent": np.inf}, "exponent inf"),
    ],
)
def test_refusals(arguments, parts):
    call, given = (
        (spread_scores, {"y": [1, 0]})
        if "W" in arguments
        else (manifold_ranking, {"X": [[1.0], [2.0]], "queries": [0]})
    )
    refuses(lambda: call(**given | arguments), ParameterError, parts)


def test_examples():
    assert doctest.testmod(greylag.rankers.manifold.ranking).failed == 0


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_all_pairs_take_at_most_two_matrices(form, monkeypatch):
    monkeypatch.setattr("greylag.rankers.manifold.graph.BLOCK_NUMBERS", 2**16)
    X, n = random_points(0, n=1500, m=8), 1500
    settings = {"graph": "full", "sigma": 0.5, "solver": "direct"}
    manifold_ranking(form(X[:10]), [0], **settings)  # imports
    tracemalloc.start()
    manifold_ranking(form(X), [0], **settings)
    peak = tracemalloc.get_traced_memory()[1] / (8 * n**2)
    tracemalloc.stop()
    assert peak < 1.8, f"{peak:.2f} n x n matrices"


def test_thousands_of_points_on_a_knn_graph():
    X = np.random.default_rng(0).random((6000, 3))
    tracemalloc.start()
    f = manifold_ranking(X, [0], graph="knn")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert f.argmax() == 0
    assert peak < 40e6  # a matrix of 6,000 x 6,000 numbers would be 288 MB, and of bytes 36 MB
