"""The main study on the demonstration collection."""

import json
import re
import shutil
from pathlib import Path

import pytest

from greylag import FormatError
from greylag.evaluation import evaluate
from greylag.experiments import pipeline
from greylag.experiments.collection import OpenCollection, open_collection
from greylag.experiments.config import shipped_file
from greylag.experiments.pipeline import Settings
from greylag.experiments.runner import Finished, run_study
from greylag.experiments.study import Context, deviations, load
from greylag.index import RM3Search
from greylag.learning import GreedySelection
from greylag.models import BaselineRecipe, ModelRanker, RankingModel, baselines, cross_validate
from greylag.ranking import SEEN
from greylag.trec import read_run
from tests.greylag.experiments import samples
from tests.greylag.experiments.samples import DEMO, Page, run_file


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
    assert list(done.scores) == ["bm25", "ql", "tuned-bm25", "mrf", "mmr"]
    assert set(done.scores["mmr"]) == {"AP", "P@10", "nDCG@10", "RR", "alpha-nDCG@10", "S-recall@10"}
    for system, measures in done.scores.items():
        assert f"{system}  " in done.summary
        assert f"{measures['AP']:.4f}" in done.summary


def test_an_expanded_first_stage(folder: Path, settings: Settings, opened: OpenCollection, tmp_path: Path) -> None:
    stage = settings.first_stage.model_copy(update={"model": "bm25+rm3"})
    changed = settings.model_copy(update={"first_stage": stage, "diversify": None})
    (tmp_path / "index").symlink_to(folder / "index")
    finished = run_study(pipeline.STUDY, changed, tmp_path)
    assert list(finished.scores) == ["bm25", "ql", "bm25+rm3", "tuned-bm25", "mrf"]
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
    models = [RankingModel.load(folder / "models" / f"fold-{number}.json") for number in range(1, 7)]
    assert sum(len(model.provenance["queries"]) for model in models) == 5 * 24
    for qid, ranking in opened.first.items():
        (model,) = (model for model in models if qid not in model.provenance["queries"])
        assert ModelRanker(model, opened.index)(ranking).docids == run[qid].docids


def test_results(done: Finished, folder: Path, opened: OpenCollection) -> None:
    results = samples.results(folder)
    assert results["fingerprint"] == opened.index.fingerprint
    assert results["relevance"]["runs"]["mrf"]["means"]["AP"] == done.scores["mrf"]["AP"]
    assert results["diversity"]["runs"]["mmr"]["means"]["alpha-nDCG@10"] == done.scores["mmr"]["alpha-nDCG@10"]


def test_tuned_baselines_are_those_of_the_command(done: Finished, folder: Path, opened: OpenCollection) -> None:
    """The folds are those of the model, and the values are chosen on the training topics alone."""
    recipe = BaselineRecipe(baselines.BM25)
    expected = cross_validate(recipe, opened.first, opened.qrels, opened.index, folds=6, seed=1).run
    assert read_run(folder / "tuned-bm25.run")["3"].docids == expected["3"].docids
    scores = evaluate(expected, opened.qrels, ["AP"]).by_measure
    assert done.scores["tuned-bm25"]["AP"] == pytest.approx(scores["AP"], rel=1e-12)
    assert "tuned-bm25" in done.summary


@pytest.fixture
def split(folder: Path, tmp_path: Path, own_data: None) -> Path:
    """A file with a split, and a run in place of the search."""
    lines = (DEMO / "topics.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "train.tsv").write_text("".join(lines[:16]))
    (tmp_path / "test.tsv").write_text("".join(lines[16:]))
    text = (folder / "bm25.run").read_text()
    (tmp_path / "own.run").write_text(text.replace(" bm25\n", f" x{SEEN}\n"))
    (tmp_path / "x.yaml").write_text(
        f"name: x\ncollection: {{docs: {DEMO / 'docs.jsonl'}, type: JsonCollection}}\n"
        "topics: train.tsv\ntest_topics: test.tsv\n"
        f"qrels: {DEMO / 'qrels.txt'}\nfirst_stage: {{run: own.run}}\nfeatures: {{pool: sd}}\n"
        f"diversify: {{subtopic_qrels: {DEMO / 'qrels.subtopics.txt'}}}\nbaselines: [bm25, sdm]\n"
    )
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "index").symlink_to(folder / "index")
    return tmp_path / "x.yaml"


@pytest.mark.usefixtures("done")
def test_a_run_and_a_split(split: Path, opened: OpenCollection) -> None:
    out = split.parent / "out"
    finished = run_file(split, out)
    assert list(finished.scores) == [f"{name}{SEEN}" for name in ("own", "tuned-bm25", "tuned-sdm", "mrf", "mmr")]
    train, test = list(opened.topics)[:16], list(opened.topics)[16:]
    model = RankingModel.load(out / "models" / "mrf.json")
    assert model.provenance["queries"] == train
    recipe = pipeline.Features(pool="sd").recipe(GreedySelection("AP"))
    of_train = [ranking for ranking in opened.first.rankings if ranking.qid in train]
    assert recipe.fit(of_train, opened.qrels, opened.index).weights == model.weights
    expected = ModelRanker(model, opened.index).run([opened.first[qid] for qid in test])
    ranked = read_run(out / f"mrf{SEEN}.run")
    assert ranked.tag == f"mrf{SEEN}"
    assert {qid: ranked[qid].docids for qid in ranked} == {qid: expected[qid].docids for qid in test}
    judged = {qid: opened.qrels[qid] for qid in test}
    scores = evaluate(expected, judged, ["AP"]).by_measure
    assert finished.scores[f"mrf{SEEN}"]["AP"] == pytest.approx(scores["AP"], rel=1e-12)
    assert "8 topics over 634 documents" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("features:", "training: {folds: 3}\nfeatures:", "training.folds cannot be combined"),
        ("run: own.run", "run: own.run, k1: 2", "run and k1 cannot be combined"),
        ("test_topics: test.tsv", "test_topics: train.tsv", "16 topics, such as '1', are in"),
        ("test_topics: test.tsv", "test_qrels: q", "test_qrels needs test_topics"),
        ("run: own.run", "run: mrf.run", "'mrf' is the name of a step"),
    ],
)
def test_refusals_of_splits_and_runs(split: Path, old: str, new: str, reason: str) -> None:
    shutil.copy(split.parent / "own.run", split.parent / "mrf.run")
    split.write_text(split.read_text().replace(old, new))
    with pytest.raises(FormatError, match=reason):
        run_file(split, split.parent / "out")


def test_no_study_of_a_pipeline_takes_a_split(split: Path) -> None:
    with pytest.raises(FormatError, match=r"x.yaml: test_topics"):
        pipeline.read_pipeline(split)


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
    _, settings = load(shipped_file(name))
    assert deviations(samples.run_file(shipped_file(name), tmp_path).scores, settings.expected) == []


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
