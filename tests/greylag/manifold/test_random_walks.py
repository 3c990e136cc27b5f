"""PageRank, compared with transition matrices and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons

from greylag.errors import ParameterError
from greylag.manifold import (
    affinity_graph,
    degrees,
    generalised_pagerank,
    pagerank,
    personalised_pagerank,
    query_vector,
    rank,
    transition_matrix,
)
from tests.greylag.manifold.points import SOLVERS, dense, random_points


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.85, 1.0])
def test_equation_3(form, epsilon):
    """A directed graph: vertex 0 links to 1 and 2, vertex 1 to 2, and vertex 2 to none."""
    W = np.array([[0.0, 1, 1], [0, 0, 1], [0, 0, 0]])
    follow = np.array([[0, 1 / 2, 1 / 2], [0, 0, 1], [1 / 3, 1 / 3, 1 / 3]])
    P = transition_matrix(form(W), epsilon=epsilon)
    np.testing.assert_allclose(P, (1 - epsilon) / 3 + epsilon * follow, rtol=1e-14)
    np.testing.assert_allclose(P.sum(axis=1), 1)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 0.85, 0.99])
def test_pagerank_is_the_stationary_distribution(form, epsilon):
    W = np.random.default_rng(0).random((30, 30)) * (np.random.default_rng(1).random((30, 30)) < 0.15)
    W[4] = 0
    P = transition_matrix(W, epsilon=epsilon)
    values, vectors = np.linalg.eig(P.T)
    expected = np.real(vectors[:, np.argmax(np.real(values))])
    np.testing.assert_allclose(pagerank(form(W), epsilon=epsilon), expected / expected.sum(), rtol=1e-9)


def test_equation_4_needs_equal_degrees_or_a_walk_without_jumps():
    """A path of three vertices has degrees 1, 2, 1; with jumps, PageRank is not proportional to them."""
    path = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    np.testing.assert_allclose(pagerank(path, epsilon=0.85)[1], (0.05 + 0.85) / 1.85, rtol=1e-10)
    assert abs(pagerank(path, epsilon=0.85)[1] - 0.5) > 0.01
    ring = np.roll(np.eye(5), 1, axis=1) + np.roll(np.eye(5), -1, axis=1)
    np.testing.assert_allclose(pagerank(ring, epsilon=0.5), 0.2, rtol=1e-12)


def test_with_jumps_theorem_2_does_not_hold():
    """Vertex 4 has degree 4, three of it leaves that follow only it; vertices 1, 2 and 3 have degree 5 or more."""
    W = np.zeros((10, 10))
    W[:4, :4] = 1
    for i, j in [(0, 4), (4, 5), (4, 6), (4, 7), (1, 8), (2, 8), (3, 8), (1, 9), (2, 9), (3, 9)]:
        W[i, j] = W[j, i] = 1
    np.fill_diagonal(W, 0)
    degree = W.sum(axis=1)
    assert degree[4] < degree[1]
    assert pagerank(W, epsilon=0.5)[4] > pagerank(W, epsilon=0.5)[1]
    np.testing.assert_allclose(pagerank(W, epsilon=1 - 1e-5), degree / degree.sum(), rtol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_personalised_pagerank_is_the_walkers_stationary_distribution(solver):
    W = affinity_graph(random_points(10), graph="knn", neighbours=6)
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


def test_restarts_in_isolated_points_are_lost():
    W = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]])
    r = personalised_pagerank(W, [0, 0.75, 0.25], alpha=0.8)
    assert r[2] == pytest.approx(0.2 * 0.25)
    assert r.sum() == pytest.approx(1 - 0.8 * 0.25)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_equation_12(solver, exponent):
    W = dense(affinity_graph(random_points(12), graph="knn", neighbours=5, sigma=0.5))
    D, Y = np.diag(W.sum(axis=1)), np.random.default_rng(2).standard_normal((40, 2))
    P = np.linalg.inv(D) @ W
    powers = np.diag(np.diag(D) ** exponent)
    expected = 0.1 * np.linalg.solve(np.eye(40) - 0.9 * P.T, powers @ Y)
    found = generalised_pagerank(W, Y, alpha=0.9, exponent=exponent, solver=solver)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)
    r = powers @ Y
    for _ in range(400):  # eq. 11
        r = 0.9 * P.T @ r + 0.1 * powers @ Y
    np.testing.assert_allclose(found, r, rtol=1e-7, atol=1e-10)


def test_equation_10_relates_manifold_ranking_to_pagerank():
    W = dense(affinity_graph(random_points(13), sigma=0.5))
    y = query_vector(40, [8, 3])
    r = generalised_pagerank(W, y, alpha=0.99, exponent=0.5)
    np.testing.assert_allclose(rank(W, y), r / np.sqrt(degrees(W)), rtol=1e-8)
    one = generalised_pagerank(W, y, alpha=0.99, exponent=1)
    D = np.diag(degrees(W))
    np.testing.assert_allclose(one, 0.01 * D @ np.linalg.solve(D - 0.99 * W, D @ y), rtol=1e-7)


def test_the_exponent_does_not_change_the_ranking_of_one_query():
    W = affinity_graph(random_points(3), sigma=0.5)
    columns = [generalised_pagerank(W, query_vector(40, 5), exponent=k) for k in (0.0, 0.5, 2.0)]
    for column in columns[1:]:
        np.testing.assert_allclose(column / column[5], columns[0] / columns[0][5], rtol=1e-9)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_signed_labels_classify_two_moons(exponent):
    X, moon = make_moons(200, noise=0.05, random_state=0)
    y = np.zeros(200)
    y[np.flatnonzero(moon == 0)[0]], y[np.flatnonzero(moon == 1)[0]] = 1, -1
    classes = generalised_pagerank(affinity_graph(X, sigma=0.1), y, exponent=exponent)
    np.testing.assert_array_equal(classes > 0, moon == 0)


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
    np.testing.assert_allclose(pagerank(W, epsilon=1 - 1e-9), degree / degree.sum(), rtol=1e-5)
    # A walker who restarts in proportion to degree has that distribution for any alpha, as S has it for D^1/2 1.
    np.testing.assert_allclose(personalised_pagerank(W, degree, alpha=0.5), degree / degree.sum(), rtol=1e-12)
    np.testing.assert_allclose(rank(W, np.sqrt(degree), alpha=0.5), np.sqrt(degree), rtol=1e-12)


def test_pagerank_needs_a_restart_point():
    for y in ([0.0, 0.0], [1.0, -1.0], [[1.0, 0.0], [0.0, 0.0]], [np.nan, 1.0]):
        with pytest.raises(ParameterError, match="restart"):
            personalised_pagerank(np.ones((2, 2)), y)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (transition_matrix, {"W": np.ones((2, 3))}, r"shape \(2, 3\)"),
        (transition_matrix, {"W": -np.ones((2, 2))}, "-1.0"),
        (transition_matrix, {"W": np.ones((2, 2)), "epsilon": 1.5}, r"epsilon is 1.5; it must be in \[0, 1\]"),
        (pagerank, {"W": np.ones((2, 2)), "epsilon": 1.0}, r"epsilon is 1.0; it must be in \[0, 1\)"),
        (generalised_pagerank, {"W": np.ones((2, 2)), "y": [1, 0, 0]}, r"shape \(3,\)"),
        (generalised_pagerank, {"W": np.ones((2, 2)), "y": [1, 0], "exponent": np.nan}, "exponent is nan"),
    ],
)
def test_arguments_outside_their_domain(function, arguments, message):
    with pytest.raises(ParameterError, match=message):
        function(**arguments)
