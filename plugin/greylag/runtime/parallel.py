"""One function that does the same work for many items, in threads, in processes or on a cluster.

`parallel_map` goes through `joblib.Parallel`, with threads unless `joblib.parallel_config` names another backend, such
as "loky", "dask" or "ray". Its results, and their order, are the same whatever does the work. What a `Keeper` has kept
is not computed again.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import islice
from typing import Any, Literal, Protocol, TypeVar

from greylag import missing_documents
from greylag.errors import DependencyError, ParameterError
from greylag.runtime import progress

T = TypeVar("T")

WINDOW = 256
"""Items for each worker between two moments at which all workers wait for each other; it bounds the memory."""
_MAX_WINDOW = 4096
_MAX_CHUNK = 8
CARRIED = 100_000
"""Bytes of a pickled function that go with every part of the work; a larger one goes to each worker apart."""
_SOFTWARE = ("greylag", "joblib", "numba", "numpy", "scipy")
_log = logging.getLogger("greylag")


class Keeper(Protocol):
    """Keeps the results of finished items, so that interrupted work goes on from there."""

    def load(self, key: str) -> bytes | None:
        """What is kept under the key, or None."""

    def save(self, key: str, content: bytes) -> None:
        """Keep the content under the key."""


@dataclass
class _Place:
    """Where in the work of a command a map is.

    ``keeper`` and ``path`` say where results are kept; ``maps`` counts the maps so far, since the same command makes
    the same maps in the same order. In a worker, all maps run in the worker's own thread.
    """

    keeper: Keeper | None = None
    path: str = ""
    in_worker: bool = False
    maps: int = 0

    def number(self) -> str:
        """The path of the next map."""
        self.maps += 1
        return f"{self.path}/{self.maps}"


_place: ContextVar[_Place | None] = ContextVar("place in the work", default=None)


@contextmanager
def keeping(keeper: Keeper) -> Iterator[None]:
    """Keep the results of all maps in the block, and use those that are kept.

    The keeper answers for what the results depend on: the block must do the same whenever the keeper has something.
    """
    with _at(_Place(keeper)):
        yield


def in_worker() -> bool:
    """Whether this is a worker of a `parallel_map`, which has one core for itself."""
    place = _place.get()
    return place is not None and place.in_worker


def thread_count(n_jobs: int | None) -> int | None:
    """The number of threads for loops inside one item's work: `n_jobs`, but one in a worker.

    Raises
    ------
    ParameterError
        If `n_jobs` is 0.
    """
    _check_jobs(n_jobs)
    return 1 if in_worker() else n_jobs


def rebuilt(value: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """For ``__reduce__``: pickle a dataclass as its parameters, without what it has cached."""
    own = {part.name: getattr(value, part.name) for part in fields(value) if part.init}
    return _rebuild, (type(value), own)


def parallel_map(
    function: Callable[..., T],
    items: Iterable[Any],
    *shared: Any,
    what: str,
    n_jobs: int | None = None,
    total: int | None = None,
    coarse: bool = False,
    prefer: Literal["threads", "processes"] = "threads",
) -> Iterator[T]:
    """Call ``function(item, *shared)`` for every item, and yield the results in the order of the items.

    Items are taken as they are needed, and at most a few hundred for each worker are in memory at once.

    Parameters
    ----------
    function : callable
        A function that depends on its arguments only. For processes it must be picklable by cloudpickle.
    items : iterable
    *shared
        What all calls need and is large, such as training data. Backends send it to a worker once.
    what : str
        What is done, for the progress line and for warnings, such as "run bm25".
    n_jobs : int, optional
        Number of workers; -1 for one per core. By default that of `joblib.parallel_config`, or else 1. A cluster uses
        all of its workers. Inside a worker the calls take turns.
    total : int, optional
        The number of items, if `items` has no length.
    coarse : bool, default False
        Whether a call uses threads itself. If there are only threads, such calls take turns.
    prefer : "threads" or "processes", default "threads"
        The backend, if `joblib.parallel_config` names none. Processes are for long calls of plain Python.

    Yields
    ------
    object
        The result of each item.

    Raises
    ------
    ParameterError
        If `n_jobs` is 0, the backend forks, or the function cannot be sent to other processes.
    DependencyError
        If a worker has other versions of the software, or a cluster has no workers.
    """
    _check_jobs(n_jobs)
    place = _place.get() or _Place()
    if total is None and isinstance(items, Sized):
        total = len(items)
    team = _Team(n_jobs, prefer, alone=place.in_worker, coarse=coarse)
    largest = 1 if coarse or prefer == "processes" else _MAX_CHUNK  # long calls are sent one by one
    own = _Map(function, shared, what=what, total=total, path=place.number(), place=place, team=team, largest=largest)
    return own.results(items)


class _Team:
    """The workers of a map: the backend, their number, and whether they share this process."""

    def __init__(self, n_jobs: int | None, prefer: str, *, alone: bool, coarse: bool) -> None:
        from joblib.parallel import get_active_backend

        self.size, self.threads, self.together = 1, True, False
        self._wanted, self._prefer, self._return_as = n_jobs, prefer, "generator_unordered"
        self.folder: str | None = None
        if alone:
            return
        backend, configured = get_active_backend(prefer=prefer)
        if type(backend).__name__ == "MultiprocessingBackend":
            raise ParameterError(
                "joblib's backend 'multiprocessing' forks this process, which neither Java nor compiled code survives: "
                "use 'loky', 'threading', 'dask' or 'ray'"
            )
        wanted = configured if n_jobs is None else n_jobs
        try:
            self.size = max(1, backend.effective_n_jobs(wanted))
        except TimeoutError:
            raise DependencyError("the cluster has no workers: start some, such as `dask worker ADDRESS`") from None
        self.threads = getattr(backend, "uses_threads", False)
        if not backend.supports_return_generator:  # such as Ray's, whose results come when a window is done
            self._return_as = "list"
        if type(backend).__name__ == "LokyBackend":  # its processes outlive a map, and a change of folder
            self.folder = os.getcwd()
        self._wanted, self.together = wanted, not self.threads or (self.size > 1 and not coarse)

    def parallel(self, *, shares: bool) -> Any:
        """What calls functions in the workers; with `shares`, some of the arguments are for all of them."""
        from joblib import Parallel

        # Only what is shared may be mapped read-only: scipy sorts the indices of sparse matrices in place.
        size = "1M" if shares else None
        return Parallel(self._wanted, prefer=self._prefer, batch_size=1, return_as=self._return_as, max_nbytes=size)


@dataclass(eq=False)
class _Map:
    """One call of `parallel_map`."""

    function: Callable[..., Any]
    shared: tuple[Any, ...]
    _: KW_ONLY
    what: str
    total: int | None
    path: str
    place: _Place
    team: _Team
    largest: int
    tally: missing_documents.Tally = field(default_factory=missing_documents.Tally)

    def results(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the results; see `parallel_map`."""
        size = min(WINDOW * self.team.size, _MAX_WINDOW)
        chunk = self.largest if self.total is None else min(self.largest, -(-self.total // (8 * self.team.size)))
        numbered = enumerate(items)
        with progress.step(self.what, self.total) as step:
            if not self.team.together:
                for number, item in numbered:
                    yield self._one(number, item, step)
            else:
                job = _Job(self.function, local=self.team.threads, folder=self.team.folder)
                with self.team.parallel(shares=bool(self.shared) or job.apart is not None) as parallel:
                    while window := list(islice(numbered, size)):
                        yield from self._window(window, max(1, chunk), parallel, job, step)
        self.tally.warn(self.what)

    def _one(self, number: int, item: Any, step: progress.Step) -> Any:
        """The result of an item, kept or computed in this thread, where the item's own maps keep theirs."""
        done = self._load(number)
        if done is None:
            inner = _Place(self.place.keeper, f"{self.path}.{number}", self.place.in_worker)
            with _at(inner), step.inside(), missing_documents.gathered() as tally:
                done = _Done(number, self.function(item, *self.shared), tally.found)
            self._save(done)
        step.reach(number + 1)
        return done.result

    def _window(
        self, window: list[tuple[int, Any]], chunk: int, parallel: Any, job: _Job, step: progress.Step
    ) -> Iterator[Any]:
        """The results of a window, which are kept as they come and yielded in order."""
        from joblib import delayed

        results, missing, first = {}, [], window[0][0]
        for number, item in window:
            if (kept := self._load(number)) is None:
                missing.append((number, item))
            else:
                results[number] = kept.result
                step.reach(first + len(results))
        parts = [missing[first : first + chunk] for first in range(0, len(missing), chunk)]
        for found, records in parallel(delayed(job)(part, job.apart, *self.shared) for part in parts):
            for record in records:
                logging.getLogger(record.name).handle(record)
            for done in found:
                self._save(done)
                results[done.number] = done.result
                step.reach(first + len(results))
        for number, _ in window:
            yield results.pop(number)

    def _key(self, number: int) -> str:
        return f"{self.path}:{self.what}:{number}"

    def _load(self, number: int) -> _Done | None:
        content = None if self.place.keeper is None else self.place.keeper.load(self._key(number))
        if content is None:
            return None
        done: _Done = pickle.loads(content)
        self.tally.merge(done.unknown)
        return done

    def _save(self, done: _Done) -> None:
        self.tally.merge(done.unknown)
        if self.place.keeper is not None:
            self.place.keeper.save(self._key(done.number), pickle.dumps(done, protocol=5))


@dataclass(frozen=True)
class _Done:
    """The result of an item, and what the tally of unknown documents has found."""

    number: int
    result: Any
    unknown: missing_documents.Found


class _Job:
    """The function of a map for its workers. It is pickled once, and unpickled once in each process.

    If it is large, its pickle is ``apart``: an argument of the calls, which backends send to a worker once. The next
    map unpickles it again, as it may have read files that have changed since.
    """

    def __init__(self, function: Any, *, local: bool, folder: str | None = None) -> None:
        self.function, self.content, self.apart = function, b"", None
        self.origin, self.folder, self.map = (socket.gethostname(), os.getpid()), folder, uuid.uuid4().hex
        if not local:
            self.content, self.apart = _packed(function)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _unpacked, (self.content, self.origin, software(), self.folder, self.map)

    def __call__(
        self, part: list[tuple[int, Any]], apart: Any, *shared: Any
    ) -> tuple[list[_Done], list[logging.LogRecord]]:
        """The results of some items, and the messages that another process has to relay."""
        if self.function is None:
            self.function = pickle.loads(apart)
        foreign = self.origin != (socket.gethostname(), os.getpid())
        with _at(_Place(in_worker=True)), progress.hidden(), _recorded(foreign) as records:
            done = []
            for number, item in part:
                with missing_documents.gathered() as tally:
                    done.append(_Done(number, self.function(item, *shared), tally.found))
        return done, records


def _packed(function: Callable[..., Any]) -> tuple[bytes, Any]:
    """The pickle of a function, as bytes, or as an array if it is large."""
    import cloudpickle
    import numpy as np

    try:
        packed: bytes = cloudpickle.dumps(function)
    except Exception as error:  # whatever an object's own way to be pickled raises
        name = getattr(function, "__name__", type(function).__name__)
        raise ParameterError(f"{name} cannot be sent to other processes ({error}): use threads") from None
    return (packed, None) if len(packed) <= CARRIED else (b"", np.frombuffer(packed, dtype=np.uint8))


@lru_cache(maxsize=2)  # each may hold large files
def _unpacked(
    content: bytes, origin: tuple[str, int], wanted: tuple[tuple[str, str], ...], folder: str | None, number: str
) -> _Job:
    own = software()
    if own != wanted:
        differing = ", ".join(
            f"{name} {there}, not {here}" for (name, there), (_, here) in zip(own, wanted, strict=True) if there != here
        )
        raise DependencyError(f"a worker on {socket.gethostname()} has {differing}: install the same versions there")
    if folder is not None:
        os.chdir(folder)
    job = _Job(pickle.loads(content) if content else None, local=True, folder=folder)
    job.content, job.origin, job.map = content, origin, number
    return job


@cache
def software() -> tuple[tuple[str, str], ...]:
    """The packages that results depend on, and their versions."""
    return tuple((name, version(name)) for name in _SOFTWARE)


class _Recorder(logging.Handler):
    """Keeps the messages of the workers in this process, each in its own list."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message, as text."""
        if (own := _records.get()) is not None:
            record.msg, record.args, record.exc_info = record.getMessage(), (), None
            own.append(record)


_recorder = _Recorder()
_records: ContextVar[list[logging.LogRecord] | None] = ContextVar("records", default=None)


@contextmanager
def _recorded(foreign: bool) -> Iterator[list[logging.LogRecord]]:
    """The messages that greylag logs in this block, if it runs in another process; else they are logged as ever."""
    found: list[logging.LogRecord] = []
    if not foreign:
        yield found
        return
    if _recorder not in _log.handlers:
        _log.addHandler(_recorder)
        _log.propagate = False
        _log.setLevel(logging.INFO)
    token = _records.set(found)
    try:
        yield found
    finally:
        _records.reset(token)


@contextmanager
def _at(place: _Place) -> Iterator[None]:
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


def _rebuild(kind: Callable[..., Any], own: dict[str, Any]) -> Any:
    return kind(**own)


def _check_jobs(n_jobs: int | None) -> None:
    if n_jobs == 0:
        raise ParameterError("n_jobs is 0: give a number of workers, or -1 for one per core")
