"""Baselines and their tuning, compared with explicit loops."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.weighting import FeatureParameters
from greylag.ltr.baselines import BM25, MRF_LM, RM3, SDM, Baseline, BaselineRecipe, parameter_grid, tune_on_data
from greylag.ltr.data import RankingData, linear_scores
from greylag.ltr.extraction import training_data
from greylag.ltr.objectives import Objective
from greylag.ltr.training import training_line
from greylag.ranking import Run
from tests.greylag.ltr.phrases import collection, rankings
from tests.greylag.ltr.randomdata import random_data


def test_baselines_are_those_of_the_literature() -> None:
    assert [str(f) for f in MRF_LM.features] == ["FI/term/LM", "FD/ordered/LM-O-1", "FD/unordered/LM-U-4"]
    assert (BM25.weights, SDM.weights) == ((1.0,), (0.85, 0.1, 0.05))
    assert not BM25.trained
    assert MRF_LM.trained
    assert RM3.tuned == ("fb_docs", "fb_terms")


def test_weights_are_learned_only_if_trained() -> None:
    data, objective = random_data(2, queries=10, documents=30), Objective("AP")
    fixed, value = SDM.fit(data, objective)
    assert fixed == SDM.weights
    assert value == pytest.approx(np.mean(objective.evaluate(data, linear_scores(data, [0, 1, 2], np.array(fixed)))))
    learned, better = MRF_LM.fit(data, objective)
    assert better > value
    assert learned != MRF_LM.weights


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


def test_a_grid_without_a_tuned_parameter() -> None:
    with pytest.raises(ParameterError, match="the grid has no values for b: it has k1"):
        parameter_grid({"k1": (1.0,)}, BM25.tuned, BASE)


GRID = {"k1": (0.2, 0.9), "b": (0.0, 0.5, 1.0), "fb_docs": (2, 5), "fb_terms": (3, 6)}


@pytest.mark.parametrize("baseline", [BM25, RM3])
def test_tunes_a_baseline_from_rankings(baseline: Baseline) -> None:
    index = collection()
    ranked, qrels = rankings(index)
    grid = {"k1": (0.2, 0.9), "b": (0.0, 0.5, 1.0), "fb_docs": (2, 5), "fb_terms": (3,)}
    recipe = BaselineRecipe(baseline, objective="nDCG@5", grid=grid, base=FeatureParameters(mu=9.0))
    model = recipe.fit(ranked, qrels, index)
    objective, scores = Objective("nDCG", 5), {}
    for parameters in parameter_grid(grid, baseline.tuned, FeatureParameters(mu=9.0)):
        data = training_data(ranked, qrels, FeatureExtractor(index, baseline.features, parameters))
        scores[parameters] = baseline.fit(data, objective)
    best = max(scores, key=lambda parameters: scores[parameters][1])
    assert model.parameters == best
    assert (model.weights, model.provenance["training_score"]) == scores[best]
    assert (model.features, model.objective, model.fingerprint) == (baseline.features, "nDCG@5", index.fingerprint)
    again = BaselineRecipe(baseline, objective=objective, grid=grid, base=best).fit(
        Run(tuple(ranked)), qrels, index, n_jobs=2
    )
    assert again.weights == model.weights


def test_rm3_takes_the_parameters_of_tuned_bm25() -> None:
    index = collection()
    ranked, qrels = rankings(index)
    first = BaselineRecipe(BM25, grid=GRID).fit(ranked, qrels, index)
    expected = BaselineRecipe(RM3, grid=GRID, base=first.parameters).fit(ranked, qrels, index)
    found = BaselineRecipe(RM3, grid=GRID, before=(BM25,)).fit(ranked, qrels, index)
    assert (found.weights, found.parameters) == (expected.weights, expected.parameters)
    assert found.provenance["tuned"] == ["k1", "b", "fb_docs", "fb_terms"]


def test_provenance_has_the_queries_that_were_tuned_on() -> None:
    index = collection()
    ranked, qrels = rankings(index)
    first, *others = (ranking.qid for ranking in ranked)
    recipe = BaselineRecipe(BM25, grid=GRID)
    assert recipe.fit(ranked, qrels, index).provenance["queries"] == [first, *others]
    known = {**qrels, first: dict.fromkeys(qrels[first], 0)}
    assert recipe.fit(ranked, known, index).provenance["queries"] == others


def test_values_at_an_end_of_the_grid() -> None:
    index = collection()
    ranked, qrels = rankings(index)
    grid = {"mu": (1.0, 5.0, 9.0), "k1": (0.5,), "b": (0.1, 0.5)}
    recipe = BaselineRecipe(BM25, grid=grid)
    assert recipe.at_ends(recipe.fit(ranked, qrels, index)) == ["b"]
    recipe = BaselineRecipe(SDM, grid={"mu": (1e-3, 5.0, 1e6)})
    model = recipe.fit(ranked, qrels, index)
    assert (recipe.at_ends(model) == []) == (model.parameters.mu == 5.0)
    assert training_line(model).endswith(f"on 12 training queries with mu {model.parameters.mu:g}")


def test_a_grid_is_checked_before_work_starts() -> None:
    with pytest.raises(ParameterError, match="the grid has no values for b"):
        BaselineRecipe(BM25, grid={"k1": (1.0,)})
    with pytest.raises(ParameterError, match=r"b is 2\.0"):
        BaselineRecipe(BM25, grid={"k1": (1.0,), "b": (0.5, 2.0)})
