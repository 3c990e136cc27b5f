"""Coordinate ascent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.ltr.coordinate_ascent import CoordinateAscent, _axes, coordinate_ascent
from greylag.ltr.data import centred, linear_scores
from greylag.ltr.line_search import line_search, prepare
from greylag.ltr.objectives import Objective
from tests.greylag.ltr.randomdata import random_data

AP = Objective("AP")


def test_stops_at_a_local_optimum() -> None:
    data = random_data(2, queries=10, documents=30, features=4)
    columns = list(range(4))
    weights = coordinate_ascent(data, AP, columns, np.ones(4), tolerance=0.0)
    scores = linear_scores(data, columns, weights)
    reached = np.mean(AP.evaluate(data, scores))
    problem = prepare(data, AP)
    assert max(line_search(problem, scores, column).value for column in data.columns) <= reached + 1e-9
    assert reached >= np.mean(AP.evaluate(data, linear_scores(data, columns, np.ones(4))))


def test_weights_keep_their_total_magnitude() -> None:
    data = random_data(2, queries=10, documents=30, features=4)
    weights = coordinate_ascent(data, AP, [2, 0, 3], np.array([5.0, -2.0, 1.0]))
    assert np.abs(weights).sum() == pytest.approx(8.0)
    assert np.abs(coordinate_ascent(data, AP, [2, 0, 3], np.zeros(3))).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["AP", "nDCG@10", "ERR@20"])
def test_keeps_the_best_start(name: str) -> None:
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


def test_axes_are_uncorrelated_and_in_descending_order_of_variance() -> None:
    data = random_data(21, queries=12, documents=40, features=5)
    data = replace(data, features=data.features @ np.random.default_rng(1).standard_normal((5, 5)))
    _, axes = _axes(data)
    along = axes @ centred(data)
    products = along @ along.T
    variances = np.diag(products)
    np.testing.assert_allclose(products, np.diag(variances), atol=1e-9 * variances[0])
    assert all(np.diff(variances) < 0)
    assert variances.sum() == pytest.approx(5 * len(data.docids))


def test_no_axis_and_no_weight_improves_the_result() -> None:
    data = random_data(21, queries=12, documents=40, features=5)
    found = CoordinateAscent(AP, restarts=1, tolerance=0.0).fit(data)
    scores, problem = linear_scores(data, found.columns, np.array(found.weights)), prepare(data, AP)
    directions = [*data.columns, *(linear_scores(data, found.columns, axis) for axis in _axes(data)[1])]
    assert max(line_search(problem, scores, line).value for line in directions) <= found.training_scores[-1] + 1e-9


def test_is_invariant_to_feature_scales() -> None:
    data = random_data(17, queries=12, documents=30, features=4)
    scaled = replace(data, features=data.features * 2.0 ** np.array([0, 9, -9, 3]))
    assert CoordinateAscent(AP).fit(scaled).training_scores == CoordinateAscent(AP).fit(data).training_scores


@pytest.mark.parametrize(
    ("options", "reason"), [({"restarts": 0}, "restarts"), ({"tolerance": -1.0}, "tolerance"), ({"seed": -1}, "seed")]
)
def test_invalid_options(options: dict[str, float], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        CoordinateAscent(AP, **options)  # type: ignore[arg-type]
