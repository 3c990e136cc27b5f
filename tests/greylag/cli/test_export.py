"""``greylag export``."""

import json

import pytest

from greylag.features import parse_features
from greylag.rankers import RankingModel


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


def test_refusals(refused, model):
    assert "Missing argument" in refused("export", model)
    assert "absent.json" in refused("export", model.with_name("absent.json"), "solr")
