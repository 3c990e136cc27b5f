"""Making folders: atomically, by one process at a time, and without touching what is not greylag's."""

import errno
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.processes import python
from tests.refusals import refuses

from greylag.base import ParameterError
from greylag.base.runtime.files import write_text
from greylag.base.runtime.folders import MARK_FILE, claimed, make_folder, remove_folder, sweep


def fill(folder):
    (folder / "file").write_text("new")


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_a_folder_is_made_and_replaced(tmp_path):
    target = tmp_path / "a" / "b" / "made"
    make_folder(target, fill)
    (target / "more").touch()
    make_folder(target, fill)
    assert {path.name for path in target.iterdir()} == {MARK_FILE, "file"}
    assert [path.name for path in target.parent.iterdir()] == ["made"]


def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path):
    def fail(folder):
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


def test_nothing_unmarked_is_removed(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("own")
    for name in ("own", "file", "link"):
        for call in (lambda path: make_folder(path, fill), remove_folder):
            refuses(lambda call=call, name=name: call(tmp_path / name), ParameterError, f"{name} exists")
    assert (tmp_path / "own" / "thesis.txt").read_text() == (tmp_path / "file").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"own", "file", "link"}


def test_removing(tmp_path):
    make_folder(tmp_path / "made", fill)
    (tmp_path / "empty").mkdir()
    make_folder(tmp_path / "done", fill, done=lambda: True)
    for name in ("made", "empty", "absent"):
        remove_folder(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_second_waits_and_finds_it_done(tmp_path):
    made = []

    def slowly(folder):
        made.append(folder)
        time.sleep(0.05)
        fill(folder)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: make_folder(tmp_path / "made", slowly, done=(tmp_path / "made").exists), range(4)))
    assert len(made) == 1
    assert names(tmp_path) == {"made"}


def test_what_a_killed_process_left_is_removed(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from greylag.base.runtime.folders import make_folder\n"
        "def fill(folder):\n"
        "    (folder / 'half').touch(); print('filling', flush=True); time.sleep(600)\n"
        "make_folder(Path(sys.argv[1]), fill)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "made")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"filling\n"
        process.kill()
    assert len(list(tmp_path.iterdir())) == 2
    make_folder(tmp_path / "made", fill)
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    assert not (tmp_path / "made" / "half").exists()


def test_a_lock_admits_one_at_a_time_and_says_that_it_waits(tmp_path, caplog):
    inside = []

    def work(_):
        with claimed(tmp_path / "target"):
            inside.append(1)
            time.sleep(0.15)
            among = len(inside)
            inside.clear()
        return among

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(work, range(2))] == [1] * 2
        assert not caplog.messages  # of a moment, as another process takes to look for leftovers
        assert [*pool.map(work, range(4))] == [1] * 4
    assert f"{tmp_path / 'target'} is being written by another process; waiting for it" in caplog.messages
    assert names(tmp_path) == set()


def test_a_system_without_posix_is_refused_in_a_line():
    code = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'fcntl' else find(name)\n"
        "from greylag.cli import main; sys.argv[1:] = ['evaluate', 'a', 'b']; main()"
    )
    done = python("-c", code)
    assert done.returncode == 2
    assert done.stderr.startswith("greylag: error: greylag needs POSIX: use Linux or macOS")
    assert done.stderr.count("\n") == 1


def test_only_what_killed_processes_left_is_swept(tmp_path):
    mine = {".greylag-notes", ".greylag", "a.greylag-lock", ".b.greylag-part", ".d.greylag-part"}
    (tmp_path / ".b.greylag-part").mkdir()  # without a lock file, it is not known to be greylag's
    (tmp_path / ".d.greylag-part").mkdir()
    for name in (".d.greylag-part/thesis.txt", ".d.greylag-lock"):  # without a mark
        (tmp_path / name).touch()
    for name in (".greylag-notes", ".greylag", "a.greylag-lock", ".a.greylag-lock", ".a.greylag-part"):
        (tmp_path / name).touch()
    with claimed(tmp_path / "c") as (part, _):
        part.mkdir()
        sweep(tmp_path)
        assert names(tmp_path) == mine | {".c.greylag-lock", ".c.greylag-part"}
    assert names(tmp_path) == mine
    sweep(tmp_path / "absent")


def test_links_are_not_followed(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").write_text("mine")
    places = tmp_path / "places"
    places.mkdir()
    (places / ".a.greylag-part").symlink_to(tmp_path / "own")
    (places / ".b.greylag-part").symlink_to(tmp_path / "own" / "thesis.txt")
    for name in (".a.greylag-lock", ".b.greylag-lock"):
        (places / name).touch()
    write_text(places / "b", "new")
    assert (tmp_path / "own" / "thesis.txt").read_text() == "mine"
    assert names(places) == {"b"}
    (places / ".b.greylag-lock").symlink_to(tmp_path / "own" / "thesis.txt")
    refuses(lambda: write_text(places / "b", "new"), ParameterError, "written:")


@pytest.mark.parametrize("name", [".a.greylag-part", ".a.greylag-old", ".a.greylag-lock"])
def test_a_file_of_a_reserved_name_is_the_users_unless_a_killed_process_left_it(tmp_path, name):
    (tmp_path / name).write_text("mine")
    for write in (lambda: write_text(tmp_path / "a", "new"), lambda: make_folder(tmp_path / "a", fill)) * 2:
        refuses(write, ParameterError, f"/a written: {name}")
    assert names(tmp_path) == {name}
    write_text(tmp_path / "b", "new")  # which sweeps
    assert (tmp_path / name).read_text() == "mine"


def test_writing_removes_what_a_killed_writer_left(tmp_path):
    code = (
        "import os, sys; from greylag.base.runtime.files import open_atomically\n"
        "with open_atomically(sys.argv[1]) as file:\n    file.write('half'); file.flush(); os._exit(9)"
    )
    assert python("-c", code, tmp_path / "a.run").returncode == 9
    assert names(tmp_path) == {".a.run.greylag-lock", ".a.run.greylag-part"}
    write_text(tmp_path / "b.run", "whole")
    assert names(tmp_path) == {"b.run"}


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_file_system_without_locks_is_refused(code, tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", flock)
    for write in (lambda: write_text(tmp_path / "a", "new"), lambda: make_folder(tmp_path / "made", fill)):
        refuses(write, ParameterError, "locks")
    assert names(tmp_path) == set()


@pytest.mark.parametrize(("before", "after"), [({"old"}, "old"), ({"old", "part"}, "old"), ({"old", "new"}, "new")])
def test_an_interrupted_replacement_is_undone_or_finished(tmp_path, before, after):
    places = {"old": ".a.greylag-old", "part": ".a.greylag-part", "new": "a"}
    (tmp_path / ".a.greylag-lock").touch()
    for name in before:
        (tmp_path / places[name]).mkdir()
        (tmp_path / places[name] / MARK_FILE).touch()
        (tmp_path / places[name] / name).touch()
    sweep(tmp_path)
    assert names(tmp_path) == {"a"}
    assert names(tmp_path / "a") == {MARK_FILE, after}


def test_what_greylag_did_not_make_takes_no_outputs_place(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f".{name}.greylag-lock").touch()
    (tmp_path / ".a.greylag-old").write_text("planted")
    (tmp_path / ".b.greylag-old").mkdir()
    (tmp_path / ".b.greylag-old" / "planted").touch()
    write_text(tmp_path / "c", "new")  # which sweeps
    assert not names(tmp_path) & {"a", "b"}


def test_the_mark_is_removed_last(tmp_path, monkeypatch):
    """So that what a process leaves that is killed meanwhile is still known as greylag's."""
    make_folder(tmp_path / "made", lambda folder: (folder / "z").mkdir())
    removed, unlink = list[str](), os.unlink
    monkeypatch.setattr(os, "unlink", lambda path, **given: (removed.append(Path(path).name), unlink(path, **given)))
    (tmp_path / "made" / "link").symlink_to(tmp_path)
    remove_folder(tmp_path / "made")
    assert (removed[-1], names(tmp_path)) == (MARK_FILE, set())
