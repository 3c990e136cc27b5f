from __future__ import annotations

import json
from pathlib import Path

import pytest

from greylag import LinearModel
from greylag.diversity import PRESETS, DiversityModel
from greylag.features.spelling import parse_features
from tests.greylag.cli.conftest import Command, Refused


def test_a_linear_model(command: Command, tmp_path: Path) -> None:
    model = LinearModel(
        parse_features("FI/term/BM25,SD/ordered/LM-O-4"),
        (1.0, -0.5),
        objective="AP",
        training_scores=(0.25, 0.5),
        collection={"documents": 634, "tokens": 1.0, "average_length": 2.0},
        fingerprint="0123456789abcdef",
        provenance={"learner": "GreedySelection", "queries": ["1", "2"], "held_out": {"folds": 5, "AP": 0.375}},
    )
    model.save(tmp_path / "model.json")
    code, out, err = command("show", tmp_path / "model.json")
    assert (code, out, err) == (0, model.summary(), "")
    lines = out.splitlines()
    assert lines[:4] == [
        "LinearModel of 2 features, AP 0.5000 in training",
        "learned by GreedySelection from 2 queries",
        "collection of 634 documents, fingerprint 0123456789ab",
        "AP 0.3750 on held-out queries, in 5-fold cross-validation",
    ]
    assert lines[4].startswith("parameters mu 1000.0, k1 0.9")
    assert [line.split() for line in lines[5:]] == [
        ["+1", "FI/term/BM25", "AP", "0.2500"],
        ["-0.5", "SD/ordered/LM-O-4", "AP", "0.5000"],
    ]
    assert repr(model) == "<LinearModel of 2 features, AP 0.5000 in training>"
    by_hand = LinearModel(model.features[:1], (1.0,))
    assert repr(by_hand) == "<LinearModel of 1 feature>"
    assert by_hand.summary().splitlines()[-1].split() == ["+1", "FI/term/BM25"]


def test_a_diversity_model(command: Command, tmp_path: Path) -> None:
    features = PRESETS["svmdiv"]
    weights = [0.0] * features.n_features
    weights[3], weights[1] = -2.0, 1.5
    model = DiversityModel(features, (tuple(weights),), 5, provenance={"queries": ["1"], "C": 0.1})
    model.save(tmp_path / "div.json")
    code, out, _ = command("show", tmp_path / "div.json")
    assert (code, out) == (0, model.summary())
    lines = out.splitlines()
    assert lines[0] == f"DiversityModel of {features.n_features} features, to pick 5 documents"
    assert lines[1:3] == ["features svmdiv", "learned from 1 queries, C 0.1"]
    assert [line.split(maxsplit=1) for line in lines[4:6]] == [["-2", features.names[3]], ["+1.5", features.names[1]]]
    assert "ensemble of 2 members" in repr(DiversityModel(features, (tuple(weights),) * 2, 5))


@pytest.mark.parametrize("content", [[], {}, {"kind": "another"}, {"kind": 3}])
def test_not_a_model(refused: Refused, tmp_path: Path, content: object) -> None:
    (tmp_path / "x.json").write_text(json.dumps(content))
    assert "x.json: not a model of greylag: give a file that" in refused("show", tmp_path / "x.json")
