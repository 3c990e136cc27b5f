"""Names of Pyserini and ir_datasets; nothing is downloaded."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from greylag import start_jvm
from greylag.errors import CollectionError
from greylag.interop import named_topics, prebuilt_index


def pyserini(module: str) -> Any:
    """A module of Pyserini, on the JVM that greylag starts."""
    start_jvm()
    return import_module(f"pyserini.{module}")


def test_an_index_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    util = pyserini("util")

    def download(name: str, verbose: bool) -> str:
        print("downloading")
        return str(tmp_path / name)

    monkeypatch.setattr(util, "download_prebuilt_index", download)
    monkeypatch.chdir(tmp_path)
    assert prebuilt_index("msmarco-v1-passage") == tmp_path / "msmarco-v1-passage"
    assert capsys.readouterr().out == ""
    assert prebuilt_index("no-such-index") == Path("no-such-index")
    assert prebuilt_index(tmp_path / "msmarco-v1-passage") == tmp_path / "msmarco-v1-passage"
    Path("msmarco-v1-passage").mkdir()
    assert prebuilt_index("msmarco-v1-passage") == Path("msmarco-v1-passage")


def test_without_a_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    util = pyserini("util")

    def fail(name: str, verbose: bool) -> str:
        raise ValueError("Unable to download prebuilt index at any known URLs.\nmore")

    monkeypatch.setattr(util, "download_prebuilt_index", fail)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CollectionError, match=r"index msmarco-v1-passage cannot be downloaded .* network\?$"):
        prebuilt_index("msmarco-v1-passage")


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
