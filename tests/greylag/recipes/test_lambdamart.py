"""LambdaMART, and trees as a feature of models.

Tests `greylag.features.learned.trees`.
"""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from greylag import evaluate, train
from greylag.base import DependencyError, ModelError, ParameterError, Run
from greylag.evaluation import split_folds
from greylag.evaluation.trec.letor import is_feature_file, read_grades
from greylag.features import FeatureExtractor, FeatureParameters, parse_features
from greylag.features.learned.trees import LEAF, Trees
from greylag.learning import RankingData, listed_grades, listed_run, read_letor
from greylag.rankers import ModelRanker, RankingModel, explain
from greylag.recipes import ColumnRecipe, cross_validate, spelt_learner
from greylag.recipes.lambdamart import NEEDS, PARAMS, LambdaMART, LambdaMARTRecipe
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


RNG = np.random.default_rng(3)
EIGHTHS = np.round(RNG.normal(size=(600, 5)) * 8) / 8  # which rounding to 32 bits leaves as they are
GRADES = np.digitize(EIGHTHS[:, 0] - EIGHTHS[:, 1] + RNG.normal(size=600) / 2, [0.8, 2.0])
GAPS = np.where(RNG.random(EIGHTHS.shape) < 0.2, np.nan, EIGHTHS)
GAPS[0, 0], GAPS[:, 2] = np.nan, EIGHTHS[:, 2]
GAPS[:, 3] = np.where(RNG.random(600) < 0.2 + 0.3 * GRADES, np.nan, 1.0)  # tells by what is missing alone
GAPS[:, 4] = GAPS[:, 2] * 2 + 1  # ranks as another
NDCG = "nDCG(dcg='exp-log2')@10"
OWN = {
    "objective": "lambdarank", "learning_rate": 0.05, "num_leaves": 15, "min_data_in_leaf": 5, "seed": 0,
    "num_threads": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1,
}  # fmt: skip


def boosted(values, grades, rounds, **options):
    """The trees of LightGBM, by itself, for queries of 20 documents."""
    lightgbm = pytest.importorskip("lightgbm", reason="needs LightGBM")
    settings = {**OWN, "label_gain": [0, 1, 3], **options}
    sets = lightgbm.Dataset(values, label=grades, group=[20] * (len(grades) // 20), params=settings)
    return lightgbm.train(settings, sets, rounds)


def test_missing_values_are_learned_from_and_ranked_as_lightgbm_does(tmp_path):
    """From text, in which what a line leaves out is 0, and from a frame; with folds, also if each column lacks some."""
    polars = pytest.importorskip("polars")
    booster = boosted(GAPS[:, :4], GRADES, 40)
    lines = (
        f"{grade} qid:{n // 20} {' '.join(f'{c}:{value}' for c, value in enumerate(row, 1) if value)} # d{n}\n"
        for n, (grade, row) in enumerate(zip(GRADES, GAPS.tolist(), strict=True))
    )
    (tmp_path / "f.txt").write_text("".join(lines))
    frame = {"qid": [str(n // 20) for n in range(600)], "label": GRADES, "docno": [f"d{n}" for n in range(600)]}
    frame = polars.DataFrame({**frame, **{str(n + 1): GAPS[:, n] for n in range(5)}})
    learner, expected = LambdaMART(NDCG, trees=40, min_documents=5), booster.predict(GAPS[:, :4])
    for source in (tmp_path / "f.txt", frame):
        data = read_letor(source, absent=0.0)
        np.testing.assert_array_equal(data.X, GAPS)
        run, recipe = listed_run(data, "rows"), ColumnRecipe.of(data, learner)
        result = train(run, listed_grades(data), None, recipe, folds=3)
        assert [*result.scores] == ["held out", "best column"]
        assert "ranks as column:3 does" in result.model.provenance["set_aside"][0]
        result.model.save(tmp_path / "m.json")
        model = RankingModel.load(tmp_path / "m.json")
        assert model == result.model
        assert "column:4" in [str(feature) for feature in model.features[0].features]
        ranker = ModelRanker(model.with_columns(data))
        np.testing.assert_array_equal(np.concatenate([ranker.scores(one) for one in run.rankings]), expected)
        for odd in (np.full((1, 5), np.nan), np.zeros((1, 5)), EIGHTHS[:50]):  # also of a feature that training has
            scores = model.features[0].scores(odd[:, [int(c.name) - 1 for c in model.features[0].features]])
            np.testing.assert_array_equal(scores, booster.predict(odd[:, :4]))
    assert "1:nan" in (tmp_path / "f.txt").read_text().partition("\n")[0]
    assert is_feature_file(tmp_path / "f.txt")
    assert read_grades(tmp_path / "f.txt") == listed_grades(data)
    lacking = replace(data, features=np.where(RNG.random(GAPS.shape) < 0.1, np.nan, EIGHTHS))
    result = train(run, listed_grades(data), None, ColumnRecipe.of(lacking, learner), folds=3)
    assert ([*result.scores], result.verdict) == (["held out"], "")


@pytest.mark.parametrize("model", ["automatic", "listwise", "mrf", "coordinate-ascent"])
def test_learners_of_weights_refuse_missing_values_and_name_the_learner_that_takes_them(model):
    data = RankingData.from_arrays(GAPS, GRADES, [20] * 30)
    recipe = ColumnRecipe.of(data, spelt_learner(model, {}, "AP")[0])
    parts = "column:1 document NaN lambdamart fill"
    refuses(lambda: train(listed_run(data, "rows"), listed_grades(data), None, recipe), ParameterError, parts)
    whole = ColumnRecipe.of(data, recipe.learner, columns=["3"])
    assert train(listed_run(data, "rows"), listed_grades(data), None, whole).model.columns[0].name == "3"


def test_a_fourth_of_the_queries_stops_the_growth():
    """After the tree that is best for them, of those that LightGBM grows for the others."""
    data = RankingData.from_arrays(GAPS[:, :4], GRADES, [20] * 30)
    for seed in (0, 1):
        held_out = split_folds(data.qids, 4, seed)[0]
        rows = np.isin(np.repeat(data.qids, 20), held_out)
        booster = boosted(data.X[~rows], GRADES[~rows], 60, seed=seed, learning_rate=0.3)
        grades, means = np.split(GRADES[rows], len(held_out)), []
        judged = {
            qid: {str(n): int(grade) for n, grade in enumerate(own)} for qid, own in zip(held_out, grades, strict=True)
        }
        for number in range(1, 61):
            parts = np.split(booster.predict(data.X[rows], num_iteration=number), len(held_out))
            orders = {qid: np.argsort(-own, kind="stable").tolist() for qid, own in zip(held_out, parts, strict=True)}
            ranked = {qid: [(str(n), -place) for place, n in enumerate(order)] for qid, order in orders.items()}
            means.append(round(evaluate(ranked, judged, [NDCG]).by_measure[NDCG], 12))
        best = int(np.argmax(means)) + 1
        trees = LambdaMART(NDCG, trees=60, learning_rate=0.3, min_documents=5, seed=seed, validate=True).grow(data)
        assert 1 < best == len(trees.roots) < 60
        np.testing.assert_array_equal(trees.scores(data.X), booster.predict(data.X, num_iteration=best))
    refuses(lambda: LambdaMART(NDCG, validate=True).grow(data, data), ParameterError, "validate=true validation")
    few = data.select_queries(data.qids[:3])
    refuses(lambda: LambdaMART(NDCG, validate=True).grow(few), ParameterError, "validate=true 4 3 leave it out")
    lost = replace(data, grades=np.where(rows, 0, GRADES))  # of `held_out`: the first tree would be best
    refuses(lambda: LambdaMART(NDCG, seed=1, validate=True).grow(lost), ParameterError, "none of 8 validation relevant")


def test_scores_only_rise_or_fall_with_constrained_features():
    """Also if columns before them are set aside."""
    values = np.column_stack([np.ones(600), EIGHTHS[:, [2, 0, 1, 3]]])
    data = RankingData.from_arrays(values, GRADES, [20] * 30, names=["same", *"abcd"])
    free, bound = (
        ColumnRecipe.of(data, LambdaMART(NDCG, trees=60, min_documents=5, **names))
        for names in ({}, {"increasing": ("a", "column:c"), "decreasing": ("d",)})
    )
    steps = np.linspace(-4, 4, 60)
    wrong = []
    for recipe in (free, bound):
        (trees,) = recipe.fit(listed_run(data, "rows"), listed_grades(data), None).model.features
        assert [column.name for column in trees.features] == ["a", "b", "c", "d"]
        falls = {}
        for place, sign in ((0, 1), (2, 1), (3, -1)):
            rows = np.repeat(EIGHTHS[:40, [2, 0, 1, 3]], 60, axis=0)
            rows[:, place] = np.tile(steps, 40)
            falls[place] = int((sign * np.diff(trees.scores(rows).reshape(40, 60), axis=1) < -1e-12).sum())
        wrong.append(falls)
    assert min(wrong[0].values()) > 0
    assert wrong[1] == {0: 0, 2: 0, 3: 0}
    for name in ("same", "e"):
        learner = LambdaMART(NDCG, increasing=(name,))
        recipe = ColumnRecipe.of(data, learner)
        lists = listed_run(data, "rows"), listed_grades(data)
        refuses(lambda recipe=recipe, lists=lists: recipe.fit(*lists, None), ParameterError, f"{name} monotone a, b")


def test_other_parameters_are_lightgbms():
    data = RankingData.from_arrays(GAPS[:, :4], GRADES, [20] * 30)
    more = {"lambda_l2": 3.0, "feature_fraction": 0.5, "bagging_fraction": 0.5, "bagging_freq": 1, "max_depth": 3}
    scores = LambdaMART(NDCG, trees=20, min_documents=5, params=more).grow(data).scores(data.X)
    np.testing.assert_array_equal(scores, boosted(data.X, GRADES, 20, **more).predict(data.X))
    known = boosted(data.X, GRADES, 1).model_to_string()
    assert all(f"\n[{name}: " in known for name in PARAMS)
    refuses(lambda: LambdaMART(NDCG, params={"lambda_l2": -1}).grow(data), ParameterError, "LightGBM lambda_l2 -1")
    refuses(lambda: LambdaMART(NDCG, params="lambda_l2=1"), ParameterError, "params 'lambda_l2=1' values by")  # type: ignore[arg-type]


IGNORED = {
    "bagging_fraction": 0.5, "bagging_by_query": True, "bagging_freq": 1, "top_rate": 0.3, "other_rate": 0.3,
    "monotone_constraints_method": "advanced", "monotone_penalty": 2.0,
}  # fmt: skip


@pytest.mark.parametrize("name", NEEDS)
def test_what_lightgbm_ignores_is_refused(name):
    alone = {name: IGNORED[name]}
    free, bound = (boosted(EIGHTHS, GRADES, 9, **more).predict(EIGHTHS) for more in ({}, alone))
    np.testing.assert_array_equal(bound, free)
    refuses(lambda: LambdaMART(NDCG, params=alone), ParameterError, f"{name} LightGBM ignores without")
    given = {"increasing": ("1",)} if name.startswith("monotone") else {}
    also = {} if given else {NEEDS[name]: "goss" if name.endswith("_rate") else 0.5}
    assert LambdaMART(NDCG, params={**alone, **also, "bagging_fraction": 0.5, "bagging_freq": 1}, **given).params


def test_numbers_of_numpy_are_saved(tmp_path):
    """Options of a learner, and parameters, may be such."""
    data = RankingData.from_arrays(EIGHTHS, GRADES, [20] * 30)
    params = {"max_depth": np.int64(3), "lambda_l2": np.float32(0.1), "extra_trees": np.bool_(True)}
    model = LambdaMART(NDCG, trees=3, learning_rate=np.float32(0.1), params=params).fit_model(data).model
    model.save(tmp_path / "m.json")
    loaded = RankingModel.load(tmp_path / "m.json")
    assert loaded == model
    assert loaded.provenance["params"] == {"max_depth": 3, "lambda_l2": float(np.float32(0.1)), "extra_trees": True}


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
