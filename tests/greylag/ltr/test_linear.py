"""Linear models and their files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from greylag.errors import ModelError
from greylag.features.spec import FeatureSpec
from greylag.ltr.linear import LinearModel
from greylag.ltr.rankers import MRFRanker
from tests.greylag.ltr.phrases import collection, rankings, trained


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "tea"}, "not a greylag linear model"),
        ({"schema": 99}, "schema 99"),
        ({"features": [{"feature": "SD/what/LM", "weight": 1.0, "training_score": None}]}, "unknown clique set"),
        ({"features": [{"feature": "FI/term/LM", "weight": float("nan"), "training_score": None}]}, "finite"),
        ({"features": [{"feature": "FI/term/LM"}]}, "lacks"),
        ({"parameters": {"mu": -1.0}}, "mu is -1.0"),
        ({"parameters": {"nu": 1.0}}, "nu"),
    ],
)
def test_loading_rejects_invalid_content(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    path = tmp_path / "model.json"
    LinearModel((FeatureSpec("FI", "term", "LM"),), (1.0,)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=reason) as error:
        LinearModel.load(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "is empty"), ("{", "not a model"), ("[]", "not a greylag"), (None, "cannot be read")],
)
def test_loading_rejects_other_files(tmp_path: Path, text: str | None, reason: str) -> None:
    if text is not None:
        (tmp_path / "model.json").write_text(text)
    with pytest.raises(ModelError, match=reason):
        LinearModel.load(tmp_path / "model.json")


def test_files_round_trip_and_do_not_depend_on_threads(tmp_path: Path) -> None:
    index = collection()
    for name, jobs in (("one", 1), ("two", 2)):
        trained(index, jobs, retrain=True).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    model = LinearModel.load(tmp_path / "one")
    assert model == trained(index, retrain=True)
    assert model.fingerprint == index.fingerprint
    assert model.collection["documents"] == 40
    ranking = rankings(index)[0][0]
    assert MRFRanker(model, index)(ranking) == MRFRanker(trained(index, retrain=True), index)(ranking)
