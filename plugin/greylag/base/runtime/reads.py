"""Files that the process opens for reading while it works, as Python reports them: inputs, whether named or not.

Code that is imported late, what lies beside it, and files that a stage opens are all among them. Python reports what it
opens itself, in all threads (`sys.addaudithook`, event ``open``). It reports no listings of folders, and nothing that
Java or compiled code opens: folders of indexes are inputs by their names, and the rest is trusted.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.util import source_from_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

from greylag.base.runtime.software import INSTALLED, OWN, version

State = dict[str, Any]
"""A stamp, or None of a file that was not there, by path; and versions, by distribution."""
SYSTEM = "/proc/", "/sys/", "/dev/"
OURS = ".greylag-"  # in the names of unfinished work
COMPILED = ".nbi", ".nbc"  # of code whose source counts
_recording: list[Reads] = []
_HOOKED: list[bool] = []  # an audit hook stays for the life of the process
_WORKER: list[Reads] = []


class Reads:
    """The files that were read, but for those that the process wrote, and those in folders of its outputs."""

    def __init__(self, without: Iterable[Path] = ()) -> None:
        self._without = {os.path.realpath(path) for path in without}
        self._stamps: dict[str, Any] = {}
        self._installed: dict[str, set[str]] = {}  # files by the package that they belong to
        self._written, self._sent, self._modules = set[str](), set[str](), set[str]()

    def opened(self, path: Any, mode: str | None, flags: int) -> None:
        """Note a file that is about to be opened."""
        name = os.path.abspath(os.fsdecode(path))
        writes = flags & os.O_ACCMODE != os.O_RDONLY if mode is None else mode[:1] not in ("r", "")
        if writes:
            self._written.add(name)
        else:
            self._note(name)

    def news(self) -> State:
        """Return what was read since the last call, in a worker."""
        new = {name: stamp for name, stamp in self.state().items() if name not in self._sent}
        self._sent |= new.keys()
        return new

    def merge(self, state: State) -> None:
        """Add what a worker read, as far as it has the same files as this process."""
        for name, stamp in state.items():
            if isinstance(stamp, str) or _stamp(name) == stamp:
                self._stamps.setdefault(name, stamp)

    def state(self) -> State:
        """Return what was read until now, with the code of all modules that are loaded."""
        self._note_modules()
        found = {name: stamp for name, stamp in self._stamps.items() if name not in self._written}
        for package, names in list(self._installed.items()):
            number = _version(package)
            found |= {package: number} if number else {name: _stamp(name) for name in names}
        return found

    def begin(self) -> None:
        """Record from now on, and count what is loaded already, as it is: it may change while the work goes on."""
        if not _HOOKED:
            sys.addaudithook(_hook)
            _HOOKED.append(True)
        _recording.append(self)
        self._note_modules()

    def _note_modules(self) -> None:
        loaded = dict(sys.modules)
        for name in loaded.keys() - self._modules:
            with suppress(Exception):  # what is no module, or has no file
                # Not the module's own way, by which those that are to load when they are used would load.
                if isinstance(file := object.__getattribute__(loaded[name], "__file__"), str):
                    self._note(os.path.abspath(file))
        self._modules |= loaded.keys()

    def _is_of_output(self, name: str) -> bool:
        """Return whether a file is one of the outputs, or in a folder that is."""
        real = Path(os.path.realpath(name))
        return not self._without.isdisjoint(map(str, (real, *real.parents)))

    def _note(self, name: str) -> None:
        if name in self._stamps or name.startswith(SYSTEM) or name.endswith(COMPILED) or OURS in name:
            return
        if name.endswith(".pyc"):
            with suppress(ValueError):
                name = source_from_cache(name)
        installed = next((part for part in INSTALLED if f"/{part}/" in name), None)
        if installed:
            package = name.rpartition(f"/{installed}/")[2].partition("/")[0]
            self._installed.setdefault(package, set()).add(name)
        elif not (name.startswith(_folders()) or self._is_of_output(name)):
            self._stamps[name] = _stamp(name)


@contextmanager
def reading(*without: Path) -> Iterator[Reads]:
    """Record what is read in the block, by all threads, but for the outputs `without`."""
    reads = Reads(without)
    reads.begin()
    try:
        yield reads
    finally:
        _recording.remove(reads)


def is_reading() -> bool:
    """Return whether anybody wants to know what is read."""
    return bool(_recording)


def worker_reads() -> State:
    """Record what this process, a worker, reads from the first call on, and return what is new since the last."""
    if not _WORKER:
        _WORKER.append(Reads())
        _WORKER[0].begin()
    return _WORKER[0].news()


def merge_reads(state: State) -> None:
    """Add what a worker read to what this process does."""
    for reads in _recording:
        reads.merge(state)


def unchanged(state: Any) -> bool:
    """Return whether all that was read is as it was; false of anything else than a `State`."""
    return isinstance(state, Mapping) and at_present(state) == state


def at_present(state: Mapping[str, Any]) -> State:
    """Return what the files and packages of a state are now."""
    return {name: (_version if isinstance(stamp, str) else _stamp)(name) for name, stamp in state.items()}


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    # Python calls this for tens of thousands of events, and whatever it raises would end the call that it is told of.
    if event == "open" and _recording and not isinstance(arguments[0], int):
        for reads in _recording:
            with suppress(Exception):
                reads.opened(*arguments)


def _stamp(name: str) -> list[int] | None:
    """Return the `file_stamp` of a file, as JSON has it; None if there is none."""
    with suppress(OSError, ValueError):
        state = os.stat(name)  # and not by the module of files, which would be loaded with every map
        if S_ISREG(state.st_mode):
            return [state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns]
    return None


@cache
def _folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of greylag's own code, which count by their versions."""
    own = (getattr(sys.modules.get(name), "__path__", ()) for name in OWN)
    library = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    return tuple(f"{folder}/" for folder in [*library, *(folder for folders in own for folder in folders)])


@cache
def _version(package: str) -> str | None:
    """Return the version of an installed package; None if its distribution has another name."""
    try:
        return version(package.removesuffix(".py"))
    except (PackageNotFoundError, ValueError):
        return None
