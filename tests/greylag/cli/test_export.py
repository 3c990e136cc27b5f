"""``greylag export``."""

import json
import re

import numpy as np
import pytest

from greylag.features import parse_features
from greylag.rankers import RankingModel
from tests.greylag.features.learned.test_xgboost_trees import a_model


@pytest.fixture
def model(tmp_path):
    """A model that engines can compute."""
    RankingModel(parse_features("FI/term/BM25,score"), (2.0, 0.5)).save(tmp_path / "model.json")
    return tmp_path / "model.json"


def test_a_model_for_solr_and_for_vespa(command, model):
    code, out, err = command("export", model, "solr", "--text-field", "body")
    assert (code, err) == (0, "")
    store = json.loads(out)["PUT /solr/COLLECTION/schema/model-store"]
    assert store["params"]["weights"] == {"bm25": pytest.approx(3.8), "score": 0.5}
    assert "qf=body" in out
    code, out, _ = command("export", model, "vespa")
    assert code == 0
    assert out.startswith("rank-profile greylag inherits FIRST {\n")


def test_columns_that_lightgbm_named_have_the_files_names(command, refused, tmp_path):
    lightgbm = pytest.importorskip("lightgbm", reason="needs LightGBM")
    rows, settings = np.arange(40.0), {"objective": "regression", "min_data_in_leaf": 1, "verbosity": -1}
    values = np.column_stack([rows % 3, rows])
    lightgbm.train(settings, lightgbm.Dataset(values, label=rows > 9), 2).save_model(tmp_path / "trees.txt")
    (tmp_path / "f.txt").write_text("1 qid:1 1:0 2:1 # d 1=clicks 2=age\n")
    (tmp_path / "wide.txt").write_text("1 qid:1 1:0 4:1 # d\n")
    words = ["export", tmp_path / "trees.txt", "elasticsearch"]
    for more, names in (([], {"Column_0", "Column_1"}), (["--letor", tmp_path / "f.txt"], {"clicks", "age"})):
        code, out, err = command(*words, *more)
        assert (code, err, set(re.findall('"split": "(.*)"', out))) == (0, "", names)
    assert "wide.txt: the file has 4 columns, but the model 2" in refused(*words, "--letor", tmp_path / "wide.txt")


def test_trees_of_xgboost_rank_explain_and_are_exported(command, refused, tmp_path, model):
    """Of a value that a line leaves out, what is said and what is asked for."""
    trees, file, scores = tmp_path / "m.json", tmp_path / "f.txt", tmp_path / "s.scores"
    trees.write_text(json.dumps(a_model()))
    file.write_text("1 qid:1 1:9 2:1\n0 qid:1 1:9 2:3\n0 qid:1 2:3\n0 qid:1 1:5 # d\n0 qid:1 1:5 2:nan\n")
    words = ["rerank", "--letor", file, "--model", trees, "--out", scores]
    for more, expected, said in (([], [1, 4.5, -0.5, 4.5, 4.5], 1), (["--missing-as-zero"], [1, 4.5, -0.5, 1, 4.5], 0)):
        code, _, err = command(*words, *more)
        assert (code, [*map(float, scores.read_text().split())]) == (0, expected)
        assert err.count("3 of 10 values are nan or left out, and count as missing") == err.count("\n") == said
        _, told, _ = command("explain", trees, *words[1:3], "--qid", 1, "--docid", "d", "--format", "json", *more)
        assert "NaN" not in told  # which JSON has not
        assert json.loads(told)[0]["score"] == expected[3]
    assert "f1" in command("explain", trees)[1]
    assert "--missing-as-zero" in refused("export", trees, "solr")
    code, told, err = command("export", trees, "solr", "--missing-as-zero")
    assert (code, err, '"threshold": "1.99999' in told) == (0, "", True)
    assert "no trees" in refused("export", model, "solr", "--missing-as-zero")
    assert "needs --letor" in refused(f"rerank --run RUN --model {trees} --missing-as-zero --out TMP/x")


def test_refusals(refused, model):
    assert "Missing argument" in refused("export", model)
    assert "absent.json" in refused("export", model.with_name("absent.json"), "solr")
