"""Refusals of extractors, recipes and spellings: one line, with the value and what works."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from greylag.base import ModelError, ParameterError, Ranking, Run
from greylag.base.core.spelling import read_call
from greylag.features import FeatureExtractor, FeatureParameters, parse_features
from greylag.features.feature import unique_features
from greylag.features.spelling import find_feature, parse_feature
from greylag.features.stage_registry import StageStep
from greylag.index import PositionalIndex
from greylag.learning import GreedySelection, useful_features
from greylag.rankers import EstimatorRanker, LengthSlopes, MaxPassage, ModelRanker, RankingModel, RM3Stage, engine_model
from greylag.recipes import (
    Automatic,
    AutomaticRecipe,
    BaselineRecipe,
    LambdaMART,
    MRFRecipe,
    baselines,
    cross_validate,
    train,
)
from greylag.recipes.rm3 import RM3Recipe
from greylag.recipes.sources import FeatureSources
from tests.greylag.learning.samples import random_data
from tests.refusals import refuses

INDEX = PositionalIndex.from_texts({"a": "cat", "b": "dog"})
FEATURES = parse_features("FI/term/LM")
RUN = Run(tuple(Ranking(qid, "cat", ("a", "b"), np.zeros(2)) for qid in "12"), "first")
QRELS = {qid: {"a": 1} for qid in "12"}
LEARNER = LogisticRegression()
EXTRACTOR = FeatureExtractor(INDEX, FEATURES)
DATA = random_data(2)


def top_ten(ranking):
    return [0.0] * len(ranking)


def without(name):
    return {key: values for key, values in baselines.GRID.items() if key != name}


GREEDY = MRFRecipe(FEATURES, GreedySelection("AP"))
SLOPED = RankingModel(FEATURES, (0.5,), by_length=LengthSlopes((0.1,), 10, 1000))
FILES = RankingModel(parse_features("prior:x/a.tsv,run:y/b.run,run:x/b.run"), (1.0,) * 3)
MODELS = [
    (lambda: replace(SLOPED, by_length=LengthSlopes((0.1, 0.1), 10, 1000)), "1 weights cannot have 2 slopes"),
    (lambda: LengthSlopes((1e308, 0.1)), "slopes|1e+100"),
    (lambda: replace(SLOPED, weights=(-1e308,)), "weights|1e+100"),
    (lambda: LengthSlopes((0.1,), 100, 10), "the shortest below the longest"),
    (lambda: ModelRanker(replace(SLOPED, fingerprint="x", by_length=None), INDEX), "trained on another collection"),
]
CALLS = [
    (lambda: FeatureExtractor(FEATURES, INDEX), "FeatureExtractor(index, features) needs a PositionalIndex"),
    (lambda: FeatureExtractor(INDEX, FEATURES)(RUN), "not for Run"),
    (lambda: FeatureExtractor(None, parse_features("score,SD/ordered/LM-O-4@z")), "SD/ordered/LM-O-4 needs an index"),
    (lambda: MRFRecipe(FEATURES, LEARNER), "the learner is LogisticRegression"),
    (lambda: MRFRecipe(FEATURES, "pairlogit"), "the learner is str 'pairlogit'"),
    (lambda: engine_model(SLOPED, "opensearch"), "at_length"),
    (lambda: FILES.with_files({"a.tsv": "1", "./x/a.tsv": "2"}), "x/a.tsv is to be 1 and 2"),
    (lambda: FILES.with_files({"b.run": "1"}), "2 of the model's files are called 'b.run'"),
    (lambda: EstimatorRanker(EXTRACTOR, LEARNER), "the extractor is LogisticRegression"),
    (lambda: cross_validate(GREEDY, RUN, INDEX, {}), "cross_validate(recipe, rankings, qrels, index)"),
    (lambda: train(RUN, QRELS, INDEX, GREEDY, folds=3), "2 queries cannot be split into 3 folds"),
    (lambda: train(RUN, {"1": {}}, INDEX), "none of 2 topics has a relevant document"),
    (lambda: train(RUN, QRELS, None), "AutomaticRecipe needs an index"),
    (lambda: train(RUN, QRELS, INDEX, LEARNER), "recipe is LogisticRegression"),
    (lambda: unique_features([top_ten]), "function top_ten is not a feature"),
    (lambda: useful_features(replace(DATA, features=np.ones_like(DATA.features))), "every feature is constant"),
    (lambda: baselines.parameter_grid({"k1": (1.0,)}, ("k1", "b"), FeatureParameters()), "values for b: it has k1"),
    (lambda: BaselineRecipe(baselines.BM25, grid={"k1": (1.0,)}), "values for b: it has k1"),
    (lambda: BaselineRecipe(baselines.BM25, grid={"k1": (1.0,), "b": (0.5, 2.0)}), "b is 2.0"),
    (lambda: BaselineRecipe("bm25"), "baseline is str 'bm25'"),
    (lambda: RM3Recipe(grid={**baselines.GRID, "original_weight": (0.5, 1.5)}), "original_weight must be in [0, 1]"),
    (lambda: RM3Recipe(grid=without("fb_terms")), "no values for fb_terms"),
    (lambda: RM3Recipe(grid=without("original_weight")), "no values for original_weight"),
    (lambda: RM3Stage(INDEX, original_weight=2), "original_weight must be in [0, 1], not 2"),
    (lambda: RM3Stage(INDEX, fb_docs=0), "fb_docs"),
    (lambda: MaxPassage(""), "delimiter is empty"),
    (lambda: MaxPassage(hits=0), "hits must be an integer of at least 1"),
    (lambda: MaxPassage()(Ranking("q7", "", ("a#1", "#2"), [2, 1])), "query q7: nothing is before '#' in '#2'"),
    (lambda: FeatureSources(depth=0), "depth must be an integer of at least 1, not 0"),
    (lambda: AutomaticRecipe(sources=FeatureSources(grid=without("fb_docs"))).fit(RUN, QRELS, INDEX), "for fb_docs"),
    (lambda: Automatic("AP", folds=1), "folds is 1"),
    (lambda: AutomaticRecipe("AP", seed=-1), "seed must be"),
    (lambda: LambdaMART("AP", trees=0), "trees is 0"),
    (lambda: LambdaMART("AP", leaves=1), "leaves is 1"),
    (lambda: LambdaMART("AP", learning_rate=0.0), "learning_rate is 0.0"),
    (lambda: LambdaMART("AP", seed=-1), "seed is -1"),
    (lambda: LambdaMART("AP", increasing=("a",), decreasing=("b", "a")), "rise and to fall with a"),
    (lambda: LambdaMART("AP", increasing="12"), "increasing: str '12' is no sequence"),  # not columns 1 and 2
    (lambda: LambdaMART("AP", validate=50), "validate is 50; it must be True or False"),
    (lambda: LambdaMART("AP", params={3: 1}), "params has 3"),
    (lambda: LambdaMART("AP", params={"monotone_constraints_method": "foo"}, increasing=("a",)), "be one of basic"),
    (lambda: LambdaMART("AP", params={"lamda_l2": 1}), "'lamda_l2': did you mean lambda_l2"),
    (lambda: LambdaMART("AP", params={"interaction_constraints": [[0]]}), "'interaction_constraints': use"),
    (lambda: LambdaMART("AP").grow(replace(DATA, grades=0 * DATA.grades)), "nothing to learn from"),
    (lambda: StageStep.parse("rm3 >> mmr"), "several stages: give one --stage for each"),
    (lambda: parse_feature("lattent"), "did you mean latent"),
    (lambda: parse_feature("scores"), "score"),
    (lambda: parse_feature("priorr:x"), "did you mean prior"),
    (lambda: parse_feature("pivotd:0.2"), "'pivotd:0.2'"),
    (lambda: parse_feature("BM25"), "did you mean FI/term/BM25"),
]


@pytest.mark.parametrize(
    ("kind", "call", "reason"), [*((ModelError, *row) for row in MODELS), *((ParameterError, *row) for row in CALLS)]
)
def test_the_answer_is_what_works(kind, call, reason):
    refuses(call, kind, reason, "|")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("mmr(help)", None),
        ("MMR(k=3)", "mmr(k=3)"),
        ("combsum(weights=0.3,0.7)", "combsum(weights=[0.3,0.7])"),
        ("rrf(weights=0.3,0.7,rank_constant=10)", "rrf(weights=[0.3,0.7],rank_constant=10)"),
    ],
)
def test_a_spelling_that_is_proposed_is_read(text, meant):
    with pytest.raises(ParameterError) as raised:
        read_call(text)
    assert str(raised.value).partition(": write ")[2] == (meant or "")
    if meant:
        read_call(meant)


def test_an_error_of_a_parser_is_one_line(monkeypatch):
    def parse(text):
        raise ValueError("no such unit")

    monkeypatch.setattr(find_feature("written"), "parse", parse)
    with pytest.raises(
        ParameterError, match=r"'written:x': \S+written.WrittenForm.parse raised ValueError: no such unit"
    ):
        parse_feature("written:x")
