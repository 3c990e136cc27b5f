"""Leave-one-query-out, compared with one ranking at a time."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import roc_auc_score

from greylag.errors import ParameterError
from greylag.manifold import (
    affinity_graph,
    choose_parameters,
    degrees,
    generalised_pagerank,
    leave_one_query_out,
    normalised_rank,
    query_vector,
    scores_by_exponent,
)
from tests.greylag.manifold.points import random_points


def by_hand(W, queries, alpha, exponent):
    """The ROC area of each query in the ranking by the others, among points that are not queries."""
    areas = []
    for query in queries:
        others = [other for other in queries if other != query]
        f = normalised_rank(W, query_vector(W.shape[0], others), alpha=alpha, exponent=exponent)
        shown = np.setdiff1d(np.arange(len(f)), others)
        areas.append(roc_auc_score(shown == query, f[shown]))
    return areas


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_shares_are_those_of_one_ranking_at_a_time(exponent):
    W, queries = affinity_graph(random_points(4), sigma=0.5), np.array([3, 17, 30, 8])
    Y = np.stack([query_vector(40, query) for query in queries], axis=1)
    solution = generalised_pagerank(W, Y, alpha=0.9)
    scores = scores_by_exponent(solution, degrees(W), queries, [exponent])[exponent]
    np.testing.assert_allclose(scores, normalised_rank(W, Y, alpha=0.9, exponent=exponent), rtol=1e-8)
    np.testing.assert_allclose(leave_one_query_out(scores, queries), by_hand(W, queries, 0.9, exponent))


def test_ties_count_one_half():
    scores = np.array([[1.0, 0], [0, 1], [0, 0], [1, 1]])
    np.testing.assert_allclose(leave_one_query_out(scores, [0, 1]), [0.25, 0.25])


def test_the_best_combination_is_chosen():
    X, moon = make_moons(120, noise=0.05, random_state=1)
    queries = np.flatnonzero(moon == 0)[:4]
    options = {"sigmas": (0.15, 50.0), "alphas": (0.5, 0.99), "exponents": (0.0, 1.0)}
    choice = choose_parameters(X, queries, **options)
    tried = {
        (sigma, alpha, k): np.mean(by_hand(affinity_graph(X, sigma=sigma), queries, alpha, k))
        for sigma in options["sigmas"]
        for alpha in options["alphas"]
        for k in options["exponents"]
    }
    assert choice.score == pytest.approx(max(tried.values()))
    assert tried[choice[:3]] == pytest.approx(choice.score)


@pytest.mark.parametrize("queries", [3, [3]])
def test_one_query_cannot_be_held_out(queries):
    with pytest.raises(ParameterError, match="needs at least 2"):
        choose_parameters([[0.0], [1.0], [2.0], [3.0]], queries)
