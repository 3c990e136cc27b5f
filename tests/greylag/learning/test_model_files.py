"""Model files: kind, schema, entries and malformed content."""

import json
import os
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import TypedDict

from greylag.cli.model_inputs import load_model
from greylag.diversity.coverage_model import CoverageFeatures
from greylag.diversity.model import DiversityModel
from greylag.errors import ModelError, ParameterError
from greylag.features.spelling import parse_features
from greylag.index import PositionalIndex
from greylag.index.analysis import QueryForm
from greylag.learning.model_files import Provenance, SavedModel, check_collection
from greylag.rankers.model import RankingModel

CONTENT = {"weight": 1.5, "fingerprint": "f", "provenance": {"queries": ["1"], "mine": [None]}}

GONE = object()
"""In place of a value, that its entry is deleted."""


class Layout(TypedDict):
    weight: float
    fingerprint: str
    provenance: Provenance


@dataclass(frozen=True)
class Weight(SavedModel):
    """A model of one weight."""

    kind = "kind"
    schema = 3
    command = "greylag train"
    layout = Layout

    content: dict[str, Any]

    def as_dict(self):
        return self.content

    @classmethod
    def from_dict(cls, content):
        if content["weight"] < 0:
            raise ParameterError(f"weight is {content['weight']}")
        return cls({name: content[name] for name in CONTENT})


def test_round_trip(tmp_path):
    for name in ("model.json", "model.json.gz"):
        Weight(CONTENT).save(tmp_path / name)
        assert Weight.load(tmp_path / name) == Weight(CONTENT)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "other"}, "not a kind, but .other.; train one with `greylag train`"),
        ({"schema": 4}, "schema 4, but this version reads 3: train it again"),
        ({"schema": None}, "schema None, but"),
        ({"fingerprint": None}, "fingerprint is None: input should be a valid string"),
        ({"provenance": []}, r"provenance is \[\]"),
        ({"weight": "1"}, "weight is '1': input should be a valid number"),
        ({"weight": True}, "weight is True"),
        ({"weight": 10**400}, "weight is 1000"),
        ({"weight": -1}, "weight is -1"),
        *(({name: GONE}, f"the model lacks '{name}'") for name in CONTENT),
    ],
)
def test_entries_are_checked(tmp_path, change, message):
    Weight({key: value for key, value in {**CONTENT, **change}.items() if value is not GONE}).save(
        tmp_path / "model.json"
    )
    with pytest.raises(ModelError, match=message):
        Weight.load(tmp_path / "model.json")


ODD = (
    None, True, -1, 0, 3, 10**400, 1e308, float("nan"), float("inf"), "", "x\ny", [], [[]], [None, 1], {}, {"a": 1},
    {"documents": "x"}, [{"feature": 1}], {"first_sentence": 1},
)  # fmt: skip


def places(content, at=()):
    """Where values are in JSON."""
    yield at
    pairs = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in pairs:
        yield from places(value, (*at, key))


def outcome(kind, path):
    """The message of the error, or None if a file is read and can be used."""
    try:
        model = kind.load(path)
    except ModelError as error:
        return str(error)
    model.summary()
    set(model.provenance.get("queries", ()))
    return None


@pytest.mark.parametrize(
    "model",
    [
        RankingModel(
            parse_features("FI/term/LM,score@z"), (1.0, -0.5), training_scores=(0.2, 0.3), objective="AP",
            query_form=QueryForm(True, frozenset({"what"})), collection={"documents": 9.0, "tokens": 90.0},
            provenance={
                "learner": "x", "baseline": "BM25", "tuned": ["k1"], "training_score": 0.25, "queries": ["1"],
                "held_out": {"folds": 3, "AP": 0.5}, "searched": True,
            },
        ),
        RankingModel(
            parse_features("fused:rrf(a),fused:combsum(b)"), (1.0, -0.5), objective="AP", runs=("a", "b"),
            provenance={
                "learner": "x", "queries": ["1"], "validation": ["2"], "validation_score": 0.5, "spreads": [0.1, 0.2],
                "baselines": {"RM3": {"stage:rm3": 1.0}}, "columns": ["1"], "held_out": {"folds": 3},
            },
        ),
        DiversityModel(
            CoverageFeatures([("count", 1)], [0.5], document_features=["score"]), ((1.0, 2.0),), 3,
            provenance={"method": "svmdiv", "queries": ["1"], "validation": ["2"]},
        ),
    ],
    ids=["linear", "fusion", "diversity"],
)  # fmt: skip
def test_odd_values_are_one_line_or_harmless(model, tmp_path):
    path = tmp_path / "model.json"
    model.save(path)
    content = json.loads(path.read_text())
    refused = 0
    for at in places(content):
        for odd in (*ODD, *([GONE] if at else [])):
            changed = deepcopy(content)
            above = changed
            for key in at[:-1]:
                above = above[key]
            if odd is GONE and at:
                del above[at[-1]]
            elif at:
                above[at[-1]] = odd
            path.write_text(json.dumps(changed if at else odd))
            message = outcome(type(model), path)
            assert message is None or (message.startswith(f"{path}: ") and "\n" not in message)
            refused += message is not None
    assert refused > 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "not a model file, which is JSON: (maximum recursion depth|Stack overflow)"),
        ("1" * 5000, "not a model file, which is JSON: Exceeds the limit"),
        ("{", "not a model file, which is JSON: Expecting property name"),
        ("[]", "not a kind"),
        ("7", "not a kind"),
        ("", "is empty"),
        (json.dumps({"kind": "kind", "schema": 3, **CONTENT})[:-1] + ', "weight": 2}', "duplicate key 'weight'"),
    ],
)
def test_content_that_is_no_model(tmp_path, text, message):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=message) as caught:
        Weight.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < len(str(path)) + 400
    assert "\n" not in str(caught.value)


def test_a_model_is_for_its_collection():
    index = PositionalIndex.from_texts({"1": "goose"})
    check_collection("", index, transfer=False)
    check_collection(index.fingerprint, index, transfer=False)
    check_collection("other", index, transfer=True)
    with pytest.raises(ModelError, match=r"another collection .*--transfer"):
        check_collection("other", index, transfer=False)


def test_a_learned_feature_with_the_entries_of_another_kind(tmp_path):
    table = {"mu": 1.0, "own": 0.5, "table": {"a": {"b": 0.5}}}
    RankingModel(parse_features("score"), (1.0,)).save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text()) | {"learned": {"trees:0123456789ab": table}}
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(ModelError, match=r"model\.json: learned feature 'trees:0123456789ab' lacks "):
        RankingModel.load(tmp_path / "model.json")


def test_a_model_is_read_from_a_pipe(tmp_path):
    model = RankingModel(parse_features("score"), (1.0,))
    model.save(tmp_path / "model.json")
    reader, writer = os.pipe()
    os.write(writer, (tmp_path / "model.json").read_bytes())
    os.close(writer)
    assert load_model(Path(f"/dev/fd/{reader}")) == model
    os.close(reader)
    (tmp_path / "other").write_text('{"kind": []}')
    with pytest.raises(ModelError, match="not a model"):
        load_model(tmp_path / "other")
