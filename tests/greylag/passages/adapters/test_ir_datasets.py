"""Names and data sets of ir_datasets and Pyserini; nothing is downloaded.

Tests `named`.
"""

import sys
from pathlib import Path
from types import ModuleType
from urllib.error import URLError

import pytest
from tests.greylag.passages.adapters.data_set import Local, registered
from tests.greylag.passages.adapters.samples import SubtopicQrel, TrecQuery

from greylag.base import CollectionError, FormatError
from greylag.cli.options import Shared
from greylag.evaluation import read_subtopic_qrels
from greylag.index import PositionalIndex
from greylag.index.lucene.prebuilt import pyserini_module
from greylag.passages import (
    named_qrels,
    named_topics,
    qrels_from_ir_datasets,
    run_from_ir_datasets,
    subtopic_qrels_from_ir_datasets,
    texts_from_ir_datasets,
    topics_from_ir_datasets,
)


@pytest.fixture
def ir_datasets():
    return pytest.importorskip("ir_datasets", reason="needs ir_datasets")


@pytest.fixture
def dataset(ir_datasets, tmp_path, monkeypatch):
    return registered(tmp_path, monkeypatch)


@pytest.mark.parametrize("by_name", [None, "greylag-test", "irds:greylag-test"])
def test_a_data_set_or_its_name(dataset, by_name):
    source = by_name or dataset
    assert topics_from_ir_datasets(source) == {"1": "cat", "2": "dog run"}
    assert qrels_from_ir_datasets(source) == {"1": {"d1": 2, "d2": 0}, "2": {"d2": 1}}
    index = PositionalIndex.from_texts(texts_from_ir_datasets(source))
    assert index.documents(["d1", "d2"]).tolist() == [0, 1]
    (ranking,) = run_from_ir_datasets(source, topics={"1": "cat"}).rankings
    assert (ranking.docids, ranking.query) == (("d2", "d1"), "cat")


@pytest.mark.parametrize("by_name", [False, True])
def test_subtopics_are_those_of_the_file(ir_datasets, tmp_path, monkeypatch, by_name):
    (tmp_path / "div").write_text("1 0 c 0\n1 1 a 1\n1 2 a 2\n1 2 b 0\n2 1 a 0\n")
    judged = ir_datasets.formats.TrecSubQrels(Local(tmp_path / "div"), {0: "no", 1: "yes"})
    monkeypatch.setitem(ir_datasets.registry._registered, "greylag-div", ir_datasets.Dataset(judged))
    source = "irds:greylag-div" if by_name else ir_datasets.load("greylag-div")
    assert subtopic_qrels_from_ir_datasets(source) == read_subtopic_qrels(tmp_path / "div")
    assert Shared().subtopic_qrels(Path("irds:greylag-div")) == read_subtopic_qrels(tmp_path / "div")


def test_named_tuples_and_their_fields():
    queries = [TrecQuery("301", "cats", "What do cats do?")]
    assert topics_from_ir_datasets(queries) == {"301": "cats"}
    assert topics_from_ir_datasets(queries, field="description") == {"301": "What do cats do?"}
    judged = [SubtopicQrel("1", "d", grade, topic) for grade, topic in ((1, "a"), (2, "b"), (0, "c"))]
    assert qrels_from_ir_datasets(judged) == {"1": {"d": 2}}


def test_what_a_data_set_lacks_or_cannot_get(ir_datasets, dataset, tmp_path):
    from ir_datasets import formats

    without = ir_datasets.Dataset(formats.TsvQueries(tmp_path / "queries", namespace="t", lang="en"))
    with pytest.raises(CollectionError):
        qrels_from_ir_datasets(without)

    class NoNetwork:
        def stream(self):
            raise ConnectionError("no route to host")

    unreachable = ir_datasets.Dataset(formats.TsvQueries(NoNetwork(), namespace="t", lang="en"))
    with pytest.raises(CollectionError, match="ConnectionError: no route to host"):
        topics_from_ir_datasets(unreachable)


@pytest.fixture
def search(monkeypatch, tmp_path):
    """Instead of Pyserini's module, one that says that it has nothing, as Pyserini does."""

    def get_topics(name):
        raise ValueError(f"Topic {name} Not Found")

    def get_qrels_file(name):
        raise FileNotFoundError(f"no qrels file for {name}")

    module = ModuleType("pyserini.search")
    module.__dict__.update(get_topics=get_topics, get_qrels_file=get_qrels_file)
    monkeypatch.setitem(sys.modules, "pyserini.search", module)
    monkeypatch.chdir(tmp_path)
    return module


def test_pyserini_says_that_it_has_nothing_in_these_words(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    try:
        pyserini_module("search")
    except OSError as error:
        pytest.skip(f"this version of Pyserini cannot tell without a network: {error}")
    for read in (named_topics, named_qrels):
        with pytest.raises(FormatError):
            read("no-such-name")


def test_topics_by_name(search, monkeypatch):
    for name in ("no-such-topics", "topics.tsv"):
        with pytest.raises(FormatError, match=name):
            named_topics(name)
    monkeypatch.setattr(search, "get_topics", lambda name: {19: {"title": f"of {name}"}})
    assert named_topics("dl19-passage") == {"19": "of dl19-passage"}


def test_qrels_by_name(search, monkeypatch, tmp_path):
    """Read from the file: Pyserini's get_qrels would make document 007 out of it the integer 7."""
    file = tmp_path / "qrels.dl19"
    for name in ("no-such-qrels", "qrels.txt"):
        with pytest.raises(FormatError, match=name):
            named_qrels(name)
    monkeypatch.setattr(search, "get_qrels_file", lambda name: str(file))
    file.write_text("19 0 007 2\n19 0 008 0\n")
    assert named_qrels("dl19-passage") == {"19": {"007": 2, "008": 0}}
    file.write_text("")
    with pytest.raises(CollectionError, match=r"dl19-passage.* empty"):
        named_qrels("dl19-passage")


def test_without_a_network(search, monkeypatch):
    def fail(name):
        raise URLError("no route to host\nor other")

    for attribute in ("get_topics", "get_qrels_file"):
        monkeypatch.setattr(search, attribute, fail)
    for kind, read in (("topics", named_topics), ("judgements", named_qrels)):
        with pytest.raises(CollectionError, match=rf"{kind} dl19-passage .*\(<urlopen error no route to host\):"):
            read("dl19-passage")
