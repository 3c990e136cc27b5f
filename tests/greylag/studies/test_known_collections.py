"""The experiment files of known collections, run on small stand-ins under the same names, without a network."""

import json
import re
import sys
from types import ModuleType

import ir_datasets
import pytest
from ir_datasets import formats

from greylag.evaluation import evaluate, read_run
from greylag.index import build_index
from greylag.studies import load
from greylag.studies.config import shipped_file, shipped_files
from greylag.studies.pipeline import STUDY, System
from greylag.studies.runner import run_study
from tests.docs import DEMO, DOCS
from tests.greylag.passages.adapters.data_set import Local

NAMES = [name for name in shipped_files() if name.startswith(("msmarco-", "robust04", "beir-"))]
FORMS = "beir-scifact", "msmarco-dl19", "robust04"
"""One file of each form; the others are run by `make test-long`."""
PAGE, PUBLISHED = DOCS / "how-to" / "known-collections.md", DOCS / "evidence" / "published.md"
TOPICS = [line.split("\t") for line in (DEMO / "topics.tsv").read_text().splitlines()]
QUICK = "mrf(max_features=1)"


def judged(first, end, grade=1):
    """The judgements of some of the demonstration's topics, all relevant documents with this grade."""
    qids = {qid for qid, _ in TOPICS[first:end]}
    rows = [line.split() for line in (DEMO / "qrels.txt").read_text().splitlines()]
    return "".join(f"{qid} 0 {docid} {grade * (int(g) > 0)}\n" for qid, _, docid, g in rows if qid in qids)


def topics(first, end):
    return "".join(f"{qid}\t{text}\n" for qid, text in TOPICS[first:end])


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """The demonstration collection under the names of ir_datasets and Pyserini; the last eight topics are to test."""
    texts = [json.loads(line) for line in (DEMO / "docs.jsonl").read_text().splitlines()]
    (tmp_path / "docs.tsv").write_text("".join(f"{t['id']}\t{' '.join(t['contents'].split())}\n" for t in texts))
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GREYLAG_DATA", raising=False)

    def register(name, first, end, grade=1):
        file = tmp_path / name.replace("/", "-")
        file.with_suffix(".tsv").write_text(topics(first, end))
        file.with_suffix(".qrels").write_text(judged(first, end, grade))
        made = ir_datasets.Dataset(
            formats.TsvDocs(Local(tmp_path / "docs.tsv"), namespace="t", lang="en"),
            formats.TsvQueries(Local(file.with_suffix(".tsv")), namespace="t", lang="en"),
            formats.TrecQrels(Local(file.with_suffix(".qrels")), {0: "no", grade: "yes"}),
        )
        monkeypatch.setitem(ir_datasets.registry._registered, name, made)

    for name in ("nfcorpus", "scifact", "fiqa"):
        register(f"beir/{name}", 0, 24)
        register(f"beir/{name}/train", 0, 16)
        register(f"beir/{name}/test", 16, 24)
    for name in ("trec-covid", "scidocs", "webis-touche2020/v2"):
        register(f"beir/{name}", 0, 24)
    register("msmarco-passage/train/judged", 0, 16)
    register("msmarco-passage/dev/small", 16, 24)
    for year in (2019, 2020):
        register(f"msmarco-passage/trec-dl-{year}/judged", 16, 24, grade=2)
    build_index(DEMO / "docs.jsonl", tmp_path / "prebuilt")
    (tmp_path / "robust04.qrels").write_text(judged(0, 24))
    util, search = ModuleType("pyserini.util"), ModuleType("pyserini.search")
    util.__dict__.update(
        TF_INDEX_INFO={"msmarco-v1-passage-full": {"md5": 1}, "robust04": {"md5": 2}},
        download_prebuilt_index=lambda name, verbose: str(tmp_path / "prebuilt"),
    )
    search.__dict__.update(
        get_topics=lambda name: {int(qid): {"title": text} for qid, text in TOPICS},
        get_qrels_file=lambda name: str(tmp_path / f"{name}.qrels"),
    )
    monkeypatch.setitem(sys.modules, "pyserini.util", util)
    monkeypatch.setitem(sys.modules, "pyserini.search", search)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FORMS else pytest.mark.long) for name in NAMES]
)
def test_a_file_runs_on_a_stand_in_of_its_form(stand_ins, name):
    """With a quick model in place of the automatic choice, whose time is that of learning."""
    _, settings = load(shipped_file(name))
    assert settings.model.model == "automatic"
    fewer = settings.training.model_copy(update={"topics": 9 if settings.training.topics else None})
    quick = settings.model_copy(
        update={"model": System(model=QUICK), "baselines": (System(model="bm25"),), "training": fewer}
    )
    out = stand_ins / "out"
    scores = run_study(STUDY, quick, out).scores
    assert {"bm25", "tuned-bm25", "mrf"} <= scores.keys()
    assert list(scores["mrf"]) == list(settings.measures)
    split = settings.test_topics is not None
    run = read_run(out / "mrf.run")
    assert set(run) == {qid for qid, _ in TOPICS[16 if split else 0 :]}
    grade = 2 if "dl" in name else 1
    lines = [line.split() for line in judged(16 if split else 0, 24, grade).splitlines()]
    qrels = {}
    for qid, _, docid, value in lines:
        qrels.setdefault(qid, {})[docid] = int(value)
    for measure, value in evaluate(run, qrels, settings.measures).by_measure.items():
        assert scores["mrf"][measure] == pytest.approx(value, rel=1e-9)
    models = [json.loads(path.read_text()) for path in sorted((out / "models").glob("*.json"))]
    assert len(models) == (2 if split else 5)
    if settings.training.topics:
        assert len(models[0]["provenance"]["queries"]) == 9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["beir-scifact", "robust04"])
def test_the_automatic_choice_of_a_file(stand_ins, name):
    scores = run_study(*load(shipped_file(name)), stand_ins / "out").scores
    measure = next(iter(scores["automatic"]))
    assert scores["automatic"][measure] > scores["tuned-bm25"][measure]


def test_the_page_s_files_of_ones_own(stand_ins):
    """MS MARCO's files and a folder in BEIR's form, as the page spells them."""
    documents = [line.split("\t") for line in (stand_ins / "docs.tsv").read_text().splitlines()]
    (stand_ins / "collection.tsv").write_text("".join(f"{docid}\t{text}\n" for docid, text in documents))
    for part, first, end in (("train", 0, 16), ("dev.small", 16, 24)):
        (stand_ins / f"queries.{part}.tsv").write_text(topics(first, end))
        rows = [line.split() for line in judged(first, end).splitlines()]
        (stand_ins / f"qrels.{part}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    folder = stand_ins / "scifact"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": docid, "title": "", "text": text} for docid, text in documents]
    queries = [{"_id": qid, "text": text} for qid, text in TOPICS]
    for name, records in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for part, first, end in (("train", 0, 16), ("test", 16, 24)):
        rows = [line.split() for line in judged(first, end).splitlines()]
        text = "".join(f"{qid}\t{docid}\t{grade}\n" for qid, _, docid, grade in rows)
        (folder / "qrels" / f"{part}.tsv").write_text("query-id\tcorpus-id\tscore\n" + text)
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        path = stand_ins / f"own-{number}.yaml"
        path.write_text(f"{block}model: {QUICK}\nbaselines: []\n")
        out = stand_ins / f"own-{number}"
        assert "mrf" in run_study(*load(path), out).scores
        assert set(read_run(out / "mrf.run")) == {qid for qid, _ in TOPICS[16:]}


def test_the_pages_name_every_file_and_say_that_none_was_run():
    assert "greylag has not been run on these collections" in PUBLISHED.read_text()
    for name in NAMES:
        assert f"`{name}`" in PAGE.read_text()
        assert f"`{name}`" in PUBLISHED.read_text()
        assert not load(shipped_file(name))[1].expected
