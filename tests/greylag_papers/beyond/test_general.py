"""The study of the general model, on two parts of the demonstration's topics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from greylag import PositionalIndex, read_qrels, read_topics
from greylag.evaluation import evaluate
from greylag.experiments.study import Context
from greylag.features import FeatureExtractor, parse_features
from greylag.learning import ListwiseRegression, training_data
from greylag.lucene import LuceneIndex, build_index
from greylag.ranking import FloatArray, Run
from greylag_papers.beyond.general import STUDY, Settings
from tests.greylag.experiments.samples import DEMO

FEATURES = "score@z,FI/term/early@z,written:words@z"
COLLECTION = {"docs": str(DEMO / "docs.jsonl"), "type": "JsonCollection"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    lines = (DEMO / "topics.tsv").read_text().splitlines(keepends=True)
    parts = {}
    for name, some in (("one", lines[:14]), ("two", lines[14:])):
        (tmp_path / f"{name}.tsv").write_text("".join(some))
        parts[name] = {"collection": COLLECTION, "topics": f"{name}.tsv", "qrels": str(DEMO / "qrels.txt")}
    made = Settings.model_validate(
        {"name": "small", "study": "general", "collections": parts, "features": FEATURES, "hits": 30, "folds": 3}
    )
    return made.model_copy(update={"data_folder": tmp_path, "file_folder": tmp_path})


def by_hand(folder: Path, train: str, test: str) -> tuple[float, FloatArray]:
    """The nDCG@10 of the test part's rankings by weights of the training part, and these weights."""
    index, qrels, features = (
        PositionalIndex.from_lucene(folder),
        read_qrels(DEMO / "qrels.txt"),
        parse_features(FEATURES),
    )
    with LuceneIndex(folder) as lucene:
        runs = {part: lucene.bm25(30).run(read_topics(folder.parent / f"{part}.tsv")) for part in (train, test)}
    extract = FeatureExtractor(index, features)
    selection = ListwiseRegression("nDCG@10", penalty=100).fit(training_data(runs[train].rankings, qrels, extract))
    weights = np.zeros(len(features))
    weights[list(selection.columns)] = selection.weights
    ranked = Run(tuple(ranking.rescore(extract(ranking) @ weights) for ranking in runs[test].rankings))
    scores = evaluate(ranked, {qid: qrels[qid] for qid in ranked}, ["nDCG@10"])
    return float(scores.means[0]), weights


def test_each_part_is_ranked_by_weights_of_the_other(settings: Settings, tmp_path: Path) -> None:
    context = Context(tmp_path / "out")
    outcome = STUDY.run(settings, STUDY.open(settings, context), context)
    build_index(DEMO / "docs.jsonl", tmp_path / "index")
    learned = []
    for train, test in (("one", "two"), ("two", "one")):
        mean, weights = by_hand(tmp_path / "index", train, test)
        learned.append(weights)
        assert outcome.scores[f"{test}, nDCG@10"]["general"] == pytest.approx(mean, abs=1e-6)
    together = np.mean(learned, axis=0)
    model = outcome.models["general"]
    np.testing.assert_allclose(model.weights, together / np.abs(together).sum(), atol=6e-5)
    gains = [
        outcome.scores[f"{p}, nDCG@10"]["general"] - outcome.scores[f"{p}, nDCG@10"]["BM25"] for p in ("one", "two")
    ]
    row = outcome.scores["all, nDCG@10, general less BM25"]
    assert row == pytest.approx({"mean": np.mean(gains), "least": min(gains), "above": sum(gain > 0 for gain in gains)})
    assert [str(feature) for feature in outcome.models["general-positions"].features] == FEATURES.split(",")[:2]
