"""The main study on two collections, against the study on each and a correction by hand."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greylag import FormatError
from greylag.evaluation import evaluate, holm, paired_test
from greylag.evaluation.significance import p_text
from greylag.rankers import RankingModel
from greylag.studies.runner import Finished, run_study
from greylag.studies.study import load
from greylag.trec import read_qrels, read_run
from tests.greylag.studies.samples import DEMO

SHARED = {
    "model": "mrf(max_features=1)",
    "measures": ["AP", "P@5"],
    "training": {"folds": 2},
    "first_stage": {"hits": 30},
}


@pytest.fixture(scope="module")
def own() -> dict[str, dict[str, Any]]:
    collection = {"docs": str(DEMO / "docs.jsonl"), "java": "optional"}
    return {
        name: {"collection": collection, "topics": f"{name}.tsv", "qrels": str(DEMO / "qrels.txt")} for name in "ab"
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, own: dict[str, Any]) -> Path:
    folder = tmp_path_factory.mktemp("joint")
    topics = (DEMO / "topics.tsv").read_text().splitlines(keepends=True)
    (folder / "a.tsv").write_text("".join(topics[::2]))
    (folder / "b.tsv").write_text("".join(topics[1::2]))
    write(folder / "joint.yaml", study="collections", collections=own, **SHARED)
    return folder


def write(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({"name": path.stem, **fields}))


@pytest.fixture(scope="module")
def done(folder: Path) -> Finished:
    return run_study(*load(folder / "joint.yaml"), folder / "out")


def test_each_collection_is_ranked_as_alone(done: Finished, folder: Path, own: dict[str, Any]) -> None:
    for name, fields in own.items():
        write(folder / f"{name}.yaml", **fields, **SHARED)
        alone = run_study(*load(folder / f"{name}.yaml"), folder / name)
        assert {f"{name}: {system}": means for system, means in alone.scores.items()}.items() <= done.scores.items()
        for run in (folder / name).glob("*.run"):
            assert read_run(folder / "out" / f"{name}.{run.name}") == read_run(run)
        for model in (folder / name / "models").iterdir():
            joint = RankingModel.load(folder / "out" / "models" / f"{name}-{model.name}")
            assert joint.weights == RankingModel.load(model).weights


def test_p_is_corrected_over_both_collections(done: Finished, folder: Path) -> None:
    qrels, p, names = read_qrels(DEMO / "qrels.txt"), [], []
    for name in "ab":
        runs = {tag: read_run(folder / "out" / f"{name}.{tag}.run") for tag in ("bm25", "tuned-bm25", "mrf")}
        scores = {tag: evaluate(run, qrels, SHARED["measures"]).values for tag, run in runs.items()}
        for before in ("bm25", "tuned-bm25"):
            p += [paired_test(column.round(12))[1] for column in (scores["mrf"] - scores[before]).T]
            names += [(name, before, measure) for measure in SHARED["measures"]]
    corrected = dict(zip(names, holm(p).tolist(), strict=True))
    text = " ".join((folder / "out" / "report.html").read_text().split())
    for (_, before, measure), value in corrected.items():
        if measure == "AP":
            assert re.search(rf"mrf is [^:]* than {before}: .{{40,160}}corrected p {escape(p_text(value))}\)", text)
    stars = [
        cell.endswith("*")
        for line in done.summary.splitlines()
        if re.match(r"mrf +\S*bm25 ", line)
        for cell in line.split()[2:4]
    ]
    assert stars == [corrected[name, before, "AP"] < 0.05 for before in ("bm25", "tuned-bm25") for name in "ab"]
    assert "Holm's correction over 8 comparisons" in done.summary


def test_the_joint_table(done: Finished) -> None:
    rows = [line.split() for line in done.summary.splitlines()]
    for system in ("bm25", "tuned-bm25", "mrf"):
        means = [done.scores[f"{name}: {system}"]["AP"] for name in "ab"]
        assert [system, *(f"{mean:.4f}" for mean in (*means, np.mean(means)))] in rows


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"topcis": "a.tsv"}, "collections.a.topcis: Extra inputs are not permitted"),
        ({"topics": 3}, "collections.a.topics: Input should be a valid string"),
        ({"first_stage": {"model": ["bm25", "ql"]}}, "a and b differ in their systems or measures"),
        ({"subtopic_qrels": str(DEMO / "qrels.subtopics.txt")}, "a and b differ in their systems or measures"),
        ({"model": "mrf(max_features=1,tune=true)", "measures": ["AP"]}, "a and b differ in their systems or measures"),
    ],
)
def test_mistakes(folder: Path, own: dict[str, Any], change: dict[str, Any], reason: str) -> None:
    write(folder / "wrong.yaml", study="collections", collections={**own, "a": own["a"] | change}, **SHARED)
    with pytest.raises(FormatError, match=reason):
        load(folder / "wrong.yaml")
