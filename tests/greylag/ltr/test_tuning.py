"""Hyperparameters chosen on training queries, compared with explicit loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features.weighting import FeatureParameters
from greylag.ltr.baselines import BM25, SDM, Baseline
from greylag.ltr.cross_validation import split_folds
from greylag.ltr.data import RankingData, linear_scores
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.objectives import Objective
from greylag.ltr.tuning import after_each_round, choose_learner, held_out_means, parameter_grid, tune_on_data
from tests.greylag.ltr.randomdata import random_data

AP = Objective("AP")
BASE = FeatureParameters(mu=77.0)


def test_parameter_grid() -> None:
    grid = {"mu": (1.0, 2.0), "k1": (0.5, 0.6), "b": (0.1, 0.2, 0.3), "fb_docs": (5,)}
    found = parameter_grid(grid, ("k1", "b"), BASE)
    assert [(p.k1, p.b) for p in found] == [(k1, b) for k1 in (0.5, 0.6) for b in (0.1, 0.2, 0.3)]
    assert {(p.mu, p.fb_docs) for p in found} == {(77.0, 10)}
    assert parameter_grid(grid, (), BASE) == [BASE]


def mean(data: RankingData, weights: tuple[float, ...]) -> float:
    return float(np.mean(AP.evaluate(data, linear_scores(data, list(range(len(weights))), np.array(weights)))))


@pytest.mark.parametrize("trained", [False, True])
def test_tuning_takes_the_best_on_the_training_queries(trained: bool) -> None:
    tables = {seed: random_data(9, queries=12, documents=30, features=3) for seed in range(4)}
    for seed, data in tables.items():
        data.features[:] = np.random.default_rng(seed).standard_normal(data.features.shape)
    model = Baseline("x", SDM.features, (1.0, 1.0, 1.0), ("mu",), trained)
    settings = parameter_grid({"mu": (1.0, 2.0, 3.0, 4.0)}, ("mu",), BASE)
    qids = [f"q{i}" for i in range(0, 12, 2)]

    def extract(parameters: FeatureParameters) -> RankingData:
        return tables[int(parameters.mu) - 1]

    tuned = tune_on_data(model, settings, extract, qids, AP)
    values = {p: mean(extract(p).select_queries(qids), tuned.weights) for p in settings}
    assert tuned.training_score == values[tuned.parameters] == max(values.values())
    fixed = [mean(extract(p).select_queries(qids), model.weights) for p in settings]
    assert tuned.weights == model.weights or trained
    assert tuned.training_score > max(fixed) if trained else tuned.training_score == max(fixed)
    assert tune_on_data(model, settings, extract, qids, AP, n_jobs=3) == tuned


def test_values_after_each_round_are_those_of_shorter_selections() -> None:
    data, other = random_data(3, queries=10, documents=30, features=6), random_data(4, queries=7, features=6)
    for retrain in (False, True):
        learner = GreedySelection(AP, max_features=4, retrain=retrain)
        found = after_each_round(learner.fit(data), other, AP)
        for rounds, values in enumerate(found, 1):
            short = replace(learner, max_features=rounds).fit(data)
            assert short == learner.fit(data).head(rounds)
            expected = AP.evaluate(other, linear_scores(other, list(short.columns), np.array(short.weights)))
            np.testing.assert_array_equal(values, expected)


def explicit(data: RankingData, learner: GreedySelection, measure: Objective, folds: int, seed: int) -> list[float]:
    """Cross-validated means by number of features."""
    means = []
    for features in range(1, learner.max_features + 1):
        values = {}
        for part in split_folds(data.qids, folds, seed):
            selection = replace(learner, max_features=features).fit(
                data.select_queries([qid for qid in data.qids if qid not in part])
            )
            own = data.select_queries(part)
            scores = linear_scores(own, list(selection.columns), np.array(selection.weights))
            values.update(zip(own.qids, measure.evaluate(own, scores), strict=True))
        means.append(float(np.mean(list(values.values()))))
    return means


@pytest.mark.parametrize("epsilon", [0.0, 0.05])  # with the second, selection stops before max_features
def test_the_choice_is_by_cross_validation(epsilon: float) -> None:
    data = random_data(21, queries=15, documents=25, features=5)
    measure = Objective("nDCG", 10)
    learners = [GreedySelection(Objective("nDCG", k), max_features=4, epsilon=epsilon) for k in (3, 10, 20)]
    expected = [explicit(data, learner, measure, 3, 7) for learner in learners]
    choice = choose_learner(data, learners, measure, folds=3, seed=7)
    np.testing.assert_allclose(choice.held_out, expected, rtol=1e-12)
    flat = [value for own in expected for value in own]
    best, features = divmod(int(np.argmax(flat)), 4)
    assert choice.learner == replace(learners[best], max_features=features + 1)
    alone = held_out_means(data, learners[1], measure, folds=3, seed=7, n_jobs=2)
    np.testing.assert_array_equal(alone, choice.held_out[1])


def test_a_grid_without_a_tuned_parameter() -> None:
    with pytest.raises(ParameterError, match="the grid has no values for b: it has k1"):
        parameter_grid({"k1": (1.0,)}, BM25.tuned, BASE)
