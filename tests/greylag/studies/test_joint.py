"""The main study on two collections, against the study on each and a correction by hand."""

import json
import re

import numpy as np
import pytest

from greylag import FormatError
from greylag.evaluation import evaluate, holm, paired_test, read_qrels, read_run
from greylag.rankers import RankingModel
from greylag.studies.runner import STUDY_FORMS, run_study
from greylag.studies.study import load
from tests.greylag.studies.samples import DEMO

SHARED = {
    "model": "mrf(max_features=3)",
    "features": "FI/term/LM,SD/ordered/LM-O-1,SD/unordered/LM-U-8",
    "measures": ["AP", "P@5"],
    "training": {"folds": 2},
    "first_stage": {"hits": 30},
}
LINES = []
"""The progress of the study."""


@pytest.fixture(scope="module")
def own():
    collection = {"docs": str(DEMO / "docs.jsonl"), "java": "optional"}
    return {
        name: {"collection": collection, "topics": f"{name}.tsv", "qrels": str(DEMO / "qrels.txt")} for name in "ab"
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory, own):
    folder = tmp_path_factory.mktemp("joint")
    topics = (DEMO / "topics.tsv").read_text().splitlines(keepends=True)
    (folder / "a.tsv").write_text("".join(topics[::2]))
    (folder / "b.tsv").write_text("".join(topics[1::2]))
    write(folder / "joint.yaml", study="collections", collections=own, **SHARED)
    return folder


def write(path, **fields):
    path.write_text(json.dumps({"name": path.stem, **fields}))


@pytest.fixture(scope="module")
def done(folder):
    return run_study(*load(folder / "joint.yaml"), folder / "out", progress=LINES.append)


def test_each_collection_is_ranked_as_alone(done, folder, own):
    for name, fields in own.items():
        write(folder / f"{name}.yaml", **fields, **SHARED)
        alone = run_study(*load(folder / f"{name}.yaml"), folder / name)
        assert {f"{name}: {system}": means for system, means in alone.scores.items()}.items() <= done.scores.items()
        for run in (folder / name).glob("*.run"):
            assert read_run(folder / "out" / f"{name}.{run.name}") == read_run(run)
        models = folder / name / "models"
        for model in models.rglob("*.json"):
            joint = RankingModel.load(folder / "out" / "models" / f"{name}-{model.relative_to(models)}")
            assert joint.weights == RankingModel.load(model).weights


def test_features_of_systems_are_told_for_each_collection(done):
    for row in ("a +tuned-bm25 +1 +its own", "b +mrf +3 +FI/term/LM, SD/ordered/LM-O-1, SD/unordered/LM-U-8"):
        assert len(re.findall(f"^{row}$", done.summary, re.MULTILINE)) == 1


def test_p_is_corrected_over_both_collections(done, folder):
    qrels, p, names = read_qrels(DEMO / "qrels.txt"), [], []
    for name in "ab":
        runs = {tag: read_run(folder / "out" / f"{name}.{tag}.run") for tag in ("bm25", "tuned-bm25", "mrf")}
        scores = {tag: evaluate(run, qrels, SHARED["measures"]).values for tag, run in runs.items()}
        for before in ("bm25", "tuned-bm25"):
            p += [paired_test(column.round(12))[1] for column in (scores["mrf"] - scores[before]).T]
            names += [(name, before, measure) for measure in SHARED["measures"]]
    corrected = dict(zip(names, holm(p).tolist(), strict=True))
    results = json.loads((folder / "out" / "results.json").read_text())
    for name in "ab":
        found = results[name]["relevance"]["significance"]["comparisons"]
        assert {(name, c["baseline"], c["measure"]): c["corrected_p"] for c in found} == pytest.approx(
            {key: value for key, value in corrected.items() if key[0] == name}
        )
    rows = [line.split() for line in done.summary.splitlines()]
    for _, before, measure in names[:4]:
        assert ["mrf", before, measure, *(f"{corrected[name, before, measure]:.4f}" for name in "ab")] in rows
        starred = [corrected[name, before, measure] < 0.05 for name in "ab"]
        assert any(row[:3] == ["mrf", before, measure] and [c[-1] == "*" for c in row[3:5]] == starred for row in rows)
    assert "Holm's correction over 8 comparisons" in done.summary


def test_the_joint_table(done):
    rows = [[cell.rstrip("ab-") for cell in line.split()] for line in done.summary.splitlines()]
    for system in ("bm25", "tuned-bm25", "mrf"):
        for measure in SHARED["measures"]:
            means = [done.scores[f"{name}: {system}"][measure] for name in "ab"]
            assert [system.rstrip("ab-"), measure, *(f"{mean:.4f}" for mean in (*means, np.mean(means)))] in rows
    assert "Column mean: the mean over collections" in done.summary


def test_a_study_is_called_in_python_and_prints_in_all_forms(done, folder, own, tmp_path, monkeypatch):
    """From a file or its fields; the forms are those that the shell prints, in the family of the study."""
    monkeypatch.chdir(folder)
    for given in ("joint.yaml", {"name": "joint", "study": "collections", "collections": own, **SHARED}):
        study, settings = load(given)
        outcome = study(settings, tmp_path)
        assert outcome.scores == done.scores
        assert {form: outcome.evaluation.format(form) for form in STUDY_FORMS} == done.forms
    frame = outcome.evaluation.to_frame()
    assert [*frame.columns] == ["run", "measure", "a", "b", "mean"]
    assert frame["a"].tolist()[0] == done.scores["a: bm25"]["AP"]


@pytest.mark.usefixtures("done")
def test_lines_of_progress_name_the_system_and_are_short():
    folds = [line for line in LINES if "fold" in line]
    systems = ("tuned-bm25", "mrf")
    assert [line.split(": ")[:3] for line in folds] == [
        [name, system, f"fold {fold}"] for name in "ab" for system in systems for fold in (1, 2)
    ]
    assert max(map(len, LINES)) <= 110


@pytest.mark.parametrize(
    ("of_a", "shared", "parts"),
    [
        ({"topcis": "a.tsv"}, {}, ("collections.a.topcis: ", "topics")),
        ({"topics": 3}, {}, ("collections.a.topics: ", "3")),
        ({"first_stage": {"model": ["bm25", "ql"]}}, {}, ("a and b",)),
        ({"subtopic_qrels": str(DEMO / "qrels.subtopics.txt")}, {}, ("a and b",)),
        ({"model": "mrf(max_features=1,tune=true)", "measures": ["AP"]}, {}, ("a and b",)),
        ({}, {"model": ["mrf", "rm3"]}, ("yaml: model: ", "['mrf', 'rm3']")),
        ({}, {"collections": {}}, ("yaml: collections: ", "2", "0")),
    ],
)
def test_refusals(folder, own, of_a, shared, parts):
    fields = {"study": "collections", "collections": {**own, "a": own["a"] | of_a}, **SHARED}
    write(folder / "wrong.yaml", **fields | shared)
    with pytest.raises(FormatError) as caught:
        load(folder / "wrong.yaml")
    assert all(part in str(caught.value) for part in parts)
