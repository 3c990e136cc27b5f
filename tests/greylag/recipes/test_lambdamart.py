"""LambdaMART, and trees as a feature of models.

Tests `greylag.features.learned.trees`.
"""

import json
import sys

import numpy as np
import pytest

from greylag.base import DependencyError, ModelError, Run
from greylag.features import FeatureExtractor, FeatureParameters, parse_features
from greylag.features.learned.trees import LEAF, Trees
from greylag.learning import RankingData
from greylag.rankers import ModelRanker, RankingModel, explain
from greylag.recipes import cross_validate
from greylag.recipes.lambdamart import LambdaMART, LambdaMARTRecipe
from tests.greylag.learning.samples import collection, rankings
from tests.greylag.recipes.test_sources import INDEX, QRELS, RANKINGS, SOURCES
from tests.refusals import refuses

FEATURES = parse_features("FI/term/LM,SD/ordered/BM25-O-1,reciprocal-rank,FI/expansion/BM25")


def random_trees(seed, n_trees=7):
    """Trees whose splits and values are random numbers."""
    rng = np.random.default_rng(seed)
    rows = []

    def grow(depth):
        number = len(rows)
        rows.append([LEAF, 0, 0, 0, rng.normal()])
        if depth and rng.random() < 0.8:
            rows[number][:2] = int(rng.integers(4)), rng.normal(-3, 4)
            rows[number][2], rows[number][3] = grow(depth - 1), grow(depth - 1)
        return number

    roots = np.array([grow(4) for _ in range(n_trees)])
    split, threshold, left, right, value = np.array(rows).T
    split, left, right = (column.astype(np.int64) for column in (split, left, right))
    gains, counts = np.bincount(split[split != LEAF], minlength=4).astype(float), np.zeros(len(split), dtype=int)
    for node in reversed(range(len(split))):  # a leaf has one document, and a node those of the nodes below it
        counts[node] = 1 if split[node] == LEAF else counts[left[node]] + counts[right[node]]
    arrays = roots, split, threshold, left, right, value, gains, counts, np.where(split == LEAF, 0, 2)
    return Trees(FEATURES, FeatureParameters(mu=50.0), *arrays)


def by_definition(trees, row):
    """The values of the leaves."""

    def leaf(node):
        if trees.split[node] == LEAF:
            return float(trees.value[node])
        side = trees.left if row[trees.split[node]] <= trees.threshold[node] else trees.right
        return leaf(int(side[node]))

    return sum(leaf(int(root)) for root in trees.roots)


def test_scores_are_those_of_the_leaves_and_add_up_by_feature():
    pytest.importorskip("lightgbm", reason="needs LightGBM")
    for seed in range(5):
        trees, values = random_trees(seed), np.random.default_rng(seed).normal(-3, 4, size=(40, 4))
        values[0, :] = trees.threshold[trees.split != LEAF][:4]  # values at a threshold go to the left
        expected = [by_definition(trees, row) for row in values]
        np.testing.assert_allclose(trees.scores(values), expected, atol=1e-12)
        np.testing.assert_allclose(trees.contributions(values).sum(axis=1), expected, atol=1e-12)


def test_values_that_are_equal_on_paper_share_their_leaves():
    """A last bit, which depends on the processor, decides no split."""
    pytest.importorskip("lightgbm", reason="needs LightGBM")
    rng = np.random.default_rng(0)
    levels = rng.normal(size=(4, 3))[rng.integers(4, size=400), np.arange(3)[:, None]].T
    grades = rng.integers(3, size=400)
    noisy = levels * (1 + 2.0**-50 * rng.integers(-2, 3, size=levels.shape))
    trees, expected = (
        LambdaMART("nDCG@10", trees=20).grow(RankingData.from_arrays(values, grades, [40] * 10))
        for values in (noisy, levels)
    )
    np.testing.assert_array_equal(trees.scores(noisy), expected.scores(levels))


def test_a_model_of_trees_is_saved_ranks_and_is_explained(tmp_path):
    pytest.importorskip("lightgbm", reason="needs LightGBM")
    index = collection()
    model = RankingModel((random_trees(1),), (2.0,)).for_collection(index)
    model.save(tmp_path / "model.json")
    read = RankingModel.load(tmp_path / "model.json")
    assert read == model
    assert str(random_trees(2)) != str(random_trees(1))
    ranking = rankings(index)[0][3]
    ranked = ModelRanker(read, index)(ranking)
    values = FeatureExtractor(index, FEATURES, FeatureParameters(mu=50.0))(ranking)
    scores = dict(zip(ranking.docids, [2 * by_definition(random_trees(1), row) for row in values], strict=True))
    np.testing.assert_allclose(ranked.scores, [scores[docid] for docid in ranked.docids])
    assert [*ranked.scores] == sorted(ranked.scores, reverse=True)
    for docid in ranked.docids[:3]:
        explained = explain(read, index, ranking, docid)
        assert sum(share.contribution for share in explained.features) == pytest.approx(scores[docid], abs=1e-9)
    assert str(FEATURES[0]) in read.summary()


@pytest.mark.parametrize(
    "damage",
    [
        lambda trees, inner: trees["left"].__setitem__(inner, inner),
        lambda trees, inner: trees["split"].__setitem__(inner, 4),
        lambda trees, inner: trees["value"].pop(),
        lambda trees, inner: trees["threshold"].__setitem__(inner, float("inf")),
        lambda trees, inner: trees["roots"].__setitem__(0, "0"),
        lambda trees, inner: trees["counts"].pop(),
        None,
    ],
)
def test_damaged_trees_are_refused(damage, tmp_path):
    path = tmp_path / "model.json"
    RankingModel((random_trees(1),), (1.0,)).save(path)
    content = json.loads(path.read_text())
    (name, trees), *_ = content["learned"].items()
    inner = next(node for node, split in enumerate(trees["split"]) if split != LEAF)
    if damage:
        damage(trees, inner)
    else:
        content["learned"] = {f"bushes:{name[6:]}": trees}
    path.write_text(json.dumps(content))
    refuses(lambda: RankingModel.load(path), ModelError, "model.json")


def test_without_lightgbm_the_remedy_is_said_before_anything_is_computed(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    refuses(lambda: LambdaMARTRecipe(LambdaMART("AP")), DependencyError, "pip install 'lightgbm>=4'", "|")


def test_the_recipe_sees_the_training_queries_alone():
    pytest.importorskip("lightgbm", reason="needs LightGBM")
    recipe = LambdaMARTRecipe(LambdaMART("AP", trees=5, min_documents=2), sources=SOURCES)
    run = Run(tuple(RANKINGS), "first")
    validated = cross_validate(recipe, run, QRELS, INDEX, folds=2, seed=1)
    for model, part in zip(validated.models, validated.folds, strict=True):
        own = Run(tuple(ranking for ranking in RANKINGS if ranking.qid not in part), "own")
        assert recipe.fit(own, QRELS, INDEX, n_jobs=2).model.features == model.features
        prepared = SOURCES.prepare(own, QRELS, INDEX, recipe.measure)
        names = prepared.training(prepared.tune([*own]), [*own]).names
        assert model.n_candidates == len(names)
