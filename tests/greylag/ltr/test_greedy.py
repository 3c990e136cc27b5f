"""Greedy selection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.ltr.data import RankingData, linear_scores
from greylag.ltr.greedy import GreedySelection
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


def test_retraining_does_not_lower_the_training_score() -> None:
    for seed in range(5):
        data = random_data(seed, queries=10, documents=30, features=6)
        plain = GreedySelection(AP, max_features=2).fit(data)
        retrained = GreedySelection(AP, max_features=2, retrain=True).fit(data)
        assert retrained.training_scores[-1] >= plain.training_scores[-1] - 1e-12


def test_stopping_criteria() -> None:
    data = random_data(11, queries=12, documents=30, features=8)
    full = GreedySelection(AP, max_features=8).fit(data)
    gains = np.diff([0.0, *full.training_scores])
    stopped = GreedySelection(AP, max_features=8, epsilon=float(gains[2])).fit(data)
    assert len(stopped.columns) <= 2
    assert GreedySelection(AP, max_features=2).fit(data).columns == full.columns[:2]


def test_is_deterministic_over_threads() -> None:
    data = random_data(7, queries=15, documents=40, features=10)
    learner = GreedySelection(AP, max_features=4, retrain=True)
    assert learner.fit(data, n_jobs=1) == learner.fit(data, n_jobs=2) == learner.fit(data, n_jobs=3)


def test_no_useful_feature() -> None:
    data = random_data(1, levels=1)
    lost = replace(data, grades=np.zeros_like(data.grades))
    with pytest.raises(ParameterError, match="no feature raises AP above 0"):
        GreedySelection(AP).fit(lost)


@pytest.mark.parametrize(("options", "reason"), [({"max_features": 0}, "max_features"), ({"epsilon": -1.0}, "epsilon")])
def test_bad_options(options: dict[str, float], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        GreedySelection(AP, **options)  # type: ignore[arg-type]
