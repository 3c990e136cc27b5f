"""The main study on the demonstration collection."""

import json
import re
from pathlib import Path

import pytest

from greylag import FormatError
from greylag.experiments import pipeline
from greylag.experiments.collection import OpenCollection, open_collection
from greylag.experiments.pipeline import Settings
from greylag.experiments.runner import Finished, run_study
from greylag.experiments.study import Context, deviations, load
from greylag.index import RM3Search
from greylag.ltr import LinearModel, MRFRanker
from greylag.trec import read_run
from tests.greylag.experiments import samples
from tests.greylag.experiments.samples import CONFIGS, DEMO, Page, run_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pipeline")


@pytest.fixture(scope="module")
def settings() -> Settings:
    return pipeline.read_pipeline(DEMO / "demo.yaml")


@pytest.fixture(scope="module")
def opened(folder: Path, settings: Settings) -> OpenCollection:
    return open_collection(settings, Context(folder))


@pytest.fixture(scope="module")
def done(folder: Path, settings: Settings) -> Finished:
    return run_study(pipeline.STUDY, settings, folder)


def test_expected_scores(done: Finished, settings: Settings) -> None:
    assert deviations(done.scores, settings.expected) == []
    assert list(done.scores) == ["bm25", "ql", "mrf", "mmr"]
    assert set(done.scores["mmr"]) == {"AP", "P@10", "nDCG@10", "RR", "alpha-nDCG@10", "S-recall@10"}
    for system, measures in done.scores.items():
        assert f"{system}  " in done.summary
        assert f"{measures['AP']:.4f}" in done.summary


def test_an_expanded_first_stage(folder: Path, settings: Settings, opened: OpenCollection, tmp_path: Path) -> None:
    stage = settings.first_stage.model_copy(update={"model": "bm25+rm3"})
    changed = settings.model_copy(update={"first_stage": stage, "diversify": None})
    (tmp_path / "index").symlink_to(folder / "index")
    finished = run_study(pipeline.STUDY, changed, tmp_path)
    assert list(finished.scores) == ["bm25", "ql", "bm25+rm3", "mrf"]
    expected = RM3Search(opened.lucene.bm25(stage.hits, k1=stage.k1, b=stage.b)).run(opened.topics)
    run = read_run(tmp_path / "bm25+rm3.run")
    assert [ranking.docids for ranking in run.rankings] == [ranking.docids for ranking in expected.rankings]
    assert "bm25+rm3" in finished.summary


def test_results_do_not_depend_on_threads(done: Finished, folder: Path, settings: Settings, tmp_path: Path) -> None:
    assert run_study(pipeline.STUDY, settings, tmp_path, n_jobs=2).scores == done.scores
    for path in [*folder.glob("*.run"), *folder.glob("models/*"), folder / "results.json"]:
        assert (tmp_path / path.relative_to(folder)).read_bytes() == path.read_bytes(), path


def test_every_query_is_reranked_by_a_model_of_other_queries(
    done: Finished, folder: Path, opened: OpenCollection
) -> None:
    run = read_run(folder / "mrf.run")
    assert list(run) == list(opened.first)
    models = [LinearModel.load(folder / "models" / f"fold-{number}.json") for number in range(1, 7)]
    assert sum(len(model.provenance["queries"]) for model in models) == 5 * 24
    for qid, ranking in opened.first.items():
        (model,) = (model for model in models if qid not in model.provenance["queries"])
        assert MRFRanker(model, opened.index)(ranking).docids == run[qid].docids


def test_results(done: Finished, folder: Path, opened: OpenCollection) -> None:
    results = samples.results(folder)
    assert results["fingerprint"] == opened.index.fingerprint
    assert results["relevance"]["runs"]["mrf"]["means"]["AP"] == done.scores["mrf"]["AP"]
    assert results["diversity"]["runs"]["mmr"]["means"]["alpha-nDCG@10"] == done.scores["mmr"]["alpha-nDCG@10"]


@pytest.mark.usefixtures("sum_study")
def test_only_a_file_of_the_main_study_is_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("name: x\nstudy: sum\nnumbers: n\n")
    with pytest.raises(FormatError, match=r"x.yaml: study 'sum': use an experiment file of the study 'pipeline'"):
        pipeline.read_pipeline(tmp_path / "x.yaml")


def test_wrong_measures_are_found_before_any_work(tmp_path: Path) -> None:
    fields = "name: x\ncollection: {docs: d}\ntopics: t\nqrels: q\n"
    for more, place in (
        ("measures: [nDGC@10]", "measures.0"),
        ("training: {objective: nDGC}", "training.objective"),
        ("first_stage: {b: 2}", "first_stage.b"),
        ("first_stage: {k1: -1}", "first_stage.k1"),
        ("features: {max_clique: 1}", "features: max_clique"),
        ("features: {mu: 0}", "features: mu"),
        ("training: {epsilon: -1}", "training.epsilon"),
        ("diversify: {subtopic_qrels: s, relevance_weight: 2}", "diversify.relevance_weight"),
        ("diversify: {subtopic_qrels: s, measures: [S-recal@10]}", "diversify.measures.0"),
    ):
        (tmp_path / "x.yaml").write_text(f"{fields}{more}\n")
        with pytest.raises(FormatError, match=rf"x.yaml: {place}\b"):
            load(tmp_path / "x.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cacm", "cacm-padded", "cranfield", "vaswani"])
def test_expected_scores_on_real_collections(data: object, tmp_path: Path, name: str) -> None:
    assert callable(data)
    data(name.partition("-")[0])
    _, settings = load(CONFIGS / f"{name}.yaml")
    assert deviations(samples.run_file(CONFIGS / f"{name}.yaml", tmp_path).scores, settings.expected) == []


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    run_file(DEMO / "demo.yaml", folder)
    return folder


def test_scores_models_and_queries_are_those_of_the_results(out: Path) -> None:
    page = (out / "report.html").read_text(encoding="utf-8")
    parsed, results = Page(page), json.loads((out / "results.json").read_text())
    means = {name: run["means"] for name, run in results["relevance"]["runs"].items()}
    for name in ("bm25", "ql", "mrf", "mmr"):
        assert [name, *(f"{value:.4f}" for value in means[name].values())] in parsed.rows
    per_query = {name: results["relevance"]["runs"][name]["per_query"] for name in ("bm25", "mrf")}
    changes = [float(value or "") for _, name, value in parsed.attributes if name == "data-change"]
    assert changes[: len(per_query["mrf"])] == [
        per_query["mrf"][qid]["AP"] - per_query["bm25"][qid]["AP"] for qid in per_query["mrf"]
    ]
    model = json.loads((out / "models" / "fold-1.json").read_text())
    first = model["features"][0]
    assert f"1:\N{NO-BREAK SPACE}{first['weight']:+.4g}" in parsed.text
    assert first["feature"] in parsed.text
    assert "24 topics over 634 documents" in page


def test_reasons_are_differences_from_the_average_of_the_first_stage(out: Path) -> None:
    page = (out / "report.html").read_text(encoding="utf-8")
    reasons = Page(page).texts["small"]
    assert len(reasons) == 240
    assert all(re.fullmatch(r"([+-][\d.e+-]+ \S+( \([^)]*\))?(; )?)+", reason) for reason in reasons)
