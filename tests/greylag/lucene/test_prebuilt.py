"""Prebuilt indexes by name; nothing is downloaded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from greylag.errors import CollectionError, DependencyError
from greylag.lucene import LuceneIndex, prebuilt_index
from greylag.lucene.prebuilt import pyserini_module


def test_an_index_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    util = pyserini_module("util")

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
    util = pyserini_module("util")

    def fail(name: str, verbose: bool) -> str:
        raise ValueError("Unable to download prebuilt index at any known URLs.\nmore")

    monkeypatch.setattr(util, "download_prebuilt_index", fail)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CollectionError, match=r"index msmarco-v1-passage cannot be downloaded .* network\?$"):
        prebuilt_index("msmarco-v1-passage")


def test_a_lucene_index_by_name(small: LuceneIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(small.path, tmp_path / "cache" / "index")
    monkeypatch.setattr(pyserini_module("util"), "download_prebuilt_index", lambda name, verbose: str(folder))
    monkeypatch.chdir(tmp_path)
    index = LuceneIndex("msmarco-v1-passage")
    assert (index.path, index.fingerprint) == (folder, small.fingerprint)
    with pytest.raises(CollectionError, match=r"^no-such-index is not a Lucene index"):
        LuceneIndex("no-such-index")


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(DependencyError, match=r"pyserini\.nothing is not usable here .*: pip install"):
        pyserini_module("nothing")
