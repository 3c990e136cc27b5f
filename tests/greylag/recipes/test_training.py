"""Training by recipes: baselines, learned models, and cross-validation.

Tests `baselines`, `fitted`, `recipe` and `greylag.learning.preselect`.
"""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml

from greylag.base import Run
from greylag.evaluation import at_level, evaluate
from greylag.evaluation.scoring.folds import split_folds
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.features.weighting import FeatureParameters
from greylag.learning.data import linear_scores
from greylag.learning.extraction import training_data
from greylag.learning.greedy import GreedySelection
from greylag.learning.linesearch.objectives import Objective
from greylag.learning.preselect import MMRPreselection
from greylag.rankers.stages import ModelRanker
from greylag.recipes.automatic import AutomaticRecipe
from greylag.recipes.baselines import BM25, LM, MRF_BM25, MRF_LM, SDM, BaselineRecipe, TunedMRFRecipe, parameter_grid
from greylag.recipes.recipe import MRFRecipe, cross_validate
from greylag.recipes.rm3 import RM3Recipe
from greylag.recipes.sources import FeatureSources
from greylag.recipes.training import MORE_TOPICS_ADVICE, train
from tests.docs import ROOT
from tests.greylag.learning.samples import collection, random_data, rankings, trained


def test_learns_that_phrases_are_relevant():
    index = collection()
    model = trained(index)
    assert model.features[0].window.order == "O"
    assert model.features[0].window.width == 1
    assert model.training_scores[0] == pytest.approx(1.0)
    ranked, qrels = rankings(index)
    for ranking in ranked:
        grades = [qrels[ranking.qid][docid] for docid in ModelRanker(model, index)(ranking).docids]
        assert grades == sorted(grades, reverse=True)


INDEX = collection()
RANKED, QRELS = rankings(INDEX)
FIRST = Run(tuple(RANKED), "first")
GRID = {"k1": (0.2, 0.9), "b": (0.0, 1.0), "mu": (9.0,), "fb_docs": (2, 5), "fb_terms": (3,), "original_weight": (0.5,)}
GREEDY = MRFRecipe(candidate_pool("sd"), GreedySelection("AP", max_features=2))
RECIPES = {
    "mrf": GREEDY,
    "preselected": replace(GREEDY, preselection=MMRPreselection(4)),
    "tuned": TunedMRFRecipe(GREEDY, GRID),
    "bm25": BaselineRecipe(BM25, objective="nDCG@5", grid=GRID),
    "rm3": RM3Recipe(grid=GRID),
    "automatic": AutomaticRecipe(sources=FeatureSources(grid=GRID, depth=25), folds=2, translate=False),
}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_each_query_is_reranked_by_a_model_of_the_other_folds(recipe):
    told = []
    found = cross_validate(
        recipe, FIRST, QRELS, INDEX, folds=3, seed=4, tag="cv", provenance={"name": "x"}, progress=told.append
    )
    assert [list(fold) for fold in found.folds] == split_folds(list(FIRST), 3, 4)
    assert (list(found.run), found.run.tag) == (list(FIRST), "cv")
    for number, (fold, model) in enumerate(zip(found.folds, found.models, strict=True), 1):
        others = [ranking for ranking in RANKED if ranking.qid not in fold]
        fitted = recipe.fit(others, {ranking.qid: QRELS[ranking.qid] for ranking in others}, INDEX)
        alone = fitted.model
        assert (model.features, model.weights, model.parameters) == (alone.features, alone.weights, alone.parameters)
        added = {"name": "x", "fold": number, "folds": 3, "seed": 4}
        assert model.provenance == {**alone.provenance, **added}
        assert model.provenance["queries"] == [*fitted.queries] == [ranking.qid for ranking in others]
        for qid in fold:
            assert found.run[qid] == ModelRanker(alone, INDEX)(FIRST[qid])
        assert told[number - 1] == f"fold {number}: {fitted}"
        assert str(fitted).startswith(f"{recipe.measure} {fitted.score:.4f} on {len(others)} training queries with ")
    prepared = pickle.loads(pickle.dumps(recipe.prepare(FIRST, QRELS, INDEX)))  # as workers get it
    again = {"folds": 3, "seed": 4, "tag": "cv", "provenance": {"name": "x"}, "n_jobs": 2}
    assert cross_validate(recipe, RANKED, QRELS, INDEX, prepared=prepared, **again) == found


@pytest.mark.parametrize("name", ["mrf", "rm3"])
def test_a_model_and_its_held_out_score(name):
    recipe = RECIPES[name]
    result = train(FIRST, QRELS, INDEX, recipe, folds=4, seed=1, tag="cv")
    model, held_out, scores = result.model, result.held_out, result.scores
    assert held_out == cross_validate(recipe, FIRST, QRELS, INDEX, folds=4, seed=1, tag="cv")
    assert scores["first stage"].by_measure == evaluate(FIRST, QRELS, ["AP"]).by_measure
    assert model.provenance["held_out"] == {"folds": 4, **evaluate(held_out.run, QRELS, ["AP"]).by_measure}
    assert result.choice is None
    alone = train(FIRST, QRELS, INDEX, recipe)
    assert (alone.model.weights, alone.held_out, alone.scores, alone.verdict) == (model.weights, None, {}, "")
    assert alone.fitted == recipe.fit(RANKED, QRELS, INDEX)


GRADED = {
    qid: {docid: 2 + place % 2 if grade else place % 3 - 1 for place, (docid, grade) in enumerate(grades.items())}
    for qid, grades in QRELS.items()
}
GRADED[RANKED[0].qid] = dict.fromkeys(QRELS[RANKED[0].qid], 1)


@pytest.mark.parametrize("name", RECIPES)
def test_a_relevance_level_learns_what_the_judgements_at_that_level_teach(name):
    """A query without a document of the level is not trained on, as one without a relevant document."""
    recipe = RECIPES[name]
    part = {"learner": replace(recipe.learner, objective="AP(rel=2)")} if name in ("mrf", "preselected") else {}
    if name == "tuned":
        part = {"recipe": replace(recipe.recipe, learner=replace(recipe.recipe.learner, objective="AP(rel=2)"))}
    at_two = replace(recipe, **(part or {"objective": "AP(rel=2)"}))
    plain = recipe if part else replace(recipe, objective="AP")
    ours = train(FIRST, GRADED, INDEX, at_two, folds=3)
    expected = train(FIRST, at_level(GRADED, 2), INDEX, plain, folds=3)
    assert ours.model.objective == "AP(rel=2)"
    assert [*ours.fitted.queries] == [ranking.qid for ranking in RANKED[1:]]
    for one, other in zip(
        (ours.model, *ours.held_out.models), (expected.model, *expected.held_out.models), strict=True
    ):
        assert (one.features, one.weights, one.parameters) == (other.features, other.weights, other.parameters)
    assert ours.held_out.run == expected.held_out.run
    assert ours.scores["held out"].by_measure == {"AP(rel=2)": expected.scores["held out"].by_measure["AP"]}


def test_what_preselection_did_is_recorded():
    model = RECIPES["preselected"].fit(FIRST, QRELS, INDEX).model
    assert (model.provenance["preselect"], model.provenance["candidates"]) == ("mmr(n_features=4)", 4)
    assert model.provenance["pool"] == len(GREEDY.features)


def test_baselines_are_those_of_the_literature():
    assert [str(f) for f in MRF_LM.features] == ["FI/term/LM", "FD/ordered/LM-O-1", "FD/unordered/LM-U-4"]
    assert (BM25.weights, SDM.weights) == ((1.0,), (0.85, 0.1, 0.05))
    assert not BM25.trained
    assert MRF_LM.trained


def test_weights_are_learned_only_if_trained():
    data, objective = random_data(2, queries=10, documents=30), Objective("AP")
    fixed, value = SDM.fit(data, objective)
    assert fixed == SDM.weights
    assert value == pytest.approx(np.mean(objective.evaluate(data, linear_scores(data, [0, 1, 2], np.array(fixed)))))
    learned, better = MRF_LM.fit(data, objective)
    assert better > value
    assert learned != MRF_LM.weights


AP = Objective("AP")
BASE = FeatureParameters(mu=77.0)


def test_parameter_grid():
    grid = {"mu": (1.0, 2.0), "k1": (0.5, 0.6), "b": (0.1, 0.2, 0.3), "fb_docs": (5,)}
    found = parameter_grid(grid, ("k1", "b"), BASE)
    assert [(p.k1, p.b) for p in found] == [(k1, b) for k1 in (0.5, 0.6) for b in (0.1, 0.2, 0.3)]
    assert {(p.mu, p.fb_docs) for p in found} == {(77.0, 10)}
    assert parameter_grid(grid, (), BASE) == [BASE]


TUNED = {"k1": (0.2, 0.9), "b": (0.0, 0.5, 1.0), "mu": (5.0, 50.0)}


@pytest.mark.parametrize("baseline", [BM25, MRF_BM25])
def test_tunes_a_baseline_from_rankings(baseline):
    grid = {"k1": (0.2, 0.9), "b": (0.0, 0.5, 1.0)}
    recipe = BaselineRecipe(baseline, objective="nDCG@5", grid=grid, base=FeatureParameters(mu=9.0))
    fitted = recipe.fit(RANKED, QRELS, INDEX)
    model = fitted.model
    objective, scores = Objective("nDCG", 5), {}
    for parameters in parameter_grid(grid, baseline.tuned, FeatureParameters(mu=9.0)):
        data = training_data(RANKED, QRELS, FeatureExtractor(INDEX, baseline.features, parameters))
        scores[parameters] = baseline.fit(data, objective)
    best = max(scores, key=lambda parameters: scores[parameters][1])
    assert model.parameters == best
    assert (model.weights, fitted.score) == scores[best]
    assert model.provenance["training_score"] == fitted.score
    assert (model.features, model.objective, model.fingerprint) == (baseline.features, "nDCG@5", INDEX.fingerprint)
    again = BaselineRecipe(baseline, objective=objective, grid=grid, base=best).fit(
        Run(tuple(RANKED)), QRELS, INDEX, n_jobs=2
    )
    assert again.model.weights == model.weights


def test_a_baseline_takes_the_parameters_of_those_before():
    first = BaselineRecipe(BM25, grid=TUNED).fit(RANKED, QRELS, INDEX).model
    expected = BaselineRecipe(MRF_LM, grid=TUNED, base=first.parameters).fit(RANKED, QRELS, INDEX).model
    fitted = BaselineRecipe(MRF_LM, grid=TUNED, before=(BM25,)).fit(RANKED, QRELS, INDEX)
    assert (fitted.model.weights, fitted.model.parameters) == (expected.weights, expected.parameters)
    assert [chosen.split()[0] for chosen in fitted.chosen] == ["k1", "b", "mu"]


def test_tuned_parameters_of_features_are_those_of_bm25_and_of_language_modelling():
    grid = {"k1": (0.2, 0.9, 2.0), "b": (0.0, 0.5, 1.0), "mu": (3.0, 9.0, 200.0)}
    base = FeatureParameters(idf="robertson", profile="galago", mu=7.0)
    recipe = MRFRecipe(candidate_pool("sd"), GreedySelection("AP", max_features=2), parameters=base)
    bm25, lm = (BaselineRecipe(model, grid=grid, base=base).fit(RANKED, QRELS, INDEX).model for model in (BM25, LM))
    best = replace(base, k1=bm25.parameters.k1, b=bm25.parameters.b, mu=lm.parameters.mu)
    assert len({best, replace(base, k1=best.k1, b=best.b), replace(base, mu=best.mu)}) == 3
    assert TunedMRFRecipe(recipe, grid).fit(RANKED, QRELS, INDEX) == replace(recipe, parameters=best).fit(
        RANKED, QRELS, INDEX
    )


def test_values_at_an_end_of_the_grid():
    grid = {"mu": (1.0, 5.0, 9.0), "k1": (0.5,), "b": (0.1, 0.5)}
    recipe = BaselineRecipe(BM25, grid=grid)
    assert recipe.fit(RANKED, QRELS, INDEX).ends == {"b": (0.1, 0.5)}
    recipe = BaselineRecipe(SDM, grid={"mu": (1e-3, 5.0, 1e6)})
    fitted = recipe.fit(RANKED, QRELS, INDEX)
    mu = fitted.model.parameters.mu
    assert fitted.ends == ({} if mu == 5.0 else {"mu": (1e-3, 1e6)})
    assert str(fitted).endswith(f"on 12 training queries with mu {mu:g}")
    assert " on 1 training query with " in str(replace(fitted, queries=fitted.queries[:1]))


def test_many_judged_topics_are_sampled_by_the_seed(caplog):
    judged = [qid for qid in FIRST if any(QRELS.get(qid, {}).values())]
    caplog.set_level("INFO")
    samples = [train(FIRST, QRELS, INDEX, RECIPES["bm25"], seed=seed, most_topics=3).model for seed in (0, 0, 1, 2, 3)]
    assert samples[0] == samples[1]
    drawn = [tuple(model.provenance["queries"]) for model in samples]
    assert {len(qids) for qids in drawn} == {3}
    assert len(set(drawn)) > 1
    assert all(list(qids) == [qid for qid in judged if qid in qids] for qids in drawn)
    held_out = train(
        FIRST, {**QRELS, "not in the run": {"d": 1}}, INDEX, RECIPES["bm25"], folds=3, most_topics=3
    ).scores
    assert {(*scores.qids, *scores.missing) for scores in held_out.values()} == {
        (*drawn[0], "not in the run", "not in the run")
    }
    assert f"trained on 3 of {len(judged)} topics" in caplog.text
    alone = Run(tuple(FIRST[qid] for qid in drawn[0]), FIRST.tag)
    assert train(alone, QRELS, INDEX, RECIPES["bm25"]).model == samples[0]
    assert train(FIRST, QRELS, INDEX, RECIPES["bm25"]).model.provenance["queries"] == judged


def test_what_more_topics_gain_is_what_the_learning_curves_measured():
    gains = re.findall(r"([+-]\.\d+)(?: on average)? with (\d+)", MORE_TOPICS_ADVICE)
    assert [int(topics) for _, topics in gains] == [5, 10, 25]
    rows = yaml.safe_load((ROOT / "configs" / "few_topics.yaml").read_text())["expected"]
    for gain, topics in gains:
        assert float(gain) == round(rows[f"all, {topics} topics, automatic less general"]["mean"], 3)
