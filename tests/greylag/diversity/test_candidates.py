"""Candidates of SVM-div against the definitions of the paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from greylag.diversity import PRESETS, CandidateMaker, CoverageModel
from greylag.diversity.coverage_model import CoverageFeatures
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import FeatureSpec
from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, Ranking
from tests.greylag.diversity import samples


def covers(words: list[str], title: list[str], kind: str, bound: float, idf: dict[str, float]) -> set[str]:
    """The words that a document covers, after Table 1."""
    if kind == "title":
        return {word for word in title if title.count(word) >= bound}
    if kind == "count":
        return {word for word in words if words.count(word) >= bound}
    if kind == "frequency":
        return {word for word in words if words.count(word) / len(words) >= bound}
    return set(sorted(set(words), key=lambda word: (-(1 + np.log(words.count(word))) * idf[word], word))[: int(bound)])


def plain_psi(
    ranking: Ranking, contents: dict[str, str], titles: dict[str, str], features: CoverageFeatures, picked: list[int]
) -> FloatArray:
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
def test_joint_features_are_eq_4(seed: int, levels: Literal["own", "all"]) -> None:
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


def test_without_titles_their_features_are_zero() -> None:
    contents, titles = samples.texts(3, 8)
    index = PositionalIndex.from_texts(contents)
    everything = np.arange(8)
    with_titles = CandidateMaker(index, samples.SMALL, titles=titles)(samples.ranking(3, 8))
    without = CandidateMaker(index, samples.SMALL)(samples.ranking(3, 8))
    of_titles = np.array([name.startswith("title") for name in samples.SMALL.names])
    assert CoverageModel().joint_feature(with_titles, everything)[of_titles].any()
    assert not CoverageModel().joint_feature(without, everything)[of_titles].any()


def test_document_features_are_summed() -> None:
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


def test_empty_documents_come_last() -> None:
    index = PositionalIndex.from_texts({"a": "", "b": "cat", "c": "cat dog"})
    x = CandidateMaker(index, PRESETS["svmdiv"])(Ranking("q", "", ("a", "b", "c"), np.array([3.0, 2.0, 1.0])))
    weights = np.ones(x.features.n_features)
    assert CoverageModel(3).infer(x, weights).tolist() == [2, 0, 1]


def test_document_features_alone() -> None:
    features = CoverageFeatures((), (0.5,), document_features=("reciprocal-rank",))
    x = CandidateMaker(samples.index(4, 8), features)(samples.ranking(4, 8))
    np.testing.assert_allclose(CoverageModel().joint_feature(x, np.array([0, 3])), [1 + 1 / 4])
    assert CoverageModel(2).infer(x, np.ones(1)).tolist() == [0, 1]
