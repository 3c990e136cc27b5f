"""Failing writes: every call that changes the disk fails, is cut short, or is the last one of its process."""

import builtins
import errno
import io
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from greylag.errors import GreylagError
from greylag.experiments.runner import run_study
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking, Run
from greylag.runtime.files import open_atomically, write_text
from greylag.runtime.folders import make_folder, sweep
from greylag.trec.runs import write_run
from tests.greylag.experiments.samples import STUDY, Settings
from tests.robustness.machine import Counts, rounds, snapshot
from tests.robustness.source import TEXTS, MemorySource, outcome

KINDS = ("error", "full", "short", "kill")
KILLED = 9
ALLOCATING = {"open", "write", "mkdir", "fsync"}


class Disk:
    """Counts the calls that change the disk; number `n` goes wrong.

    Parameters
    ----------
    n : int
        From 1.
    kind : {"error", "full", "short", "kill"}
        EIO once; ENOSPC from then on; ENOSPC from then on after half of a write; the end of the process.
    """

    def __init__(self, n: int, kind: str) -> None:
        self.n, self.kind, self.calls = n, kind, 0

    def call(self, name: str) -> None:
        """Count a call, and raise an error if it is to fail."""
        self.calls += 1
        if self.calls == self.n and self.kind == "kill":
            os._exit(KILLED)
        if self.calls == self.n and self.kind == "error":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self.calls >= self.n and self.kind in ("full", "short") and name in ALLOCATING:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let Python's functions for files pass through `call`."""
        disk, opened, replaced = self, io.open, {}

        class Raw(io.FileIO):
            def write(self, content: Any) -> int:
                if disk.calls + 1 == disk.n and disk.kind == "short":
                    super().write(memoryview(content)[: len(content) // 2])
                disk.call("write")
                return super().write(content)

        def open_file(file: Any, mode: str = "r", buffering: int = -1, *text: Any, **options: Any) -> Any:
            if isinstance(file, int) or not set(mode) & set("wax+"):
                return opened(file, mode, buffering, *text, **options)
            disk.call("open")
            raw = Raw(file, mode.replace("b", ""))
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, *text, **options)

        def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                if name != "open" or arguments[1] & os.O_CREAT:
                    disk.call(name)
                return function(*arguments, **options)

            return call

        for name in ("open", "mkdir", "rename", "replace", "unlink", "rmdir", "fsync"):
            replaced[name] = getattr(os, name)
            setattr(os, name, counted(name, replaced[name]))
        io.open = builtins.open = open_file
        try:
            yield
        finally:
            io.open = builtins.open = opened
            for name, function in replaced.items():
                setattr(os, name, function)


@dataclass(frozen=True)
class Operation:
    """Something that writes.

    Parameters
    ----------
    write : callable
        Writes one of two contents, by number, to a folder; repeated after a fault.
    view : callable
        What a user finds in the folder.
    atomic : bool
        Whether a user always finds one of the two.
    """

    write: Callable[[Path, int], object]
    view: Callable[[Path], Any]
    atomic: bool = True


def _fill(folder: Path, number: int) -> None:
    (folder / "sub").mkdir()
    for name in ("a", "sub/b"):
        (folder / name).write_text(f"{name} {number}")


def _save(folder: Path, number: int) -> None:
    with open_atomically(folder / "a.npy", binary=True) as file:
        np.save(file, np.full(9999, number))


def _run(number: int) -> Run:
    return Run((Ranking("1", "query", ("a", "b"), [2.0 + number, 1.0]),), "tag")


def _source(folder: Path, number: int) -> MemorySource:
    return MemorySource(folder / "index", {**TEXTS, "new": "york"} if number else TEXTS)


def _export(folder: Path, number: int) -> PositionalIndex:
    return _source(folder, number).open()


def _view_export(folder: Path) -> Any:
    number = int("'new'" in (folder / "index" / "segments_1").read_text())
    return number, outcome(_export(folder, number))


def _study(folder: Path, number: int) -> None:
    (folder / "numbers").write_text(f"1 2 {number}")
    run_study(STUDY, Settings(study="numbers", name="sum", numbers=str(folder / "numbers")), folder / "out")


def _view_study(folder: Path) -> Any:
    found = snapshot(folder)
    return {name: content for name, content in found.items() if not name.endswith(("finished.json", "times.json"))}


OPERATIONS = {
    "text": Operation(lambda folder, number: write_text(folder / "a", f"{number}\n" * 9999), snapshot),
    "gzip": Operation(lambda folder, number: write_run(_run(number), folder / "a.run.gz"), snapshot),
    "bytes": Operation(_save, snapshot),
    "folder": Operation(lambda folder, number: make_folder(folder / "a", lambda part: _fill(part, number)), snapshot),
    "export": Operation(_export, _view_export, atomic=False),
    "study": Operation(_study, _view_study, atomic=False),
}


def attempt(operation: Operation, folder: Path, n: int, kind: str) -> tuple[bool, str]:
    """Write content 1 with a fault at call `n`; whether the fault happened, and what was wrong with the error."""
    disk = Disk(n, kind)

    def write() -> str:
        try:
            with disk.used():
                operation.write(folder, 1)
        except GreylagError as error:
            return "" if "\n" not in str(error) else repr(error)
        except OSError as error:
            return "" if not operation.atomic else repr(error)  # studies read files, too
        except Exception as error:
            return repr(error)
        return ""

    if kind != "kill":
        return disk.calls >= n if (wrong := write()) == "" else True, wrong
    child = os.fork()
    if child == 0:
        wrong = write()
        os.write(2, wrong.encode())
        os._exit(1 if wrong else 0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status == KILLED, "" if status in (0, KILLED) else f"exit code {status}"


def sweep_calls(name: str, kind: str, place: Path, counts: Counts, first: int = 1, step: int = 1) -> None:
    """Let each call of an operation, or each `step`-th, go wrong, one after another, until none does."""
    operation, views = OPERATIONS[name], []
    for number in (0, 1):
        folder = place / f"{name}-{number}"
        folder.mkdir()
        operation.write(folder, number)
        views.append(operation.view(folder))
    strays = _names(place / f"{name}-1")
    n, happened = first - step, True
    while happened:
        n += step
        folder = place / f"{name}-{kind}-{n}"
        shutil.copytree(place / f"{name}-0", folder)
        if name == "study":  # its settings hold the path
            operation.write(folder, 0)
        happened, wrong = attempt(operation, folder, n, kind)
        refused = wrong
        if operation.atomic:
            sweep(folder)  # as the next command that writes there
            seen = {path: text for path, text in snapshot(folder).items() if ".greylag-" not in path}
            refused = refused or ("" if seen in views else "neither the old nor the new content")
        counts.judge(f"{name}, {kind} at call {n}", lambda: _recovers(operation, folder, views[1], strays))  # noqa: B023
        if refused:
            counts.wrong.append(f"{name}, {kind} at call {n}: {refused}")
        shutil.rmtree(folder)


def _recovers(operation: Operation, folder: Path, expected: Any, names: set[str]) -> bool:
    """Whether the next run leaves what it would have without a fault, and nothing else."""
    operation.write(folder, 1)
    found = operation.view(folder)
    if isinstance(found, dict) and "out/results.json" in found:
        return _names(folder) == names and found.keys() == expected.keys()
    return found == expected and _names(folder) == names


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def run(seconds: float, seed: int) -> Counts:
    """Try every kind of fault at all calls of every operation; without time, at some calls of the long ones."""
    logging.getLogger("greylag").setLevel(logging.CRITICAL)
    counts = Counts()
    for _, place in rounds(0, seed):
        for name in OPERATIONS:
            step = 20 if name in ("export", "study") and not seconds else 1
            for kind in KINDS:
                (place / f"{name}-{kind}").mkdir()
                sweep_calls(name, kind, place / f"{name}-{kind}", counts, 1 + seed % step, step)
    return counts
