"""Locks between processes, and removal of what killed processes left behind."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from greylag.runtime.files import write_text
from greylag.runtime.locks import MARK, TEMPORARY, claimed, discard, locked, sweep

HEX = "0123456789abcdef" * 2


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_lock_admits_one_at_a_time_and_says_that_it_waits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    inside, most = 0, 0
    entered = threading.Event()

    def work() -> None:
        nonlocal inside, most
        with locked(tmp_path / "lock", tmp_path / "target"):
            inside += 1
            most = max(most, inside)
            entered.set()
            time.sleep(0.05)
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    with caplog.at_level(logging.WARNING):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert entered.is_set()
    assert most == 1
    assert f"{tmp_path / 'target'} is being written by another process; waiting for it" in caplog.messages
    assert names(tmp_path) == set()


def test_a_system_without_these_locks_is_named() -> None:
    code = (
        "import sys; sys.modules['fcntl'] = None\n"
        "from greylag.cli import main; sys.argv[1:] = ['evaluate', 'a', 'b']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("greylag: error: greylag needs file locks of POSIX: use Linux or macOS")
    assert done.stderr.count("\n") == 1


def test_only_stale_files_of_greylag_are_swept(tmp_path: Path) -> None:
    mine = {".greylag-notes", f"{TEMPORARY}{HEX}.bak", f"x{TEMPORARY}{HEX}", ".greylag", "a.greylag-lock"}
    for name in (*mine, f"{TEMPORARY}{HEX}", ".a.greylag-lock"):
        (tmp_path / name).touch()
    (tmp_path / ".a.greylag-part" / "inside").mkdir(parents=True)
    (tmp_path / ".b.greylag-part").mkdir()  # without a lock file, it is not known to be greylag's
    with locked(tmp_path / f"{TEMPORARY}{HEX[::-1]}"), claimed(tmp_path / "c") as (part, _):
        part.mkdir()
        sweep(tmp_path)
        used = {f"{TEMPORARY}{HEX[::-1]}", ".c.greylag-lock", ".c.greylag-part"}
        assert names(tmp_path) == mine | used | {".b.greylag-part"}
    assert names(tmp_path) == mine | {".b.greylag-part"}
    sweep(tmp_path / "absent")


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").touch()
    (tmp_path / "places").mkdir()
    (tmp_path / "places" / ".a.greylag-lock").touch()
    (tmp_path / "places" / ".a.greylag-part").symlink_to(tmp_path / "own")
    (tmp_path / "places" / f"{TEMPORARY}{HEX}").symlink_to(tmp_path / "own" / "thesis.txt")
    sweep(tmp_path / "places")
    assert (tmp_path / "own" / "thesis.txt").exists()


def test_writing_removes_what_a_killed_writer_left(tmp_path: Path) -> None:
    code = (
        "import os, sys; from greylag.runtime.files import open_atomically\n"
        "with open_atomically(sys.argv[1]) as file:\n    file.write('half'); file.flush(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.run")], check=False).returncode == 9
    assert len(names(tmp_path)) == 1
    write_text(tmp_path / "b.run", "whole")
    assert names(tmp_path) == {"b.run"}


@pytest.mark.parametrize(("before", "after"), [({"old"}, "old"), ({"old", "part"}, "old"), ({"old", "new"}, "new")])
def test_an_interrupted_replacement_is_undone_or_finished(tmp_path: Path, before: set[str], after: str) -> None:
    places = {"old": ".a.greylag-old", "part": ".a.greylag-part", "new": "a"}
    (tmp_path / ".a.greylag-lock").touch()
    for name in before:
        (tmp_path / places[name]).mkdir()
        (tmp_path / places[name] / MARK).touch()
        (tmp_path / places[name] / name).touch()
    sweep(tmp_path)
    assert names(tmp_path) == {"a"}
    assert names(tmp_path / "a") == {MARK, after}


def test_the_mark_is_removed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "made"
    (folder / "sub").mkdir(parents=True)
    for name in (MARK, "a", "z"):
        (folder / name).touch()
    (folder / "link").symlink_to(tmp_path)
    removed: list[str] = []
    unlink = os.unlink
    monkeypatch.setattr(
        os, "unlink", lambda path, **options: (removed.append(Path(path).name), unlink(path, **options))
    )
    discard(folder)
    assert removed[-1] == MARK
    assert names(tmp_path) == set()
