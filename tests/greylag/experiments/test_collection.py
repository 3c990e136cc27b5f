"""Opening a test collection: its index is built once, and again when the documents change."""

import json
import os
from pathlib import Path
from typing import Any, get_args

import pytest

from greylag import FormatError, ParameterError, Query, Source
from greylag.errors import CollectionError
from greylag.experiments import CollectionSettings, Context, open_collection, open_index
from greylag.experiments.collection import FirstStage, Queries
from greylag.index import RM3Search, RocchioSearch
from greylag.index.analysis import QueryForm
from greylag.lucene import LuceneIndex, build_index
from greylag.lucene.lucene_index import SearchModel

DOCUMENTS = {"a": "red apples", "b": "green apples and pears", "c": "a red car"}


def write_documents(path: Path, documents: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": docid, "contents": text}) + "\n" for docid, text in documents.items()))
    return path


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_documents(tmp_path / "docs.jsonl", DOCUMENTS)


def test_everything_is_opened(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "topics.tsv").write_text("1\tred apples\n2\tcar\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n2 0 c 1\n")
    settings = CollectionSettings(
        name="x", data_folder=tmp_path, collection={"docs": docs.name}, topics="topics.tsv", qrels="qrels.txt",
        first_stage={"model": "ql", "hits": 1, "mu": 10},
    )  # fmt: skip
    lines: list[str] = []
    opened = open_collection(settings, Context(tmp_path / "out", progress=lines.append))
    assert opened.topics == {"1": "red apples", "2": "car"}
    assert opened.qrels == {"1": {"a": 1}, "2": {"c": 1}}
    assert opened.index.n_documents == 3
    assert opened.first.tag == "ql"
    assert {qid: ranking.docids for qid, ranking in opened.first.items()} == {"1": ("a",), "2": ("c",)}
    assert lines == [f"index: 3 documents, in {tmp_path / 'out' / 'index'}", "search: 2 topics, top 1 documents by ql"]


@pytest.mark.parametrize("model", get_args(SearchModel))
def test_first_stages_by_name(docs: Path, tmp_path: Path, model: SearchModel) -> None:
    build_index(docs, tmp_path / "index")
    lucene = LuceneIndex(tmp_path / "index")
    stage = FirstStage(model=model, hits=2, k1=1.5, mu=7.0, fb_terms=3, fb_docs=1, original_query_weight=0.2, gamma=0.1)
    search = lucene.bm25(2, k1=1.5) if model.startswith("bm25") else lucene.ql(2, mu=7.0)
    expected: Source = search
    named: dict[str, float] = {"k1": 1.5, "b": 0.4} if model.startswith("bm25") else {"mu": 7.0}
    if "rm3" in model:
        feedback: dict[str, Any] = {"fb_terms": 3, "fb_docs": 1, "original_query_weight": 0.2}
        expected, named = RM3Search(search, **feedback), named | feedback
    if "rocchio" in model:
        bottom = {"bottom_fb_terms": 10, "bottom_fb_docs": 10}
        feedback = {"fb_terms": 3, "fb_docs": 1, "alpha": 1.0, "beta": 0.75, "gamma": 0.1, **bottom}
        expected, named = RocchioSearch(search, **feedback), named | feedback
    assert (
        stage.source(lucene) == FirstStage(**(stage.model_dump() | {"model": "ql"})).source(lucene, model) == expected
    )
    assert stage.parameters == named


def test_queries_are_shortened(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "topics.tsv").write_text("1\tPapers on red apples. And a car.\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n")
    (tmp_path / "stop.txt").write_text("papers\n")
    settings = CollectionSettings(
        name="x", data_folder=tmp_path, collection={"docs": docs.name}, topics="topics.tsv", qrels="qrels.txt",
        queries={"first_sentence": True, "stop_words": "stop.txt"},
    )  # fmt: skip
    opened = open_collection(settings, Context(tmp_path / "out"))
    assert opened.topics == {"1": "on red apples."}
    assert opened.first["1"].query == "on red apples."
    assert opened.query_form == QueryForm(True, frozenset({"papers"}))
    assert tmp_path / "stop.txt" in settings.paths()
    listed = settings.model_copy(update={"queries": Queries(stop_words="scikit-learn")})
    assert open_collection(listed, Context(tmp_path / "out")).topics == {"1": "Papers red apples. car."}


def test_lenient_reading(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "topics.tsv").write_text("1\tred apples\n1\tcar\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n")
    settings = CollectionSettings(
        name="x", data_folder=tmp_path, collection={"docs": docs.name}, topics="topics.tsv", qrels="qrels.txt"
    )
    with pytest.raises(FormatError, match="--lenient"):
        open_collection(settings, Context(tmp_path / "out"))
    lenient = settings.model_copy(update={"lenient": True})
    assert list(open_collection(lenient, Context(tmp_path / "out")).topics) == ["1"]


def test_the_models_of_the_first_stage(docs: Path, tmp_path: Path) -> None:
    lucene = open_index(docs, None, Context(tmp_path / "out"))
    stage = FirstStage(hits=7, k1=1.2, b=0.3, mu=50)
    query = Query("1", "red apples")
    assert stage.source(lucene)(query) == lucene.bm25(7, k1=1.2, b=0.3)(query)
    assert stage.source(lucene, "ql")(query) == lucene.ql(7, mu=50)(query)
    assert stage.source(lucene)(query) != lucene.bm25(7)(query)
    assert stage.source(lucene, "ql")(query) != lucene.ql(7)(query)
    assert len(FirstStage(hits=1).source(lucene)(query)) == 1


def test_an_index_is_built_once_and_again_when_documents_change(docs: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    context = Context(tmp_path / "out", progress=lines.append)
    folder = tmp_path / "out" / "index"
    open_index(docs, None, context)
    open_index(docs, None, context)
    os.utime(docs, ns=(0, 1))
    open_index(docs, None, context)
    write_documents(docs, DOCUMENTS | {"d": "pears"})
    assert set(open_index(docs, None, context).bm25()(Query("1", "pears")).docids) == {"b", "d"}
    open_index(docs, "JsonCollection", context)
    three, four = (f"index: {n} documents, in {folder}" for n in (3, 4))
    assert lines == [three, f"index: {folder}, built before", three, four, four]


def test_an_index_that_the_study_did_not_build_is_left_alone(docs: Path, tmp_path: Path) -> None:
    mine = tmp_path / "out" / "index"
    mine.mkdir(parents=True)
    (mine / "mine.txt").write_text("mine")
    (tmp_path / "out" / "index.json").write_text("{}")
    with pytest.raises(ParameterError, match="exists already"):
        open_index(docs, None, Context(tmp_path / "out"))
    assert (mine / "mine.txt").read_text() == "mine"
    assert (tmp_path / "out" / "index.json").read_text() == "{}"


def test_an_index_that_the_user_built_is_left_alone(docs: Path, tmp_path: Path) -> None:
    build_index(docs, tmp_path / "out" / "index")
    before = sorted(path.name for path in (tmp_path / "out" / "index").iterdir())
    with pytest.raises(ParameterError, match="exists already"):
        open_index(docs, None, Context(tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "out" / "index").iterdir()) == before


def test_missing_documents(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match=r"none.jsonl: no such documents; paths are relative to the experiment"):
        open_index(tmp_path / "none.jsonl", None, Context(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
