"""Linear models for search engines, against Lucene's scores and the forms that the engines' parsers take."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from greylag import LuceneIndex, ModelRanker, PositionalIndex, build_index
from greylag.base import ParameterError, Query
from greylag.features import parse_features
from greylag.features.column import Column
from greylag.features.learned.trees import LEAF, Trees
from greylag.features.weighting import FeatureParameters
from greylag.index.analysis import QueryForm
from greylag.rankers import RankingModel, engine_model
from greylag.rankers.export import ENGINES
from tests.refusals import refuses

FEATURES = parse_features("FI/term/BM25,score,prior:data/page-rank.tsv:0.5")
MODEL = RankingModel(FEATURES, (1.5, 0.25, -2.0), collection={"average_length": 58.25})
SET, CREATE = "POST /_ltr/_featureset/greylag", "POST /_ltr/_featureset/greylag/_createmodel"
RNG = np.random.default_rng(0)
WORDS = "heat flow wing boundary layer cat sat dog ran geese".split()
TEXTS = {f"d{n:02d}": " ".join(RNG.choice(WORDS, RNG.integers(1, 23))) for n in range(60)}
QUERIES = "heat flow", "wing wing boundary", "cats and dogs", "goose"


@pytest.mark.parametrize("engine", ["opensearch", "elasticsearch"])
def test_the_plugins_of_opensearch_and_elasticsearch(engine):
    """The keys are those that StoredFeature, StoredFeatureSet, StoredLtrModel and LinearRankerParser read."""
    requests = json.loads(engine_model(MODEL, engine, "text"))
    body = requests[SET]["featureset"]
    assert body.keys() == {"name", "features"}
    for feature in body["features"]:
        assert feature.keys() == {"name", "params", "template_language", "template"}
    named = {feature["name"]: feature for feature in body["features"]}
    assert named["bm25"]["template"] == {"match": {"text": {"query": "{{keywords}}"}}}
    assert named["page_rank"]["template"]["function_score"] == {
        "field_value_factor": {"field": "page_rank", "missing": 0.5},
        "boost_mode": "replace",
    }
    model = requests[CREATE]["model"]["model"]
    assert model["type"] == "model/linear"
    # LinearRankerParser: a number for each name, which the set has.
    assert model["definition"].keys() == named.keys()
    factor = {"opensearch": 1.9, "elasticsearch": 1.0}[engine]
    assert model["definition"] == {"bm25": pytest.approx(1.5 * factor), "page_rank": -2.0}
    rescore = requests["GET /INDEX/_search"]["rescore"]["query"]
    assert (rescore["query_weight"], rescore["rescore_query_weight"]) == (0.25, 1.0)
    assert requests["PUT /INDEX"]["settings"]["index"]["similarity"]["greylag"] == {"type": "BM25", "k1": 0.9, "b": 0.4}


def test_solr():
    requests = json.loads(engine_model(MODEL, "solr"))
    features = requests["PUT /solr/COLLECTION/schema/feature-store"]
    model = requests["PUT /solr/COLLECTION/schema/model-store"]
    assert [feature["class"].rpartition(".")[2] for feature in features] == [
        "SolrFeature",
        "OriginalScoreFeature",
        "SolrFeature",
    ]
    # LinearModel: a weight for each of its features, which the store has.
    names = [feature["name"] for feature in features]
    assert [feature["name"] for feature in model["features"]] == names == [*model["params"]["weights"]]
    assert model["params"]["weights"] == {"bm25": pytest.approx(1.5 * 1.9), "score": 0.25, "page_rank": -2.0}
    assert {feature["store"] for feature in features} == {model["store"]} == {"greylag"}
    logged = RankingModel(parse_features("prior:a.tsv:log:0.1"), (1.0,))
    (feature,) = json.loads(engine_model(logged, "solr"))["PUT /solr/COLLECTION/schema/feature-store"]
    assert feature["params"]["q"] == "{!func}ln(def(a,0.1))"


def test_vespa():
    lines = [line.strip() for line in engine_model(MODEL, "vespa").splitlines()]
    assert lines == [
        "rank-profile greylag inherits FIRST {",
        "rank-properties {",
        "bm25(contents).k1: 0.9",
        "bm25(contents).b: 0.4",
        "bm25(contents).averageFieldLength: 58.25",
        "}",
        "second-phase {",
        "expression {",
        "1.5 * bm25(contents) +",
        "0.25 * firstPhase +",
        "-2.0 * if (isNan(attribute(page_rank)) == 1, 0.5, attribute(page_rank))",
        "}",
        "}",
        "}",
    ]
    alone = engine_model(RankingModel(FEATURES[:1], (1.0,)), "vespa")
    assert "first-phase" in alone
    assert "inherits" not in alone
    assert alone.count("{") == alone.count("}")


def test_logged_features_are_those_that_the_engine_has():
    model = RankingModel((Column("title_bm25"), Column("age")), (0.5, 2.0))
    for engine in ("opensearch", "elasticsearch"):
        requests = json.loads(engine_model(model, engine))
        assert requests.keys() == {"GET /INDEX/_search", "POST /_ltr/_featureset/SET/_createmodel"}
        (created,) = (body for name, body in requests.items() if name.startswith("POST"))
        assert created["model"]["model"]["definition"] == {"title_bm25": 0.5, "age": 2.0}
    requests = json.loads(engine_model(model, "solr"))
    assert [name for name in requests if name.startswith("PUT")] == ["PUT /solr/COLLECTION/schema/model-store"]
    assert "0.5 * title_bm25 +" in engine_model(model, "vespa")


def model_of(spelling, *weights, **options):
    features = parse_features(spelling)
    return RankingModel(features, weights or (1.0,) * len(features), **options)


@pytest.mark.parametrize(
    ("feature", "reason"),
    [
        ("FI/term/BM25@z", "normalised"),
        ("score@minmax", "normalised"),
        ("FI/term/LM", "leave out the terms"),
        ("SD/ordered/BM25-O-1", "the idf of its terms"),
        ("FD/unordered/BM25-U-4", "the idf of its terms"),
        ("FI/expansion/BM25", "relevance model"),
        ("FI/term/early", "behind the engine"),
        ("FI/term/BM25-F-10", "behind the engine"),
        ("written:words", "behind the engine"),
        ("python:mine", "behind the engine"),
        ("reciprocal-rank", "no ranks"),
        ("run:a.run", "log the value there"),
        ("vectors:(documents=a.npz,queries=b.npz)", "log the value there"),
        ("prior:a.tsv", "name one"),
        # Solr's functions would take def(39,0.5) as the number 39.
        ("prior:39.tsv:0.5", "begins with a letter"),
        ("prior:3d.tsv:0.5", "begins with a letter"),
    ],
)
def test_all_others_are_refused_by_name(feature, reason):
    for engine in ENGINES:
        with pytest.raises(ParameterError) as error:
            engine_model(model_of(f"FI/term/BM25,{feature}"), engine)
        first, _, why = str(error.value).partition(f": {feature}: ")
        assert (first, reason in why) == (f"{engine} has no same value for 1 of the model's 2 features", True)


def test_each_reason_is_given_once_with_three_of_its_features():
    names = [f"FI/term/BM25@{kind}" for kind in ("z", "minmax", "rank")]
    with pytest.raises(ParameterError) as error:
        engine_model(model_of(",".join(["FI/term/BM25", *names, "score@z", "latent"])), "solr")
    assert f"5 of the model's 6 features: {', '.join(names)}, 1 more: " in str(error.value)
    assert str(error.value).count("over which it is normalised") == 1


# Vespa would read these as numbers, differences, or the end of the profile: every document would have one score.
BEYOND_VESPA = ("39", "click-rate", "a+b", "if", "x}", "2nd", "bm25(title", "f(a))", "a;b", "é")


@pytest.mark.parametrize(
    ("model", "engine", "parts"),
    [
        (MODEL, "lucene", "'lucene' opensearch"),
        (MODEL, "solr/a b", "'a b' field"),
        *((RankingModel((Column(name),), (0.5,)), "vespa", f"column:{name}:") for name in BEYOND_VESPA),
        (model_of("score", query_form=QueryForm(first_sentence=True)), "solr", "shortened"),
        (model_of("FI/term/BM25", parameters=FeatureParameters(idf="robertson")), "solr", "lucene, robertson"),
        (model_of("FI/term/BM25,SD/term/BM25"), "solr", "both bm25"),
        (model_of("latent,FI/term/LM"), "vespa", "2 latent: FI/term/LM:"),
        (model_of("FI/term/BM25", 1.7e308), "opensearch", "1.7e+308 1.9 finite"),
        *((model_of(f"prior:a.tsv:{form}"), engine, "below 0")
          for engine in ("opensearch", "elasticsearch") for form in ("-1", "log:0.1")),
    ],
)  # fmt: skip
def test_refusals(model, engine, parts):
    refuses(lambda: engine_model(model, *engine.split("/")), ParameterError, parts)


def test_what_one_engine_refuses_another_takes():
    for form in ("-1", "log:0.1"):
        assert engine_model(model_of(f"prior:a.tsv:{form}"), "solr")
    elastic = json.loads(engine_model(model_of("FI/term/BM25", 1.7e308), "elasticsearch"))
    assert elastic[CREATE]["model"]["model"]["definition"] == {"bm25": 1.7e308}


@pytest.fixture(scope="module")
def lucene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engines")
    lines = [json.dumps({"id": docid, "contents": text}) for docid, text in TEXTS.items()]
    (folder / "docs.jsonl").write_text("\n".join(lines))
    build_index(folder / "docs.jsonl", folder / "index")
    return LuceneIndex(folder / "index")


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.2, 0.75), (0.0, 0.0)])
def test_lucenes_scores_times_the_weight_are_the_models(lucene, k1, b):
    """Of documents below 24 tokens, whose lengths Lucene keeps; OpenSearch 3 and Solr score by its BM25Similarity."""
    model = RankingModel(parse_features("FI/term/BM25"), (0.7,), FeatureParameters(k1=k1, b=b))
    weight = json.loads(engine_model(model, "opensearch"))[CREATE]["model"]["model"]["definition"]["bm25"]
    ranker = ModelRanker(model, PositionalIndex.from_lucene(lucene), transfer=True)
    for text in QUERIES:
        ranking = lucene.bm25(len(TEXTS), k1=k1, b=b)(Query("q", text))
        assert len(ranking) > 5 or text == "goose"
        np.testing.assert_allclose(weight * ranking.scores, ranker.scores(ranking), rtol=2e-6)


def test_vespas_formula_is_the_features(lucene):
    """Sum of idf tf (k1 + 1) / (tf + k1 (1 - b + b |D| / averageFieldLength)), by hand."""
    index = PositionalIndex.from_lucene(lucene)
    model = RankingModel(parse_features("FI/term/BM25"), (0.7,)).for_collection(index)
    profile = engine_model(model, "vespa")
    value = {name: float(number) for name, number in re.findall(r"\)\.(\w+): (\S+)", profile)}
    (weight,) = map(float, re.findall(r"(\S+) \* bm25", profile))
    ranking = lucene.bm25(len(TEXTS))(Query("q", "wing wing flow"))
    expected = []
    for docid in ranking.docids:
        tokens, total = TEXTS[docid].split(), 0.0
        for term in ("wing", "wing", "flow"):
            df = sum(term in text.split() for text in TEXTS.values())
            idf, tf = np.log(1 + (len(TEXTS) - df + 0.5) / (df + 0.5)), tokens.count(term)
            norm = 1 - value["b"] + value["b"] * len(tokens) / value["averageFieldLength"]
            total += idf * tf * (value["k1"] + 1) / (tf + value["k1"] * norm)
        expected.append(weight * total)
    np.testing.assert_allclose(ModelRanker(model, index).scores(ranking), expected, rtol=1e-12)


def test_names_of_rank_features_stand_in_vespas_expression():
    for name in ("clicks", "attribute(age)", "fieldMatch(title).proximity", "closeness(field,e)", "_x1"):
        assert f"            0.5 * {name}\n" in engine_model(RankingModel((Column(name),), (0.5,)), "vespa")


def test_numbered_columns_are_names_in_json():
    requests = json.loads(engine_model(RankingModel((Column("39"), Column("click-rate")), (0.5, 2.0)), "solr"))
    assert requests["PUT /solr/COLLECTION/schema/model-store"]["params"] == {"weights": {"39": 0.5, "click-rate": 2.0}}


class Vespa:
    """A rank profile of trees as Vespa evaluates it: by operators of float64, of which none is true of NaN.

    From Vespa's grammar (RankingExpressionParser.jj) and If, Less, ... of its C++ (operator_nodes), which takes trees
    that split by ``<`` for a forest of float32 (VMForest).
    """

    def __init__(self, profile):
        functions = dict(re.findall(r"function (\w+)\(\) \{\n +expression: (.+)\n +\}", profile))
        (body,) = re.findall(r"-phase \{\n +expression \{\n([^}]+)\}", profile)
        assert [*functions] == [part.strip() for part in body.split(" +\n")]
        assert not re.search(r" < | >= |!", "".join(functions.values()))
        self.trees = [compile(text.replace("if (", "choose("), "tree", "eval") for text in functions.values()]

    def scores(self, names, rows):
        known = {"choose": lambda condition, one, other: one if condition else other}
        return [sum(eval(tree, known | dict(zip(names, row, strict=True))) for tree in self.trees) for row in rows]


class SolrTrees:
    """Trees as Solr scores them: MultipleAdditiveTreesModel (1a87471), in float32, 0 for a feature without a value."""

    def __init__(self, model):
        assert model["class"].endswith(".MultipleAdditiveTreesModel")
        self.trees, self.names = model["params"]["trees"], [feature["name"] for feature in model["features"]]

    def score(self, values):
        total = np.float32(0)
        for tree in self.trees:
            node = tree["root"]
            while "feature" in node:
                assert node["feature"] in self.names
                limit = np.float32(node["threshold"]) + np.float32(1e-6)
                node = node["left" if np.float32(values.get(node["feature"], 0.0)) <= limit else "right"]
            total += np.float32(tree["weight"]) * np.float32(node["value"])
        return float(total)


class Plugin:
    """Trees as the plugins for Learning to Rank parse and score them: XGBoostJsonParser, NaiveAdditiveDecisionTree.

    From the sources of OpenSearch's plugin (af2d983, of 3.8) and that of o19s (1dfed57, 1.5.12). A feature without a
    value is 0 before 3.2 and 1.5.9, goes right in OpenSearch 3.2 to 3.7, and to ``missing`` since 3.8 and 1.5.9.
    """

    def __init__(self, trees, names):
        self.names, self.trees = names, trees
        for tree in trees:
            self.check(tree)

    def check(self, node):
        if "leaf" in node:
            assert node.keys() == {"nodeid", "leaf"}  # the parser refuses keys that it does not know
            return
        assert [*node] == "nodeid depth split split_condition yes no missing children".split()
        assert [node["yes"], node["no"]] == [child["nodeid"] for child in node["children"]]
        assert node["missing"] in (node["yes"], node["no"])
        assert node["split"] in self.names
        for child in node["children"]:
            self.check(child)

    def score(self, values, absent="missing"):
        total = np.float32(0)
        for tree in self.trees:
            node = tree
            while "leaf" not in node:
                value = values.get(node["split"], 0.0 if absent == "zero" else None)
                if value is None:
                    left = absent == "missing" and node["missing"] == node["yes"]
                else:
                    left = np.float32(node["split_condition"]) > np.float32(value)
                node = node["children"][0 if left else 1]
            total += np.float32(node["leaf"])
        return float(total)


def test_trees_score_in_the_plugins_as_in_greylag(caplog):
    """Also at each threshold and the numbers of float32 beside it, and where documents lack features."""
    lightgbm = pytest.importorskip("lightgbm", reason="needs LightGBM")
    rng = np.random.default_rng(0)
    values = rng.normal(size=(600, 4)).astype(np.float32).astype(str).astype(np.float64)
    values[:, 3] = np.round(values[:, 3], 2)  # so that thresholds are values, too
    values[:, 1] = np.round(values[:, 1], 1) * (rng.random(600) < 0.5)
    grades = np.digitize(values[:, 0] * values[:, 1] + values[:, 2], [0.4, 1.5])
    names, gaps = ["title_bm25", "price", "clicks", "age"], np.where(rng.random(values.shape) < 0.2, np.nan, values)
    settings = {"objective": "lambdarank", "num_leaves": 9, "min_data_in_leaf": 5, "verbosity": -1, "num_threads": 1}
    told = np.where((grades > 0)[:, None] & (np.arange(4) == 1), np.nan, gaps)  # a split of it from all others
    for learned, trained in ((values, "zeros"), (gaps, "gaps"), (told, "gaps")):
        groups = lightgbm.Dataset(learned, label=grades, group=[30] * 20, feature_name=names, params=settings)
        booster = lightgbm.train(settings, groups, 40)
        assert ("threshold=inf" in booster.model_to_string()) == (learned is told)
        trees = Trees.from_lightgbm(booster.model_to_string())
        model = RankingModel((trees,), (2.0,), provenance={"columns": names})
        for engine in ("opensearch", "elasticsearch"):
            caplog.clear()
            requests = json.loads(engine_model(model, engine))
            assert requests.keys() == {"GET /INDEX/_search", "POST /_ltr/_featureset/SET/_createmodel"}
            created = requests["POST /_ltr/_featureset/SET/_createmodel"]["model"]["model"]
            assert created["type"] == "model/xgboost+json"
            assert requests["GET /INDEX/_search"]["rescore"]["query"]["query_weight"] == 0
            assert ("OpenSearch 3.2 to 3.7" in caplog.text) == (engine == "opensearch")
        plugin = Plugin(created["definition"], names)
        limits = {name: trees.threshold[trees.split == place] for place, name in enumerate(names)}
        rows = [*values]
        for place, name in enumerate(names):
            usual = (np.abs(limits[name]) > 1e-34) & (limits[name] < 1e38)  # LightGBM reads values below as 0
            for limit in limits[name][usual][:40]:
                near = np.float32(limit)
                for one in (np.nextafter(near, np.float32(-9)), near, np.nextafter(near, np.float32(9))):
                    rows.append(values[0].copy())
                    rows[-1][place] = float(str(one))  # as it is logged
        rows = np.array(rows)
        expected = 2 * booster.predict(rows)
        scores = [plugin.score(dict(zip(names, row, strict=True))) for row in rows.tolist()]
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=2e-5)
        solr = SolrTrees(json.loads(engine_model(model.missing_as_zero(), "solr"))[STORED])
        np.testing.assert_allclose(
            [solr.score(dict(zip(names, row, strict=True))) for row in values.tolist()],
            2 * booster.predict(values), rtol=1e-4, atol=2e-5,
        )  # fmt: skip
        if trained == "gaps":
            refuses(lambda model=model: engine_model(model, "solr"), ParameterError, "--missing-as-zero")
        present = rng.random(values.shape) < 0.6
        lacking = [
            {name: v for name, v, has in zip(names, row, kept, strict=True) if has}
            for row, kept in zip(values.tolist(), present, strict=True)
        ]
        absent = 0.0 if trained == "zeros" else np.nan
        expected = 2 * booster.predict(np.where(present, values, absent))
        np.testing.assert_allclose([*map(plugin.score, lacking)], expected, rtol=1e-4, atol=2e-5)
        before = [plugin.score(row, absent="zero") for row in lacking]
        assert np.allclose(before, expected, rtol=1e-4, atol=2e-5) == (trained == "zeros")
        right = [plugin.score(row, absent="right") for row in lacking]
        assert not np.allclose(right, expected, rtol=1e-4, atol=2e-5), "what the warning is for"


STORED = "PUT /solr/COLLECTION/schema/model-store"


def stump(spelling, threshold, weight=1.0, decision=2):
    """A tree of one split by a feature, as a model."""
    integers = [
        np.array(values) for values in ([0], [0, LEAF, LEAF], [1, 0, 0], [2, 0, 0], [9, 4, 5], [decision, 0, 0])
    ]
    roots, split, left, right, counts, decision = integers
    numbers = np.array([threshold, 0, 0]), np.array([0.0, -0.5, 0.75])
    arrays = split, numbers[0], left, right, numbers[1], np.array([1.0]), counts, decision
    return RankingModel((Trees(parse_features(spelling), FeatureParameters(), roots, *arrays),), (weight,))


@pytest.mark.parametrize(
    "threshold", [3.8, -0.3, -1.0, 1e-7, 9.99999997e-07, 1e-6, -1e-6, 0.0, 2.5e-9, 1e30, -7.25e-4, 123456.789]
)
def test_solrs_slack_is_taken_off_the_threshold(threshold):
    """No float32 above the threshold goes to the left, and of those up to it at most the last two to the right."""
    solr = SolrTrees(json.loads(engine_model(stump("column:a", threshold), "solr"))[STORED])
    values, near = [], np.float32(threshold)
    for side in (9e37, -9e37):
        values.append(near)
        for _ in range(4):
            values.append(np.nextafter(values[-1], np.float32(side)))
    slack = max(2 * np.spacing(abs(near)), 2e-13)
    for value in map(float, values):
        left = solr.score({"a": value}) == -0.5
        if float(str(np.float32(value))) > threshold:
            assert not left
        elif value < threshold - slack:
            assert left
    assert solr.score({"a": threshold - 1e-5 * (1 + abs(threshold))}) == -0.5
    assert solr.score({"a": threshold + 1e-5 * (1 + abs(threshold))}) == 0.75


def test_trees_over_features_that_engines_compute():
    (tree,) = json.loads(engine_model(stump("score", 1.5), "solr"))[STORED]["params"]["trees"]
    assert (tree["root"]["feature"], tree["root"]["right"]) == ("score", {"value": "0.75"})
    assert "expression: if (firstPhase <= -1.5, -0.5, 0.75)\n" in engine_model(stump("score", -1.5), "vespa")
    profile = engine_model(stump("prior:a.tsv:0.5", 3.8), "vespa")
    assert "if (if (isNan(attribute(a)) == 1, 0.5, attribute(a)) > 3.8, 0.75, -0.5)" in profile, "left, as 0"
    requests = json.loads(engine_model(stump("FI/term/BM25", 3.8), "opensearch"))
    (tree,) = requests[CREATE]["model"]["model"]["definition"]
    assert tree["split"] == "bm25"
    assert tree["split_condition"] == np.nextafter(np.float32(2), np.float32(3)), "3.8 / (k1 + 1), and what is equal"
    assert tree["missing"] == 1, "as a score of 0"
    assert [feature["name"] for feature in requests[SET]["featureset"]["features"]] == ["bm25"]
    (tree,) = json.loads(engine_model(stump("column:9", 1e300), "elasticsearch"))[
        "POST /_ltr/_featureset/SET/_createmodel"
    ]["model"]["model"]["definition"]
    assert tree["split_condition"] == np.finfo(np.float32).max, "JSON has no infinity"


@pytest.mark.parametrize(
    ("model", "engine", "parts"),
    [
        (stump("score", 1.0), "opensearch", "score: cannot split"),
        (stump("FI/term/BM25@z", 1.0), "elasticsearch", "normalised"),
        (stump("column:1", 1.0, decision=8), "solr", "0 missing --missing-as-zero"),
        (stump("column:a+b", 1.0), "vespa", "column:a+b:"),
        (MODEL, "lightgbm", "linear"),
        (RankingModel((*stump("column:1", 1.0).features, *FEATURES), (1.0,) * 4), "lightgbm", "other features"),
    ],
)
def test_refusals_of_trees(model, engine, parts):
    refuses(lambda: engine_model(model, engine), ParameterError, parts)


@pytest.mark.parametrize("engine", ["opensearch", "solr"])
def test_a_tree_that_is_too_deep_for_json_is_refused(engine):
    inner, leaf = np.arange(2000) < 1000, np.zeros(2000, dtype=int)
    split, left, right = np.where(inner, 0, LEAF), leaf.copy(), leaf.copy()
    left[:1000] = np.arange(1000, 2000)
    right[:1000] = [*range(1, 1000), 1999]
    arrays = split, leaf * 0.5, left, right, leaf + 0.5, np.array([1.0]), leaf + 1, np.where(inner, 2, 0)
    trees = Trees(parse_features("column:1"), FeatureParameters(), np.array([0]), *arrays)
    refuses(lambda: engine_model(RankingModel((trees,), (1.0,)), engine), ParameterError, "max_depth")


def test_lightgbms_text_has_the_files_columns_and_the_models_weight():
    lightgbm = pytest.importorskip("lightgbm", reason="needs LightGBM")
    model = replace(stump("column:clicks", 3.0, weight=-2.0), provenance={"columns": ["age", "clicks"]})
    booster = lightgbm.Booster(model_str=engine_model(model, "lightgbm"))
    assert booster.feature_name() == ["age", "clicks"]
    assert booster.predict([[0.0, 3.0], [9.0, 3.1]]).tolist() == [1.0, -1.5]
