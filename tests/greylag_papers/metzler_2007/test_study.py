"""The study of feature selection on the demonstration collection: nested, reproducible, and all its files."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

import greylag
from greylag.cli import main
from greylag.errors import FormatError, ParameterError
from greylag.evaluation import evaluate
from greylag.experiments import study
from greylag.index.positional import PositionalIndex
from greylag.ltr.linear import LinearModel
from greylag.ltr.rankers import MRFRanker
from greylag.lucene.lucene_index import LuceneIndex
from greylag.ranking import Run
from greylag.trec import read_qrels, read_run, read_topics
from greylag_papers.metzler_2007 import findings as mrf_findings
from greylag_papers.metzler_2007 import learning as mrf_learning
from greylag_papers.metzler_2007 import study as mrf

DEMO = Path(greylag.__file__).parent / "demo"
CONFIGS = Path(greylag.__file__).parents[2] / "configs"
SYSTEMS = [
    "first stage", "LM", "BM25", "SDM", "MRF-LM", "MRF-BM25", "RM3",
    "MRF-FS", "MRF-FS retrained", "MRF-FS expansion", "coordinate ascent",
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GREYLAG_DATA", raising=False)


def write_config(folder: Path, **options: object) -> Path:
    content: dict[str, Any] = {
        "name": "small", "study": "mrf", "data": str(DEMO), "topics": "topics.tsv", "qrels": "qrels.txt",
        "collection": {"docs": "docs.jsonl", "type": "JsonCollection"}, "features": {"pool": "sd"},
        "grid": {"mu": [50, 500], "k1": [0.9, 1.6], "b": [0.4], "fb_docs": [5], "fb_terms": [10, 30]},
        "training": {"max_features": 6, "folds": 3, "restarts": 2, "seed": 1}, "measures": ["P@10"],
    }  # fmt: skip
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(content | options))
    return path


@dataclass(frozen=True)
class Done:
    folder: Path
    result: study.Result
    results: dict[str, Any]
    index: PositionalIndex
    first: Run


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """The study, run once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GREYLAG_DATA", raising=False)
        folder = tmp_path_factory.mktemp("mrf")
        module, settings = study.load(write_config(folder))
        result = module.run(settings, folder / "out", n_jobs=1, say=lambda _: None)
    results = json.loads((folder / "out" / "results.json").read_text())
    lucene = LuceneIndex(folder / "out" / "index")
    first = lucene.bm25().run(read_topics(DEMO / "topics.tsv"), tag="first-stage")
    return Done(folder, result, results, PositionalIndex.from_lucene(lucene), first)


def test_every_run_is_its_models_rerankings(done: Done) -> None:
    qrels = read_qrels(DEMO / "qrels.txt")
    assert list(done.result.scores) == SYSTEMS
    for system in SYSTEMS:
        tag = mrf.file_name(system)
        run = read_run(done.folder / "out" / f"{tag}.run")
        assert run.tag == tag
        assert evaluate(run, qrels, ["AP"]).means[0] == pytest.approx(done.result.scores[system]["AP"], abs=1e-12)
        if system == "first stage":
            assert [run[qid].docids for qid in done.first] == [ranking.docids for ranking in done.first.rankings]
            continue
        for number, fold in enumerate(done.results["folds"], 1):
            model = LinearModel.load(done.folder / "out" / "models" / tag / f"fold-{number}.json")
            assert set(model.provenance["queries"]).isdisjoint(fold["test"])
            for qid in fold["test"][:2]:
                assert MRFRanker(model, done.index)(done.first[qid]).docids == run[qid].docids


def test_nothing_is_learned_from_test_queries(done: Done) -> None:
    """Judgements of a fold's test queries are turned upside down: what the fold learns stays the same."""
    _, settings = study.load(done.folder / "small.yaml")
    assert isinstance(settings, mrf.Settings)
    qrels = read_qrels(DEMO / "qrels.txt")
    folds = mrf.make_folds(settings, list(done.first))
    experiment = mrf.set_up(settings, done.index, done.first, qrels, 1)
    fold = folds[1]
    turned = {qid: {d: int(g <= 0) for d, g in own.items()} if qid in fold.test else own for qid, own in qrels.items()}
    for judgements in (qrels, turned):
        own = replace(experiment, qrels=judgements)
        tuned = mrf_learning.tune_baselines(own, [fold], lambda _: None)
        learned = mrf_learning.learn(own, fold, tuned["RM3"][0].parameters)
        for system, model in learned.models.items():
            path = done.folder / "out" / "models" / mrf.file_name(system) / "fold-2.json"
            assert LinearModel.load(path) == model
        for name, (found,) in tuned.items():
            saved = LinearModel.load(done.folder / "out" / "models" / mrf.file_name(name) / "fold-2.json")
            assert (saved.weights, saved.parameters) == (found.weights, found.parameters)


def test_results_do_not_depend_on_threads(done: Done, tmp_path: Path) -> None:
    module, settings = study.load(done.folder / "small.yaml")
    module.run(settings, tmp_path, n_jobs=2, say=lambda _: None)
    for path in (done.folder / "out").rglob("*"):
        if path.suffix in (".run", ".yaml") or path.name.startswith("fold-") or path.name == "results.json":
            assert (tmp_path / path.relative_to(done.folder / "out")).read_bytes() == path.read_bytes(), path


def test_the_corrections_are_holms(done: Done) -> None:
    comparisons = done.results["comparisons"]
    assert len(comparisons) == 4 * 6 * 2
    runs = done.results["runs"]
    p = []
    for c in comparisons:
        pair = [[own[c["measure"]] for own in runs[name]["per_query"].values()] for name in (c["run"], c["baseline"])]
        p.append(stats.ttest_rel(*pair, alternative="greater").pvalue)
        assert c["p"] == pytest.approx(p[-1], rel=1e-6, nan_ok=True)
    order = np.argsort(p, kind="stable")
    expected = np.minimum(1, np.maximum.accumulate(np.array(p)[order] * np.arange(len(p), 0, -1)))
    np.testing.assert_allclose(np.array([c["corrected_p"] for c in comparisons])[order], expected, rtol=1e-6)


def test_curves_go_on_where_a_selection_stopped() -> None:
    curves = [
        mrf_learning.Curve((0.1, 0.2), np.array([[0.0, 1.0], [0.5, 1.0]]), ()),
        mrf_learning.Curve((0.3, 0.5, 0.9), np.array([[0.2], [0.4], [0.3]]), ()),
    ]
    pooled = mrf_findings.pool(curves, 3)
    np.testing.assert_allclose(pooled.training, [0.2, 0.35, 0.55])
    np.testing.assert_allclose(pooled.test, [0.4, 1.9 / 3, 0.6])
    assert pooled.after_fifth is None
    falling = np.array([[0.9, 0.5, 0.7]] * 5 + [[0.6, 0.3, 0.3]])
    lost, p = mrf_findings.pool([mrf_learning.Curve((0.5,) * 6, falling, ())], 6).after_fifth or (0.0, 0.0)
    assert lost == pytest.approx(0.3)
    assert p == pytest.approx(stats.ttest_1samp([0.3, 0.2, 0.4], 0, alternative="greater").pvalue)


def test_descriptions_beside_the_runs(done: Done) -> None:
    content = yaml.safe_load((done.folder / "out" / "mrf-fs-expansion.yaml").read_text())
    assert content["tag"] == "mrf-fs-expansion"
    assert set(content) == {"tag", "platform", "research goal", "implementation", "method", "data"}
    assert content["research goal"]["evaluation"]["reported measures"] == ["map", "P_10"]
    steps = content["method"]["retrieval"]
    assert [step["name"] for step in steps] == ["first stage", "MRF-FS expansion"]
    assert (done.folder / "out" / steps[1]["models"] / "fold-1.json").exists()
    assert steps[1]["seed"] == 1
    assert content["data"]["test collection"]["fingerprint"] == done.index.fingerprint


class Page(HTMLParser):
    """What a page refers to, its text, and the rows of its tables."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.text = ""
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.in_cell = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.in_cell = tag == "td"
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
        self.links += [value or "" for name, value in attributes if name in ("src", "href", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.in_cell:
            self.rows[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = False


def test_the_report_stands_alone(done: Done) -> None:
    page = Page()
    page.feed((done.folder / "out" / "report.html").read_text())
    assert all(link.startswith("#") for link in page.links)
    assert page.tags.count("svg") == 2
    assert not {"script", "link", "img"} & set(page.tags)
    for system in SYSTEMS:
        assert f"{done.result.scores[system]['AP']:.4f}" in page.text
    for text in (
        "634 documents; 24 judged queries in 3 folds",
        f"have p < 0.05 as they are, and {sum(c['corrected_p'] < 0.05 for c in done.results['comparisons'])} after",
        "Holm's correction over all 48 comparisons",
        "going from 5 to 6 features",
        "learning, fold 3",
        "28 candidates",
    ):
        assert text in page.text


def test_the_reports_tables_show_the_models(done: Done) -> None:
    page = Page()
    page.feed((done.folder / "out" / "report.html").read_text())

    def models(tag: str) -> list[LinearModel]:
        return [LinearModel.load(done.folder / "out" / "models" / tag / f"fold-{fold}.json") for fold in (1, 2, 3)]

    rm3 = models("rm3")
    assert ["RM3", "fb_terms", *(str(model.parameters.fb_terms) for model in rm3)] in page.rows
    assert ["RM3", "FI/expansion/BM25", *(f"{model.weights[1]:.4g}" for model in rm3)] in page.rows
    assert ["SDM", "AP, training", *(f"{own.provenance['training_score']:.4f}" for own in models("sdm"))] in page.rows
    ascent = [dict(zip(map(str, own.features), own.weights, strict=True)) for own in models("coordinate-ascent")]
    assert ["FI/term/LM", *(f"{weights['FI/term/LM']:+.4g}" for weights in ascent)] in page.rows
    for number, (textual, expanded) in enumerate(zip(models("mrf-fs"), models("mrf-fs-expansion"), strict=True), 1):
        sizes = [f"{len(own.features)} by AP" for own in (textual, expanded)]
        assert any(row[:1] == [str(number)] and row[-2:] == sizes for row in page.rows)
        for place, (feature, weight) in enumerate(zip(expanded.features, expanded.weights, strict=True), 1):
            cell = f"{place}:\N{NO-BREAK SPACE}{weight:+.4g}"
            assert any(row[0] == str(feature) and row[number] == cell for row in page.rows if len(row) == 4)
    at_end = sum(model.parameters.k1 in (0.9, 1.6) for model in models("bm25"))  # k1 has these two values, b has one
    assert f"; BM25's k1 in {at_end} of 3 folds; SDM's mu" in page.text
    times = [float(row[1]) for row in page.rows if len(row) == 2 and row[1].replace(".", "").isdigit()]
    assert times[-1] == pytest.approx(sum(times[:-1]), abs=0.5)


@pytest.mark.parametrize("system", ["MRF-FS", "MRF-FS expansion"])
def test_explain_on_the_command_line(
    done: Done, system: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, tag = done.folder / "out", mrf.file_name(system)
    topics = read_topics(DEMO / "topics.tsv")
    qid = max(done.results["folds"][0]["test"], key=lambda qid: len(topics[qid].split()))
    ranking = read_run(out / f"{tag}.run")[qid]
    model = LinearModel.load(out / "models" / tag / "fold-1.json")
    words = ["--index", out / "index", "--topics", DEMO / "topics.tsv", "--model", out / "models" / tag / "fold-1.json"]
    words += ["--run", out / "first-stage.run", "--qid", qid, "--docid", ranking.docids[2]]
    monkeypatch.setattr(sys, "argv", ["greylag", "explain", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    lines = capfd.readouterr().out.splitlines()
    assert not stop.value.code
    score = float(lines[0].rpartition(" ")[2])
    assert score == pytest.approx(ranking.scores[2], rel=1e-6)
    assert float(lines[-1].split()[0]) == pytest.approx(score, abs=1e-6)
    ends = [(line.split() or [""])[-1] for line in lines]
    places = [place for place, end in enumerate(ends) if end.count("/") == 2]
    assert [ends[place] for place in places] == list(map(str, model.features))
    for place, end in zip(places, [*places[1:], len(lines) - 1], strict=True):
        shares = [float(line.split()[0]) for line in lines[place + 1 : end]]
        assert shares == sorted(shares, key=abs, reverse=True)
        assert sum(shares) == pytest.approx(float(lines[place].split()[0]), abs=1e-6)
        assert all(("(probability 0." in line) == ends[place].startswith("FI/e") for line in lines[place + 1 : end])


def test_expansions_cannot_be_explained_without_the_run(
    done: Done, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = done.folder / "out"
    words = [
        "--index",
        out / "index",
        "--topics",
        DEMO / "topics.tsv",
        "--model",
        out / "models" / "rm3" / "fold-1.json",
    ]
    monkeypatch.setattr(sys, "argv", ["greylag", "explain", *map(str, words), "--qid", "1", "--docid", "demo-1"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "give --run" in capfd.readouterr().err


def test_a_fixed_split_cut_offs_and_a_prior(tmp_path: Path) -> None:
    docids = [json.loads(line)["id"] for line in (DEMO / "docs.jsonl").read_text().splitlines()]
    (tmp_path / "prior.tsv").write_text("".join(f"{docid} {place + 1}\n" for place, docid in enumerate(docids)))
    path = write_config(
        tmp_path,
        features={"pool": "sd", "priors": [f"prior:{tmp_path}/prior.tsv:log"]},
        split={"train": ["1..14"], "test": ["15..18", 21]},
        training={"objective": "nDCG@5", "cutoffs": [5, 20], "max_features": 2, "restarts": 1, "inner_folds": 2},
    )
    module, settings = study.load(path)
    result = module.run(settings, tmp_path / "out", n_jobs=1, say=lambda _: None)
    assert set(result.scores["MRF-FS"]) == {"nDCG@5", "P@10"}
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    (fold,) = results["folds"]
    assert fold["training"] == [str(i) for i in range(1, 15)]
    assert list(results["runs"]["MRF-FS"]["per_query"]) == fold["test"] == ["15", "16", "17", "18", "21"]
    assert list(read_run(tmp_path / "out" / "mrf-fs.run")) == fold["test"]
    assert [len(curves) for curves in fold["held_out"]["MRF-FS"]] == [2, 2]
    model = LinearModel.load(tmp_path / "out" / "models" / "coordinate-ascent" / "fold-1.json")
    assert f"prior:{tmp_path}/prior.tsv:log" in map(str, model.features)


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"split": {"train": ["1..3"], "test": ["3"]}}, ParameterError, "topic '3' is in the split's train and"),
        ({"split": {"train": ["1..99"], "test": ["3"]}}, ParameterError, "names topic '99'"),
        ({"training": {"inner_folds": 1}}, FormatError, "training.inner_folds"),
        ({"grid": {"mu": []}}, FormatError, "grid.mu"),
    ],
)
def test_bad_settings(
    done: Done, tmp_path: Path, options: dict[str, object], error: type[Exception], reason: str
) -> None:
    def folds() -> object:
        _, settings = study.load(write_config(tmp_path, **options))
        assert isinstance(settings, mrf.Settings)
        return mrf.make_folds(settings, list(done.first))

    with pytest.raises(error, match=reason):
        folds()


@pytest.mark.parametrize("name", ["cacm", "vaswani", "cranfield"])
def test_the_configs_read(name: str) -> None:
    _, settings = study.load(CONFIGS / f"{name}.mrf.yaml")
    assert settings.study == "mrf"
    assert settings.expected.keys() <= set(SYSTEMS)
