"""Listwise regression, against the function that it minimises, written out document by document."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import check_grad

from greylag.base import ParameterError
from greylag.learning import ListwiseRegression, Objective, listwise
from greylag.learning.listwise import _curvature, _loss, _minimum, _Problem
from tests.greylag.learning.samples import random_data, spreads
from tests.refusals import refuses

AP = Objective.parse("AP")


def sample():
    """Features of unlike scales."""
    data = random_data(3, queries=12, documents=30, features=5)
    return replace(data, features=data.features * [1.0, 30.0, 0.02, 4.0, 0.5])


def by_definition(weights, data, penalty, centre=0.0):
    """The function that listwise regression minimises, document by document."""
    away = weights - centre
    values, total = data.features / spreads(data), penalty / 2 * float(away @ away)
    for first, end in pairwise(data.offsets):
        scores, relevant = values[first:end] @ weights, data.grades[first:end] > 0
        if relevant.any():
            total -= float(np.mean([np.log(np.exp(s) / np.exp(scores).sum()) for s in scores[relevant]]))
    return total


CENTRE = (0.5, -0.2, 3.0, 0.0, 1.0)


def centre_of(data):
    return dict(zip(data.names, CENTRE, strict=True))


@pytest.mark.parametrize("penalty", [0.3, 3.0, 30.0, 300.0])
@pytest.mark.parametrize("centred", [False, True])
def test_listwise_regression_is_at_the_minimum(penalty, centred):
    data = sample()
    learner, centre = ListwiseRegression("AP", penalty=penalty, centre=centre_of(data) if centred else {}), 0.0
    if centred:
        centre = np.array(CENTRE) * spreads(data)
    found = np.array(learner.fit(data).weights) * spreads(data)
    least, rng = by_definition(found, data, penalty, centre), np.random.default_rng(0)
    for _ in range(50):
        assert by_definition(found + rng.normal(scale=0.02, size=len(found)), data, penalty, centre) > least - 1e-6
    given = problem(data, penalty, 1 / spreads(data), centre)
    value, gradient, _ = _loss(found, given)
    assert value == pytest.approx(least)
    assert np.abs(gradient).max() < 1e-9
    assert check_grad(lambda w: _loss(w, given)[0], lambda w: _loss(w, given)[1], found + 0.1) < 1e-3


@pytest.mark.parametrize("rows", [1, 40, 1000])
def test_the_curvature_is_the_derivative_of_the_gradient(rows, monkeypatch):
    monkeypatch.setattr(listwise, "BLOCK_ROWS", rows)
    data = sample()
    scale, weights = 1 / spreads(data), np.array([0.5, -0.2, 1.0, 0.0, 2.0])
    data = replace(  # a query without documents, and one without relevant ones
        data,
        qids=(*data.qids, "another"),
        offsets=np.insert(data.offsets, 4, data.offsets[4]),
        grades=data.grades * (np.arange(len(data.grades)) >= data.offsets[1]),
        relevant_grades=((),) * (len(data.qids) + 1),
    )
    given = problem(data, 3.0, scale)
    columns = [
        (_loss(weights + step, given)[1] - _loss(weights - step, given)[1]) / 2e-5
        for step in 1e-5 * np.eye(len(weights))
    ]
    found = _curvature(_loss(weights, given)[2], given)
    np.testing.assert_allclose(found, columns, rtol=1e-6, atol=1e-6)


def test_the_minimum_is_found_from_afar():
    data, penalty = sample(), 1e-3  # Newton's first steps would lead away
    given = problem(data, penalty, 1 / spreads(data))
    near, far = (_minimum(start, given) for start in (np.zeros(5), np.array([30.0, -80.0, 50.0, 9.0, -70.0])))
    np.testing.assert_allclose(far, near, atol=1e-9)


def problem(data, penalty, scale, centre=0.0):
    """What `_loss` takes beside the weights."""
    gains, filled = AP.gains(data), np.diff(data.offsets) > 0
    totals = np.zeros(len(filled))
    totals[filled] = np.add.reduceat(gains, data.offsets[:-1][filled])
    return _Problem(data, gains, totals, scale, penalty, np.zeros(len(data.specs)) + centre)


def test_the_penalty_has_a_centre():
    data = sample()
    learner = ListwiseRegression("AP", centre={**centre_of(data), "a feature that the data lacks": 9.0})
    far = np.array(replace(learner, penalty=1e9).fit(data).weights)
    np.testing.assert_allclose(far, CENTRE, atol=1e-6)
    constant = replace(data, features=data.features * [0.0, 1.0, 1.0, 1.0, 1.0] + [7.0, 0.0, 0.0, 0.0, 0.0])
    assert learner.fit(constant).weights[0] == CENTRE[0], "no document tells of a constant feature"


def test_a_path_of_penalties_is_each_by_itself():
    data, penalties = sample(), (100.0, 10.0, 1.0)
    for most in (None, 2):
        learner = ListwiseRegression("AP", max_features=most)
        for penalty, selection in zip(penalties, learner.path(data, penalties), strict=True):
            alone = replace(learner, penalty=penalty).fit(data)
            assert selection.columns == alone.columns
            np.testing.assert_allclose(selection.weights, alone.weights, rtol=1e-3)


def test_features_with_small_weights_are_dropped_by_halves():
    data = random_data(10, queries=12, documents=30, features=9)
    everything = ListwiseRegression("AP", penalty=2.0).fit(data)
    order = np.argsort(-np.abs(np.array(everything.weights) * spreads(data)))
    some = data.select_features(sorted(order[:4].tolist()))
    again = ListwiseRegression("AP", penalty=2.0).fit(some)
    left = np.argsort(-np.abs(np.array(again.weights) * spreads(some)))[:3]
    expected = sorted(int(data.names.index(some.names[column])) for column in left)
    found = ListwiseRegression("AP", penalty=2.0, max_features=3).fit(data)
    assert list(found.columns) == expected != sorted(order[:3].tolist())
    alone = ListwiseRegression("AP", penalty=2.0).fit(data.select_features(expected))
    np.testing.assert_allclose(found.weights, alone.weights, rtol=1e-2, atol=1e-4)
    assert ListwiseRegression("AP", penalty=2.0, max_features=9).fit(data) == everything


def test_a_penalty_that_rounding_loses_is_refused():
    data = random_data(3, queries=12, documents=30, features=2)
    data = replace(data, features=data.features[:, [0, 0]])
    refuses(lambda: ListwiseRegression("AP", penalty=1e-17).fit(data), ParameterError, "penalty 1e-17 raise")
