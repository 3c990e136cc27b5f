"""The study of SVM-div in a pipeline: its systems, and what cross-validation may see."""

from __future__ import annotations

from pathlib import Path

import pytest

from greylag import FormatError, ParameterError, Run
from greylag.diversity import PRESETS, CandidateMaker
from greylag.studies import Context, load
from greylag.studies.config import shipped_file
from greylag.trec import read_run
from greylag_papers.beyond.learned_diversity import Settings, cross_validate, open_pipeline, parse_system
from tests.greylag.diversity import samples as queries
from tests.greylag.studies import samples
from tests.greylag.studies.samples import DEMO, Page


def test_nothing_learned_has_seen_the_tested_fold() -> None:
    n, folds = 15, [["a", "b"], ["c", "d"], ["e", "f"]]
    qids = [qid for fold in folds for qid in fold]
    make = CandidateMaker(queries.index(1, n), PRESETS["svmdiv"])
    ranked = [Run(tuple(queries.ranking(seed, n, qid) for seed, qid in enumerate(qids)))] * 3
    qrels = {qid: queries.judgements(seed, n) for seed, qid in enumerate(qids)}
    before = cross_validate(make, folds, ranked, qrels, 5, 3)
    assert set(before) == set(qids)
    for test in folds:
        changed = {qid: queries.judgements(99, n) if qid in test else judged for qid, judged in qrels.items()}
        after = cross_validate(make, folds, ranked, changed, 5, 3)
        assert [after[qid].docids for qid in test] == [before[qid].docids for qid in test]
        assert any(after[qid].docids != before[qid].docids for qid in qids)


@pytest.mark.usefixtures("own_data")
def test_every_step_is_scored_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greylag.diversity.training.C_GRID", (1e-5, 1e-3, 1e-1))  # a third of the time
    path = tmp_path / "small.yaml"
    path.write_text(
        f"name: small\nstudy: learned_diversity\ndata: {DEMO}\npipeline: demo.yaml\nk: 3\nsystems: [svmdiv+score]\n"
    )
    scores = samples.run_file(path, tmp_path / "out").scores
    systems = ["bm25", "mrf", "mmr", "essential-pages", "known-subtopics", "svmdiv+score"]
    assert list(scores) == systems
    _, expected = load(shipped_file("demo.mrf-svmdiv"))
    assert list(expected.expected) == [*systems[:5], *expected.systems]  # type: ignore[attr-defined]
    for system in systems[:3]:
        for measure in ("AP", "alpha-nDCG@10"):
            assert scores[system][measure] == pytest.approx(expected.expected[system][measure], abs=5e-5)
    assert scores["known-subtopics"]["subtopic-loss@3"] < min(scores[s]["subtopic-loss@3"] for s in ("mrf", "mmr"))
    runs = {system: read_run(tmp_path / "out" / f"{system}.run") for system in systems}
    for ranking in runs["svmdiv+score"].values():
        assert set(ranking.docids) <= set(runs["mrf"][ranking.qid].docids)
    results = samples.results(tmp_path / "out")
    for kind in ("relevance", "diversity"):
        assert results[kind]["significance"]["baseline"] == "mrf"
        assert {c["run"] for c in results[kind]["significance"]["comparisons"]} == set(systems[2:])
    page = Page((tmp_path / "out" / "report.html").read_text())
    assert ["mrf", *(f"{score:.4f}" for score in scores["mrf"].values())] in page.rows


@pytest.mark.usefixtures("sum_study")
def test_the_pipeline_must_diversify(tmp_path: Path) -> None:
    (tmp_path / "plain.yaml").write_text("name: x\ncollection: {docs: d}\ntopics: t\nqrels: q\n")
    settings = Settings(name="x", data_folder=tmp_path, pipeline="plain.yaml")
    with pytest.raises(FormatError, match=r"plain.yaml: subtopic_qrels, a stage mmr or"):
        open_pipeline(settings, Context(tmp_path))
    (tmp_path / "plain.yaml").write_text("name: x\nstudy: sum\nnumbers: n\n")
    with pytest.raises(FormatError, match=r"plain.yaml: study 'sum': use an experiment file of the study 'pipeline'"):
        open_pipeline(settings, Context(tmp_path))


def test_names_of_systems(tmp_path: Path) -> None:
    features = parse_system("svmdiv2+score+SD/ordered/LM-O-4")
    assert features.criteria == PRESETS["svmdiv2"].criteria
    assert features.document_features == ("score", "SD/ordered/LM-O-4")
    assert parse_system("svmdiv") == PRESETS["svmdiv"]
    with pytest.raises(ParameterError, match="system 'svm' does not begin with one of svmdiv, svmdiv2"):
        parse_system("svm")
    (tmp_path / "x.yaml").write_text("name: x\nstudy: learned_diversity\npipeline: p\nsystems: [svmdiv, svm]\n")
    with pytest.raises(FormatError, match=r"systems.1: system 'svm' does not begin"):
        load(tmp_path / "x.yaml")
