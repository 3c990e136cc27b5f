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
    lines = [line.split() for line in done.summary.splitlines() if re.match(r"mrf +\S*bm25 ", line)]
    shown = {
        (before, measure): (*cells[:2], *values)
        for (_, before, measure, *cells), (*_, a, b) in zip(lines[:4], lines[4:], strict=True)
        for values in [(a, b)]
    }
    for (name, before, measure), value in corrected.items():
        cells = shown[before, measure]
        assert cells["ab".index(name)].endswith("*") == (value < 0.05)
        assert float(cells[2 + "ab".index(name)]) == pytest.approx(value, abs=6e-5)
    results = json.loads((folder / "out" / "results.json").read_text())
    for name in "ab":
        found = results[name]["relevance"]["significance"]["comparisons"]
        assert {(name, c["baseline"], c["measure"]): c["corrected_p"] for c in found} == pytest.approx(
            {key: value for key, value in corrected.items() if key[0] == name}
        )
    assert "Holm's correction over 8 comparisons" in done.summary


def test_the_joint_table(done: Finished) -> None:
    rows = [line.split() for line in done.summary.splitlines()]
    for system in ("bm25", "tuned-bm25", "mrf"):
        for measure in SHARED["measures"]:
            means = [done.scores[f"{name}: {system}"][measure] for name in "ab"]
            assert [system, measure, *(f"{mean:.4f}" for mean in (*means, np.mean(means)))] in rows
    assert "Column mean: the mean over collections" in done.summary


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"topcis": "a.tsv"}, "collections.a.topcis: unknown field: did you mean topics"),
        ({"topics": 3}, r"collections.a.topics: it must be text \(got 3\)"),
        ({"first_stage": {"model": ["bm25", "ql"]}}, "a and b differ in their systems or measures"),
        ({"subtopic_qrels": str(DEMO / "qrels.subtopics.txt")}, "a and b differ in their systems or measures"),
        ({"model": "mrf(max_features=1,tune=true)", "measures": ["AP"]}, "a and b differ in their systems or measures"),
    ],
)
def test_mistakes(folder: Path, own: dict[str, Any], change: dict[str, Any], reason: str) -> None:
    write(folder / "wrong.yaml", study="collections", collections={**own, "a": own["a"] | change}, **SHARED)
    with pytest.raises(FormatError, match=reason):
        load(folder / "wrong.yaml")


def test_mistakes_in_shared_fields_and_in_the_number_of_collections(folder: Path, own: dict[str, Any]) -> None:
    write(folder / "wrong.yaml", study="collections", collections=own, **SHARED | {"model": ["mrf", "rm3"]})
    with pytest.raises(FormatError, match=r"yaml: model: it must be text \(got \['mrf', 'rm3'\]\)"):
        load(folder / "wrong.yaml")
    write(folder / "wrong.yaml", study="collections", collections={"a": own["a"]}, **SHARED)
    with pytest.raises(FormatError, match="yaml: collections: there must be at least 2, and there are 1"):
        load(folder / "wrong.yaml")


def test_lines_of_progress_name_the_system_and_are_short(folder: Path, own: dict[str, Any]) -> None:
    lines: list[str] = []
    shared = SHARED | {"model": "mrf(max_features=9)", "features": "FI/term/LM,SD/ordered/LM-O-1,SD/unordered/LM-U-8"}
    write(folder / "lines.yaml", study="collections", collections=own, **shared)
    run_study(*load(folder / "lines.yaml"), folder / "lines", progress=lines.append)
    folds = [line for line in lines if "fold" in line]
    systems = ("tuned-bm25", "mrf")
    assert [line.split(": ")[:3] for line in folds] == [
        [name, system, f"fold {fold}"] for name in "ab" for system in systems for fold in (1, 2)
    ]
    assert max(map(len, lines)) <= 110
