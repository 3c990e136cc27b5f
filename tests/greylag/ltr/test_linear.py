"""Linear models: files, and the stage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import ModelError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import FeatureSpec, candidate_pool, parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.linear import LinearModel, MRFRanker
from greylag.ltr.objectives import Objective
from greylag.ltr.training import split_folds, train, training_data
from greylag.ranking import Ranking

WORDS = ["cat", "dog", "pig", "cow", "hen", "fox"]


def collection(seed: int = 1) -> PositionalIndex:
    rng = np.random.default_rng(seed)
    return PositionalIndex.from_texts({f"d{i}": " ".join(rng.choice(WORDS, size=12)) for i in range(40)})


def rankings(index: PositionalIndex) -> tuple[list[Ranking], dict[str, dict[str, int]]]:
    """Queries of two words, the documents that have them side by side being relevant."""
    docids = tuple(f"d{i}" for i in range(40))
    queries = [f"{a} {b}" for a in WORDS[:4] for b in WORDS[:4] if a != b]
    phrases = FeatureExtractor(index, parse_features("SD/ordered/BM25-O-1"))
    ranked = [Ranking(str(i), query, docids, np.zeros(40)) for i, query in enumerate(queries)]
    qrels = {r.qid: {d: int(v > 0) for d, v in zip(docids, phrases(r)[:, 0], strict=True)} for r in ranked}
    return ranked, qrels


def trained(index: PositionalIndex, n_jobs: int = 1, retrain: bool = False) -> LinearModel:
    ranked, qrels = rankings(index)
    extractor = FeatureExtractor(index, candidate_pool(("SD",)))
    data = training_data(ranked, qrels, extractor)
    learner = GreedySelection(Objective("AP"), max_features=3, retrain=retrain)
    return train(data, extractor, learner, n_jobs=n_jobs, provenance={"seed": 1})


def test_learns_what_there_is_to_learn() -> None:
    index = collection()
    model = trained(index)
    assert model.features[0].window.order == "O"
    assert model.features[0].window.width == 1
    assert model.training_scores[0] == pytest.approx(1.0)
    ranked, qrels = rankings(index)
    for ranking in ranked:
        grades = [qrels[ranking.qid][docid] for docid in MRFRanker(model, index)(ranking).docids]
        assert grades == sorted(grades, reverse=True)


def test_the_file_round_trips_and_is_the_same_on_any_number_of_threads(tmp_path: Path) -> None:
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


def test_the_stage_computes_the_models_sum_and_keeps_the_order_of_ties() -> None:
    index = collection()
    specs = parse_features("FI/term/LM,SD/unordered/BM25-U-4")
    model = LinearModel(specs, (0.75, -2.0), FeatureParameters(mu=20.0))
    ranking = Ranking("q", "cat dog", tuple(f"d{i}" for i in range(40)), np.zeros(40))
    features = FeatureExtractor(index, specs, model.parameters)(ranking)
    result = MRFRanker(model, index)(ranking)
    expected = dict(zip(ranking.docids, features @ [0.75, -2.0], strict=True))
    assert result.scores == pytest.approx([expected[docid] for docid in result.docids])
    tied = MRFRanker(LinearModel(specs, (0.0, 0.0)), index)(ranking)
    assert tied.docids == ranking.docids


def test_a_model_of_another_collection_needs_a_transfer() -> None:
    model = trained(collection())
    other = collection(seed=2)
    with pytest.raises(ModelError, match="trained on another collection"):
        MRFRanker(model, other)
    assert len(MRFRanker(model, other, transfer=True)(rankings(other)[0][0])) == 40


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
def test_loading_rejects_what_does_not_fit(tmp_path: Path, change: dict[str, object], reason: str) -> None:
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
def test_files_that_are_no_models(tmp_path: Path, text: str | None, reason: str) -> None:
    if text is not None:
        (tmp_path / "model.json").write_text(text)
    with pytest.raises(ModelError, match=reason):
        LinearModel.load(tmp_path / "model.json")


def test_folds_part_the_queries_evenly() -> None:
    qids = [str(i) for i in range(23)]
    folds = split_folds(qids, 5, seed=3)
    assert sorted(qid for fold in folds for qid in fold) == sorted(qids)
    assert {len(fold) for fold in folds} == {4, 5}
    assert split_folds(qids, 5, seed=3) == folds != split_folds(qids, 5, seed=4)
