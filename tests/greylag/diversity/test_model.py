"""Files of diversity models."""

import json
from dataclasses import replace

import numpy as np
import pytest

from greylag.base import ModelError
from greylag.diversity import PRESETS, DiversityModel
from tests.greylag.diversity import samples
from tests.refusals import refuses

MODEL = DiversityModel(
    replace(samples.SMALL, document_features=("score", "SD/ordered/LM-O-4")),
    tuple(map(tuple, (np.random.default_rng(0).standard_normal((3, 17)) / 3).tolist())),
    k=7,
    depth=30,
    titles=True,
    fingerprint="abc",
    provenance={"C": 0.1, "queries": ["1", "2"]},
)


def test_files_round_trip(tmp_path):
    MODEL.save(tmp_path / "a.json")
    loaded = DiversityModel.load(tmp_path / "a.json")
    assert loaded == MODEL
    loaded.save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_files_name_the_preset(tmp_path):
    for name, features in PRESETS.items():
        known = replace(features, document_features=("score",))
        model = DiversityModel(known, ((0.0,) * known.n_features,), k=5)
        model.save(tmp_path / "m.json")
        assert json.loads((tmp_path / "m.json").read_text())["preset"] == name
    assert MODEL.preset == ""


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda content: {"thresholds": [0.5, 0.1]}, "thresholds ascending"),
        (lambda content: {"criteria": content["criteria"][:-1]}, "weights criteria"),
        (lambda content: {"criteria": [["count"]]}, ""),
        (lambda content: {"schema": 1}, "schema 1 4"),
        (lambda content: {"weights": {key: [float("nan")] for key in content["weights"]}}, "finite"),
        (lambda content: {"weights": {key: [] for key in content["weights"]}}, "at least one"),
        (lambda content: {"weights": {**content["weights"], "score": [1.0]}}, "different numbers"),
    ],
)
def test_bad_files(tmp_path, change, parts):
    path = tmp_path / "m.json"
    MODEL.save(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | change(content)))
    refuses(lambda: DiversityModel.load(path), ModelError, f"m.json {parts}")


def test_the_summary_shows_the_largest_weights_of_the_first_member():
    first = dict(zip(MODEL.features.names, MODEL.weights[0], strict=True))
    largest = sorted(first, key=lambda name: -abs(first[name]))[:2]
    assert MODEL.summary(2).splitlines()[-2:] == [f"{first[name]:+12.6g}  {name}" for name in largest]


def test_members_have_one_weight_vector():
    assert [member.weights for member in MODEL.members] == [(vector,) for vector in MODEL.weights]
    assert all(replace(member, weights=MODEL.weights) == MODEL for member in MODEL.members)
