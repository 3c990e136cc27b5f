"""Model files: kind, schema, common entries and malformed content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from greylag.errors import ModelError
from greylag.index import PositionalIndex
from greylag.model_files import check_collection, model_content, read_weight, write_model

CONTENT: dict[str, Any] = {"weight": 1.5, "parameters": {}, "fingerprint": "f", "provenance": {}}


def read(path: Path, **types: type) -> dict[str, Any]:
    with model_content(path, "kind", 3, "greylag train", **types) as content:
        float(content["weight"])
        return content


def test_round_trip(tmp_path: Path) -> None:
    for name in ("model.json", "model.json.gz"):
        write_model(tmp_path / name, "kind", 3, CONTENT)
        assert read(tmp_path / name, weight=float) == {"kind": "kind", "schema": 3, **CONTENT}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "other"}, "not a kind; train one with `greylag train`"),
        ({"schema": 4}, "schema 4, but this version reads 3: train it again"),
        ({"schema": None}, "schema None, but"),
        ({"fingerprint": None}, "fingerprint is None: it must be a str"),
        ({"fingerprint": 7}, "fingerprint is 7: it must be a str"),
        ({"provenance": []}, r"provenance is \[\]: it must be a dict"),
        ({"parameters": "x"}, "parameters is 'x': it must be a dict"),
        ({"weight": "x\ny"}, "could not convert string to float: 'x.ny'"),
        ({"weight": [1]}, "float"),
        ({"weight": 10**400}, "too large"),
    ],
)
def test_entries_are_checked(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"kind": "kind", "schema": 3, **CONTENT, **change}))
    with pytest.raises(ModelError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", CONTENT)
def test_no_entry_may_be_missing(tmp_path: Path, name: str) -> None:
    path = tmp_path / "model.json"
    write_model(path, "kind", 3, {key: value for key, value in CONTENT.items() if key != name})
    with pytest.raises(ModelError, match=f"the model lacks '{name}'"):
        read(path)


def test_no_entry_may_be_given_twice(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"kind": "kind", "schema": 3, **CONTENT})[:-1] + ', "weight": 2}')
    with pytest.raises(ModelError, match="not a model file: duplicate key 'weight'; keep one of them"):
        read(path)


def test_types_may_be_required(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    write_model(path, "kind", 3, {**CONTENT, "k": True})
    with pytest.raises(ModelError, match="k is True: it must be a int"):
        read(path, k=int)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "not a model file: maximum recursion depth"),
        ("1" * 5000, "not a model file: Exceeds the limit"),
        ("{", "not a model file: Expecting property name"),
        ("[]", "not a kind"),
        ("7", "not a kind"),
        ("", "is empty"),
    ],
)
def test_content_that_is_no_model(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < len(str(path)) + 400
    assert "\n" not in str(caught.value)


def test_a_model_is_for_its_collection() -> None:
    index = PositionalIndex.from_texts({"1": "goose"})
    check_collection("", index, transfer=False)
    check_collection(index.fingerprint, index, transfer=False)
    check_collection("other", index, transfer=True)
    with pytest.raises(ModelError, match=r"another collection .*: train it on this one, or allow a transfer"):
        check_collection("other", index, transfer=False)


def test_weights_are_numbers() -> None:
    assert [read_weight(2), read_weight(-0.5)] == [2.0, -0.5]
    for value in ("0.5", True, None, [1]):
        with pytest.raises(ModelError, match="is not a number"):
            read_weight(value)
