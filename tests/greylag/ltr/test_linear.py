"""Linear models and their files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import ModelError, ParameterError
from greylag.features.spec import FeatureSpec
from greylag.features.spelling import parse_feature
from greylag.features.weighting import FeatureParameters, Profile
from greylag.index.analysis import QueryForm
from greylag.index.positional import PositionalIndex
from greylag.ltr.explanation import explain
from greylag.ltr.linear import LinearModel
from greylag.ltr.rankers import MRFRanker
from greylag.ranking import Ranking
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
        ({"query_form": {"first_sentence": 1}}, "needs first_sentence and stop_words"),
        ({"query_form": []}, "dictionary"),
        ({"parameters": {"nu": 1.0}}, "nu"),
        ({"parameters": {"profile": "zettair"}}, "profile is 'zettair': it must be one of indri, galago, inquery"),
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


@pytest.mark.parametrize(("profile", "matched"), [("indri", 2), ("galago", 2), ("inquery", 1)])
def test_models_rank_with_their_own_window_profile(tmp_path: Path, profile: Profile, matched: int) -> None:
    index = PositionalIndex.from_texts({"near": "new york", "far": "new big york", "none": "york city"})
    feature = FeatureSpec.parse("SD/unordered/BM25-U-2")
    LinearModel((feature,), (1.0,), FeatureParameters(profile=profile)).save(tmp_path / "model.json")
    model = LinearModel.load(tmp_path / "model.json")
    assert model.parameters.profile == profile
    ranked = MRFRanker(model, index)(Ranking("1", "new york", ("none", "far", "near"), np.zeros(3)))
    assert np.count_nonzero(ranked.scores) == matched


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


def test_models_shorten_queries_as_in_training(tmp_path: Path) -> None:
    """Scores and explanations of a whole topic are those of the query that the model was trained on."""
    index = PositionalIndex.from_texts({"a": "slabs of iron", "b": "cones and slabs", "c": "what cones"})
    form = QueryForm(True, frozenset({"what", "known"}))
    features = (FeatureSpec("FI", "term", "LM"), FeatureSpec("FI", "expansion", "LM"))
    plain = LinearModel(features, (1.0, 0.5), FeatureParameters(fb_docs=2))
    plain.save(tmp_path / "plain.json")
    assert "query_form" not in (tmp_path / "plain.json").read_text()
    replace(plain, query_form=form).save(tmp_path / "model.json")
    model = LinearModel.load(tmp_path / "model.json")
    assert model.query_form == form
    whole, short = (
        Ranking("q", text, ("a", "b", "c"), np.zeros(3)) for text in ("What known slabs? Cones, too.", "slabs?")
    )
    assert MRFRanker(model, index)(whole).scores.tolist() == MRFRanker(plain, index)(short).scores.tolist()
    assert MRFRanker(model, index)(whole).scores.tolist() != MRFRanker(plain, index)(whole).scores.tolist()
    assert MRFRanker(model, index)(whole).query == whole.query
    assert explain(model, index, whole, "b") == explain(plain, index, short, "b")


def test_spellings_of_one_file(tmp_path: Path) -> None:
    names = ["run:a.run", "run:./a.run@z", "prior:x/a.tsv", "run:y/b.run", "run:x//b.run"]
    model = LinearModel(tuple(map(parse_feature, names)), (1.0,) * len(names))
    placed = model.with_files({"a.run": "new.run", "a.tsv": "new.tsv", "x/b.run": "c.run"})
    assert list(map(str, placed.features)) == [
        "run:new.run", "run:new.run@z", "prior:new.tsv", "run:y/b.run", "run:c.run"
    ]  # fmt: skip
    assert model.with_files({"./a.run": "new.run"}).features[:2] == placed.features[:2]
    with pytest.raises(ParameterError, match=r"x/a\.tsv is to be 1 and 2: keep one"):
        model.with_files({"a.tsv": "1", "./x/a.tsv": "2"})
    with pytest.raises(ParameterError, match=r"2 of the model's files are called 'b\.run'"):
        model.with_files({"b.run": "1"})
