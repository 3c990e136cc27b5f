"""The main study on the demonstration collection, and its report.

Tests `pipeline`, `pipeline_report`.
"""

import json
import re
import shutil
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from greylag import ParameterError, Run
from greylag.base import GreylagError
from greylag.base.ranking import SEEN
from greylag.evaluation import evaluate, holm, paired_test, read_run, split_folds
from greylag.evaluation.reports.figures import Figure
from greylag.evaluation.scoring.significance import p_text
from greylag.features.spec import candidate_pool
from greylag.features.spelling import parse_features
from greylag.features.stage_registry import StageStep
from greylag.rankers import FusionRanker, ModelRanker, RankingModel
from greylag.recipes import BaselineRecipe, baselines, cross_validate, learn_fusion
from greylag.recipes.spelling import MODEL_KINDS, described, parse_model
from greylag.studies import pipeline, pipeline_report
from greylag.studies.collection import open_collection
from greylag.studies.config import shipped_file
from greylag.studies.runner import run_study
from greylag.studies.study import Context, deviations, load
from tests.greylag.studies import samples
from tests.greylag.studies.samples import DEMO, Page, run_file
from tests.refusals import refuses


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pipeline")


@pytest.fixture(scope="module")
def settings():
    _, settings = load(DEMO / "demo.yaml")
    return settings


@pytest.fixture(scope="module")
def opened(folder, settings):
    return open_collection(settings, Context(folder))


@pytest.fixture(scope="module")
def done(folder, settings):
    return run_study(pipeline.STUDY, settings, folder)


def test_expected_scores(done, folder, settings, opened):
    assert deviations(done.scores, settings.expected) == []
    results = samples.results(folder)
    assert results["fingerprint"] == opened.index.fingerprint
    assert results["relevance"]["runs"]["mrf"]["means"]["AP"] == done.scores["mrf"]["AP"]
    assert results["diversity"]["runs"]["mmr"]["means"]["alpha-nDCG@10"] == done.scores["mmr"]["alpha-nDCG@10"]
    assert list(done.scores) == ["bm25", "ql", "tuned-bm25", "mrf", "mmr"]
    assert set(done.scores["mmr"]) == {"AP", "P@10", "nDCG@10", "RR", "alpha-nDCG@10", "S-recall@10"}
    for system, measures in done.scores.items():
        assert f"{system}  " in done.summary
        assert f"{measures['AP']:.4f}" in done.summary


def test_a_report_describes_a_model_in_its_own_words(done, folder):
    words = {name: described(name) for name, kind in MODEL_KINDS.items() if not kind.diversifies}
    assert len(set(words.values())) == len(words)
    for name, ranks_by in words.items():
        shared = (0.5, 0.5 if name == "listwise" else 0.6)
        model = RankingModel(parse_features("FI/term/LM,score"), (0.5, 0.5), training_scores=shared, objective="AP")
        first, index = SimpleNamespace(tag="bm25"), SimpleNamespace(n_documents=9)
        collection = SimpleNamespace(tested=("1",), index=index, first=first)
        fitted = [SimpleNamespace(model=model, queries=("2",), choice=None)]
        trained = [SimpleNamespace(run=SimpleNamespace(tag=name), fitted=fitted, folds=[["1"]])]
        ranked = pipeline_report.Ranked({}, (), {}, collection, trained, None, {}, ranks_by)  # type: ignore[arg-type]
        told = pipeline_report._summary(ranked)
        assert f"{name} ranks by {ranks_by}; the objective is AP" in told
        assert "selected" not in told
        grown = [part for part in pipeline_report._learned(ranked).parts if isinstance(part, Figure)]
        assert bool(grown) == (name != "listwise")  # whose features are weighted at once
    assert words["mrf"] in (folder / "report.html").read_text()


def test_p_is_corrected_over_all_comparisons_as_by_evaluate(done, folder, settings, opened):
    """So that a study and ``greylag evaluate`` give the same runs one verdict."""
    measures = list(settings.measures)
    scores = {name: evaluate(read_run(folder / f"{name}.run"), opened.qrels, measures) for name in done.scores}
    changes = [scores["mrf"].values - scores[name].values for name in ("bm25", "tuned-bm25")]
    changes.append(scores["mmr"].values - scores["mrf"].values)
    expected = holm([paired_test(column.round(12))[1] for each in changes for column in each.T]).reshape(3, -1)
    for name, p in zip(("bm25", "tuned-bm25"), expected[:, 0].tolist(), strict=False):
        assert re.search(rf"\nmrf +{name} +AP .* {p_text(p)}\n", done.summary), (name, p)
    assert f"Holm's correction over {expected.size} comparisons" in done.summary
    assert "Not all pairs were compared." in done.summary


def test_results_do_not_depend_on_threads(done, folder, settings, tmp_path):
    assert run_study(pipeline.STUDY, settings, tmp_path, n_jobs=2).scores == done.scores
    for path in [*folder.glob("*.run"), *folder.rglob("models/**/*.json"), folder / "results.json"]:
        assert (tmp_path / path.relative_to(folder)).read_bytes() == path.read_bytes(), path


def test_every_query_is_reranked_by_a_model_of_other_queries(done, folder, opened):
    run = read_run(folder / "mrf.run")
    assert list(run) == list(opened.first)
    models = [RankingModel.load(folder / "models" / f"fold-{number}.json") for number in range(1, 7)]
    assert sum(len(model.provenance["queries"]) for model in models) == 5 * 24
    for qid, ranking in opened.first.items():
        (model,) = (model for model in models if qid not in model.provenance["queries"])
        assert ModelRanker(model, opened.index)(ranking).docids == run[qid].docids


def test_tuned_baselines_are_those_of_the_command(done, folder, opened):
    """The folds are those of the model, and the values are chosen on the training topics alone."""
    recipe = BaselineRecipe(baselines.BM25)
    expected = cross_validate(recipe, opened.first, opened.qrels, opened.index, folds=6, seed=1).run
    assert read_run(folder / "tuned-bm25.run")["3"].docids == expected["3"].docids
    scores = evaluate(expected, opened.qrels, ["AP"]).by_measure
    assert done.scores["tuned-bm25"]["AP"] == pytest.approx(scores["AP"], rel=1e-12)
    assert "tuned-bm25" in done.summary


@pytest.fixture
def own_data(monkeypatch):
    monkeypatch.delenv("GREYLAG_DATA", raising=False)  # which would replace the files' own


@pytest.fixture
def split(folder, tmp_path, own_data):
    """A file with a split, and a run in place of the search."""
    lines = (DEMO / "topics.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "train.tsv").write_text("".join(lines[:16]))
    (tmp_path / "test.tsv").write_text("".join(lines[16:]))
    text = (folder / "bm25.run").read_text()
    (tmp_path / "own.run").write_text(text.replace(" bm25\n", f" x{SEEN}\n"))
    (tmp_path / "x.yaml").write_text(
        f"name: x\ncollection: {{docs: {DEMO / 'docs.jsonl'}, type: JsonCollection}}\n"
        "topics: train.tsv\ntest_topics: test.tsv\n"
        f"qrels: {DEMO / 'qrels.txt'}\nfirst_stage: {{model: run:own.run}}\nmodel: mrf\npool: sd\n"
        f"stages: [mmr(k=20)]\nsubtopic_qrels: {DEMO / 'qrels.subtopics.txt'}\nbaselines: [bm25, sdm]\n"
    )
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "index").symlink_to(folder / "index")
    return tmp_path / "x.yaml"


@pytest.mark.usefixtures("done")
def test_a_run_and_a_split(split, opened):
    out = split.parent / "out"
    finished = run_file(split, out)
    assert list(finished.scores) == [f"{name}{SEEN}" for name in ("own", "tuned-bm25", "tuned-sdm", "mrf", "mmr")]
    train, test = list(opened.topics)[:16], list(opened.topics)[16:]
    model = RankingModel.load(out / "models" / "mrf.json")
    assert model.provenance["queries"] == train
    recipe = parse_model("mrf", pool="sd").recipe
    of_train = [ranking for ranking in opened.first.rankings if ranking.qid in train]
    assert recipe.fit(of_train, opened.qrels, opened.index).model.weights == model.weights
    expected = ModelRanker(model, opened.index).run([opened.first[qid] for qid in test])
    ranked = read_run(out / f"mrf{SEEN}.run")
    assert ranked.tag == f"mrf{SEEN}"
    assert {qid: ranked[qid].docids for qid in ranked} == {qid: expected[qid].docids for qid in test}
    judged = {qid: opened.qrels[qid] for qid in test}
    scores = evaluate(expected, judged, ["AP"]).by_measure
    assert finished.scores[f"mrf{SEEN}"]["AP"] == pytest.approx(scores["AP"], rel=1e-12)
    assert "8 topics over 634 documents" in (out / "report.html").read_text()


MANY = ",".join(f"SD/unordered/LM-U-{width}" for width in range(1, 13))


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ("training: {folds: 3}", "training.folds"),
        ("test_topics: train.tsv", "16 topics, such as '1'"),
        ("test_topics: null\ntest_qrels: q", "test_qrels"),
        ("test_topics: null\ntraining: {topics: 9}", "training.topics"),
        ("first_stage: {model: run:mrf.run}", "'mrf'"),
        ("first_stage: {model: bm25(k2=1)}", "first_stage.model.0: bm25 has no option 'k2'"),
        ("first_stage: {model: [bm25, run:x/bm25.run]}", "first_stage: model: run:x/bm25.run"),
        ("measures: [nDGC@10]", "measures.0"),
        ("training: {objective: nDGC}", "training.objective"),
        ("model: mrf(max_clique=1)", "model: max_clique"),
        ("model: mrf(mu=0)", "model: mu"),
        ("model: brf", "model: unknown model 'brf'"),
        ("model: svmdiv", "model: svmdiv diversifies: name a model that ranks"),
        ("model: fusion", "fusion: "),
        ("model: mrf(first_sentence=true)", "mrf: queries are shortened"),
        ("features: SD/LM", "features"),
        ("model: rm3", "pool: no system ranks by it"),
        ("model: rm3\nfeatures: score", "features: no system ranks by it"),
        ("model: {model: mrf, pool: fd}", "pool: no system ranks by it"),
        ("model: {model: sdm, features: score}", "model: sdm takes no features"),
        ("baselines: [{model: bm25, pool: full}]", "baselines.0: bm25 takes no pool"),
        ("baselines: [sdm, {model: fusion, pool: full}]", "baselines.1: fusion takes no pool"),
        ("baselines: [{model: listwise, poll: full}]", "baselines.0.poll: unknown field: did you mean pool?"),
        ("baselines: [{model: listwise, features: SD/LM}]", "baselines.0.features"),
        ("baselines: [{pool: full}]", "baselines.0.model"),
        ("baselines: [3]", "baselines.0: it must be text, or have the fields model, features and pool"),
        ("baselines: [{model: mrf, pool: fd}, {model: mrf, pool: fd}]", "'mrf[pool=fd]' is the name of two systems"),
        (f"baselines: [{{model: mrf, features: '{MANY}'}}]", "cannot name a file"),
        ("baselines: [bm25, bm25]", "'bm25'"),
        ("stages: [mrr]", "stages.0: unknown stage 'mrr'"),
        ("stages: [missing_module:Shorter]", "stages.0: stage missing_module:Shorter"),
        ("stages: [mmr(kept=2)]", "'kept'"),
    ],
)
def test_refusals(split, more, part):
    shutil.copy(split.parent / "own.run", split.parent / "mrf.run")
    split.write_text(json.dumps(yaml.safe_load(split.read_text()) | yaml.safe_load(more)))
    refuses(lambda: run_file(split, split.parent / "out"), GreylagError, part, "|")
    assert not (split.parent / "out" / "results.json").exists()


NUMBERS = count()
OWN = """\
from dataclasses import dataclass

from greylag import Stage


@dataclass(frozen=True)
class Backwards(Stage):
    reads_query = False
    keep: int = 0

    def __call__(self, ranking):
        order = [*range(self.keep), *reversed(range(self.keep, len(ranking)))]
        return ranking.permute(order)
"""


@pytest.fixture
def several(folder, done, tmp_path, own_data):
    """A file with a union, learned fusion, and a stage of a module beside it."""
    module = f"own_stage_{next(NUMBERS)}"  # a process imports a module once
    (tmp_path / f"{module}.py").write_text(OWN)
    shutil.copy(DEMO / "subtopics.tsv", tmp_path / "aspects.tsv")
    union = f"[bm25, ql(mu=500), 'run:{folder / 'mmr.run'}']"
    (tmp_path / "x.yaml").write_text(
        f"name: x\ncollection: {{docs: {DEMO / 'docs.jsonl'}}}\ntopics: {DEMO / 'topics.tsv'}\n"
        f"qrels: {DEMO / 'qrels.txt'}\nfirst_stage: {{model: {union}, hits: 50}}\n"
        "model: fusion\nbaselines: [mrf(max_features=1), mrf(max_features=2)]\npool: null\n"
        f"stages: [{module}:Backwards(keep=2), mmr(k=5) >> {module}:Backwards, 'xquad(aspects=aspects.tsv,k=5)']\n"
        "training: {folds: 3, objective: nDCG@10}\nmeasures: [nDCG@10]\n"
    )
    (tmp_path / "out").mkdir()
    return tmp_path / "x.yaml"


def test_a_union_fused_by_what_other_folds_tell_and_stages_of_ones_own(several, opened):
    out = several.parent / "out"
    finished = run_file(several, out)
    names = ["rrf", "bm25", "ql", "mmr", "mrf(max_features=1)", "mrf(max_features=2)", "fusion", "Backwards"]
    assert list(finished.scores) == [*names, "mmr-Backwards", "xquad"]
    fused, runs = read_run(out / "fusion.run"), [read_run(out / f"{name}.run") for name in ("bm25", "ql", "mmr")]
    for number, fold in enumerate(split_folds(list(opened.topics), 3, 0), 1):
        training = {
            run.tag: Run(tuple(ranking for ranking in run.rankings if ranking.qid not in fold), run.tag) for run in runs
        }
        model = learn_fusion(training, opened.qrels, "nDCG@10").model
        saved = RankingModel.load(out / "models" / f"fold-{number}.json")
        assert (saved.runs, saved.features) == (model.runs, model.features)
        assert np.array(saved.weights) == pytest.approx(np.array(model.weights), rel=1e-4)  # files have float32
        for qid in fold:
            assert fused[qid].docids == FusionRanker(saved)([run[qid] for run in runs]).docids[:50]
    after = read_run(out / "Backwards.run")
    for qid, ranking in fused.items():
        assert after[qid].docids == (*ranking.docids[:2], *ranking.docids[:1:-1])
    xquad = StageStep.parse(f"xquad(aspects={several.parent / 'aspects.tsv'},k=5)").make(opened.index)
    diverse = read_run(out / "xquad.run")
    assert all(diverse[qid].docids[:5] == xquad(ranking).docids[:5] for qid, ranking in fused.items())
    page = (out / "report.html").read_text()
    assert "fusion ranks by the fused rankings of the first stage" in page
    assert "The share of each ranking in each fold" in page


THREE = "FI/term/LM,FI/term/BM25,SD/ordered/LM-O-4"
SAME, POOL, OWN_RUN = "listwise(penalty=30)", "listwise[pool=sd]", "listwise[features=run:runs-own.run@rank]"


@pytest.fixture
def of_features(folder, done, tmp_path, own_data):
    """A file of a study with features, and of systems that have none, or their own."""
    (tmp_path / "runs").mkdir()
    shutil.copy(folder / "mmr.run", tmp_path / "runs" / "own.run")
    baselines = f"[{SAME}, mrf(max_features=2), {{model: listwise, pool: sd}}, bm25, " + (
        "{model: listwise, features: 'run:runs/own.run@rank'}]"
    )
    (tmp_path / "x.yaml").write_text(
        f"name: x\ncollection: {{docs: {DEMO / 'docs.jsonl'}}}\ntopics: {DEMO / 'topics.tsv'}\n"
        f"qrels: {DEMO / 'qrels.txt'}\nfirst_stage: {{hits: 50}}\nfeatures: {THREE}\nmodel: listwise\n"
        f"baselines: {baselines}\ntraining: {{folds: 3}}\nmeasures: [AP]\n"
    )
    return tmp_path / "x.yaml"


def test_all_systems_rank_by_the_features_of_the_study_or_by_their_own(of_features, opened):
    """The learner of the model has its scores as a baseline; each is as `cross_validate` has it on these features."""
    out, (_, settings) = of_features.parent / "out", load(of_features)
    finished = run_file(of_features, out)
    names = [SAME, "mrf", POOL, "tuned-bm25", OWN_RUN, "listwise"]
    assert list(finished.scores) == ["bm25", "ql", *names]
    assert finished.scores[SAME] == finished.scores["listwise"] != finished.scores[POOL]
    assert {place: own.docids for place, own in read_run(out / f"{SAME}.run").items()} == {
        place: own.docids for place, own in read_run(out / "listwise.run").items()
    }
    own_run = f"run:{of_features.parent / 'runs' / 'own.run'}@rank"
    assert of_features.parent / "runs" / "own.run" in [*settings.paths()]
    first = Run(tuple(ranking.head(50) for ranking in opened.first.rankings), opened.first.tag)
    for name, spelling, given, n in (
        ("listwise", "listwise", {"features": parse_features(THREE)}, 3),
        ("mrf", "mrf(max_features=2)", {"features": parse_features(THREE)}, 3),
        (POOL, "listwise", {"pool": "sd"}, len(candidate_pool("sd"))),
        (OWN_RUN, "listwise", {"features": parse_features(own_run)}, 1),
    ):
        expected = cross_validate(parse_model(spelling, **given).recipe, first, opened.qrels, opened.index, folds=3)
        assert {qid: own.docids for qid, own in read_run(out / f"{name}.run").items()} == {
            qid: own.docids for qid, own in expected.run.items()
        }
        for number, model in enumerate(expected.models, 1):
            place = f"fold-{number}.json" if name == "listwise" else f"{name}/fold-{number}.json"
            saved = RankingModel.load(out / "models" / place)
            assert (saved.features, saved.weights) == (model.features, model.weights)
        assert re.search(rf"^{re.escape(name)} +{n}  ", finished.summary, re.MULTILINE)
    assert len(list((out / "models").rglob("*.json"))) == 3 * len(names)
    table = re.search(r"^run +features +of\n((?:.+\n)+)", finished.summary, re.MULTILINE)[1]
    told, page = [re.split("  +", line.strip()) for line in table.splitlines()], Page((out / "report.html").read_text())
    described = "FI/term/LM, FI/term/BM25, SD/ordered/LM-O-4"
    expected = [
        [SAME, "3", described], ["mrf", "3", described], [POOL, "28", "pool sd"], ["tuned-bm25", "1", "its own"],
    ]  # fmt: skip
    assert told[:4] == expected == [row for row in page.rows if row in expected]
    assert samples.results(out)["settings"]["baselines"] == yaml.safe_load(of_features.read_text())["baselines"]


def test_names_of_stages_and_systems_name_files(of_features):
    """Several of one name are named in full, without slashes."""
    text = "stages: ['xquad(aspects=a/b.tsv)', 'xquad(aspects=a/c.tsv, k=5)']\n"
    settings = load(yaml.safe_load(of_features.read_text() + text))[1]
    assert [name for name, _ in settings.after] == ["xquad(aspects=a-b.tsv)", "xquad(aspects=a-c.tsv,k=5)"]
    assert [name for name, _ in settings.systems if "run" in name] == [OWN_RUN]


def test_what_a_fold_is_ranked_by_does_not_depend_on_its_judgements(several, opened):
    _, settings = load(several)
    context = Context(several.parent / "other")
    own = open_collection(settings, context)
    fold = split_folds(list(own.topics), 3, 0)[0]
    turned = {qid: dict.fromkeys(grades, 0) if qid in fold else grades for qid, grades in own.qrels.items()}
    before = pipeline.validate_system(settings, own, context)
    after = pipeline.validate_system(settings, replace(own, qrels=turned), context)
    assert all(before.run[qid] == after.run[qid] for qid in fold)
    assert before.models[0] == after.models[0]
    assert before.models[1:] != after.models[1:]


def test_another_module_of_the_name_of_one_beside_a_file_is_refused(several, tmp_path_factory):
    load(several)[1].read()
    [module] = several.parent.glob("own_stage_*.py")
    other = tmp_path_factory.mktemp("other")
    for path in (several, module):
        shutil.copy(path, other)
    with pytest.raises(ParameterError) as caught:
        load(other / "x.yaml")[1].read()
    assert all(str(part) in str(caught.value) for part in (f"{module.stem}:Backwards", module, other))


@pytest.mark.long
def test_the_automatic_choice_with_features_of_ones_own(folder, done, tmp_path):
    shutil.copy(folder / "mmr.run", tmp_path / "own.run")
    (tmp_path / "x.yaml").write_text(
        f"name: x\ncollection: {{docs: {DEMO / 'docs.jsonl'}}}\ntopics: {DEMO / 'topics.tsv'}\n"
        f"qrels: {DEMO / 'qrels.txt'}\nfirst_stage: {{hits: 30}}\nfeatures: run:own.run@rank\nbaselines: []\n"
        "training: {folds: 2}\nmeasures: [AP]\n"
    )
    finished = run_file(tmp_path / "x.yaml", tmp_path / "out")
    assert list(finished.scores) == ["bm25", "ql", "automatic"]
    results = read_run(tmp_path / "out" / "automatic.run")
    _, settings = load(tmp_path / "x.yaml")
    opened = open_collection(settings, Context(tmp_path / "out"))
    features = parse_features(f"run:{tmp_path / 'own.run'}@rank")
    recipe = parse_model("automatic", features=features).recipe
    expected = cross_validate(recipe, opened.first, opened.qrels, opened.index, folds=2).run
    assert [ranking.docids for ranking in results.rankings] == [ranking.docids for ranking in expected.rankings]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The automatic choice" in page
    assert page.index("Means over 24 judged queries") < page.index("<svg")  # the table before the charts


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cacm", "cacm-padded", "cranfield", "vaswani"])
def test_expected_scores_on_real_collections(data, tmp_path, name):
    data(name.partition("-")[0])
    _, settings = load(shipped_file(name))
    assert deviations(samples.run_file(shipped_file(name), tmp_path).scores, settings.expected) == []


@pytest.mark.usefixtures("done")
def test_scores_models_and_queries_of_the_report_are_those_of_the_results(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    parsed, results = Page(page), samples.results(folder)
    means = {name: run["means"] for name, run in results["relevance"]["runs"].items()}
    for name in ("bm25", "ql", "mrf", "mmr"):
        row = next(row for row in parsed.rows if row[0] == name)
        assert [cell for cell in row[1:] if cell[:1].isdigit()] == [f"{value:.4f}" for value in means[name].values()]
    per_query = {name: results["relevance"]["runs"][name]["per_query"] for name in ("bm25", "mrf")}
    changes = [float(value or "") for _, name, value in parsed.attributes if name == "data-change"]
    assert changes[: len(per_query["mrf"])] == [
        per_query["mrf"][qid]["AP"] - per_query["bm25"][qid]["AP"] for qid in per_query["mrf"]
    ]
    model = json.loads((folder / "models" / "fold-1.json").read_text())
    first = model["features"][0]
    assert f"1:\N{NO-BREAK SPACE}{first['weight']:+.4g}" in parsed.text
    assert first["feature"] in parsed.text
    assert "24 topics over 634 documents" in page


@pytest.mark.usefixtures("done")
def test_reasons_are_differences_from_the_average_of_the_first_stage(folder):
    reasons = Page((folder / "report.html").read_text(encoding="utf-8")).texts["small"]
    assert len(reasons) == 240
    assert all(re.fullmatch(r"([+-][\d.e+-]+ \S+( \([^)]*\))?(; )?)+", reason) for reason in reasons)
