"""Recipes of models that diversify: their spelling, cross-validation, and scores beside others."""

from dataclasses import replace
from math import comb

import pytest

from greylag.base import Run
from greylag.diversity import CSSVM, MMR, PRESETS, CandidateMaker, SVMDiv, train
from greylag.diversity.coverage_model import Criterion
from greylag.diversity.recipe import DIVERSITY_MODELS, DiversityRecipe, parse_diversity, train_to_diversify
from greylag.diversity.training import training_examples
from greylag.evaluation import evaluate_by_subtopic
from greylag.evaluation.scoring.folds import split_folds
from greylag.evaluation.scoring.subtopics import relevant_documents
from greylag.learning import Coulomb, CuttingPlane
from tests.greylag.diversity import samples

N = 12
INDEX = samples.index(0, N)
QIDS = [f"q{number}" for number in range(8)]
FIRST = Run(tuple(samples.ranking(number, N, qid) for number, qid in enumerate(QIDS)), "first")
QRELS = {qid: samples.judgements(number, N) for number, qid in enumerate(QIDS)}
MEASURES = ["subtopic-loss@3", "alpha-nDCG@3"]


@pytest.mark.parametrize("text", ["svmdiv(C=0.1,k=3,depth=9)", "cssvm(M=2,C=0.1,k=3,depth=9,epochs=3)"])
def test_each_query_is_diversified_by_a_model_of_the_other_folds(text):
    recipe = parse_diversity(text)
    found = train_to_diversify(recipe, FIRST, QRELS, INDEX, folds=3, tag="cv")
    make = CandidateMaker(INDEX, PRESETS["svmdiv"], depth=9)
    examples = training_examples(FIRST, QRELS, make)
    expected = {}
    for test in split_folds(QIDS, 3, 0):
        model = train({qid: examples[qid] for qid in QIDS if qid not in test}, make, recipe.learner, k=3).model
        stage = (SVMDiv if text.startswith("svmdiv") else CSSVM)(model, INDEX, k=3)
        expected |= {qid: stage(FIRST[qid]) for qid in test}
    assert found.held_out == Run(tuple(expected[qid] for qid in QIDS), "cv")
    assert found.model.weights == train(examples, make, recipe.learner, k=3).model.weights
    assert list(found.scores) == ["first stage", "chance", "MMR", "held out"]
    mmr = MMR(INDEX, k=3, depth=9).run(FIRST)
    for name, run in {"first stage": FIRST, "MMR": mmr, "held out": found.held_out}.items():
        expected_scores = evaluate_by_subtopic(run, QRELS, MEASURES)
        assert found.scores[name].by_measure == pytest.approx(expected_scores.by_measure, abs=1e-12)


def test_chance_is_the_mean_of_random_sets(monkeypatch):
    """The expected loss of k of n documents is the sum over subtopics s of weight_s C(n - n_s, k) / C(n, k)."""
    monkeypatch.setattr("greylag.diversity.recipe.RANDOM_ORDERS", 600)
    found = train_to_diversify(parse_diversity("svmdiv(k=3,validate=true)"), FIRST, QRELS, INDEX)
    held_out = found.fitted.validation
    assert held_out == ("q3", "q7") == found.scores["chance"].qids
    assert found.model.provenance["validation"] == [*held_out]
    losses = []
    for qid in held_out:
        relevant = relevant_documents(QRELS[qid])
        total = sum(map(len, relevant))
        losses.append(sum(len(docids) / total * comb(N - len(docids), 3) / comb(N, 3) for docids in relevant))
    assert found.scores["chance"].means[0] == pytest.approx(sum(losses) / 2, abs=0.02)


def test_nothing_is_scored_that_was_trained_on():
    for text in ("svmdiv(k=3)", "svmdiv(k=3,validate=true,retrain=true)"):
        found = train_to_diversify(parse_diversity(text), FIRST, QRELS, INDEX)
        assert (found.held_out, found.scores) == (None, {})
        assert set(found.fitted.queries) == set(QIDS)


def test_spelling():
    recipe = parse_diversity("svmdiv(C=2,k=3,criteria=[count>=1,anchor>=2],thresholds=[0.1,0.5])", ("score",))
    shared = {"thresholds": (0.1, 0.5), "document_features": ("score",)}
    assert recipe == DiversityRecipe(CuttingPlane(C=2.0), k=3, criteria=("count>=1", "anchor>=2"), **shared)
    criteria = (Criterion("count", 1), Criterion("anchor", 2))
    assert recipe.features == replace(PRESETS["svmdiv"], criteria=criteria, **shared)
    assert parse_diversity("cssvm(M=3,preset=svmdiv2)") == DiversityRecipe(Coulomb(3), preset="svmdiv2")
    assert [kind.options.keys() & {*"MCk"} for kind in DIVERSITY_MODELS.values()] == [{*"MCk"}, {*"Ck"}]
