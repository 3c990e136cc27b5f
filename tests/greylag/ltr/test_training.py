"""Training by recipes, and cross-validation over queries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.evaluation import evaluate
from greylag.features.spec import candidate_pool
from greylag.ltr.baselines import BM25, RM3, BaselineRecipe
from greylag.ltr.data import split_folds
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.letor import read_features, write_features
from greylag.ltr.preselect import MMRPreselection
from greylag.ltr.rankers import MRFRanker
from greylag.ltr.stack import StackRecipe
from greylag.ltr.training import (
    MRFRecipe,
    Recipe,
    cross_validate,
    rerank_by_fold,
    train,
    train_on_data,
    useful_features,
)
from greylag.ranking import Ranking, Run
from tests.greylag.ltr.phrases import collection, rankings, trained
from tests.greylag.ltr.randomdata import random_data


def test_learns_that_phrases_are_relevant() -> None:
    index = collection()
    model = trained(index)
    assert model.features[0].window.order == "O"
    assert model.features[0].window.width == 1
    assert model.training_scores[0] == pytest.approx(1.0)
    ranked, qrels = rankings(index)
    for ranking in ranked:
        grades = [qrels[ranking.qid][docid] for docid in MRFRanker(model, index)(ranking).docids]
        assert grades == sorted(grades, reverse=True)


def test_features_from_files_can_be_fitted_but_not_made_a_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ranking = Ranking("1", "", tuple(f"d{i}" for i in range(20)), np.zeros(20))
    qrels = {"1": {f"d{i}": i % 2 for i in range(20)}}
    write_features(tmp_path / "f.txt", ["FI/term/LM", "b"], [(ranking, rng.random((20, 2)))], qrels)
    data = read_features(tmp_path / "f.txt", qrels)
    assert data.specs == ("FI/term/LM", "b")
    assert GreedySelection("AP").fit(data).columns
    with pytest.raises(ParameterError, match=r"features come from a file.*FeatureExtractor"):
        train_on_data(data, GreedySelection("AP"))


def test_constant_features_alone_are_refused() -> None:
    data = random_data(2)
    with pytest.raises(ParameterError, match="every feature is constant"):
        useful_features(replace(data, features=np.ones_like(data.features)))


INDEX = collection()
RANKED, QRELS = rankings(INDEX)
FIRST = Run(tuple(RANKED), "first")
GRID = {"k1": (0.2, 0.9), "b": (0.0, 1.0), "mu": (9.0,), "fb_docs": (2, 5), "fb_terms": (3,), "original_weight": (0.5,)}
GREEDY = MRFRecipe(candidate_pool("sd"), GreedySelection("AP", max_features=2))
RECIPES = {
    "mrf": GREEDY,
    "preselected": replace(GREEDY, preselection=MMRPreselection(4)),
    "bm25": BaselineRecipe(BM25, objective="nDCG@5", grid=GRID),
    "rm3 after bm25": BaselineRecipe(RM3, grid=GRID, before=(BM25,)),
    "stack": StackRecipe(grid=GRID, max_features=2, inner_folds=2, depth=25),
}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_each_query_is_reranked_by_a_model_of_the_other_folds(recipe: Recipe) -> None:
    told: list[str] = []
    found = cross_validate(
        recipe, FIRST, QRELS, INDEX, folds=3, seed=4, tag="cv", provenance={"name": "x"}, progress=told.append
    )
    assert [list(fold) for fold in found.folds] == split_folds(list(FIRST), 3, 4)
    assert (list(found.run), found.run.tag) == (list(FIRST), "cv")
    for number, (fold, model) in enumerate(zip(found.folds, found.models, strict=True), 1):
        others = [ranking for ranking in RANKED if ranking.qid not in fold]
        alone = recipe.fit(others, {ranking.qid: QRELS[ranking.qid] for ranking in others}, INDEX)
        assert (model.features, model.weights, model.parameters) == (alone.features, alone.weights, alone.parameters)
        added = {"name": "x", "fold": number, "folds": 3, "seed": 4}
        assert model.provenance == {**alone.provenance, **added}
        assert model.provenance["queries"] == [ranking.qid for ranking in others]
        for qid in fold:
            assert found.run[qid] == MRFRanker(alone, INDEX)(FIRST[qid])
        assert told[number - 1].startswith(f"fold {number}: {recipe.measure} ")
    assert min(found.seconds) > 0
    prepared = recipe.prepare(FIRST, QRELS, INDEX)
    again = {"folds": 3, "seed": 4, "tag": "cv", "provenance": {"name": "x"}, "n_jobs": 2}
    assert cross_validate(recipe, RANKED, QRELS, INDEX, prepared=prepared, **again) == found


@pytest.mark.parametrize("name", ["mrf", "rm3 after bm25"])
def test_a_model_and_its_held_out_score(name: str) -> None:
    recipe = RECIPES[name]
    model, held_out, scores = train(recipe, FIRST, QRELS, INDEX, folds=4, seed=1, tag="cv")
    assert held_out == cross_validate(recipe, FIRST, QRELS, INDEX, folds=4, seed=1, tag="cv")
    assert scores["first stage"].by_measure == evaluate(FIRST, QRELS, ["AP"]).by_measure
    assert model.provenance["held_out"] == {"folds": 4, **evaluate(held_out.run, QRELS, ["AP"]).by_measure}
    alone, none, empty = train(recipe, FIRST, QRELS, INDEX)
    assert (alone.weights, none, empty) == (model.weights, None, {})
    assert alone == recipe.fit(RANKED, QRELS, INDEX)
    with pytest.raises(ParameterError, match="12 queries cannot be split into 13 folds"):
        train(recipe, FIRST, QRELS, INDEX, folds=13)


def test_what_preselection_did_is_recorded() -> None:
    model = RECIPES["preselected"].fit(FIRST, QRELS, INDEX)
    assert (model.provenance["preselect"], model.provenance["candidates"]) == ("mmr:4", 4)
    assert model.provenance["pool"] == len(GREEDY.features)


def test_reranking_by_fold_keeps_the_order_of_queries() -> None:
    def reverse(ranking: Ranking) -> Ranking:
        return ranking.permute(range(len(ranking))[::-1])

    def keep(ranking: Ranking) -> Ranking:
        return ranking

    run = rerank_by_fold([keep, reverse], [["3", "1"], ["2"]], FIRST, tag="x")
    assert (list(run), run.tag) == (["1", "2", "3"], "x")
    assert run["2"].docids == FIRST["2"].docids[::-1]
    assert run["3"] == FIRST["3"]
