"""Trees in XGBoost's JSON: by hand, and against XGBoost's own margins and contributions.

Tests `greylag.features.learned.xgboost_trees`.
"""

import copy
import json

import numpy as np
import pytest

from greylag.base import ModelError, ParameterError
from greylag.features.learned.trees import Trees
from greylag.features.learned.xgboost_trees import largest_below
from greylag.learning import listed_run, read_letor
from greylag.rankers import ModelRanker, RankingModel, engine_model, explain
from tests.greylag.rankers.test_export import Vespa
from tests.refusals import refuses

RNG = np.random.default_rng(4)
X = RNG.normal(size=(400, 6)).round(1)
Y = np.digitize(X[:, 1] * X[:, 2] - X[:, 4], [0.3, 1.5])
GAPS = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
TINY = np.where(X > 0.5, 1e-36, np.where(X < -0.5, -1e-36, 0.0))  # 0 to LightGBM


def a_tree(**changes):
    """A value of feature 1 below 2 goes to 0.5; of the others, one of feature 0 that is below 3 or missing to -1."""
    return {
        "left_children": [1, -1, 3, -1, -1], "right_children": [2, -1, 4, -1, -1], "split_type": [0] * 5,
        "split_indices": [1, 0, 0, 0, 0], "split_conditions": [2.0, 0.5, 3.0, -1.0, 4.0],
        "default_left": [0, 0, 1, 0, 0], "loss_changes": [7.0, 0.0, 2.0, 0.0, 0.0],
        "sum_hessian": [10.0, 4.0, 6.0, 1.5, 4.5], "tree_param": {"size_leaf_vector": "1"}, **changes,
    }  # fmt: skip


def a_model(
    trees=(), *, kind="gbtree", objective="rank:ndcg", base_score="5E-1", feature_names=(), best_iteration=None,
    **parameters,
):  # fmt: skip
    model = {"gbtree_model_param": {"num_parallel_tree": "1"}, "trees": [*trees] or [a_tree()]}
    booster = {"name": kind, "model": model}
    if kind == "dart":
        booster = {"name": kind, "gbtree": {"model": model}, "weight_drop": [0.5] * len(model["trees"])}
    return {
        "learner": {
            "attributes": {"best_iteration": best_iteration}, "feature_names": [*feature_names],
            "gradient_booster": booster, "objective": {"name": objective},
            "learner_model_param": {"base_score": base_score, "num_class": "0", "num_feature": "2", **parameters},
        },
        "version": [2, 1, 0],
    }  # fmt: skip


@pytest.fixture
def load(tmp_path):
    def loaded(content):
        (tmp_path / "m.json").write_text(json.dumps(content))
        return RankingModel.load(tmp_path / "m.json")

    return loaded


ROWS = np.array([[9, 1.99], [9, 2], [2.9, 9], [np.nan, 9], [3, np.nan], [np.nan, np.nan], [0, 1.9999999999]])
LEAVES = np.array([0.5, 4, -1, -1, 4, -1, -1])  # the last is not below 2 in float32


def test_a_tree_by_hand(load):
    """The mean is (4 x .5 + 1.5 x -1 + 4.5 x 4) / 10."""
    model = load(a_model())
    (trees,) = model.features
    assert list(map(str, trees.features)) == ["column:f0", "column:f1"]
    assert trees.gains.tolist() == [2, 7]
    np.testing.assert_array_equal(trees.scores(ROWS), 0.5 + LEAVES)
    np.testing.assert_allclose(trees.contributions(ROWS)[:, -1], 0.5 + (2 - 1.5 + 18) / 10)
    # Missing values as 0: those of feature 1 go to the left.
    np.testing.assert_array_equal(model.missing_as_zero().features[0].scores(ROWS)[3:6], [-0.5, 1, 1])
    dart = load(a_model(kind="dart", objective="binary:logistic", base_score="[2.5E-1]"))
    np.testing.assert_allclose(dart.features[0].scores(ROWS), np.log(1 / 3) + LEAVES / 2)
    poisson = load(a_model(objective="count:poisson", base_score="2"))
    np.testing.assert_allclose(poisson.features[0].scores(ROWS), np.log(2) + LEAVES)


def test_thresholds_split_float64_where_float32_is_split():
    """Also halfway between two numbers of float32, which goes to the one with an even last bit."""
    limits = np.float32([2, 3.1, -0.7, 0, 1e-45, -1e-45, 1e-38, 1e38, *RNG.normal(size=200)])
    limits = np.concatenate([limits, np.nextafter(limits, np.float32(9))])
    below = largest_below(limits)
    assert (below.astype(np.float32) < limits).all()
    assert (np.nextafter(below, np.inf).astype(np.float32) >= limits).all()


def test_training_that_stopped_early_ends_with_the_best_round(load, caplog):
    model = a_model([a_tree(), a_tree(), a_tree()], best_iteration="1")
    assert load(model).features[0].scores(ROWS[:1]).tolist() == [1.5]
    assert "2 of 3 rounds are used" in caplog.text


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (a_model(kind="gblinear"), "gblinear gbtree"),
        (a_model(num_class="3"), "several classes rank:ndcg"),
        (a_model(num_target="2"), "several targets"),
        (a_model([a_tree(split_type=[0, 0, 1, 0, 0])]), "categories enable_categorical=False"),
        (a_model([a_tree(tree_param={"size_leaf_vector": "2"})]), "several targets"),
        (a_model([a_tree(left_children=[1, -1, 0, -1, -1])]), "damaged two parents"),
        (a_model([a_tree(left_children=[1, -1, 9, -1, -1])]), "damaged"),
        (a_model([a_tree(left_children=[1, -1, -1, -1, -1])]), "damaged one side"),
        (a_model([a_tree(split_indices=[-1, 0, 0, 0, 0])]), "damaged no feature"),
        (a_model([a_tree(split_indices=[1, 0, 0.5, 0, 0])]), "damaged no integer"),
        (a_model([a_tree(default_left=[0, 0, 2, 0, 0])]), "damaged default"),
        (a_model(best_iteration="-1"), "damaged round -1"),
        (a_model(feature_names=["a", "a"]), "damaged one name"),
        (a_model([a_tree(split_indices=[1, 0, 5, 0, 0])]), "damaged"),
        (a_model([a_tree(split_conditions=[2.0, None, 3.0, -1.0, 4.0])]), "damaged"),
        (a_model([a_tree(sum_hessian=[1.0])]), "damaged"),
        (a_model(base_score="x"), "damaged"),
        ({"learner": {}, "version": [2, 0, 0]}, "damaged learner_model_param"),
    ],
)
def test_models_that_greylag_cannot_have_are_refused(load, content, parts):
    refuses(lambda: load(content), ModelError, f"m.json {parts}")


def test_damaged_files_are_refused_or_score_finitely(load):
    rng = np.random.default_rng(0)
    for _ in range(200):
        content = copy.deepcopy(a_model())
        (tree,) = content["learner"]["gradient_booster"]["model"]["trees"]
        values = tree[rng.choice([*tree][:-1])]
        values[rng.integers(len(values))] = [-2, -1, 0, 1, 4, 5, 1e400, None, "2", 1e39][rng.integers(10)]
        try:
            (trees,) = load(content).features
        except ModelError:
            continue
        assert np.isfinite(trees.scores(ROWS)).all()


def test_ubjson_is_refused_by_name(tmp_path):
    (tmp_path / "m.ubj").write_bytes(b"{L\x00\x00\x00\x00\x00\x00\x00\x07learner{")
    refuses(lambda: RankingModel.load(tmp_path / "m.ubj"), ModelError, "UBJSON save_model")


def test_only_trees_that_split_tiny_values_are_not_lightgbms(load):
    """Also a split of values below 0 from others, which is between tiny ones."""
    lightgbm = pytest.importorskip("lightgbm", reason="needs LightGBM")
    for limit in (1e-36, -1e-36, 1e-45):
        model = load(a_model([a_tree(split_conditions=[limit, 0.5, 3.0, -1.0, 4.0])]))
        refuses(lambda model=model: engine_model(model, "lightgbm"), ParameterError, "XGBoost 1e-35 LightGBM 0")
    model = load(a_model([a_tree(split_conditions=[0.0, 0.5, 3.0, -1.0, 4.0])]))
    booster = lightgbm.Booster(model_str=engine_model(model, "lightgbm"))
    assert not Trees.from_lightgbm(booster.model_to_string()).of_xgboost
    rows = [[3, -1e-34], [3, 0], [2, 0], [np.nan, 1e-34], [np.nan, np.nan]]
    assert booster.predict(rows).tolist() == [1, 4.5, -0.5, -0.5, -0.5]
    refuses(lambda: RankingModel((), ()).missing_as_zero(), ModelError, "no trees")


def grown(values=X, rounds=15, labels=Y, **options):
    xgboost = pytest.importorskip("xgboost", reason="needs XGBoost")
    settings = {"objective": "rank:ndcg", "max_depth": 4, "nthread": 1, "base_score": 0.25, **options}
    data = xgboost.DMatrix(values, label=labels)
    if settings["objective"].startswith("rank"):
        data.set_group([20] * 20)
    return xgboost.train(settings, data, rounds)


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (X, {}),
        (GAPS, {}),
        (TINY, {}),
        (GAPS, {"booster": "dart", "rate_drop": 0.3, "objective": "rank:pairwise"}),
        (GAPS, {"num_parallel_tree": 3, "subsample": 0.5, "objective": "reg:squarederror"}),
        (GAPS, {"grow_policy": "lossguide", "max_depth": 0, "max_leaves": 30}),
        (GAPS, {"tree_method": "exact", "gamma": 3.0, "objective": "reg:squarederror"}),
        (X, {"gamma": 1e9}),  # a single leaf
        *((GAPS, {"objective": name}) for name in ("binary:logistic", "count:poisson", "reg:gamma", "survival:cox")),
    ],
)
def test_scores_and_contributions_are_xgboosts(values, options, tmp_path):
    """Margins, also at thresholds, as the values have one digit, and where they are missing."""
    labels = Y + 1.0 if options.get("objective") in ("reg:gamma", "survival:cox") else np.minimum(Y, 1)
    booster = grown(values, labels=labels, **options)
    booster.save_model(tmp_path / "m.json")
    model = RankingModel.load(tmp_path / "m.json")
    model.save(tmp_path / "own.json")
    trees = RankingModel.load(tmp_path / "own.json").features[0]
    used = [int(str(feature).removeprefix("column:f")) for feature in trees.features]
    matrix = pytest.importorskip("xgboost").DMatrix
    edges = np.vstack([np.nextafter(np.float32(X[:60]), np.float32(side)) for side in (-9, 9)]).astype(float)
    for rows in (values, GAPS, TINY, edges, X[:60] + 1e-9):
        expected = booster.predict(matrix(rows), output_margin=True)
        np.testing.assert_allclose(trees.scores(rows[:, used]), expected, rtol=2e-6, atol=2e-6)
        shares = booster.predict(matrix(rows), pred_contribs=True)
        np.testing.assert_allclose(trees.contributions(rows[:, used]), shares[:, [*used, -1]], rtol=1e-4, atol=1e-5)
    lightgbm = pytest.importorskip("lightgbm", reason="needs LightGBM")
    vespa = Vespa(engine_model(model, "vespa"))
    limits = {n: trees.threshold[trees.split == place] for place, n in enumerate(used)}
    last = np.column_stack([np.resize([*limits.get(n, ()), 0.5], 90) for n in range(6)])  # that goes to the left
    exact = np.concatenate([last, *(np.nextafter(last, side) for side in (-9, 9))])
    for rows in (values, GAPS, TINY, exact, edges):
        expected = booster.predict(matrix(rows), output_margin=True)
        scores = vespa.scores([f"f{n}" for n in range(6)], rows.tolist())
        np.testing.assert_array_equal(scores, trees.scores(rows[:, used]))
        np.testing.assert_allclose(scores, expected, rtol=2e-6, atol=2e-6)
    if values is TINY:
        refuses(lambda: engine_model(model, "lightgbm"), ParameterError, "XGBoost 1e-35 LightGBM 0")
        return
    written = lightgbm.Booster(model_str=engine_model(model, "lightgbm"))
    for every in (values, GAPS, exact, edges):
        rows = every[~((every != 0) & (np.abs(every) < 1e-34)).any(axis=1)]  # LightGBM reads these as 0
        expected = booster.predict(matrix(rows), output_margin=True)
        np.testing.assert_array_equal(written.predict(rows), trees.scores(rows[:, used]))
        np.testing.assert_allclose(written.predict(rows), expected, rtol=2e-6, atol=2e-6)
        shares = booster.predict(matrix(rows), pred_contribs=True)
        np.testing.assert_allclose(written.predict(rows, pred_contrib=True), shares, rtol=1e-4, atol=1e-5)


def test_a_file_of_xgboost_ranks_text_as_xgboost_reads_it(tmp_path):
    """What a line leaves out is missing; columns go by number, also where XGBoost's reader has a column 0 before."""
    xgboost = pytest.importorskip("xgboost", reason="needs XGBoost")
    lines = (
        f"{grade} qid:{row // 20} {' '.join(f'{n}:{x}' for n, x in enumerate(values, 1) if n > 2 or x > 0)} # d{row}\n"
        for row, (grade, values) in enumerate(zip(Y, X.tolist(), strict=True))
    )
    (tmp_path / "f.txt").write_text("".join(lines))
    read = np.where((np.arange(6) > 1) | (X > 0), X, np.nan)
    data = read_letor(tmp_path / "f.txt", absent=np.nan)
    np.testing.assert_array_equal(data.X, read)
    assert data.docids == tuple(f"d{row}" for row in range(400))
    for shift in (0, 1):
        booster = grown(np.column_stack([np.full((400, shift), np.nan), GAPS]))
        booster.save_model(tmp_path / "m.json")
        model = RankingModel.load(tmp_path / "m.json")
        assert np.isnan(model.absent)
        bound, listed = model.with_columns(data), listed_run(data, "rows")
        values = np.column_stack([np.full((400, shift), np.nan), read])
        expected = booster.predict(xgboost.DMatrix(values))
        np.testing.assert_allclose(ModelRanker(bound).scores(listed["3"]), expected[60:80], atol=1e-6)
        explained = explain(bound, None, listed["3"], "d66")
        assert explained.score == pytest.approx(expected[66], abs=1e-6)
        assert sum(share.contribution for share in explained.features) == pytest.approx(explained.score, abs=1e-12)
        zeros = booster.predict(xgboost.DMatrix(np.nan_to_num(values)))
        as_zero = ModelRanker(bound.missing_as_zero()).scores(listed["3"])
        np.testing.assert_allclose(as_zero, zeros[60:80], atol=1e-6)
        assert abs(zeros - expected).max() > 0.1


def test_engines_get_xgboosts_own_dump(tmp_path):
    """After the tree of one leaf, with the base score, that the dump leaves out."""
    booster = grown(GAPS, rounds=3)
    booster.save_model(tmp_path / "m.json")
    request = json.loads(engine_model(RankingModel.load(tmp_path / "m.json"), "opensearch"))
    (created,) = (entry for name, entry in request.items() if name.endswith("_createmodel"))
    first, *trees = created["model"]["model"]["definition"]
    assert first == {"nodeid": 0, "leaf": 0.25}

    def splits(node):
        if "leaf" in node:
            return [np.float32(node["leaf"])]
        left, right = node["children"]
        way = node["yes"] == left["nodeid"], node["missing"] == node["yes"]
        return [node["split"], np.float32(node["split_condition"]), way, *splits(left), *splits(right)]

    assert [splits(json.loads(tree)) for tree in booster.get_dump(dump_format="json")] == [*map(splits, trees)]
