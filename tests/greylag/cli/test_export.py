"""``greylag export``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from greylag.features import parse_features
from greylag.rankers import RankingModel
from tests.greylag.cli.conftest import Command, Refused


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that engines can compute."""
    RankingModel(parse_features("FI/term/BM25,score"), (2.0, 0.5)).save(tmp_path / "model.json")
    return tmp_path / "model.json"


def test_a_model_for_solr_and_for_vespa(command: Command, model: Path) -> None:
    code, out, err = command("export", model, "solr", "--text-field", "body")
    assert (code, err) == (0, "")
    store = json.loads(out)["PUT /solr/COLLECTION/schema/model-store"]
    assert store["params"]["weights"] == {"bm25": pytest.approx(3.8), "score": 0.5}
    assert "qf=body" in out
    code, out, _ = command("export", model, "vespa")
    assert code == 0
    assert out.startswith("rank-profile greylag inherits FIRST {\n")


def test_mistakes(refused: Refused, model: Path, tmp_path: Path) -> None:
    assert "Missing argument" in refused("export", model)
    assert "unknown engine 'lucene': " in refused("export", model, "lucene")
    assert "absent.json" in refused("export", tmp_path / "absent.json", "solr")
    RankingModel(parse_features("latent,score@z"), (2.0, 0.5)).save(tmp_path / "other.json")
    message = refused("export", tmp_path / "other.json", "opensearch")
    assert "2 of the model's 2 features: latent: " in message
    assert "score@z: engines score a document without the others" in message
