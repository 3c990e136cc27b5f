"""The model of SVM-div and its candidates against their definitions and exhaustive search."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from greylag.base import Ranking
from greylag.diversity import PRESETS, CandidateMaker, Candidates, CoverageModel
from greylag.diversity.coverage_model import CoverageFeatures, Criterion, word_coverage
from greylag.evaluation import Subtopics
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import FeatureSpec
from greylag.index.positional import PositionalIndex
from greylag.learning import TrainingSet
from tests.greylag.diversity import samples


@pytest.mark.parametrize("levels", ["own", "all"])
@pytest.mark.parametrize("seed", range(20))
def test_gains_are_differences_of_the_objective(seed, levels):
    rng = np.random.default_rng(seed)
    features = replace(samples.SMALL, levels=levels, document_features=("score",))
    x = CandidateMaker(samples.index(seed, 9), features)(samples.ranking(seed, 9))
    weights = rng.standard_normal(features.n_features)
    model, gain, picked = CoverageModel(), word_coverage(x, weights), np.empty(0, dtype=np.int64)
    for _ in range(5):
        value = model.joint_feature(x, picked) @ weights
        rises = [model.joint_feature(x, np.append(picked, i)) @ weights - value for i in range(9)]
        left = np.setdiff1d(np.arange(9), picked)
        np.testing.assert_allclose(gain.gains()[left], np.array(rises)[left], atol=1e-12)
        picked = np.append(picked, rng.choice(left))
        gain.add(int(picked[-1]))


@pytest.mark.parametrize("seed", range(20))
def test_greedy_reaches_its_guarantee(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(5, 11)), 3
    x, model = samples.candidates(seed, n), CoverageModel(k)
    weights = rng.random(x.features.n_features)
    best = max(model.joint_feature(x, np.array(y)) @ weights for y in combinations(range(n), k))
    assert model.joint_feature(x, model.infer(x, weights)) @ weights >= (1 - 1 / np.e) * best


@pytest.mark.parametrize("seed", range(60))
def test_the_most_violated_constraint_is_at_least_that_of_the_target(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    x, truth, model = samples.candidates(seed, n), samples.subtopics(seed, n), CoverageModel(4)
    # With weights of both signs, the greedy choice can be far from the optimum.
    weights = rng.standard_normal(x.features.n_features) * rng.choice([0.01, 1.0])

    def value(y):
        return float(model.joint_feature(x, y) @ weights + model.loss(truth, y))

    target = model.target(x, truth)
    violation = TrainingSet(model, [(x, truth)]).most_violated(0, weights).violation(weights)
    best = max(value(np.array(y)) for y in combinations(range(n), min(4, n)))
    assert model.loss(truth, target) <= violation <= best - model.joint_feature(x, target) @ weights + 1e-9
    assert value(model.infer_augmented(x, truth, weights)) <= best + 1e-9


def test_the_target_is_the_constraint_if_greedy_falls_below_it():
    # The first document covers most words, but the other two cover more together, and they have the subtopics.
    coverage = csr_matrix(np.array([[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0], [0, 0, 1, 1, 0, 1]], dtype=float))
    features = CoverageFeatures((Criterion("count", 1),), (0.1,))
    x = Candidates(features, coverage, np.zeros((6, 1), dtype=np.int64), np.zeros((3, 0)))
    truth = Subtopics(csr_matrix(np.array([[0, 0], [1, 0], [0, 1]], dtype=float)), np.array([0.5, 0.5]))
    model, weights = CoverageModel(2), np.array([100.0])
    assert model.infer(x, weights).tolist() == [0, 1]
    assert model.target(x, truth).tolist() == [1, 2]
    assert model.infer_augmented(x, truth, weights).tolist() != [1, 2]
    normal, loss = TrainingSet(model, [(x, truth)]).most_violated(0, weights)
    assert normal.tolist() == [0.0]
    assert loss == 0.0


def test_presets_have_the_papers_sizes():
    sizes = {name: features.n_features for name, features in PRESETS.items()}
    assert sizes == {"svmdiv": 200, "svmdiv2": 300, "svmdiv-all-levels": 200}
    assert all(len(set(features.names)) == features.n_features for features in PRESETS.values())


def test_target_covers_the_heaviest_first():
    judged = {"a": {"d1": 1}, "b": {"d2": 1, "d3": 2}, "c": {"d0": 1, "d2": 1, "d3": 1}, "none": {"d0": 0}}
    truth = Subtopics.from_qrels(["d0", "d1", "d2", "d3"], judged)
    assert truth.weights.tolist() == pytest.approx([1 / 6, 2 / 6, 3 / 6])
    x = samples.candidates(0, 4)
    assert CoverageModel(2).target(x, truth).tolist() == [2, 1]
    assert CoverageModel(9).target(x, truth).tolist() == [2, 1, 0, 3]
    assert truth.loss(np.array([2])) == pytest.approx(1 / 6)
    assert CoverageModel().loss(truth, np.array([2])) == truth.loss(np.array([2]))


def test_no_candidates():
    x = CandidateMaker(samples.index(0, 5), samples.SMALL)(samples.ranking(0, 0))
    assert len(x) == 0
    assert CoverageModel().infer(x, np.ones(x.features.n_features)).tolist() == []


def covers(words, title, kind, bound, idf):
    """The words that a document covers, after Table 1."""
    if kind == "title":
        return {word for word in title if title.count(word) >= bound}
    if kind == "count":
        return {word for word in words if words.count(word) >= bound}
    if kind == "frequency":
        return {word for word in words if words.count(word) / len(words) >= bound}
    return set(sorted(set(words), key=lambda word: (-(1 + np.log(words.count(word))) * idf[word], word))[: int(bound)])


def plain_psi(ranking, contents, titles, features, picked):
    """Eq. 4 with sets of words."""
    n_documents, vocabulary = len(contents), {word for text in contents.values() for word in text.split()}
    idf = {w: np.log(n_documents / sum(w in text.split() for text in contents.values())) for w in vocabulary}
    psi, levels = [], []
    for kind, bound in features.criteria:
        covered = [
            covers(contents.get(d, "").split(), titles.get(d, "").split(), kind, bound, idf) & vocabulary
            for d in ranking.docids
        ]
        levels.append(covered)
    for covered in levels:
        reached = set().union(*(covered[i] for i in picked))
        for counted in [covered] if features.levels == "own" else levels:
            for threshold in features.thresholds:
                psi.append(sum(sum(word in words for words in counted) / len(counted) >= threshold for word in reached))
    return np.array(psi)


@pytest.mark.parametrize("levels", ["own", "all"])
@pytest.mark.parametrize("seed", range(30))
def test_joint_features_are_eq_4(seed, levels):
    n, features = 8, replace(samples.SMALL, levels=levels)
    contents, titles = samples.texts(seed, n)
    index = PositionalIndex.from_texts(contents)
    ranking = samples.ranking(seed, n)
    outside = Ranking("q", "", (*ranking.docids, "elsewhere"), np.arange(n + 1, 0.0, -1.0))
    rng = np.random.default_rng(seed)
    for case in (ranking, outside):
        x = CandidateMaker(index, features, titles=titles)(case)
        picked = rng.permutation(len(case))[: rng.integers(0, 5)]
        expected = plain_psi(case, contents, titles, features, picked.tolist())
        np.testing.assert_allclose(CoverageModel().joint_feature(x, picked), expected, atol=1e-15)


def test_criteria_on_other_fields_are_as_those_on_titles():
    contents, titles = samples.texts(3, 8)
    index, ranking = PositionalIndex.from_texts(contents), samples.ranking(3, 8)
    anchors = {docid: f"{title} {title}" for docid, title in samples.texts(9, 8)[1].items()}
    both = {docid: {"title": titles.get(docid, ""), "anchor": anchors.get(docid, "")} for docid in contents}
    criteria = (("count", 1), ("title", 1), ("anchor", 2))
    makers = [
        CandidateMaker(index, CoverageFeatures(criteria, (0.1, 0.3)), titles=both),
        CandidateMaker(index, CoverageFeatures((("count", 1), ("title", 1)), (0.1, 0.3)), titles=titles),
        CandidateMaker(index, CoverageFeatures((("title", 2),), (0.1, 0.3)), titles=anchors),
    ]
    found, *parts = (CoverageModel().joint_feature(make(ranking), np.arange(8)) for make in makers)
    assert found[::2].all()
    np.testing.assert_array_equal(found, np.concatenate(parts))


def test_document_features_are_summed():
    contents, _ = samples.texts(4, 8)
    index = PositionalIndex.from_texts(contents)
    names = ("reciprocal-rank", "FI/term/BM25", "score", "SD/ordered/LM-O-1")
    ranking = samples.ranking(4, 8)
    x = CandidateMaker(index, replace(samples.SMALL, document_features=names))(ranking)
    mrf = FeatureExtractor(index, (FeatureSpec.parse(names[1]), FeatureSpec.parse(names[3])))(ranking)
    mrf -= mrf.min(axis=0)
    mrf /= np.maximum(mrf.max(axis=0), 1e-300)
    picked = np.array([5, 0, 2])
    expected = [1 / 6 + 1 + 1 / 3, mrf[picked, 0].sum(), 2 / 7 + 1 + 5 / 7, mrf[picked, 1].sum()]
    np.testing.assert_allclose(CoverageModel().joint_feature(x, picked)[-4:], expected)
    weights = np.zeros(x.features.n_features)
    weights[-4] = 1.0
    assert CoverageModel(8).infer(x, weights).tolist() == list(range(8))
