"""Trees in LightGBM's text, against LightGBM's own predictions and contributions.

Tests `greylag.features.learned.trees`.
"""

import re

import numpy as np
import pytest

from greylag.base import ModelError
from greylag.features.learned.trees import Trees
from greylag.learning import RankingData, listed_run
from greylag.rankers import ModelRanker, RankingModel, engine_model, explain
from tests.greylag.rankers.test_export import Vespa
from tests.refusals import refuses

lightgbm = pytest.importorskip("lightgbm", reason="needs LightGBM")
RNG = np.random.default_rng(4)
X = RNG.normal(size=(400, 6))
X[:, 0] = 0.5  # LightGBM never splits by it
Y = np.digitize(X[:, 1] * X[:, 2] - X[:, 4], [0.3, 1.5])
GAPS = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
TOLD = np.where(RNG.random(X.shape) < 0.3, np.nan, X)  # by what is missing: a split of it from the rest, at infinity
TOLD[:, 0] = np.where(Y > 0, np.nan, RNG.normal(size=400))


def grown(values=X, rounds=15, **options):
    settings = {"objective": "lambdarank", "num_leaves": 7, "min_data_in_leaf": 5, "verbosity": -1, "num_threads": 1}
    settings |= options
    groups = [20] * 20 if settings["objective"] == "lambdarank" else None
    return lightgbm.train(settings, lightgbm.Dataset(values, label=Y, group=groups, params=settings), rounds)


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (X, {}),
        (GAPS, {}),
        (TOLD, {}),
        (X, {"objective": "regression", "num_leaves": 40}),
        (X, {"objective": "regression", "min_data_in_leaf": 300}),  # a single leaf
        (X, {"objective": "binary", "boosting": "dart"}),
        (np.where(X > 1, 1e-34, np.where(X < -1, -1e-34, 0.0)), {}),  # split between tiny values
    ],
    ids=["ranker", "missing values", "missing tells", "regression", "constant", "dart", "tiny"],
)
def test_scores_contributions_and_text_are_lightgbms(values, options):
    booster = grown(values, **options)
    assert ("threshold=inf" in booster.model_to_string()) == (values is TOLD)
    trees = Trees.from_lightgbm(booster.model_to_string())
    raw = booster.predict(X, raw_score=True)
    np.testing.assert_array_equal(trees.scores(X), raw)
    odd = np.where(RNG.random((400, 6)) < 0.5, X, RNG.choice([np.inf, -np.inf, 1e-35, -1e-36, 1e-34, 1e308], (400, 6)))
    np.testing.assert_array_equal(trees.scores(odd), booster.predict(odd, raw_score=True))
    np.testing.assert_allclose(trees.contributions(X), booster.predict(X, pred_contrib=True), atol=1e-12)
    written = lightgbm.Booster(model_str=trees.as_lightgbm())
    for rows in (X, GAPS, TOLD, np.full((1, 6), 1e100)):
        np.testing.assert_array_equal(written.predict(rows), booster.predict(rows, raw_score=True))
    np.testing.assert_allclose(Trees.from_lightgbm(trees.as_lightgbm()).gains, trees.gains, rtol=1e-12)
    gains = booster.feature_importance("gain")
    np.testing.assert_allclose(trees.gains, gains, rtol=1e-4)
    vespa, columns = Vespa(engine_model(RankingModel((trees,), (1.0,)), "vespa")), [f"Column_{n}" for n in range(6)]
    limits = np.column_stack([np.resize([*trees.threshold[trees.split == n], 0.5], 90) for n in range(6)])
    near = np.concatenate([limits, *(np.nextafter(limits, side) for side in (-9, 9))])
    near = near[(np.abs(near) > 1e-34).all(axis=1)]  # LightGBM reads values below as 0
    for rows in (X, GAPS, TOLD, near):
        np.testing.assert_array_equal(vespa.scores(columns, rows.tolist()), booster.predict(rows, raw_score=True))
    names = ["new", *(f"Column_{n}" for n in (5, 4, 3, 2, 1, 0))]
    wider = lightgbm.Booster(model_str=trees.as_lightgbm(names)).predict(np.column_stack([-Y, X[:, ::-1]]))
    np.testing.assert_array_equal(wider, raw)


def test_a_file_of_lightgbm_ranks_and_is_explained(tmp_path):
    """Columns go by their names, by their places, or by the numbers of LETOR text, which LightGBM reads from 0 on."""
    booster, data = grown(), RankingData.from_arrays(X, Y, [20] * 20)
    named = lightgbm.train(
        {"objective": "lambdarank", "verbosity": -1, "num_threads": 1},
        lightgbm.Dataset(X, label=Y, group=[20] * 20, feature_name=list("uvwxyz")), 5,
    )  # fmt: skip
    letor = grown(np.column_stack([np.zeros(400), X]))
    listed = listed_run(data, "rows")
    for one, features, values in (
        (booster, data, X),
        (grown(TOLD), data, X),
        (named, RankingData.from_arrays(X[:, ::-1], Y, [20] * 20, names=list("zyxwvu")), X),
        (letor, data, np.column_stack([np.zeros(400), X])),
    ):
        one.save_model(tmp_path / "model.txt")
        model = RankingModel.load(tmp_path / "model.txt")
        model.save(tmp_path / "model.json")
        assert RankingModel.load(tmp_path / "model.json") == model
        bound = model.with_columns(features)
        expected, ranker = one.predict(values), ModelRanker(bound)
        engine, text = engine_model(bound, "elasticsearch"), engine_model(bound, "lightgbm")
        assert {*re.findall(r'"split": "(\w+)"', engine)} == {column.name for column in bound.columns}
        assert {column.name for column in bound.columns} <= {*features.names}
        np.testing.assert_array_equal(lightgbm.Booster(model_str=text).predict(values), expected)
        np.testing.assert_array_equal(ranker.scores(listed["3"]), expected[40:60])
        explained = explain(bound, None, listed["3"], "43")
        assert explained.score == pytest.approx(expected[42], abs=1e-15)
        assert sum(share.contribution for share in explained.features) == pytest.approx(explained.score, abs=1e-12)
        assert explained.features[-1].name == "mean score in training"
        assert explained.features[-1].contribution == pytest.approx(one.predict(values[:1], pred_contrib=True)[0, -1])
    for width in (4, 8):
        other = RankingData.from_arrays(np.zeros((3, width)), [0, 0, 0], [3])
        refuses(lambda other=other: model.with_columns(other), ModelError, f"{width} columns model 7")


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda text: text.replace("num_tree_per_iteration=1", "num_tree_per_iteration=3"), "several classes"),
        (lambda text: text.replace("label_index=0", "label_index=0\naverage_output"), "averages"),
        (lambda text: text.replace("is_linear=0", "is_linear=1"), "linear leaves"),
        (lambda text: text.replace("decision_type=2", "decision_type=1"), "categories"),
        (lambda text: text.replace("decision_type=2", "decision_type=6"), "zero_as_missing"),
        (lambda text: re.sub("left_child=[^ ]+", "left_child=0", text), "damaged"),
        (lambda text: text.replace("left_child=", "left="), "damaged left_child"),
        (lambda text: text.replace("leaf_value=", "leaf_value=nan "), "damaged"),
        (lambda text: text.replace("split_feature=", "split_feature=9 "), "damaged"),
        (lambda text: text.replace("threshold=", "threshold=-inf "), "damaged"),
        (lambda text: text.partition("\n\n")[0], "damaged"),
    ],
)
def test_models_that_greylag_cannot_have_are_refused(change, parts, tmp_path):
    text = grown(rounds=2).model_to_string()
    (tmp_path / "m.txt").write_text(change(text))
    assert change(text) != text
    refuses(lambda: RankingModel.load(tmp_path / "m.txt"), ModelError, f"m.txt {parts}")


def test_damaged_files_are_refused_or_score_finitely(tmp_path):
    text, rng = grown(rounds=2).model_to_string(), np.random.default_rng(0)
    text = text[: text.index("end of trees") + 20]
    for _ in range(400):
        words = re.split("([ =\n])", text)
        for place in rng.integers(len(words), size=2):
            words[place] = rng.choice(["", "-1", "0", "99999999999999999999", "1e999", "nan", "x", " ", "\n", "2 2"])
        (tmp_path / "m.txt").write_text("tree\n" + "".join(words)[5:])
        try:
            model = RankingModel.load(tmp_path / "m.txt")
        except ModelError:
            continue
        trees = model.features[0]
        assert np.isfinite(trees.scores(np.zeros((2, len(trees.features))))).all()
