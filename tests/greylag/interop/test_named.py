"""Names of Pyserini and ir_datasets; nothing is downloaded."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from urllib.error import URLError

import pytest

from greylag.errors import CollectionError
from greylag.interop import named_qrels, named_topics
from greylag.lucene.prebuilt import pyserini_module


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Instead of Pyserini's module, one that says that it has nothing, as Pyserini does."""

    def get_topics(name: str) -> None:
        raise ValueError(f"Topic {name} Not Found")

    def get_qrels_file(name: str) -> None:
        raise FileNotFoundError(f"no qrels file for {name}")

    module = ModuleType("pyserini.search")
    module.__dict__.update(get_topics=get_topics, get_qrels_file=get_qrels_file)
    monkeypatch.setitem(sys.modules, "pyserini.search", module)
    monkeypatch.chdir(tmp_path)
    return module


def test_pyserini_says_that_it_has_nothing_in_these_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        pyserini_module("search")
    except OSError as error:
        pytest.skip(f"this version of Pyserini cannot tell without a network: {error}")
    assert named_topics("no-such-topics") is None
    assert named_qrels("no-such-qrels") is None


def test_topics_by_name(search: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert named_topics("no-such-topics") is None
    monkeypatch.setattr(search, "get_topics", lambda name: {19: {"title": f"of {name}"}})
    assert named_topics("dl19-passage") == {"19": "of dl19-passage"}
    assert named_topics("topics.tsv") is None


def test_topics_of_ir_datasets() -> None:
    pytest.importorskip("ir_datasets", reason="needs ir_datasets")
    with pytest.raises(CollectionError, match="ir_datasets has no data set 'no-such-data'"):
        named_topics("irds:no-such-data")


def test_qrels_by_name(search: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Read from the file: Pyserini's get_qrels would make document 007 out of it the integer 7."""
    file = tmp_path / "qrels.dl19"
    assert named_qrels("no-such-qrels") is None
    monkeypatch.setattr(search, "get_qrels_file", lambda name: str(file))
    file.write_text("19 0 007 2\n19 0 008 0\n")
    assert named_qrels("dl19-passage") == {"19": {"007": 2, "008": 0}}
    assert named_qrels("qrels.txt") is None
    file.write_text("")
    with pytest.raises(CollectionError, match="judgements dl19-passage, is empty: delete it"):
        named_qrels("dl19-passage")


def test_without_a_network(search: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> str:
        raise URLError("no route to host\nor other")

    for attribute in ("get_topics", "get_qrels_file"):
        monkeypatch.setattr(search, attribute, fail)
    end = r"cannot be downloaded \(<urlopen error no route to host\): is there a network\?$"
    with pytest.raises(CollectionError, match=f"topics dl19-passage {end}"):
        named_topics("dl19-passage")
    with pytest.raises(CollectionError, match=f"judgements dl19-passage {end}"):
        named_qrels("dl19-passage")


def test_qrels_of_ir_datasets() -> None:
    pytest.importorskip("ir_datasets", reason="needs ir_datasets")
    with pytest.raises(CollectionError, match="ir_datasets has no data set 'no-such-data'"):
        named_qrels("irds:no-such-data")
