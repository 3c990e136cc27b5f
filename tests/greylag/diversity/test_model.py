"""Diversity models: files, and training from rankings and judgements."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage import PRESETS, CoverageModel
from greylag.diversity.model import DiversityModel
from greylag.diversity.stage import SVMDiv
from greylag.diversity.training import C_GRID, Example, choose_cost, fit_grid, mean_loss, train, training_examples
from greylag.errors import ModelError, ParameterError
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking
from greylag.structured import Coulomb, CuttingPlane
from tests.greylag.diversity import samples

MODEL = DiversityModel(
    replace(samples.SMALL, document_features=("score", "SD/ordered/LM-O-4")),
    tuple(map(tuple, (np.random.default_rng(0).standard_normal((3, 17)) / 3).tolist())),
    k=7,
    titles=True,
    fingerprint="abc",
    provenance={"C": 0.1, "queries": ["1", "2"]},
)


def test_files_round_trip(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "a.json")
    loaded = DiversityModel.load(tmp_path / "a.json")
    assert loaded == MODEL
    loaded.save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_files_name_the_preset(tmp_path: Path) -> None:
    for name, features in PRESETS.items():
        known = replace(features, document_features=("score",))
        model = DiversityModel(known, ((0.0,) * known.n_features,), k=5)
        model.save(tmp_path / "m.json")
        assert json.loads((tmp_path / "m.json").read_text())["preset"] == name
    assert MODEL.preset == ""


def _without(content: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name != key}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: {**content, "kind": "greylag linear model"}, "not a greylag diversity model"),
        (lambda content: {**content, "schema": 1}, "schema 1, but this version reads 2: train it again"),
        (lambda content: _without(content, "thresholds"), "lacks 'thresholds'"),
        (lambda content: {**content, "thresholds": [0.5, 0.1]}, "thresholds have to ascend"),
        (lambda content: {**content, "criteria": content["criteria"][:-1]}, "weights are not those of its criteria"),
        (lambda content: {**content, "criteria": [["count"]]}, "m.json: "),
        (lambda content: {**content, "weights": {key: [float("nan")] for key in content["weights"]}}, "finite"),
        (lambda content: {**content, "weights": {key: [] for key in content["weights"]}}, "one vector of weights"),
        (lambda content: {**content, "weights": {**content["weights"], "score": [1.0]}}, "not all of the same number"),
        (lambda content: {**content, "weights": dict.fromkeys(content["weights"], 1.0)}, "m.json: "),
        (lambda content: {**content, "weights": None}, "m.json: "),
        (lambda content: [], "not a greylag diversity model"),
    ],
)
def test_bad_files(tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "m.json"
    MODEL.save(path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(ModelError, match=r"m\.json") as caught:
        DiversityModel.load(path)
    assert message in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("{")
    for name in ("m.json", "none.json"):
        with pytest.raises(ModelError, match=name):
            DiversityModel.load(tmp_path / name)


def test_weights_have_to_fit() -> None:
    with pytest.raises(ModelError, match="200 features has 300 weights"):
        DiversityModel(PRESETS["svmdiv"], ((0.0,) * 200, (0.0,) * 300), k=5)


def test_members_are_models_of_one_vector() -> None:
    assert [member.weights for member in MODEL.members] == [(vector,) for vector in MODEL.weights]
    assert all(replace(member, weights=MODEL.weights) == MODEL for member in MODEL.members)


@pytest.fixture(scope="module")
def collection() -> tuple[PositionalIndex, list[Ranking], dict[str, dict[str, dict[str, int]]]]:
    """Queries whose documents each have one of six subtopics; a document's words tell its own from the others.

    Each subtopic has three words that about half of its documents have; every document has rare words, as many as to
    mislead the count of words where there is one subtopic that has the most.
    """
    rng = np.random.default_rng(1)
    contents, rankings, qrels = {}, [], {}
    for q in range(14):
        judged: dict[str, dict[str, int]] = {f"s{s}": {} for s in range(6)}
        for i in range(30):
            s = min(int(rng.geometric(0.35)) - 1, 5)
            own = [f"q{q}s{s}w{w}" for w in range(3) if rng.random() < 0.6]
            rare = [f"q{q}d{i}r{r}" for r in range(int(rng.integers(0, 8)) + 6 * (s == 0))]
            contents[f"q{q}d{i}"] = " ".join([*own * 2, *rare])
            judged[f"s{s}"][f"q{q}d{i}"] = 1
        qrels[f"q{q}"] = judged
        rankings.append(Ranking(f"q{q}", "", tuple(f"q{q}d{i}" for i in range(30)), np.arange(30.0, 0, -1)))
    return PositionalIndex.from_texts(contents), rankings, qrels


@pytest.fixture(scope="module")
def examples(collection: Any) -> tuple[CandidateMaker, dict[str, Example]]:
    index, rankings, qrels = collection
    make = CandidateMaker(index, PRESETS["svmdiv"])
    return make, training_examples(rankings, qrels, make)


def test_learns_what_words_matter(collection: Any, examples: Any) -> None:
    index, rankings, _ = collection
    make, known = examples
    qids = list(known)
    training, test = ({qid: known[qid] for qid in part} for part in (qids[:8], qids[8:]))
    model = train(training, make, CuttingPlane(C=10.0), k=4, provenance={"note": "x"})
    assert model.fingerprint == index.fingerprint
    assert model.provenance["queries"] == qids[:8]
    assert model.provenance["C"] == 10.0
    assert model.provenance["note"] == "x"
    assert model.provenance["gap"] <= 10.0 * 1e-3 + 1e-9
    weights = np.array(model.weights[0])
    learned = mean_loss(CoverageModel(4), test.values(), weights)
    counting = np.array([1.0 if name == "count>=1 in 0.001" else 0.0 for name in model.features.names])
    assert learned < 0.5 * mean_loss(CoverageModel(4), test.values(), counting)
    # The stage does what the model does.
    for ranking in rankings[8:]:
        x, _ = known[ranking.qid]
        picked = tuple(ranking.docids[i] for i in CoverageModel(4).infer(x, weights))
        assert SVMDiv(model, index, k=4)(ranking).docids[:4] == picked


def test_validation_chooses_the_cost(examples: Any) -> None:
    make, known = examples
    training = dict(list(known.items())[:5])
    validation = dict(list(known.items())[5:9])
    model = train(training, make, CuttingPlane(C=123.0), k=4, validation=validation)
    assert model.provenance["C"] in C_GRID
    assert model.provenance["validation"] == list(validation)
    solutions = fit_grid(CoverageModel(4), list(training.values()), CuttingPlane())
    losses = [mean_loss(CoverageModel(4), validation.values(), solution.weights) for solution in solutions.values()]
    assert mean_loss(CoverageModel(4), validation.values(), np.array(model.weights[0])) == min(losses) < max(losses)
    assert choose_cost(CoverageModel(4), solutions, validation.values()) == C_GRID[int(np.argmin(losses))]


def test_the_loss_of_an_ensemble_is_pick_best(examples: Any) -> None:
    _, known = examples
    members = np.random.default_rng(3).standard_normal((3, PRESETS["svmdiv"].n_features))
    least = [min(truth.loss(CoverageModel(4).infer(x, w)) for w in members) for x, truth in known.values()]
    assert mean_loss(CoverageModel(4), known.values(), members) == pytest.approx(np.mean(least))
    assert np.mean(least) < min(mean_loss(CoverageModel(4), known.values(), w) for w in members)


def test_ensembles_are_trained_and_chosen(examples: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make, known = examples
    training = dict(list(known.items())[:3])
    validation = dict(list(known.items())[3:9])
    learner, grid = Coulomb(M=3, alpha=2.0, seed=4), (0.01, 1.0, 100.0)
    monkeypatch.setattr("greylag.diversity.training.C_GRID", grid)
    found = {C: replace(learner, C=C).fit(CoverageModel(4), list(training.values())) for C in grid}
    losses = [mean_loss(CoverageModel(4), validation.values(), found[C].weights) for C in grid]
    model = train(training, make, learner, k=4, validation=validation)
    best = grid[int(np.argmin(losses))]
    assert np.array(model.weights).tobytes() == found[best].weights.tobytes()
    made = {"M": 3, "alpha": 2.0, "assignment": "all", "seed": 4, "C": best, "mean_angle": found[best].mean_angle}
    assert {key: model.provenance[key] for key in made} == made
    assert train(training, make, replace(learner, C=best), k=4).weights == model.weights


def test_queries_that_teach_nothing_are_left_out(collection: Any, caplog: pytest.LogCaptureFixture) -> None:
    index, rankings, qrels = collection
    make = CandidateMaker(index, PRESETS["svmdiv"])
    partial = {"q0": qrels["q0"], "q1": {}, "q2": {"s": {"q2d0": 0}}, "q3": {"s": {"q3d29": 1}}}
    with caplog.at_level(logging.WARNING, "greylag"):
        examples = training_examples(rankings[:5], partial, make, depth=20)
    assert list(examples) == ["q0"]
    assert len(examples["q0"][0]) == 20
    assert "4 queries (q1, q2, q3, q4)" in caplog.text
    with pytest.raises(ParameterError, match="nothing to learn from"):
        training_examples(rankings[1:], {}, make)


def test_fewer_candidates_than_k(collection: Any) -> None:
    index, rankings, qrels = collection
    make = CandidateMaker(index, PRESETS["svmdiv"])
    examples = training_examples(rankings[:3], qrels, make, depth=3)
    model = train(examples, make, CuttingPlane(), k=5)
    assert np.isfinite(model.weights).all()
    assert len(SVMDiv(model, index, k=5)(rankings[4].head(3))) == 3
