"""Tuned baselines, compared with explicit loops."""

from __future__ import annotations

import pytest

from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.weighting import FeatureParameters
from greylag.ltr.baselines import BM25, RM3, SDM, Baseline
from greylag.ltr.cross_validation import split_folds
from greylag.ltr.data import RankingData
from greylag.ltr.objectives import Objective
from greylag.ltr.rankers import MRFRanker
from greylag.ltr.tuned_baselines import BaselineTuning
from greylag.ltr.tuning import parameter_grid
from greylag.ranking import Run
from tests.greylag.ltr.phrases import collection, rankings

GRID = {"k1": (0.2, 0.9), "b": (0.0, 0.5, 1.0), "fb_docs": (2, 5), "fb_terms": (3, 6)}


@pytest.mark.parametrize("baseline", [BM25, RM3])
def test_tunes_a_baseline_from_rankings(baseline: Baseline) -> None:
    index = collection()
    ranked, qrels = rankings(index)
    grid = {"k1": (0.2, 0.9), "b": (0.0, 0.5, 1.0), "fb_docs": (2, 5), "fb_terms": (3,)}
    tuning = BaselineTuning(baseline, objective="nDCG@5", grid=grid, base=FeatureParameters(mu=9.0))
    model = tuning.fit(ranked, qrels, index)
    objective, scores = Objective("nDCG", 5), {}
    for parameters in parameter_grid(grid, baseline.tuned, FeatureParameters(mu=9.0)):
        data = RankingData.from_rankings(ranked, qrels, FeatureExtractor(index, baseline.features, parameters))
        scores[parameters] = baseline.fit(data, objective)
    best = max(scores, key=lambda parameters: scores[parameters][1])
    assert model.parameters == best
    assert (model.weights, model.provenance["training_score"]) == scores[best]
    assert (model.features, model.objective, model.fingerprint) == (baseline.features, "nDCG@5", index.fingerprint)
    again = BaselineTuning(baseline, objective=objective, grid=grid, base=best).fit(
        Run(tuple(ranked)), qrels, index, n_jobs=2
    )
    assert again.weights == model.weights


def test_rm3_takes_the_parameters_of_tuned_bm25() -> None:
    index = collection()
    ranked, qrels = rankings(index)
    first = BaselineTuning(BM25, grid=GRID).fit(ranked, qrels, index)
    expected = BaselineTuning(RM3, grid=GRID, base=first.parameters).fit(ranked, qrels, index)
    found = BaselineTuning(RM3, grid=GRID, before=(BM25,)).fit(ranked, qrels, index)
    assert (found.weights, found.parameters) == (expected.weights, expected.parameters)
    assert found.provenance["tuned"] == ["k1", "b", "fb_docs", "fb_terms"]


@pytest.mark.parametrize("before", [(), (BM25,)])
def test_each_query_is_ranked_by_what_was_tuned_on_the_other_folds(before: tuple[Baseline, ...]) -> None:
    index = collection()
    ranked, qrels = rankings(index)
    first = Run(tuple(ranked), "first")
    tuning = BaselineTuning(RM3 if before else BM25, objective="nDCG@5", grid=GRID, before=before)
    told: list[str] = []
    found = tuning.cross_validate(first, qrels, index, folds=3, seed=5, tag="t", progress=told.append)
    parts = split_folds(list(first), 3, 5)
    assert found.folds == tuple(map(tuple, parts))
    for part, model in zip(parts, found.models, strict=True):
        others = [ranking for ranking in ranked if ranking.qid not in part]
        own = tuning.fit(others, {qid: qrels[qid] for qid in qrels if qid not in part}, index)
        assert (own.weights, own.parameters) == (model.weights, model.parameters)
        for qid in part:
            assert found.run[qid] == MRFRanker(own, index)(first[qid])
    assert (list(found.run), found.run.tag, len(told)) == (list(first), "t", 3)
    assert tuning.cross_validate(first, qrels, index, folds=3, seed=5, tag="t", n_jobs=3) == found


def test_provenance_has_the_queries_that_were_tuned_on() -> None:
    index = collection()
    ranked, qrels = rankings(index)
    first, *others = (ranking.qid for ranking in ranked)
    tuning = BaselineTuning(BM25, grid=GRID)
    assert tuning.fit(ranked, qrels, index).provenance["queries"] == [first, *others]
    known = {**qrels, first: dict.fromkeys(qrels[first], 0)}
    assert tuning.fit(ranked, known, index).provenance["queries"] == others
    for part, model in zip(
        split_folds([first, *others], 3, 0), tuning.cross_validate(ranked, known, index, folds=3).models, strict=True
    ):
        assert model.provenance["queries"] == [qid for qid in others if qid not in part]


def test_values_at_an_end_of_the_grid() -> None:
    index = collection()
    ranked, qrels = rankings(index)
    grid = {"mu": (1.0, 5.0, 9.0), "k1": (0.5,), "b": (0.1, 0.5)}
    tuning = BaselineTuning(BM25, grid=grid)
    assert tuning.at_ends(tuning.fit(ranked, qrels, index)) == ["b"]
    tuning = BaselineTuning(SDM, grid={"mu": (1e-3, 5.0, 1e6)})
    model = tuning.fit(ranked, qrels, index)
    assert (tuning.at_ends(model) == []) == (model.parameters.mu == 5.0)
    assert tuning.summary(model).endswith(f"on training queries with mu {model.parameters.mu:g}")


def test_a_grid_is_checked_before_work_starts() -> None:
    with pytest.raises(ParameterError, match="the grid has no values for b"):
        BaselineTuning(BM25, grid={"k1": (1.0,)})
    with pytest.raises(ParameterError, match=r"b is 2\.0"):
        BaselineTuning(BM25, grid={"k1": (1.0,), "b": (0.5, 2.0)})
