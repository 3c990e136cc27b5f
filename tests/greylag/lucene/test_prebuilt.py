"""Prebuilt indexes by name; nothing is downloaded."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType
from urllib.error import URLError

import pytest

from greylag.errors import CollectionError, DependencyError
from greylag.lucene import LuceneIndex, prebuilt_index
from greylag.lucene.prebuilt import pyserini_module


@pytest.fixture
def util(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Instead of Pyserini's module, one that "downloads" to a folder of the test."""

    def download(name: str, verbose: bool) -> str:
        print("downloading")
        return str(tmp_path / "cache" / name)

    module = ModuleType("pyserini.util")
    module.__dict__.update(TF_INDEX_INFO={"msmarco-v1-passage": {}}, download_prebuilt_index=download)
    monkeypatch.setitem(sys.modules, "pyserini.util", module)
    monkeypatch.chdir(tmp_path)
    return module


def test_an_index_by_name(util: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prebuilt_index("msmarco-v1-passage") == tmp_path / "cache" / "msmarco-v1-passage"
    assert capsys.readouterr().out == ""
    assert prebuilt_index("no-such-index") == Path("no-such-index")
    assert prebuilt_index(tmp_path / "msmarco-v1-passage") == tmp_path / "msmarco-v1-passage"
    Path("msmarco-v1-passage").mkdir()
    assert prebuilt_index("msmarco-v1-passage") == Path("msmarco-v1-passage")


def test_without_a_network(util: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, verbose: bool) -> str:
        raise ValueError("Unable to download prebuilt index at any known URLs.\nmore")

    monkeypatch.setattr(util, "download_prebuilt_index", fail)
    with pytest.raises(CollectionError, match=r"index msmarco-v1-passage cannot be downloaded .* network\?$"):
        prebuilt_index("msmarco-v1-passage")


def test_a_version_of_pyserini_that_needs_a_network_to_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise URLError("no route to host")

    monkeypatch.setattr("greylag.lucene.prebuilt.import_module", fail)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CollectionError, match=r"^there is no such file, and Pyserini's index typo .*no route to host"):
        LuceneIndex("typo")


def test_a_lucene_index_by_name(util: ModuleType, small: LuceneIndex, tmp_path: Path) -> None:
    folder = shutil.copytree(small.path, tmp_path / "cache" / "msmarco-v1-passage")
    index = LuceneIndex("msmarco-v1-passage")
    assert (index.path, index.fingerprint) == (folder, small.fingerprint)
    with pytest.raises(CollectionError, match=r"^no-such-index is not a Lucene index"):
        LuceneIndex("no-such-index")


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(DependencyError, match=r"pyserini\.nothing is not usable here .*: pip install"):
        pyserini_module("nothing")
