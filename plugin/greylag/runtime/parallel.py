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
from dataclasses import dataclass, field, fields
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import islice
from typing import Any, Literal, Protocol, TypeVar

from greylag import missing_documents
from greylag.errors import DependencyError, ParameterError
from greylag.runtime import progress

T = TypeVar("T")
Done = tuple[int, Any, missing_documents.Found]
"""The number of an item, its result, and the tally of unknown documents."""

WINDOW = 256
"""Items a worker gets, at most, before the results of all of them are taken. Larger uses more memory."""
_MAX_WINDOW = 4096
_MAX_CHUNK = 8
_SOFTWARE = ("greylag", "joblib", "numba", "numpy", "scipy")
_log = logging.getLogger("greylag")


class Keeper(Protocol):
    """Keeps the results of finished items, so that interrupted work goes on from there."""

    def load_result(self, key: str) -> Any:
        """What is kept under the key, or None."""

    def save_result(self, key: str, result: Any) -> bool:
        """Keep a result; whether it is kept."""


@dataclass
class _Place:
    """Where in the work of a command a map is: the same command makes the same maps in the same order.

    In a worker, all maps run in the worker's own thread, and nothing is kept.
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
    """The number of threads for loops inside one item's work: `n_jobs`, but one in a worker."""
    _check_jobs(n_jobs)
    return 1 if in_worker() else n_jobs


def rebuilt(value: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """For ``__reduce__``: pickle a dataclass as its parameters, without what it has cached."""
    return _rebuild, (type(value), {part.name: getattr(value, part.name) for part in fields(value) if part.init})


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
        What all calls need and is large, such as training data. Backends send its arrays to a worker once.
    what : str
        What is done, for the progress bar and for warnings, such as "run bm25".
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
        If a worker has other versions of the software, or a cluster has no workers or is lost.
    """
    _check_jobs(n_jobs)
    place = _place.get() or _Place()
    if total is None and isinstance(items, Sized):
        total = len(items)
    of_map = _Map(function, shared, what, total, place, place.number())
    if place.in_worker:
        return of_map.one_by_one(items)
    backend, size, n_jobs = _backend(n_jobs, prefer)
    threads = getattr(backend, "uses_threads", False)
    if threads and (size == 1 or coarse):
        return of_map.one_by_one(items)
    options = {
        "n_jobs": n_jobs,
        "prefer": prefer,
        "batch_size": 1,
        # Ray's results, for one, come when a window is done.
        "return_as": "generator_unordered" if backend.supports_return_generator else "list",
        "mmap_mode": "c",  # scipy sorts the indices of sparse matrices in place
    }
    chunk = 1 if coarse or prefer == "processes" else _MAX_CHUNK  # long calls are sent one by one
    if total is not None:
        chunk = max(1, min(chunk, -(-total // (8 * size))))
    call = _Call(function) if threads else _Call.packed(function, moves=type(backend).__name__ == "LokyBackend")
    return of_map.in_windows(items, call, options, min(WINDOW * size, _MAX_WINDOW), chunk)


def _backend(n_jobs: int | None, prefer: str) -> tuple[Any, int, int | None]:
    """The backend that joblib uses, its number of workers, and what to ask it for."""
    from joblib.parallel import get_active_backend

    backend, configured = get_active_backend(prefer=prefer)
    if type(backend).__name__ == "MultiprocessingBackend":
        raise ParameterError(
            "joblib's backend 'multiprocessing' forks this process, which neither Java nor compiled code survives: "
            "use 'loky', 'threading', 'dask' or 'ray'"
        )
    n_jobs = configured if n_jobs is None else n_jobs
    try:
        return backend, max(1, backend.effective_n_jobs(n_jobs)), n_jobs
    except TimeoutError:
        raise DependencyError("the cluster has no workers: start some, such as `dask worker ADDRESS`") from None


@dataclass(eq=False)
class _Map:
    """One call of `parallel_map`, whose results are kept under its path."""

    function: Callable[..., Any]
    shared: tuple[Any, ...]
    what: str
    total: int | None
    place: _Place
    path: str
    tally: missing_documents.Tally = field(default_factory=missing_documents.Tally)

    def one_by_one(self, items: Iterable[Any]) -> Iterator[Any]:
        """The results, computed in this thread, where an item's own maps keep theirs, too."""
        with progress.step(self.what, self.total) as step:
            for number, item in enumerate(items):
                done = self._load(number)
                if done is None:
                    inner = _Place(self.place.keeper, f"{self.path}.{number}", self.place.in_worker)
                    with _at(inner), step.inside(), missing_documents.gathered() as tally:
                        done = number, self.function(item, *self.shared), tally.found
                    self._save(done)
                self.tally.merge(done[2])
                step.reach(number + 1)
                yield done[1]
        self.tally.warn(self.what)

    def in_windows(
        self, items: Iterable[Any], call: _Call, options: dict[str, Any], size: int, chunk: int
    ) -> Iterator[Any]:
        """The results, computed by workers for `size` items at a time, which bounds the memory."""
        from joblib import Parallel, delayed

        numbered = enumerate(items)
        with progress.step(self.what, self.total) as step, Parallel(**options) as parallel:
            while window := list(islice(numbered, size)):
                results, missing = dict[int, Any](), []
                for number, item in window:
                    if (done := self._load(number)) is None:
                        missing.append((number, item))
                    else:
                        self._take(done, results)
                parts = [missing[at : at + chunk] for at in range(0, len(missing), chunk)]
                tasks = (delayed(call)(call.content, part, *self.shared) for part in parts)
                for answers, records in _answers(parallel, tasks):
                    for record in records:
                        logging.getLogger(record.name).handle(record)
                    for done in answers:
                        self._save(done)
                        self._take(done, results)
                    step.reach(window[0][0] + len(results))
                yield from (results.pop(number) for number, _ in window)
        self.tally.warn(self.what)

    def _take(self, done: Done, results: dict[int, Any]) -> None:
        self.tally.merge(done[2])
        results[done[0]] = done[1]

    def _key(self, number: int) -> str:
        return f"{self.path}:{self.what}:{number}"

    def _load(self, number: int) -> Done | None:
        kept = None if self.place.keeper is None else self.place.keeper.load_result(self._key(number))
        return None if kept is None else (number, *kept)

    def _save(self, done: Done) -> None:
        if self.place.keeper is not None:
            self.place.keeper.save_result(self._key(done[0]), done[1:])


def _answers(parallel: Any, tasks: Iterable[Any]) -> Iterator[tuple[list[Done], list[logging.LogRecord]]]:
    try:
        yield from parallel(tasks)
    except OSError as error:
        if type(error).__module__.startswith("distributed"):
            raise DependencyError(f"the cluster is lost ({error}): start it, and run the command again") from None
        raise


class _Call:
    """Calls a map's function for some items, in a worker, and checks first that the worker is like this process.

    For other processes the function is pickled once, as the array `content`: an argument of the calls, which backends
    send to a worker once. A worker unpickles it once a map, as it may have read files that have changed since.
    """

    def __init__(self, function: Callable[..., Any] | None, *, moves: bool = False) -> None:
        self.function, self.name = function, uuid.uuid4().hex
        self.content: Any = None
        self.origin, self.software = (socket.gethostname(), os.getpid()), software()
        self.folder = os.getcwd() if moves else None

    @classmethod
    def packed(cls, function: Callable[..., Any], *, moves: bool) -> _Call:
        """A call for other processes; with `moves`, they outlive a change of this process's folder."""
        import cloudpickle
        import numpy as np

        call = cls(None, moves=moves)
        try:
            call.content = np.frombuffer(cloudpickle.dumps(function), dtype=np.uint8)
        except Exception as error:  # whatever an object's way to be pickled raises
            name = getattr(function, "__name__", type(function).__name__)
            raise ParameterError(f"{name} cannot be sent to other processes ({error}): use threads") from None
        return call

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "content": None}

    def __call__(
        self, content: Any, part: list[tuple[int, Any]], *shared: Any
    ) -> tuple[list[Done], list[logging.LogRecord]]:
        """The results of some items, and the messages that another process has to relay."""
        function = self.function or self._unpacked(content)
        is_foreign = self.origin != (socket.gethostname(), os.getpid())
        with _at(_Place(in_worker=True)), progress.hidden(), _recorded(is_foreign) as records:
            done = []
            for number, item in part:
                with missing_documents.gathered() as tally:
                    done.append((number, function(item, *shared), tally.found))
        return done, records

    def _unpacked(self, content: Any) -> Callable[..., Any]:
        differing = [
            f"{name} {there}, not {here}"
            for (name, here), (_, there) in zip(self.software, software(), strict=True)
            if there != here
        ]
        if differing:
            where = socket.gethostname()
            raise DependencyError(f"a worker on {where} has {', '.join(differing)}: install the same versions there")
        if self.folder is not None:
            os.chdir(self.folder)
        held = _held(self.name)
        if not held:
            held.append(pickle.loads(content))
        function: Callable[..., Any] = held[0]
        return function


@lru_cache(maxsize=2)  # each may hold large files
def _held(name: str) -> list[Any]:
    """A place for the function of a map."""
    return []


@cache
def software() -> tuple[tuple[str, str], ...]:
    """The packages that results depend on, and their versions."""
    return tuple((name, version(name)) for name in _SOFTWARE)


class _Recorder(logging.Handler):
    """Keeps the messages of the workers in this process, each in its own list."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message, as text."""
        if (records := _records.get()) is not None:
            record.msg, record.args, record.exc_info = record.getMessage(), (), None
            records.append(record)


_recorder = _Recorder()
_records: ContextVar[list[logging.LogRecord] | None] = ContextVar("records", default=None)


@contextmanager
def _recorded(is_foreign: bool) -> Iterator[list[logging.LogRecord]]:
    """The messages that greylag logs in this block, if it runs in another process; else they are logged as ever."""
    records: list[logging.LogRecord] = []
    if not is_foreign:
        yield records
        return
    if _recorder not in _log.handlers:
        _log.addHandler(_recorder)
        _log.propagate = False
        _log.setLevel(logging.INFO)
    token = _records.set(records)
    try:
        yield records
    finally:
        _records.reset(token)


@contextmanager
def _at(place: _Place) -> Iterator[None]:
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


def _rebuild(kind: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return kind(**parameters)


def _check_jobs(n_jobs: int | None) -> None:
    if n_jobs == 0:
        raise ParameterError("n_jobs is 0: give a number of workers, or -1 for one per core")
