"""Opening a test collection: its index is built once, and again when the documents change."""

import os

import pytest

from greylag import FormatError, ParameterError, Query
from greylag.base import CollectionError, DependencyError, GreylagError
from greylag.base.ranking import SEEN
from greylag.evaluation import PooledSources, fuse_runs
from greylag.index import LuceneIndex, RM3Search, build_index
from greylag.index.analysis import QueryForm
from greylag.index.lucene import build
from greylag.studies import CollectionSettings, Context, open_collection, open_index
from greylag.studies import collection as opening
from greylag.studies.collection import Collection, FirstStage, Queries
from tests.greylag.index.lucene.samples import write_json
from tests.greylag.passages.adapters.data_set import registered
from tests.processes import python
from tests.refusals import refuses

DOCUMENTS = {"a": "red apples", "b": "green apples and pears", "c": "a red car"}


def collection(tmp_path, **fields):
    """Settings of the three documents, with two topics."""
    write_json(tmp_path / "docs.jsonl", DOCUMENTS)
    (tmp_path / "topics.tsv").write_text("1\tred apples\n2\tcar pears\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n2 0 c 1\n")
    named = {"collection": {"docs": "docs.jsonl"}, "topics": "topics.tsv", "qrels": "qrels.txt"}
    return CollectionSettings(name="x", data_folder=tmp_path, **(named | fields))


def by_qid(run):
    return {qid: ranking.docids for qid, ranking in run.items()}


def test_everything_is_opened(tmp_path):
    settings = collection(tmp_path, first_stage={"model": "ql(mu=10)", "hits": 1})
    lines = []
    opened = open_collection(settings, Context(tmp_path / "out", progress=lines.append))
    assert opened.topics == {"1": "red apples", "2": "car pears"}
    assert opened.qrels == {"1": {"a": 1}, "2": {"c": 1}}
    assert opened.index.n_documents == 3
    assert opened.first.tag == "ql"
    assert by_qid(opened.first) == by_qid(opened.lucene.ql(1, mu=10.0).run(opened.topics))
    assert lines == [f"index: 3 documents, in {tmp_path / 'out' / 'index'}", "search: 2 topics, top 1 documents by ql"]


@pytest.mark.parametrize(
    ("text", "name", "make"),
    [
        ("bm25(k1=1.5)", "bm25", lambda lucene: lucene.bm25(2, k1=1.5)),
        ("ql(mu=7)+rm3(fb_docs=1)", "ql+rm3", lambda lucene: RM3Search(lucene.ql(2, mu=7.0), fb_docs=1)),
    ],
)
def test_searches_with_and_without_parameters(tmp_path, text, name, make):
    build_index(write_json(tmp_path / "docs.jsonl", DOCUMENTS), tmp_path / "index")
    lucene, stage = LuceneIndex(tmp_path / "index"), FirstStage(model=text, hits=2)
    assert (stage.name, stage.search.source(lucene, 2)) == (name, make(lucene))


def test_a_union_of_searches_is_that_of_the_command_train(tmp_path):
    settings = collection(tmp_path, first_stage={"model": ["bm25", "bm25+rm3(fb_terms=3)", "ql"], "hits": 2})
    opened = open_collection(settings, Context(tmp_path / "out"))
    bm25 = opened.lucene.bm25(2)
    sources = (bm25, RM3Search(bm25, fb_terms=3), opened.lucene.ql(2))
    assert by_qid(opened.first) == by_qid(PooledSources(sources, k=2).run(opened.topics))
    assert opened.first.tag == settings.first_stage.name == "rrf"
    assert [run.tag for run in opened.sources] == ["bm25", "bm25+rm3", "ql"]
    for run, source in zip(opened.sources, sources, strict=True):
        assert by_qid(run) == by_qid(source.run(opened.topics))


def test_a_run_in_place_of_a_search_and_beside_one(tmp_path):
    (tmp_path / "own.run").write_text(f"1 Q0 c 1 2 y{SEEN}\n1 Q0 b 2 1 y{SEEN}\n")
    alone = collection(tmp_path, first_stage={"model": "run:own.run"})
    assert tmp_path / "own.run" in alone.paths()
    opened = open_collection(alone, Context(tmp_path / "out"))
    assert by_qid(opened.first) == {"1": ("c", "b")}
    assert opened.first.tag == f"own{SEEN}"  # its mark is not lost
    assert opened.first["1"].query == "red apples"
    fused = {"model": ["bm25", "run:own.run"], "fusion": "combsum(weights=[0.2,0.8])"}
    both = collection(tmp_path, first_stage=fused)
    opened = open_collection(both, Context(tmp_path / "out"))
    assert opened.first.tag == f"combsum{SEEN}"
    assert by_qid(opened.first) == by_qid(fuse_runs(opened.sources, "combsum", weights=[0.2, 0.8]))
    assert set(opened.first["1"].docids) == {"a", "b", "c"}
    few = both.model_copy(update={"first_stage": both.first_stage.model_copy(update={"hits": 1})})
    opened = open_collection(few, Context(tmp_path / "out"))
    assert [len(run["1"]) for run in opened.sources] == [1, 2]
    assert opened.sources[0]["1"].docids != opened.sources[1]["1"].docids[:1]
    assert len(opened.first["1"]) == 1


def test_an_index_in_place_of_documents(tmp_path):
    build_index(write_json(tmp_path / "docs.jsonl", DOCUMENTS), tmp_path / "own")
    opened = open_collection(collection(tmp_path, collection={"index": "own"}), Context(tmp_path / "out"))
    assert by_qid(opened.first) == by_qid(opened.lucene.bm25().run(opened.topics))
    assert opened.texts(["a", "none"]) == {"a": DOCUMENTS["a"]}
    assert not (tmp_path / "out").exists()


def test_names_of_ir_datasets(tmp_path, monkeypatch):
    registered(tmp_path, monkeypatch)
    name = "irds:greylag-test"
    settings = collection(tmp_path, collection={"docs": name}, topics=name, qrels=name)
    lines = []
    context = Context(tmp_path / "out", progress=lines.append)
    opened = open_collection(settings, context)
    assert opened.topics == {"1": "cat", "2": "dog run"}
    assert opened.qrels == {"1": {"d1": 2, "d2": 0}, "2": {"d2": 1}}
    assert by_qid(opened.first) == {"1": ("d1",), "2": ("d2",)}
    assert opened.texts(["d2", "none"]) == {"d2": "a dog ran"}
    open_collection(settings, context)
    assert lines.count(f"index: {tmp_path / 'out' / 'index'}, built before") == 1


def test_queries_are_shortened(tmp_path):
    settings = collection(tmp_path, queries={"first_sentence": True, "stop_words": "stop.txt"})
    (tmp_path / "topics.tsv").write_text("1\tPapers on red apples. And a car.\n")
    (tmp_path / "stop.txt").write_text("papers\n")
    opened = open_collection(settings, Context(tmp_path / "out"))
    assert opened.topics == {"1": "on red apples."}
    assert opened.first["1"].query == "on red apples."
    assert opened.query_form == QueryForm(True, frozenset({"papers"}))
    assert tmp_path / "stop.txt" in settings.paths()
    listed = settings.model_copy(update={"queries": Queries(stop_words="scikit-learn")})
    assert open_collection(listed, Context(tmp_path / "out")).topics == {"1": "Papers red apples. car."}


def test_lenient_reading(tmp_path):
    settings = collection(tmp_path)
    (tmp_path / "topics.tsv").write_text("1\tred apples\n1\tcar\n")
    with pytest.raises(FormatError):
        open_collection(settings, Context(tmp_path / "out"))
    lenient = settings.model_copy(update={"lenient": True})
    assert list(open_collection(lenient, Context(tmp_path / "out")).topics) == ["1"]


def test_an_index_is_built_once_and_again_when_documents_change(tmp_path):
    docs, lines = write_json(tmp_path / "docs.jsonl", DOCUMENTS), []
    context = Context(tmp_path / "out", progress=lines.append)
    folder = tmp_path / "out" / "index"
    open_index(docs, None, context)
    open_index(docs, None, context)
    os.utime(docs, ns=(0, 1))
    open_index(docs, None, context)
    write_json(docs, DOCUMENTS | {"d": "pears"})
    assert set(open_index(docs, None, context).bm25()(Query("1", "pears")).docids) == {"b", "d"}
    open_index(docs, "JsonCollection", context)
    three, four = (f"index: {n} documents, in {folder}" for n in (3, 4))
    assert lines == [three, f"index: {folder}, built before", three, four, four]


@pytest.mark.parametrize("kind", ["another folder", "an index that the user built"])
def test_an_index_that_the_study_did_not_build_is_left_alone(tmp_path, kind):
    docs, mine = write_json(tmp_path / "docs.jsonl", DOCUMENTS), tmp_path / "out" / "index"
    if kind == "another folder":
        mine.mkdir(parents=True)
        (mine / "mine.txt").write_text("mine")
    else:
        build_index(docs, mine)
    before = {path.name: path.read_bytes() for path in mine.iterdir()}
    refuses(lambda: open_index(docs, None, Context(tmp_path / "out")), ParameterError, f"{mine} exists", "|")
    assert {path.name: path.read_bytes() for path in mine.iterdir()} == before


WITHOUT_JAVA = [
    ({"first_stage": {"model": "ql"}}, "first_stage.model ql: ql needs Java"),
    ({"first_stage": {"model": "bm25+rm3"}}, "first_stage.model bm25+rm3: bm25+rm3 needs Java"),
    ({"collection": {"docs": "docs.jsonl", "type": "HtmlCollection", "java": "optional"}}, "JSON"),
    ({"collection": {"docs": "docs.jsonl", "language": "th", "java": "optional"}}, "Thai"),
    ({"collection": {"docs": "docs.jsonl"}}, "there is no Java"),  # required by default
]


@pytest.mark.parametrize(("fields", "part"), WITHOUT_JAVA)
def test_what_needs_java_is_refused_without_it(tmp_path, monkeypatch, fields, part):
    def start_jvm():
        raise DependencyError("there is no Java")

    for module in (opening, build):
        monkeypatch.setattr(module, "start_jvm", start_jvm)
    settings = collection(tmp_path, **{"collection": {"docs": "docs.jsonl", "java": "optional"}} | fields)
    refuses(lambda: open_collection(settings, Context(tmp_path / "out")), GreylagError, part, "|")


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        *(
            ((lambda _, fields=fields: Collection(**fields)), ValueError, part)
            for fields, part in (
                ({}, "docs"),
                ({"docs": "d", "index": "i"}, "docs"),
                ({"index": "i", "language": "de"}, "language"),
                ({"docs": "irds:x", "fields": "y"}, "fields"),
            )
        ),
        (lambda _: FirstStage(model=("bm25", "ql"), fusion="rrf(weights=[1])"), ValueError, "2 runs"),
        (lambda path: open_index(path / "none.jsonl", None, Context(path / "out")), CollectionError, "none.jsonl"),
    ],
)
def test_refusals(tmp_path, call, error, part):
    with pytest.raises(error) as caught:  # those of settings have several lines
        call(tmp_path)
    assert part in str(caught.value)
    assert not (tmp_path / "out").exists()


HIDDEN = "import sys; sys.modules['jnius'] = None; from greylag.cli import main; main()"


@pytest.mark.long
def test_the_demonstration_ranks_without_java_as_with_it(tmp_path):
    for program, out in ((["-m", "greylag"], "with"), (["-c", HIDDEN], "without")):
        done = python(*program, "experiment", "demo", "--out", out, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert ("634 documents, in memory and for BM25 alone" in done.stdout) == (out == "without")
    runs = {path.name: path.read_bytes() for path in (tmp_path / "without").glob("*.run")}
    assert runs.keys() == {"bm25.run", "tuned-bm25.run", "mrf.run", "mmr.run"}
    for name, content in runs.items():
        assert (tmp_path / "with" / name).read_bytes() == content, name
    assert (tmp_path / "with" / "ql.run").exists()
    assert not (tmp_path / "without" / "index").exists()
