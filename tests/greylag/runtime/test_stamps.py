"""Stamps of files: what changes them, and what does not."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from greylag.runtime.stamps import file_stamp, file_stamps


def replace(path: Path) -> None:
    (path.parent / "other").write_text("b")
    shutil.copystat(path, path.parent / "other")
    (path.parent / "other").rename(path)


def rewrite(path: Path) -> None:
    state = path.stat()
    path.write_text("b")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def touch(path: Path) -> None:
    os.utime(path, (1, 1))


@pytest.mark.parametrize("change", [replace, rewrite, touch])
def test_a_changed_file_has_another_stamp(change: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a")
    before = file_stamp(path)
    time.sleep(0.02)  # more than a tick of the file system's clock
    assert path.read_text() == "a"
    assert file_stamp(path) == before
    change(path)
    assert file_stamp(path) != before


def test_stamps_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text("12")
    (tmp_path / "c.txt").write_text("1")
    stamps = [file_stamp(tmp_path / name) for name in ("a/b.txt", "c.txt")]
    assert [stamp[1] for stamp in stamps] == [2, 1]
    assert file_stamps(tmp_path) == [("a/b.txt", stamps[0]), ("c.txt", stamps[1])]
    assert file_stamps(tmp_path / "c.txt") == [(".", stamps[1])]
