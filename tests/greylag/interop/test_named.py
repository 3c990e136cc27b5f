"""Names of Pyserini and ir_datasets; nothing is downloaded."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from greylag import start_jvm
from greylag.errors import CollectionError
from greylag.interop import named_qrels, named_topics


def pyserini(module: str) -> Any:
    """A module of Pyserini, on the JVM that greylag starts."""
    start_jvm()
    return import_module(f"pyserini.{module}")


def test_topics_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    search = pyserini("search")
    monkeypatch.setattr(search, "get_topics", lambda name: {19: {"title": f"of {name}"}})
    monkeypatch.chdir(tmp_path)
    assert named_topics("dl19-passage") == {"19": "of dl19-passage"}
    assert named_topics("no-such-topics") is None
    assert named_topics("topics.tsv") is None


def test_topics_of_ir_datasets() -> None:
    pytest.importorskip("ir_datasets", reason="needs ir_datasets")
    with pytest.raises(CollectionError, match="ir_datasets has no data set 'no-such-data'"):
        named_topics("irds:no-such-data")


def test_qrels_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Read from the file: Pyserini's get_qrels would make document 007 out of it the integer 7."""
    search, file = pyserini("search"), tmp_path / "qrels.dl19"
    monkeypatch.setattr(search, "get_qrels_file", lambda name: str(file))
    monkeypatch.chdir(tmp_path)
    file.write_text("19 0 007 2\n19 0 008 0\n")
    assert named_qrels("dl19-passage") == {"19": {"007": 2, "008": 0}}
    assert named_qrels("no-such-qrels") is None
    assert named_qrels("qrels.txt") is None
    file.write_text("")
    with pytest.raises(CollectionError, match="judgements dl19-passage, is empty: delete it"):
        named_qrels("dl19-passage")


def test_qrels_without_a_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    search = pyserini("search")

    def fail(name: str) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr(search, "get_qrels_file", fail)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CollectionError, match=r"judgements dl19-passage cannot be downloaded \(no route.* network\?$"):
        named_qrels("dl19-passage")


def test_qrels_of_ir_datasets() -> None:
    pytest.importorskip("ir_datasets", reason="needs ir_datasets")
    with pytest.raises(CollectionError, match="ir_datasets has no data set 'no-such-data'"):
        named_qrels("irds:no-such-data")
