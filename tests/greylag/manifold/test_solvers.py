"""Solvers, compared with the closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from greylag.errors import ParameterError
from greylag.manifold import (
    affinity_graph,
    manifold_ranking,
    query_vector,
    rank,
)
from tests.greylag.manifold.points import (
    ALPHAS,
    GRAPHS,
    SOLVERS,
    closed_form,
    dense,
    random_points,
)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("affinity", ["rbf", "inner_product"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_solvers_agree_with_the_closed_form(graph, affinity, alpha):
    X = sparse.csr_array(random_points(7, n=50, m=20))
    W = affinity_graph(X, graph=graph, neighbours=4, affinity=affinity)
    Y = np.random.default_rng(1).random((50, 3))
    expected = closed_form(dense(W), Y, alpha)
    for solver in (*SOLVERS, "auto"):
        np.testing.assert_allclose(rank(W, Y, alpha=alpha, solver=solver), expected, rtol=1e-8)
        one = manifold_ranking(X, [3], graph=graph, neighbours=4, affinity=affinity, alpha=alpha, solver=solver)
        wanted = closed_form(dense(W), query_vector(50, [3]), alpha)
        np.testing.assert_allclose(one, wanted, atol=1e-8 * wanted.max(), rtol=0)


def test_solvers_agree_up_to_the_documented_alpha():
    W = affinity_graph(random_points(7, n=50), graph="knn", neighbours=4)
    expected = closed_form(dense(W), query_vector(50, 3), 0.999)
    for solver in SOLVERS:
        f = rank(W, query_vector(50, 3), alpha=0.999, solver=solver)
        np.testing.assert_allclose(f, expected, atol=1e-8 * expected.max(), rtol=0)


def test_conjugate_gradients_that_do_not_converge(monkeypatch):
    monkeypatch.setattr("scipy.sparse.linalg.cg", lambda system, b, **_: (b, 7))
    with pytest.raises(ParameterError, match=r"0\.99.*direct"):
        rank(np.ones((2, 2)), [1, 0], solver="cg")
