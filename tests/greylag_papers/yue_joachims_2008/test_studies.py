"""The studies of SVM-div as experiments, small, and what cross-validation may see."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import greylag
from greylag.diversity import PRESETS, CandidateMaker
from greylag.errors import FormatError, ParameterError
from greylag.experiments.learned_diversity import cross_validate, parse_system, read_pipeline
from greylag.experiments.pipeline import Diversify
from greylag.experiments.study import load
from greylag.ranking import Run
from greylag_papers.yue_joachims_2008 import collection as svmdiv_collection
from greylag_papers.yue_joachims_2008 import synthetic as svmdiv_synthetic
from greylag_papers.yue_joachims_2008.comparison import Loss, LossTable
from greylag_papers.yue_joachims_2008.tables import BOUND, METHODS, compare_losses, comparison_table, loss_table
from tests.greylag.diversity import samples

DEMO = Path(greylag.__file__).parent / "demo"
CONFIGS = Path(greylag.__file__).parents[2] / "configs"


def losses(method: str, values: list[float]) -> list[Loss]:
    return [Loss(method, 5, None, str(qid), value) for qid, value in enumerate(values)]


def test_wins_ties_and_losses_are_the_learned_models() -> None:
    table = LossTable(
        (*losses("svmdiv", [0.0, 0.1, 0.2, 0.3]), *losses("random", [0.5, 0.2, 0.2, 0.4]), *losses(BOUND, [0.0] * 4))
    )
    test = compare_losses(table, 5, "svmdiv", ("random", BOUND, "svmdiv"))
    (row,) = comparison_table("", test).rows
    assert row[:4] == ("random", 3, 1, 0)
    assert row[4] == pytest.approx(0.25)  # all three differences of one sign: 2 of 2^3 ways
    means = loss_table({"a": table}, 5, ("svmdiv", "random"))
    assert [list(row) for row in means.rows] == [["svmdiv", pytest.approx(0.15)], ["random", pytest.approx(0.325)]]


def test_synthetic(tmp_path: Path) -> None:
    settings = svmdiv_synthetic.Settings(
        name="s", study="svmdiv_synthetic", n_sets=6, n_training=3, n_validation=1, ks=(1, 3), grid=(1.0,)
    )
    result = svmdiv_synthetic.run(settings, tmp_path, n_jobs=1, say=lambda _: None)
    assert set(result.scores) == {*METHODS, "svmdiv"}
    assert all(scores["3"] < scores["1"] for scores in result.scores.values())
    assert json.loads((tmp_path / "results.json").read_text())["means"] == result.scores
    assert "Loss by K" in (tmp_path / "report.html").read_text()
    with pytest.raises(ParameterError, match="6 sets leave none to test after 6"):
        svmdiv_synthetic.run(settings.model_copy(update={"n_training": 5}), tmp_path, n_jobs=1, say=print)


def test_collection(tmp_path: Path) -> None:
    settings = svmdiv_collection.Settings(
        name="demo", study="svmdiv_collection", docs="docs.jsonl", topics="topics.tsv",
        subtopic_qrels="qrels.subtopics.txt", depth=20, k=3, spaces=("svmdiv",), grid=(1.0, 10.0), n_training=3,
        n_validation=1, training_sizes=(1, 3), data_folder=DEMO,
    )  # fmt: skip
    result = svmdiv_collection.run(settings, tmp_path, n_jobs=1, say=lambda _: None)
    results = json.loads((tmp_path / "results.json").read_text())
    for name in ("relevant", "all"):
        found = results[name]
        assert found["loss by training queries"]["3"] == pytest.approx(result.scores["svmdiv"][name])
        assert list(found["training loss by C"]) == list(found["test loss by C"]) == ["1.0", "10.0"]
        assert result.scores[BOUND][name] < result.scores["svmdiv"][name]
        assert found["runs"]["svmdiv"]["means"]["subtopic-loss@3"] == result.scores["svmdiv"][name]
    assert result.scores["random"]["relevant"] < result.scores["random"]["all"]
    assert (tmp_path / "report.html").read_text().count("<svg") == 2


def test_nothing_learned_has_seen_the_tested_fold() -> None:
    n, folds = 15, [["a", "b"], ["c", "d"], ["e", "f"]]
    qids = [qid for fold in folds for qid in fold]
    make = CandidateMaker(samples.index(1, n), PRESETS["svmdiv"])
    ranked = [Run(tuple(samples.ranking(seed, n, qid) for seed, qid in enumerate(qids)))] * 3
    qrels = {qid: samples.judgements(seed, n) for seed, qid in enumerate(qids)}
    option = Diversify(k=5, depth=10, subtopic_qrels="")
    before = cross_validate(make, folds, ranked, qrels, option, 3)
    assert set(before) == set(qids)
    for test in folds:
        changed = {qid: samples.judgements(99, n) if qid in test else judged for qid, judged in qrels.items()}
        after = cross_validate(make, folds, ranked, changed, option, 3)
        assert [after[qid].docids for qid in test] == [before[qid].docids for qid in test]
        assert any(after[qid].docids != before[qid].docids for qid in qids)


def test_the_pipeline_has_to_diversify(tmp_path: Path) -> None:
    assert read_pipeline(DEMO / "demo.yaml")[1].subtopic_qrels == "qrels.subtopics.txt"
    (tmp_path / "plain.yaml").write_text("name: x\ncollection: {docs: d}\ntopics: t\nqrels: q\n")
    for path in (tmp_path / "plain.yaml", CONFIGS / "synthetic.svmdiv.yaml"):
        with pytest.raises(FormatError, match="no file of the study 'pipeline' with a part 'diversify'"):
            read_pipeline(path)


def test_systems_names() -> None:
    features = parse_system("svmdiv2+score+SD/ordered/LM-O-4")
    assert features.criteria == PRESETS["svmdiv2"].criteria
    assert features.document_features == ("score", "SD/ordered/LM-O-4")
    assert parse_system("svmdiv") == PRESETS["svmdiv"]
    with pytest.raises(ParameterError, match="system 'svm' does not begin with one of svmdiv, svmdiv2"):
        parse_system("svm")


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*svmdiv*.yaml")), ids=lambda path: path.stem)
def test_experiment_files_are_valid(path: Path) -> None:
    _, settings = load(path)
    assert settings.name == path.stem
    assert settings.expected
    assert np.isfinite([value for scores in settings.expected.values() for value in scores.values()]).all()
