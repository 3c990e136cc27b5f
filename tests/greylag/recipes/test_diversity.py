"""Recipes of models that diversify: their spelling, cross-validation, and scores beside others."""

from dataclasses import replace
from math import comb

import pytest

from greylag.base import ParameterError, Run
from greylag.diversity import CSSVM, MMR, PRESETS, SVMDiv
from greylag.diversity.coverage_model import Criterion
from greylag.evaluation import evaluate_by_subtopic
from greylag.evaluation.scoring.folds import split_folds
from greylag.evaluation.scoring.subtopics import relevant_documents
from greylag.features import parse_feature
from greylag.index import QueryForm
from greylag.learning import CuttingPlane
from greylag.recipes import DiversityRecipe, fit_svmdiv, train
from greylag.recipes.spelling import MODEL_KINDS, parse_model
from greylag_papers.schiegg_2016.coulomb import Coulomb
from tests.greylag.diversity import samples
from tests.refusals import refuses

N = 12
INDEX = samples.index(0, N)
QIDS = [f"q{number}" for number in range(8)]
FIRST = Run(tuple(samples.ranking(number, N, qid) for number, qid in enumerate(QIDS)), "first")
QRELS = {qid: samples.judgements(number, N) for number, qid in enumerate(QIDS)}
MEASURES = ["subtopic-loss@3", "alpha-nDCG@3"]


@pytest.mark.parametrize("text", ["svmdiv(C=0.1,k=3,depth=9)", "cssvm(M=2,C=0.1,k=3,depth=9,epochs=3)"])
def test_each_query_is_diversified_by_a_model_of_the_other_folds(text):
    recipe = parse_model(text).recipe
    found = train(FIRST, QRELS, INDEX, text, folds=3, tag="cv")
    make, examples = recipe.prepare(FIRST, QRELS, INDEX).args
    expected = {}
    for test in split_folds(QIDS, 3, 0):
        model = recipe.weigh(make, {qid: examples[qid] for qid in QIDS if qid not in test}).model
        stage = (SVMDiv if text.startswith("svmdiv") else CSSVM)(model, INDEX, k=3)
        expected |= {qid: stage(FIRST[qid]) for qid in test}
    assert found.held_out.run == Run(tuple(expected[qid] for qid in QIDS), "cv")
    assert found.model.weights == recipe.weigh(make, examples).model.weights
    chance = found.scores["chance"]
    worse = {**found.scores, "chance": replace(chance, values=chance.values + 1)}  # a higher loss is no better baseline
    assert found.baseline == replace(found, scores=worse).baseline == "first stage"
    assert {comparison.baseline for comparison in found.significance.comparisons} == {"first stage"}
    assert str(found) == str(found.fitted)
    assert list(found.scores) == ["first stage", "chance", "MMR", "held out"]
    mmr = MMR(INDEX, k=3, depth=9).run(FIRST)
    for name, run in {"first stage": FIRST, "MMR": mmr, "held out": found.held_out.run}.items():
        expected_scores = evaluate_by_subtopic(run, QRELS, MEASURES)
        assert found.scores[name].by_measure == pytest.approx(expected_scores.by_measure, abs=1e-12)


def test_chance_is_the_mean_of_random_sets(monkeypatch):
    """The expected loss of k of n documents is the sum over subtopics s of weight_s C(n - n_s, k) / C(n, k)."""
    monkeypatch.setattr("greylag.recipes.diversity.RANDOM_ORDERS", 600)
    found = train(FIRST, QRELS, INDEX, "svmdiv(k=3,validate=true)")
    held_out = found.fitted.chosen_on
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
        found = train(FIRST, QRELS, INDEX, text)
        assert (found.held_out, found.scores) == (None, {})
        assert set(found.fitted.queries) == set(QIDS)


def test_spelling():
    text = "svmdiv(C=2,k=3,criteria=[count>=1,anchor>=2],thresholds=[0.1,0.5])"
    recipe, form = parse_model(text, features=(parse_feature("score"),))
    assert form == QueryForm()
    shared = {"thresholds": (0.1, 0.5), "document_features": ("score",)}
    assert recipe == DiversityRecipe(CuttingPlane(C=2.0), k=3, criteria=("count>=1", "anchor>=2"), **shared)
    criteria = (Criterion("count", 1), Criterion("anchor", 2))
    assert recipe.features == replace(PRESETS["svmdiv"], criteria=criteria, **shared)
    assert parse_model("cssvm(M=3,preset=svmdiv2)").recipe == DiversityRecipe(Coulomb(3), preset="svmdiv2")
    assert [MODEL_KINDS[name].options.keys() & {*"MCk"} for name in ("cssvm", "svmdiv")] == [{*"MCk"}, {*"Ck"}]


def test_titles_are_read(tmp_path):
    (tmp_path / "titles.jsonl").write_text('{"id": "d1", "title": "Geese"}\n')
    titles = parse_model(f"svmdiv(titles={tmp_path / 'titles.jsonl'})").recipe.titles
    assert titles["d1"]["title"] == "Geese"


def test_topics_that_nothing_can_be_learned_from_are_left_out(caplog):
    """Of training and of folds, and each is named once."""
    qrels = {**QRELS, "q1": {}, "q2": {"s": {"elsewhere": 1}}}
    found = train(FIRST, qrels, INDEX, "svmdiv(k=3)", folds=2)
    kept = [qid for qid in QIDS if qid not in ("q1", "q2")]
    assert [*found.held_out.run] == [*found.fitted.queries] == kept
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == ["q1", "q2"]


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: parse_model("svmdif"), "'svmdif'|svmdiv"),
        (lambda: parse_model("svmdiv(depht=3)"), "'depht'|depth"),
        (lambda: parse_model("svmdiv(C=1,validate=true)"), "C|validate"),
        (lambda: parse_model("svmdiv(retrain=true)"), "validate=true"),
        (lambda: parse_model("svmdiv(criteria=tea)"), "'tea'"),
        (lambda: parse_model("svmdiv(thresholds=2)"), "threshold"),
        (lambda: parse_model("svmdiv(k=0)"), "k|0"),
        (lambda: parse_model("svmdiv", pool="sd"), "takes no pool"),
        (lambda: train(FIRST.select_queries(QIDS[:3]), QRELS, INDEX, "svmdiv(validate=true)"), "validate|4|3"),
        (lambda: train(FIRST, {}, INDEX, "svmdiv"), "nothing to learn from"),
        (lambda: train(FIRST, QRELS, None, "svmdiv"), "DiversityRecipe needs an index"),
        (lambda: train(FIRST, QRELS, INDEX, "svmdiv", query_form=QueryForm(True)), "query_form"),
        (lambda: fit_svmdiv(FIRST, QRELS, INDEX, preset="other"), "'other'|svmdiv-all-levels"),
    ],
)
def test_refusals(call, parts):
    refuses(call, ParameterError, parts, "|")
