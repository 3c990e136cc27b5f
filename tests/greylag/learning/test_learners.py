"""Greedy selection and coordinate ascent.

Tests `coordinate_ascent`, `extraction`, `greedy` and `learner`.
"""

import os
from dataclasses import replace

import numpy as np
import pytest

from greylag.base import ParameterError
from greylag.learning.coordinate_ascent import CoordinateAscent, _axes, ascend
from greylag.learning.data import centred, linear_scores
from greylag.learning.greedy import GreedySelection
from greylag.learning.learner import Selection, after_each_round
from greylag.learning.linesearch.line_search import line_search, prepare
from greylag.learning.linesearch.objectives import Objective
from greylag.learning.listwise import ListwiseRegression
from tests.docs import ROOT
from tests.greylag.learning.samples import random_data
from tests.processes import python
from tests.refusals import refuses

AP = Objective("AP")
NO_RELEVANT = replace(random_data(1), grades=np.zeros_like(random_data(1).grades))


def plain_greedy(data, rounds):
    """Algorithm 1 of Metzler (2007), spelt out."""
    problem = prepare(data, AP)
    columns = []
    weights = []
    for _ in range(rounds):
        scores = sum(
            (w * data.features[:, c] for c, w in zip(columns, weights, strict=True)), np.zeros(len(data.docids))
        )
        tried = {c: line_search(problem, scores, data.columns[c]) for c in range(len(data.names)) if c not in columns}
        best = max(tried, key=lambda c: (tried[c].value, -c))
        columns.append(best)
        weights.append(tried[best].step)
    return columns, weights


@pytest.mark.parametrize("levels", [None, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_follows_the_algorithm(seed, levels):
    data = random_data(seed, queries=10, documents=30, features=6, levels=levels)
    selection = GreedySelection(AP, max_features=3).fit(data)
    columns, weights = plain_greedy(data, len(selection.columns))
    assert list(selection.columns) == columns
    assert list(selection.weights) == weights


@pytest.mark.parametrize("name", ["AP", "nDCG@10", "RR", "P@5", "ERR@20", "nDCG(dcg='exp-log2')@10"])
@pytest.mark.parametrize("retrain", [False, True])
def test_each_round_raises_the_training_score_and_reports_it(name, retrain):
    objective = Objective.parse(name)
    data = random_data(11, queries=12, documents=30, features=8)
    selection = GreedySelection(objective, max_features=8, retrain=retrain).fit(data)
    assert all(np.diff([0.0, *selection.training_scores]) > 0)
    assert len(set(selection.columns)) == len(selection.columns)
    scores = linear_scores(data, list(selection.columns), np.array(selection.weights))
    assert selection.training_scores[-1] == pytest.approx(np.mean(objective.evaluate(data, scores)), abs=1e-12)


def test_retraining_does_not_lower_the_training_score():
    for seed in range(5):
        data = random_data(seed, queries=10, documents=30, features=6)
        plain = GreedySelection(AP, max_features=2).fit(data)
        retrained = GreedySelection(AP, max_features=2, retrain=True).fit(data)
        assert retrained.training_scores[-1] >= plain.training_scores[-1] - 1e-12


def test_stopping_criteria():
    data = random_data(11, queries=12, documents=30, features=8)
    full = GreedySelection(AP, max_features=8).fit(data)
    gains = np.diff([0.0, *full.training_scores])
    stopped = GreedySelection(AP, max_features=8, epsilon=float(gains[2])).fit(data)
    assert len(stopped.columns) <= 2
    assert GreedySelection(AP, max_features=2).fit(data).columns == full.columns[:2]


def test_values_after_each_round_are_those_of_shorter_selections():
    data, other = random_data(3, queries=10, documents=30, features=6), random_data(4, queries=7, features=6)
    for retrain in (False, True):
        learner = GreedySelection(AP, max_features=4, retrain=retrain)
        found = after_each_round(learner.fit(data), other, AP)
        for rounds, values in enumerate(found, 1):
            short = replace(learner, max_features=rounds).fit(data)
            assert short == learner.fit(data).head(rounds)
            expected = AP.evaluate(other, linear_scores(other, list(short.columns), np.array(short.weights)))
            np.testing.assert_array_equal(values, expected)


ROUNDS = Selection((4, 1, 2), ((1.0,), (0.9, 0.1), (0.8, 0.1, 0.1)), (0.3, 0.4, 0.5))
AT_ONCE = Selection((0, 1, 2), ((0.2, 0.3, 0.5),), (0.6,))


def test_head_is_the_selection_after_fewer_rounds():
    assert ROUNDS.head(2) == Selection((4, 1), ((1.0,), (0.9, 0.1)), (0.3, 0.4))
    assert ROUNDS.head(9) == ROUNDS
    assert AT_ONCE.head(1) == AT_ONCE.head(2) == AT_ONCE
    assert len(AT_ONCE.head(2).weights) == len(AT_ONCE.head(2).columns)
    assert (ROUNDS.entry_scores, AT_ONCE.entry_scores) == ((0.3, 0.4, 0.5), (0.6, 0.6, 0.6))


def test_weights_keep_their_total_magnitude():
    data = random_data(2, queries=10, documents=30, features=4)
    weights = ascend(np.array([5.0, -2.0, 1.0]), data, AP, [2, 0, 3])
    assert np.abs(weights).sum() == pytest.approx(8.0)
    assert np.abs(ascend(np.zeros(3), data, AP, [2, 0, 3])).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["AP", "nDCG@10", "ERR@20"])
def test_keeps_the_best_start(name):
    objective = Objective.parse(name)
    data = random_data(15, queries=12, documents=30, features=5)
    found = CoordinateAscent(objective, restarts=4, seed=3).fit(data)
    assert found.columns == (0, 1, 2, 3, 4)
    scores = linear_scores(data, list(found.columns), np.array(found.weights))
    assert found.training_scores[-1] == np.mean(objective.evaluate(data, scores))
    reached = [CoordinateAscent(objective, restarts=n, seed=3).fit(data).training_scores[-1] for n in (1, 2, 3, 4)]
    assert all(np.diff(reached) >= 0)
    assert found.training_scores[-1] == reached[-1]
    assert found == CoordinateAscent(objective, restarts=4, seed=3).fit(data, n_jobs=3)
    assert found.head(2) == found
    assert found.entry_scores == found.training_scores * 5
    assert found != CoordinateAscent(objective, restarts=4, seed=4).fit(data)


def test_axes_are_uncorrelated_and_in_descending_order_of_variance():
    data = random_data(21, queries=12, documents=40, features=5)
    data = replace(data, features=data.features @ np.random.default_rng(1).standard_normal((5, 5)))
    _, axes = _axes(data)
    along = axes @ centred(data)
    products = along @ along.T
    variances = np.diag(products)
    np.testing.assert_allclose(products, np.diag(variances), atol=1e-9 * variances[0])
    assert all(np.diff(variances) < 0)
    assert variances.sum() == pytest.approx(5 * len(data.docids))


def test_another_processor_learns_the_same_weights():
    """OpenBLAS takes the loops of the processor that it is told of, and their sums have other last digits."""
    code = (
        "from tests.greylag.learning.test_learners import *;"
        "data = random_data(21, queries=12, documents=40, features=5);"
        "print([learner(AP).fit(data).weights for learner in (CoordinateAscent, GreedySelection)])"
    )
    there = python("-c", code, check=True, cwd=ROOT, env=os.environ | {"OPENBLAS_CORETYPE": "Prescott"}).stdout
    data = random_data(21, queries=12, documents=40, features=5)
    assert there == f"{[learner(AP).fit(data).weights for learner in (CoordinateAscent, GreedySelection)]}\n"


def test_no_axis_and_no_weight_improves_the_result():
    data = random_data(21, queries=12, documents=40, features=5)
    found = CoordinateAscent(AP, restarts=1, tolerance=0.0).fit(data)
    scores, problem = linear_scores(data, found.columns, np.array(found.weights)), prepare(data, AP)
    directions = [*data.columns, *(linear_scores(data, found.columns, axis) for axis in _axes(data)[1])]
    assert max(line_search(problem, scores, line).value for line in directions) <= found.training_scores[-1] + 1e-9


def test_a_selection_predicts():
    selection = Selection((2, 0), ((1.0,), (3.0, -0.5)), (0.1, 0.2))
    X = np.array([[1.0, 9.0, 2.0], [4.0, 9.0, 1.0]])
    np.testing.assert_array_equal(selection.predict(X), [5.5, 1.0])
    data = random_data(1)
    np.testing.assert_array_equal(selection.predict(data), 3 * data.X[:, 2] - 0.5 * data.X[:, 0])
    np.testing.assert_array_equal(selection.over(data), [-0.5, 0.0, 3.0])


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        *(
            ((lambda learner=learner, options=options: learner(AP, **options)), next(iter(options)))
            for learner, *every in (
                (GreedySelection, {"max_features": 0}, {"epsilon": -1.0}),
                (ListwiseRegression, {"max_features": 0}, {"centre": {"x": np.nan}}),
                (CoordinateAscent, {"restarts": 0}, {"tolerance": -1.0}, {"seed": -1}),
            )
            for options in every
        ),
        (lambda: GreedySelection(AP).fit(NO_RELEVANT), "AP 0"),
        (lambda: ListwiseRegression(AP).fit(NO_RELEVANT), "nothing to learn"),
        (lambda: ROUNDS.head(0), "rounds 1"),
        (lambda: Selection((2, 0), ((3.0, -0.5),), (0.2,)).predict(np.ones((2, 2))), "(2, 2) column 2"),
    ],
)
def test_refusals(call, parts):
    refuses(call, ParameterError, parts)
