"""What diversifiers and their models refuse: the call, the error, and what its message has."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from greylag.base import ModelError, ParameterError, greedy_picks
from greylag.diversity import (
    CSSVM,
    MMR,
    PM2,
    PRESETS,
    CandidateMaker,
    CoverageModel,
    DiversityModel,
    GroupLimit,
    NearDuplicates,
    RandomOrder,
    SVMDiv,
    XQuAD,
)
from greylag.diversity.coverage import CoverageGain
from greylag.diversity.coverage_model import CoverageFeatures
from greylag.index import ArrayVectors
from tests.greylag.diversity import samples
from tests.refusals import refuses

INDEX, OTHER, RANKING = samples.index(1, 15), samples.index(2, 15), samples.ranking(2, 3)
MODEL, ENSEMBLE = (replace(model, fingerprint=INDEX.fingerprint) for model in (samples.MODEL, samples.ENSEMBLE))
ANCHORS = CoverageFeatures((("count", 1), ("anchor", 2)), (0.1,))


def features(*criteria, thresholds=(0.5,), **more):
    return CoverageFeatures(criteria, thresholds, **more)


def by_scores(scores, scale=None):
    return XQuAD(aspects=lambda _: scores, scale=scale)(RANKING)


def make(titles=None):
    return CandidateMaker(INDEX, ANCHORS, titles=titles)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: MMR(INDEX, k=0), "k|0"),
        (lambda: MMR(INDEX, depth=0), "depth|0"),
        (lambda: MMR(INDEX, relevance_weight=np.nan), "relevance_weight|nan"),
        (lambda: CSSVM(samples.ENSEMBLE, INDEX, depth=0), "depth|0"),
        (lambda: GroupLimit(["a"]), "group|list ['a']"),
        (lambda: GroupLimit({}, max_per_group=0), "max_per_group|0"),
        (lambda: GroupLimit({}, decay=1.5), "decay|1.5"),
        (lambda: GroupLimit({}, min_relevance=1.1), "min_relevance|1.1"),
        (lambda: NearDuplicates(INDEX, threshold=80), "threshold|[0, 1]|80"),
        (lambda: NearDuplicates(INDEX, n=0), "n must be|0"),
        (NearDuplicates, "index or vectors|neither"),
        (lambda: NearDuplicates(vectors=ArrayVectors(["a"], [[1.0]]), containment=True), "containment|n-grams"),
        (lambda: PM2(INDEX, {}, aspect_weight=-1), "aspect_weight|-1"),
        (lambda: XQuAD(INDEX, {}, relevance_weight=1.5), "relevance_weight|1.5"),
        (lambda: XQuAD(INDEX), "aspects=FILE"),
        (lambda: XQuAD(INDEX, {"q": "cats"}), "aspects|'cats'"),
        (lambda: PM2(aspects={"q": ["w1x"]}), "needs an index"),
        (lambda: by_scores([[2.0], [0.5], [0.1]]), "score is 2|scale"),
        (lambda: by_scores([[0.2], [-0.5], [0.1]], "max"), "score is -0.5|at least 0"),
        (lambda: by_scores([[0.2], [-0.5], [0.1]]), "score is -0.5|probabilities"),
        (lambda: by_scores([[0.2], [0.5]]), "(2, 1) for 3 candidates"),
        (lambda: by_scores([0.2, 0.5, 0.1]), "(3,) for 3 candidates"),
        (lambda: by_scores([[0.2], [np.inf], [0.1]], "sigmoid"), "finite"),
        (lambda: RandomOrder(-1), "seed|-1"),
        (lambda: greedy_picks(CoverageGain(csr_matrix(np.eye(2)), np.array([1.0, np.nan])), 1), "not finite"),
        (lambda: CoverageGain(csr_matrix([[1.0, 0.5]]), np.ones(2)), "0.5"),
        (lambda: CoverageModel(0), "k|0"),
        (lambda: features(("count", 0)), "count"),
        (lambda: features(("two words", 1)), "two words"),
        (lambda: features(("count", np.nan)), "nan"),
        (lambda: features(("count", 1), ("count", 1.0)), "criteria"),
        (lambda: features(("count", 1), thresholds=(0.5, 0.5)), "thresholds"),
        (lambda: features(("count", 1), thresholds=(0.5, 1.1)), "thresholds"),
        (lambda: features(("count", 1), document_features=("score", "score")), "score"),
        (lambda: features(("count", 1), levels="each"), "levels|'each'"),
        (make, "'anchor'|titles"),
        (lambda: make({"d1": {"title": "a"}}), "'anchor'"),
        (lambda: make({RANKING.docids[0]: {"anchor": 7}})(RANKING), "7|string"),
        (lambda: CandidateMaker(INDEX, PRESETS["svmdiv"], depth=0), "depth|0"),
    ],
)
def test_parameters(call, parts):
    refuses(call, ParameterError, parts, "|")


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: SVMDiv(MODEL, OTHER), "another collection"),
        (lambda: SVMDiv(replace(MODEL, titles=True), INDEX), "titles"),
        (lambda: SVMDiv(ENSEMBLE, INDEX), "3|--stage cssvm"),
        (lambda: MODEL.maker(OTHER), "another collection"),
        (lambda: replace(MODEL, titles=True).maker(INDEX), "titles"),
        (lambda: DiversityModel(PRESETS["svmdiv"], ((0.0,) * 200, (0.0,) * 300), k=5), "200|300"),
        (lambda: CoverageModel().infer(samples.candidates(0, 5), np.ones(300)), "300|200|preset"),
    ],
)
def test_models(call, parts):
    refuses(call, ModelError, parts, "|")


def test_a_model_of_another_collection_is_for_transfer():
    assert SVMDiv(MODEL, OTHER, transfer=True).index is OTHER
    assert MODEL.maker(INDEX).features == samples.SMALL
