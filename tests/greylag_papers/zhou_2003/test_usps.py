"""The study of digits, on small generated images against one ranking at a time."""

from itertools import product

import numpy as np
import pytest

from greylag.rankers import affinity_graph, manifold_ranking, query_vector, spread_scores
from greylag.studies import Context
from greylag_papers.zhou_2003.usps import (
    STUDY,
    Settings,
    choose,
    draw_trials,
    leave_one_query_out,
    precision,
    read_images,
    try_parameters,
)
from tests.greylag_papers.zhou_2003.oracles import roc_area


@pytest.fixture
def settings(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([1, 2, 7], 14))
    X = np.clip(rng.random((len(y), 256)) * 0.9 + 0.1 * (np.arange(256) % 7 == y[:, np.newaxis] % 7), 0, 1)
    np.savez(tmp_path / "digits.npz", X=X.astype(np.float32), y=y)
    options = {"images": "digits.npz", "digits": (1, 2), "queries": 3, "trials": 2, "sigma": 4.0, "widths": (3.0,)}
    return Settings(name="x", data_folder=tmp_path, **options)


def test_scores_are_those_of_one_ranking_at_a_time(settings, tmp_path):
    context = Context(tmp_path)
    X, digits = read_images(settings, context)
    assert X.shape == (28, 256)
    assert X.min() < -0.9
    outcome = STUDY.run(settings, (X, digits), context)
    found = outcome.results["by digit, trial and number of queries"]
    queries = draw_trials(digits, settings)
    for (i, digit), trial, n in product(enumerate((1, 2)), range(2), (1, 2, 3)):
        own = queries[i, trial, :n]
        assert len(set(own)) == n
        assert (digits[own] == digit).all()
        others = np.setdiff1d(np.arange(len(X)), own)
        f = manifold_ranking(X, own, graph="full", sigma=4.0)
        nearest = np.array([-min(np.linalg.norm(x - X[query]) for query in own) for x in X])
        for name, scores in (("manifold", f), ("distance", nearest)):
            area = roc_area(scores[others], digits[others] == digit)
            assert found[name][i][trial][n - 1] == pytest.approx(area, abs=1e-12)
    assert 0.5 < np.mean(found["distance"]) < 0.99
    assert outcome.scores["manifold"]["digit 2"] == pytest.approx(np.mean(found["manifold"][1]))
    assert outcome.scores["manifold, 1 query"]["digit 1"] == pytest.approx(np.mean(found["manifold"][0], axis=0)[0])


def held_out(W, queries, alpha, exponent):
    """The mean ROC area of each query in the ranking by the others, among points that are not queries."""
    areas = []
    for query in queries:
        others = [other for other in queries if other != query]
        f = spread_scores(W, query_vector(W.shape[0], others), alpha=alpha, exponent=exponent)
        shown = np.setdiff1d(np.arange(len(f)), others)
        areas.append(roc_area(f[shown], shown == query))
    return np.mean(areas)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_queries_are_held_out_as_if_ranked_one_at_a_time(exponent):
    """Also where a query's own score, about 0.3, is 1e16 times that by the others: points 9 and more are far from 0."""
    X, queries = np.array([[0], [0.5], [1], [9], [9.4], [9.9], [20.0]]), np.array([0, 3])
    W = affinity_graph(X, graph="full", sigma=0.9)
    scores = np.stack([spread_scores(W, query_vector(7, q), alpha=0.9, exponent=exponent) for q in queries], axis=1)
    assert leave_one_query_out(scores, queries) == held_out(W, queries, 0.9, exponent)
    rng = np.random.default_rng(1)
    for sigma, q in product((0.1, 0.3, 3.0), (2, 5)):
        X, queries = rng.random((30, 4)), rng.permutation(30)[:q]
        W = affinity_graph(X, graph="full", sigma=sigma)
        scores = np.stack(
            [spread_scores(W, query_vector(30, q), alpha=0.9, exponent=exponent) for q in queries], axis=1
        )
        assert leave_one_query_out(scores, queries) == pytest.approx(held_out(W, queries, 0.9, exponent), abs=1e-12)


def test_a_tie_counts_one_half():
    scores = np.array([[1.0, 0], [0, 1], [0, 0], [1, 1]])
    assert leave_one_query_out(scores, np.array([0, 1])) == 0.25


def test_parameters_are_chosen_by_leave_one_query_out(settings, tmp_path):
    context = Context(tmp_path)
    X, digits = read_images(settings, context)
    queries = draw_trials(digits, settings)
    tried = try_parameters(X, digits, queries, settings, context)
    chosen, areas = choose(tried, queries.shape[:2])
    for i, trial in product(range(2), range(2)):
        drawn = queries[i, trial]
        graphs = {sigma: affinity_graph(X, graph="full", sigma=sigma) for sigma in (3.0, 4.0)}
        tried = {
            parameters: round(held_out(graphs[parameters[0]], drawn, *parameters[1:]), 12)
            for parameters in product(graphs, settings.alphas, settings.exponents)
        }
        sigma, alpha, exponent = best = max(tried, key=tried.__getitem__)
        assert tuple(chosen[i, trial]) == best
        f = spread_scores(graphs[sigma], query_vector(len(X), drawn), alpha=alpha, exponent=exponent)
        others = np.setdiff1d(np.arange(len(X)), drawn)
        area = roc_area(f[others], digits[others] == digits[drawn[0]])
        assert areas[i, trial] == pytest.approx(area, abs=1e-12)


def test_precision_of_the_best_images():
    scores, digits = np.array([[9, 0.0], [3, 4], [2, 9], [1, 3]]), np.array([1, 1, 2, 2])
    assert precision(scores, digits, np.array([[0], [2]]), 2).tolist() == [[0.5], [0.5]]
