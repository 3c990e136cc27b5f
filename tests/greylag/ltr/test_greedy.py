"""Greedy selection and coordinate ascent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.ltr.data import RankingData, distinct_features
from greylag.ltr.greedy import CoordinateAscent, GreedySelection, coordinate_ascent, linear_scores
from greylag.ltr.line_search import line_search, prepare
from greylag.ltr.objectives import Objective
from tests.greylag.ltr.randomdata import random_data

AP = Objective("AP")


def plain_greedy(data: RankingData, rounds: int) -> tuple[list[int], list[float]]:
    """Algorithm 1 of Metzler (2007), spelt out."""
    problem = prepare(data, AP)
    columns: list[int] = []
    weights: list[float] = []
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
def test_follows_the_algorithm(seed: int, levels: int | None) -> None:
    data = random_data(seed, queries=10, documents=30, features=6, levels=levels)
    selection = GreedySelection(AP, max_features=3).fit(data)
    columns, weights = plain_greedy(data, len(selection.columns))
    assert list(selection.columns) == columns
    assert list(selection.weights) == weights


@pytest.mark.parametrize("name", ["AP", "nDCG@10", "RR", "P@5", "ERR@20"])
@pytest.mark.parametrize("retrain", [False, True])
def test_each_round_raises_the_training_score_and_reports_it(name: str, retrain: bool) -> None:
    objective = Objective.parse(name)
    data = random_data(11, queries=12, documents=30, features=8)
    selection = GreedySelection(objective, max_features=8, retrain=retrain).fit(data)
    assert all(np.diff([0.0, *selection.training_scores]) > 0)
    assert len(set(selection.columns)) == len(selection.columns)
    scores = linear_scores(data, list(selection.columns), np.array(selection.weights))
    assert selection.training_scores[-1] == pytest.approx(np.mean(objective.evaluate(data, scores)), abs=1e-12)


def test_the_first_round_takes_the_best_single_feature() -> None:
    data = random_data(5, queries=10, documents=30, features=6)
    single = [max(np.mean(AP.evaluate(data, s * column)) for s in (1, -1)) for column in data.columns]
    selection = GreedySelection(AP, max_features=1).fit(data)
    assert selection.columns == (int(np.argmax(single)),)
    assert selection.training_scores[0] == pytest.approx(max(single), abs=1e-12)


def test_retraining_never_loses() -> None:
    for seed in range(5):
        data = random_data(seed, queries=10, documents=30, features=6)
        plain = GreedySelection(AP, max_features=2).fit(data)
        retrained = GreedySelection(AP, max_features=2, retrain=True).fit(data)
        assert retrained.training_scores[-1] >= plain.training_scores[-1] - 1e-12


def test_coordinate_ascent_stops_where_no_line_is_better() -> None:
    data = random_data(2, queries=10, documents=30, features=4)
    columns = list(range(4))
    weights = coordinate_ascent(data, AP, columns, np.ones(4), tolerance=0.0)
    scores = linear_scores(data, columns, weights)
    reached = np.mean(AP.evaluate(data, scores))
    problem = prepare(data, AP)
    assert max(line_search(problem, scores, column).value for column in data.columns) <= reached + 1e-9
    assert reached >= np.mean(AP.evaluate(data, linear_scores(data, columns, np.ones(4))))


def test_weights_keep_their_size_in_coordinate_ascent() -> None:
    data = random_data(2, queries=10, documents=30, features=4)
    weights = coordinate_ascent(data, AP, [2, 0, 3], np.array([5.0, -2.0, 1.0]))
    assert np.abs(weights).sum() == pytest.approx(8.0)
    assert np.abs(coordinate_ascent(data, AP, [2, 0, 3], np.zeros(3))).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["AP", "nDCG@10", "ERR@20"])
def test_restarts_keep_the_best_start(name: str) -> None:
    objective = Objective.parse(name)
    data = random_data(15, queries=12, documents=30, features=5)
    found = CoordinateAscent(objective, restarts=4, seed=3).fit(data)
    assert found.columns == (0, 1, 2, 3, 4)
    scores = linear_scores(data, list(found.columns), np.array(found.weights))
    assert found.training_scores[-1] == np.mean(objective.evaluate(data, scores))
    reached = [CoordinateAscent(objective, restarts=n, seed=3).fit(data).training_scores[-1] for n in (1, 2, 3, 4)]
    assert all(np.diff(reached) >= 0)
    assert found.training_scores[-1] == reached[-1] > reached[0]
    assert found == CoordinateAscent(objective, restarts=4, seed=3).fit(data, n_jobs=3)
    assert found != CoordinateAscent(objective, restarts=4, seed=4).fit(data)


def test_coordinate_ascent_does_not_mind_the_features_scales() -> None:
    data = random_data(17, queries=12, documents=30, features=4)
    scaled = replace(data, features=data.features * 2.0 ** np.array([0, 9, -9, 3]))
    assert CoordinateAscent(AP).fit(scaled).training_scores == CoordinateAscent(AP).fit(data).training_scores


def test_epsilon_and_max_features_stop_it() -> None:
    data = random_data(11, queries=12, documents=30, features=8)
    full = GreedySelection(AP, max_features=8).fit(data)
    gains = np.diff([0.0, *full.training_scores])
    stopped = GreedySelection(AP, max_features=8, epsilon=float(gains[2])).fit(data)
    assert len(stopped.columns) <= 2
    assert GreedySelection(AP, max_features=2).fit(data).columns == full.columns[:2]


def test_any_number_of_threads_gives_the_same() -> None:
    data = random_data(7, queries=15, documents=40, features=10)
    learner = GreedySelection(AP, max_features=4, retrain=True)
    assert learner.fit(data, n_jobs=1) == learner.fit(data, n_jobs=2) == learner.fit(data, n_jobs=3)


def test_nothing_to_learn_is_an_error() -> None:
    data = random_data(1, levels=1)
    lost = RankingData(
        data.names, data.qids, data.offsets, data.docids, data.features, np.zeros_like(data.grades), data.judged
    )
    with pytest.raises(ParameterError, match="no feature raises AP above 0"):
        GreedySelection(AP).fit(lost)


@pytest.mark.parametrize(("options", "reason"), [({"max_features": 0}, "max_features"), ({"epsilon": -1.0}, "epsilon")])
def test_bad_options(options: dict[str, float], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        GreedySelection(AP, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("options", "reason"), [({"restarts": 0}, "restarts"), ({"tolerance": -1.0}, "tolerance")])
def test_bad_options_of_coordinate_ascent(options: dict[str, float], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        CoordinateAscent(AP, **options)  # type: ignore[arg-type]


def test_trivial_and_duplicate_features_are_named() -> None:
    data = random_data(4, features=4)
    shift = np.repeat(np.arange(len(data.qids)), np.diff(data.offsets)).astype(float)
    columns = np.stack([data.columns[0], shift, 3 * data.columns[0] + shift, data.columns[1], -data.columns[0]], axis=1)
    data = RankingData(
        ("a", "flat", "twin", "b", "minus"), data.qids, data.offsets, data.docids, columns, data.grades, data.judged
    )
    kept, dropped = distinct_features(data)
    assert kept == [0, 3, 4]
    assert dropped == {1: "flat is constant within every query", 2: "twin ranks as a does"}
