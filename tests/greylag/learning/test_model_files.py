"""Model files: kind, schema, entries and malformed content; odd values at any place are in `tests/robustness`."""

import json
import os
from pathlib import Path

import pytest

from greylag.base import ModelError
from greylag.cli.model_inputs import load_model
from greylag.features.spelling import parse_features
from greylag.index import PositionalIndex
from greylag.learning.model_files import check_collection
from greylag.rankers.model import RankingModel
from tests.refusals import refuses

GONE = object()
"""In place of a value, that its entry is deleted."""
MODEL = RankingModel(parse_features("score"), (1.0,))
CONTENT = json.loads(MODEL.as_json())
FUSED = parse_features("fused:combsum(a),fused:rrf(a,b)")
TRANSLATION = {"mu": 1.0, "own": 0.5, "table": {"a": {"b": 0.5}}}


def test_round_trip(tmp_path):
    for name in ("model.json", "model.json.gz"):
        MODEL.save(tmp_path / name)
        assert RankingModel.load(tmp_path / name) == MODEL
    assert RankingModel(FUSED, (1.0, 2.0), runs=("a", "b")).runs == ("a", "b")


def text_of(**change):
    return json.dumps({key: value for key, value in {**CONTENT, **change}.items() if value is not GONE})


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (text_of(kind="other"), "'other' `greylag train`"),
        (text_of(schema=4), "schema 4 1 again"),
        (text_of(schema=None), "schema None"),
        (text_of(fingerprint=None), "fingerprint None string"),
        (text_of(provenance=[]), "provenance []"),
        (
            text_of(features=[{"feature": "score", "weight": "1", "training_score": None}]),
            "features.0.weight '1' number",
        ),
        (text_of(collection={"tokens": True}), "collection.tokens True"),
        (text_of(collection={"tokens": 10**400}), "collection.tokens 1000"),
        (text_of(features=[{"feature": "SD/what/LM", "weight": 1.0, "training_score": None}]), "cliques 'what'"),
        (text_of(features=[{"feature": "score", "weight": float("nan"), "training_score": None}]), "finite"),
        (text_of(provenance={"queries": ["1"], "note": float("nan")}), "note"),
        (text_of(query_form={"first_sentence": 1}), "needs first_sentence stop_words"),
        (text_of(query_form=[]), "dictionary"),
        (text_of(parameters={"nu": 1.0}), "'nu' unknown"),
        (text_of(parameters={"profile": "zettair"}), "profile 'zettair' indri, galago, inquery"),
        (text_of(parameters={"mu": -1.0}), "mu -1"),
        (text_of(learned={"trees:0123456789ab": TRANSLATION}), "'trees:0123456789ab' lacks"),
        *((text_of(**{name: GONE}), f"lacks '{name}'") for name in ("features", "fingerprint", "provenance")),
        ("[" * 100_000, "JSON"),
        ("1" * 5000, "JSON limit"),
        ("{", "JSON property"),
        ('{"learner": {}, "version": [2, 0, 0]}', "XGBoost's damaged"),
        ("[]", "not linear"),
        ("7", "not linear"),
        ("", "empty"),
        (text_of()[:-1] + ', "schema": 1}', "duplicate 'schema'"),
    ],
)
def test_damaged_files(tmp_path, text, parts):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(ModelError) as refused:
        RankingModel.load(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert [part for part in parts.split() if part not in message] == []
    assert (len(message) < len(str(path)) + 400, "\n" in message) == (True, False)


def test_a_model_is_for_its_collection():
    index = PositionalIndex.from_texts({"1": "goose"})
    check_collection("", index, transfer=False)
    check_collection(index.fingerprint, index, transfer=False)
    check_collection("other", index, transfer=True)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: check_collection("other", PositionalIndex.from_texts({}), transfer=False), "collection --transfer"),
        (lambda: RankingModel(FUSED, (1.0, 2.0), runs=("a", "c")), "fused:rrf(a,b) a, c"),
        (lambda: RankingModel(MODEL.features, (1.0,), runs=("a", "b")), "score a, b"),
        (lambda: load_model(Path(__file__), {}), "not model"),
    ],
)
def test_refusals(call, parts):
    refuses(call, ModelError, parts)


def test_a_model_is_read_from_a_pipe(tmp_path):
    MODEL.save(tmp_path / "model.json")
    reader, writer = os.pipe()
    os.write(writer, (tmp_path / "model.json").read_bytes())
    os.close(writer)
    assert load_model(Path(f"/dev/fd/{reader}"), {}) == MODEL
    os.close(reader)
