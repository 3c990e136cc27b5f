"""What is kept of unfinished work: found again, never trusted when damaged, and left to one process."""

from __future__ import annotations

import fcntl
import os
import random
import resource
import threading
from pathlib import Path

import pytest

from greylag.runtime import work_log
from greylag.runtime.parallel import keeping, parallel_map
from greylag.runtime.work_log import WorkLog, beside, resuming

CONTENTS = {f"/1:run a:{n}": os.urandom(n * 7) for n in range(30)}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_log, "PATIENCE", 0.0)
    monkeypatch.setattr(work_log, "interruptions", [])


def opened(path: Path, depends: str = "settings") -> WorkLog:
    return WorkLog(path, lambda: depends)


def filled(path: Path, depends: str = "settings") -> None:
    log = opened(path, depends)
    for key, content in CONTENTS.items():
        log.save(key, content)
    log.close()


def found(path: Path, depends: str = "settings") -> dict[str, bytes]:
    log = opened(path, depends)
    contents = {key: log.load(key) for key in CONTENTS}
    log.close()
    return {key: content for key, content in contents.items() if content is not None}


def test_contents_are_found_by_key_and_by_what_they_depend_on(tmp_path: Path) -> None:
    filled(tmp_path / "log")
    assert found(tmp_path / "log") == CONTENTS
    assert found(tmp_path / "log", "other settings") == {}
    assert found(tmp_path / "log") == CONTENTS
    other = opened(tmp_path / "log", "other settings")
    other.save("/1:run b:0", b"other")
    other.close()
    assert found(tmp_path / "log") == {}


def test_a_file_that_was_cut_anywhere_holds_a_part_and_can_be_completed(tmp_path: Path) -> None:
    filled(tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    for size in [*range(0, len(whole), 97), len(whole) - 1]:
        (tmp_path / "log").write_bytes(whole[:size])
        kept = found(tmp_path / "log")
        assert kept == dict(list(CONTENTS.items())[: len(kept)])
        filled(tmp_path / "log")
        assert found(tmp_path / "log") == CONTENTS


def test_a_flipped_bit_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path / "whole")
    whole, rng = (tmp_path / "whole").read_bytes(), random.Random(1)
    lost = 0
    for _ in range(200):
        at = rng.randrange(len(whole))
        damaged = whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :]
        (tmp_path / "log").write_bytes(damaged)
        kept = found(tmp_path / "log")
        assert kept.items() <= CONTENTS.items()
        lost += len(kept) < len(CONTENTS)
    assert lost == 200
    assert any("damaged: a part of it is computed again" in line for line in caplog.messages)


def test_a_second_process_keeps_nothing(tmp_path: Path) -> None:
    filled(tmp_path / "log")
    with (tmp_path / "log").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert found(tmp_path / "log") == {}
    assert found(tmp_path / "log") == CONTENTS


def test_a_file_of_others_and_a_folder_that_is_not_writable(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "log").write_text("mine\n")
    filled(tmp_path / "log")
    assert (tmp_path / "log").read_text() == "mine\n"
    assert "is not greylag's" in caplog.messages[0]
    filled(tmp_path / "absent" / "log")
    assert not (tmp_path / "absent").exists()


def test_work_goes_on_and_the_file_goes(tmp_path: Path) -> None:
    path, calls = beside(tmp_path / "a.run"), []
    assert path == tmp_path / ".a.run.greylag-work"

    def work(stop: int | None) -> list[int]:
        def call(n: int) -> int:
            calls.append(n)
            if n == stop:
                raise KeyboardInterrupt
            return n * n

        with resuming(path, lambda: "settings"):
            return list(parallel_map(call, range(10), what="squares"))

    with pytest.raises(KeyboardInterrupt):
        work(7)
    assert work_log.interruptions == [f"kept in {path}: squares (7); the same command goes on from there"]
    with pytest.raises(KeyboardInterrupt), resuming(path, lambda: "settings"):
        raise KeyboardInterrupt
    assert work_log.interruptions[1:] == [f"kept in {path}: what was done before; the same command goes on from there"]
    calls.clear()
    assert work(None) == [n * n for n in range(10)]
    assert calls == [7, 8, 9]
    assert not path.exists()


def test_a_full_disk_costs_what_is_kept_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def call(number: int) -> bytes:
        if number == 15:
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        return bytes([number]) * 1000

    def work(count: int) -> list[bytes]:
        return list(parallel_map(call, range(count), what="bytes"))

    limits, log = resource.getrlimit(resource.RLIMIT_FSIZE), opened(tmp_path / "log")
    try:
        with keeping(log):
            assert work(40) == [bytes([number]) * 1000 for number in range(40)]
            assert log.load("/1:bytes:3")
        log.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [line.split(": ")[1] for line in caplog.messages] == ["File too large; what is done is not kept from here"]
    with resuming(tmp_path / "log", lambda: "settings"):
        assert work(15) == [bytes([number]) * 1000 for number in range(15)]
    assert list(tmp_path.iterdir()) == []


def test_short_work_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_log, "PATIENCE", 60.0)
    asked = threading.Event()

    def depends() -> str:
        asked.set()
        return ""

    def work() -> None:
        with resuming(tmp_path / "log", depends):
            list(parallel_map(int, range(10), what="numbers"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not asked.is_set()
    assert list(tmp_path.iterdir()) == []
    assert work_log.interruptions == ["nothing is kept, as there was less than a second's work"]
