"""Making folders: atomically, by one process at a time, and without touching what is not greylag's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from greylag.errors import ParameterError
from greylag.runtime.folders import exchange, make_folder, remove_folder
from greylag.runtime.locks import MARK


def fill(folder: Path) -> None:
    (folder / "file").write_text("new")


def test_a_folder_is_made_and_replaced(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "made"
    make_folder(target, fill)
    (target / "more").touch()
    make_folder(target, fill)
    assert {path.name for path in target.iterdir()} == {MARK, "file"}
    assert [path.name for path in target.parent.iterdir()] == ["made"]


def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_folder(tmp_path / "a" / "b", fail)
    assert list(tmp_path.iterdir()) == []
    make_folder(tmp_path / "made", fill)
    with pytest.raises(KeyboardInterrupt):
        make_folder(tmp_path / "made", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    assert (tmp_path / "made" / "file").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges folders in one step")
def test_a_folder_is_never_absent_while_it_is_replaced(tmp_path: Path) -> None:
    target, stop = tmp_path / "made", threading.Event()
    make_folder(target, fill)
    absences = []

    def watch() -> None:
        while not stop.is_set():
            if not os.path.lexists(target):
                absences.append(None)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(200):
        make_folder(target, fill)
    stop.set()
    watcher.join()
    assert absences == []


def test_a_system_that_cannot_exchange_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: object())
    assert not exchange(tmp_path, tmp_path)
    (tmp_path / "made").mkdir()
    for content in ("first", "second"):
        make_folder(tmp_path / "made", lambda folder, content=content: (folder / content).touch())  # type: ignore[misc]
        assert {path.name for path in (tmp_path / "made").iterdir()} == {MARK, content}
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_what_exchanging_reports(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(FileNotFoundError, match="absent"):
        exchange(tmp_path / "a", tmp_path / "absent")


def test_nothing_unmarked_is_removed(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("own")
    for name in ("own", "file", "link"):
        with pytest.raises(ParameterError, match=f"{name} exists already: delete it, or give another folder"):
            make_folder(tmp_path / name, fill)
        with pytest.raises(ParameterError, match=f"{name} exists already"):
            remove_folder(tmp_path / name)
    assert (tmp_path / "own" / "thesis.txt").read_text() == (tmp_path / "file").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"own", "file", "link"}


def test_removing(tmp_path: Path) -> None:
    remove_folder(tmp_path / "absent")
    make_folder(tmp_path / "made", fill)
    (tmp_path / "empty").mkdir()
    for name in ("made", "empty"):
        remove_folder(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_done_is_left_alone(tmp_path: Path) -> None:
    make_folder(tmp_path / "made", fill, done=lambda: True)
    assert list(tmp_path.iterdir()) == []


def test_the_second_waits_and_finds_it_done(tmp_path: Path) -> None:
    started, made = threading.Event(), []

    def slowly(folder: Path) -> None:
        made.append(folder)
        started.set()
        fill(folder)

    def make() -> None:
        make_folder(tmp_path / "made", slowly, done=(tmp_path / "made").exists)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_process_left_is_removed(tmp_path: Path, number: int) -> None:
    code = (
        "import sys, time; from pathlib import Path; from greylag.runtime.folders import make_folder\n"
        "def fill(folder):\n"
        "    (folder / 'half').touch(); print('filling', flush=True); time.sleep(600)\n"
        "make_folder(Path(sys.argv[1]), fill)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "made")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"filling\n"
        process.send_signal(number)
    assert len(list(tmp_path.iterdir())) == 2
    make_folder(tmp_path / "made", fill)
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    assert not (tmp_path / "made" / "half").exists()


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for name in ("file/inside", "loop/inside", "x" * 300):
        with pytest.raises(ParameterError, match="cannot be written: ") as caught:
            make_folder(tmp_path / name, fill)
        assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "loop"]
