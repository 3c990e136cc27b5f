"""One function that does the same work for many items, in threads, in processes or on a cluster.

`parallel_map` works in threads, unless `joblib.parallel_config` names another backend, such as "loky", "dask" or "ray",
which `joblib.Parallel` calls. joblib is slow to import, and nothing is configured before it is. The results, and their
order, are the same whatever does the work. What a `WorkLog` has kept is not computed again.
"""

from __future__ import annotations

import logging
import math
import os
import pickle
import platform
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from importlib import import_module
from itertools import islice
from logging.handlers import QueueHandler
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal, TypeVar

from greylag.base.core.missing_documents import MissingCounts, MissingTally, gather_missing
from greylag.base.core.registry import packages_in_use
from greylag.base.errors import DependencyError, ParameterError
from greylag.base.runtime import progress
from greylag.base.runtime.interrupts import check_interrupts
from greylag.base.runtime.reads import State, is_reading, merge_reads, worker_reads
from greylag.base.runtime.software import OWN, code, numerical

T = TypeVar("T")
Items = list[tuple[int, Any]]
Done = tuple[Any, MissingCounts]
"""The result of an item, and the counts of its unknown documents."""
Numbered = tuple[int, Any, MissingCounts]
Relayed = tuple[Numbered, list[logging.LogRecord], State]
Compute = Callable[[Items, progress.Step], Iterator[Numbered]]

WINDOW = 256
"""Items a worker gets, at most, before the results of all of them are taken. Larger uses more memory."""
_MAX_WINDOW = 4096  # of a cluster of many workers, whose results would fill memory
WAITING_SECONDS = 10
"""Seconds to wait for the first or another worker of a cluster, or for one that takes no work, until that is said."""
BATCH_SECONDS = 0.2
"""Seconds that a batch of a cluster's calls should take, at least."""
_GROUP = "/sys/fs/cgroup/cpu"
QUOTAS = (f"{_GROUP}.max",), (f"{_GROUP}/cpu.cfs_quota_us", f"{_GROUP}/cpu.cfs_period_us")
"""Files with a control group's microseconds of work in a period, and the period: of version 2, and of version 1."""
# Not the process id, which a worker on another machine may have, too.
_PROCESS = uuid.uuid4().hex
_log = logging.getLogger("greylag")


@dataclass
class _Position:
    """The position of a map in the work of a command: the same command makes the same maps in the same order."""

    keeper: Any = None  # a `WorkLog`, or whatever else has its load_result and save_result
    path: str = ""
    in_worker: bool = False  # which has one core, and keeps nothing
    maps: int = 0

    def number(self) -> str:
        """Return the path of the next map."""
        self.maps += 1
        return f"{self.path}/{self.maps}"


# Of a context, as threads of one process are at different positions.
_current: ContextVar[_Position | None] = ContextVar("position in the work", default=None)


def keeping(keeper: Any) -> AbstractContextManager[None]:
    """Keep the results of all maps in the block, which must do the same whenever the keeper has something."""
    return _placed(_Position(keeper))


def reserved_path() -> str:
    """Return a path for the argument `at` of `parallel_map`, the same whenever the command is repeated."""
    return (_current.get() or _Position()).number()


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for loops inside one item's work: that of `n_jobs`, but one in a worker."""
    _check_jobs(n_jobs)
    if (_current.get() or _Position()).in_worker:
        return 1
    return _Threads().effective_n_jobs(_active(n_jobs, "threads")[1])


@contextmanager
def threads(n_jobs: int | None) -> Iterator[Callable[..., Iterator[Any]]]:
    """Give a `map` whose calls are done by `thread_count` threads, for many maps of calls of milliseconds.

    Unlike `parallel_map`, it keeps no results, and its threads stay for all maps.
    """
    if (count := thread_count(n_jobs)) == 1:
        yield map
    else:
        with ThreadPoolExecutor(count) as pool:
            yield pool.map


def rebuilt(value: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Pickle a dataclass as its parameters, without what it has cached, for ``__reduce__``."""
    parameters = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    kind: Callable[..., Any] = type(value)
    return partial(kind, **parameters), ()


def parallel_map(
    function: Callable[..., T],
    items: Iterable[Any],
    *shared: Any,
    what: str,
    n_jobs: int | None = None,
    total: int | None = None,
    coarse: bool = False,
    prefer: Literal["threads", "processes"] = "threads",
    at: str | None = None,
) -> Iterator[T]:
    """Call ``function(item, *shared)`` for every item, and yield the results in the order of the items.

    Items are taken as they are needed, and at most a few hundred for each worker are in memory at once.
    `ParameterError` if the backend forks, or the function cannot be sent to other processes; `DependencyError` if a
    worker has other software, or a cluster has no workers or is lost.

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
    at : str, optional
        The path that results are kept under: one of `reserved_path`, and a name for this map. It is for what several
        folds share and the first of them computes, since a repeated command may begin with another fold. By default,
        the position of the call in the work.
    """
    _check_jobs(n_jobs)
    position = _current.get() or _Position()
    path = position.number() if at is None else at
    if total is None and isinstance(items, Sized):
        total = len(items)
    compute, size = _in_turn(function, shared, position, path), 1
    if not position.in_worker:
        backend, n_jobs = _backend(n_jobs, prefer)
        cluster, threads = getattr(backend, "client", None), getattr(backend, "uses_threads", False)
        if cluster is not None:
            with _reaching():
                workers = max(1, sum(cluster.ncores().values()))  # there may be none yet
        else:
            workers = max(1, backend.effective_n_jobs(n_jobs))
        # A window of items at a time: results are yielded in order, so that those of a fast worker wait for a slow one.
        # Without a bound, all results of a long run could be waiting.
        if not threads or (workers > 1 and not coarse):
            size = min(WINDOW * workers, _MAX_WINDOW)
            # Threads share the function itself. Other processes get it pickled, once for all items; with loky they may
            # outlive a change of the working folder, so that they get its path.
            call = _Call(function) if threads else _packed(function, moves=type(backend).__name__ == "LokyBackend")
            if threads:
                compute = _in_threads(call, shared, workers)
            elif cluster is None:
                compute = _workers(call, shared, {"n_jobs": n_jobs, "prefer": prefer}, backend)
            else:
                compute = _cluster(call, shared, cluster)
    return _mapped(compute, items, size, what, total, position.keeper, path)


def _backend(n_jobs: int | None, prefer: str) -> tuple[Any, int | None]:
    """Choose the backend and its option."""
    backend, n_jobs = _active(n_jobs, prefer)
    if type(backend).__name__ == "MultiprocessingBackend":
        raise ParameterError(
            "joblib's backend 'multiprocessing' forks this process, which neither Java nor compiled code survives: "
            "use 'loky', 'threading', 'dask' or 'ray'"
        )
    return backend, n_jobs


def _active(n_jobs: int | None, prefer: str) -> tuple[Any, int | None]:
    """Return joblib's backend, or threads where nothing is configured, and its option."""
    if prefer == "threads" and "joblib" not in sys.modules:
        return _Threads(), n_jobs
    from joblib.parallel import get_active_backend

    backend, configured = get_active_backend(prefer=prefer)
    return backend, configured if n_jobs is None else n_jobs


class _Threads:
    """Threads of this process, as a backend of joblib."""

    uses_threads = True

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return the number of threads."""
        count = 1 if n_jobs is None else n_jobs
        return count if count > 0 else max(1, core_count() + 1 + count)


def core_count() -> int:
    """Count the cores that this process may use, as joblib: by affinity, its control group and LOKY_MAX_CPU_COUNT."""
    counts = [os.cpu_count() or 1]
    with suppress(AttributeError):  # of Linux alone
        counts.append(len(os.sched_getaffinity(0)))
    with suppress(KeyError, ValueError):
        counts.append(int(os.environ["LOKY_MAX_CPU_COUNT"]))
    for files in QUOTAS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            quota, period = (int(word) for file in files for word in Path(file).read_text().split())
            if quota > 0:
                counts.append(math.ceil(quota / period))
    return max(1, min(counts))


def _mapped(
    compute: Compute, items: Iterable[Any], size: int, what: str, total: int | None, keeper: Any, path: str
) -> Iterator[Any]:
    """Yield the results in order. A window of items is computed, in any order, before its results are taken."""
    numbered, tally = enumerate(items), MissingTally()
    with progress.step(what, total) as step:
        while window := dict(islice(numbered, size)):
            first, done = min(window), dict[int, Done]()
            if keeper is not None:
                # Earlier results are not computed again; new ones are kept before the caller sees them.
                kept = {number: keeper.load_result(f"{path}:{what}:{number}") for number in window}
                done = {number: result for number, result in kept.items() if isinstance(result, tuple)}
            for number, result, unknown in compute([item for item in window.items() if item[0] not in done], step):
                done[number] = result, unknown
                if keeper is not None:
                    keeper.save_result(f"{path}:{what}:{number}", done[number])
                step.reach(first + len(done))
                check_interrupts()
            # Kept items count, too, though nothing was computed.
            step.reach(first + len(window))
            for number in window:
                result, unknown = done.pop(number)
                tally.merge(unknown)
                yield result
    tally.warn(what)


def _in_turn(function: Callable[..., Any], shared: tuple[Any, ...], position: _Position, path: str) -> Compute:
    """Compute in this thread, where an item's maps keep their results, too."""

    def compute(items: Items, step: progress.Step) -> Iterator[Numbered]:
        for number, item in items:
            inner = _Position(position.keeper, f"{path}.{number}", position.in_worker)
            with _placed(inner), step.inside(), gather_missing() as tally:
                result = function(item, *shared)
            yield number, result, tally.counts

    return compute


def _in_threads(call: _Call, shared: tuple[Any, ...], count: int) -> Compute:
    """Compute in threads, which an interrupt or an error does not wait for."""

    def compute(items: Items, _: progress.Step) -> Iterator[Numbered]:
        from multiprocessing.pool import ThreadPool

        def attempt(item: Any) -> Relayed | BaseException:
            try:
                return call(None, *item, *shared)
            except BaseException as error:  # which would end the thread, and be waited for in vain
                return error

        with ThreadPool(count) as pool:
            for result in pool.imap_unordered(attempt, items):
                if isinstance(result, BaseException):
                    raise result
                yield _relayed(result)

    return compute


def _workers(call: _Call, shared: tuple[Any, ...], options: dict[str, Any], backend: Any) -> Compute:
    """Compute in the workers of joblib's backend."""

    def compute(items: Items, _: progress.Step) -> Iterator[Numbered]:
        from joblib import Parallel, delayed

        parallel = Parallel(
            **options,
            return_as="generator_unordered" if backend.supports_return_generator else "list",  # of Ray, for one
            mmap_mode="c",  # scipy sorts the indices of sparse matrices in place
        )
        try:
            yield from map(_relayed, parallel(delayed(call)(call.content, *item, *shared) for item in items))
        except Exception as error:
            if type(error).__name__ != "TerminatedWorkerError":  # joblib's, over many lines
                raise
            reason = "a worker process was killed, as where memory runs out: use fewer jobs, or give more memory"
            raise DependencyError(reason) from None

    return compute


def _cluster(call: _Call, shared: tuple[Any, ...], client: Any) -> Compute:
    """Compute on a Dask cluster."""
    # Not through joblib, which does the work of a cluster of one thread in this process, with futures for values, and
    # waits for ever for workers that are lost.

    def compute(items: Items, _: progress.Step) -> Iterator[Numbered]:
        done, running = SimpleQueue[Any](), dict[Any, Items]()
        size, reached = 1, time.monotonic()
        watch = _Watch(client)
        with _reaching():
            # As results of tasks, and not scattered: if the only worker that has one dies, Dask computes it again.
            sent = [_submit(client, lambda value: value, value) for value in (call.content, *shared)]
        while items or running:
            with _reaching():
                threads = sum(client.ncores().values())
                if threads:
                    reached = time.monotonic()
                elif time.monotonic() - reached > WAITING_SECONDS:
                    raise TimeoutError("it has no workers")
                watch.look()
                # Also without a worker: an adaptive cluster starts one for the first calls.
                # Two batches per thread, so that none waits for the next one to arrive.
                while items and len(running) < max(1, 2 * threads):
                    future = _submit(client, _call_batch, call, items[:size], *sent)
                    running[future], items = items[:size], items[size:]
                    future.add_done_callback(done.put)
                try:
                    future = done.get(timeout=1)
                    if future.status != "error":
                        results, seconds = future.result(timeout=1)
                except Empty:
                    continue
                except TimeoutError:  # the worker died with the result, which is computed again
                    done.put(future)
                    continue
            if future.status == "error":
                error = future.exception()
                if type(error).__name__ == "KilledWorker":
                    raise DependencyError(f"workers of the cluster die of this work ({error}): give them more memory")
                raise error
            # As one call of milliseconds costs more to send than to do, but what takes long is kept one by one.
            size = size * 2 if seconds < BATCH_SECONDS else max(1, size // 2) if seconds > 5 * BATCH_SECONDS else size
            del running[future]
            yield from map(_relayed, results)

    return compute


class _Watch:
    """Says which workers of a cluster take no work: paused, as for want of memory, closing, or stopped."""

    def __init__(self, client: Any) -> None:
        self._client, self._looked = client, 0.0
        # When a running worker was last heard of, by the scheduler's clock and by this one; Dask counts all as workers.
        self._heard: dict[str, tuple[float, float]] = {}
        self._silent: set[str] = set()

    def look(self) -> None:
        """Once a second, warn of workers that have taken no work for `WAITING_SECONDS`, once for each time."""
        if (now := time.monotonic()) < self._looked + 1:
            return
        self._looked, silent = now, list[str]()
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        for address, worker in workers.items():
            heard, since = self._heard.get(address, (None, now))
            if heard is None or (worker["status"] == "running" and worker["last_seen"] != heard):
                self._heard[address] = worker["last_seen"], now
                self._silent.discard(address)
            elif now - since > WAITING_SECONDS and address not in self._silent:
                self._silent.add(address)
                state = "does not answer" if worker["status"] == "running" else f"is {worker['status']}"
                silent.append(f"{address} {state}")
        if silent:
            waiting = "the work waits for them" if len(self._silent) == len(workers) else "the others do the work"
            _log.warning(
                "of %d workers of the cluster, %d take no work (%s): %s; one that is paused lacks memory",
                len(workers), len(self._silent), ", ".join(silent), waiting,
            )  # fmt: skip


def _submit(client: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        # Not pure: to find equal calls, Dask would hash all arguments.
        return client.submit(function, *arguments, pure=False)


def _call_batch(call: _Call, items: Items, *sent: Any) -> tuple[list[Relayed], float]:
    """Do several calls in a worker of a cluster; also the seconds that they took."""
    began = time.perf_counter()
    content, *shared = sent
    return [call(content, *item, *shared) for item in items], time.perf_counter() - began


def _relayed(result: Relayed) -> Numbered:
    """Log the messages of a worker, which has no handlers, and note what it read."""
    for record in result[1]:
        logging.getLogger(record.name).handle(record)
    merge_reads(result[2])
    return result[0]


@contextmanager
def _reaching() -> Iterator[None]:
    """Say in one line that a cluster is lost, whatever Dask raises then."""
    try:
        yield
    except Exception as error:
        reason = f"the cluster is lost ({error}): start it, and run the command again"
        raise DependencyError(reason) from None


class _Call:
    """Calls a map's function for an item, in a worker."""

    # For other processes the function is pickled once, as the array `content`, which backends send to a worker once.
    # A worker unpickles it once per map, as it may have read files that have changed since.

    def __init__(self, function: Callable[..., Any] | None, content: Any = None, folder: str | None = None) -> None:
        self.function, self.content, self.folder = function, content, folder
        # Threads run in this process, where software cannot differ.
        self.software = numerical() if function is None else {}
        self.name, self.process = uuid.uuid4().hex, _PROCESS
        others = () if function else packages_in_use - {*OWN, "__main__"}
        # Without a specification a module was typed in, and has no files.
        self.reads = function is None and is_reading()
        self.code = {name: code(name) for name in others if getattr(sys.modules.get(name), "__spec__", None)}

    def __getstate__(self) -> dict[str, Any]:
        # The content is an argument of every call, which backends recognise; here it would be sent with each.
        return {**vars(self), "content": None}

    def __call__(self, content: Any, number: int, item: Any, *shared: Any) -> Relayed:
        """Return the result of an item, the messages that this process has to relay, and the files that it read."""
        if records_reads := self.reads and self.process != _PROCESS:
            worker_reads()
        function = self.function or self._unpacked(content)
        with (
            _placed(_Position(in_worker=True)),
            progress.at(None),
            _recorded(self.process != _PROCESS) as records,
            gather_missing() as tally,
        ):
            result = function(item, *shared)
        messages = [records.get() for _ in range(records.qsize())]
        return (number, result, tally.counts), messages, worker_reads() if records_reads else {}

    def _unpacked(self, content: Any) -> Callable[..., Any]:
        """Return the function."""
        # Dask unpickles calls in its own loop, so that the software is compared here.
        here = numerical()
        if differing := [
            f"{name} {here[name]}, not {there}" for name, there in self.software.items() if there != here[name]
        ]:
            raise DependencyError(
                f"a worker on {platform.node()} has {', '.join(differing)}: install the same versions there"
            )
        if self.folder is not None:
            os.chdir(self.folder)
        functions = _functions(self.name)
        if not functions:
            functions.append(pickle.loads(content))
            self._check_code()
        function: Callable[..., Any] = functions[0]
        return function

    def _check_code(self) -> None:
        """Refuse older code of other packages, which a worker of a cluster keeps loaded while files change."""
        for package, there in self.code.items():
            with suppress(ImportError):  # the function may do without
                import_module(package)
                if code(package) != there:
                    raise DependencyError(
                        f"a worker on {platform.node()} has other code of {package}: install the same there, and "
                        "restart the workers"
                    )


def _packed(function: Callable[..., Any], *, moves: bool) -> _Call:
    """Pack a call for other processes; with `moves`, it survives a change of this process's folder."""
    import cloudpickle
    import numpy as np

    try:
        content = np.frombuffer(cloudpickle.dumps(function), dtype=np.uint8)
    except Exception as error:  # whatever an object's way to be pickled raises
        name = getattr(function, "__name__", type(function).__name__)
        raise ParameterError(f"{name} cannot be sent to other processes ({error}): use threads") from None
    return _Call(None, content, os.getcwd() if moves else None)


@lru_cache(maxsize=2)  # each may hold large files
def _functions(name: str) -> list[Any]:
    """Return a list for the function of a map, empty until it is unpickled."""
    return []


@contextmanager
def _recorded(is_foreign: bool) -> Iterator[SimpleQueue[logging.LogRecord]]:
    """Record the messages that this thread logs in the block, in another process; here they go to the log directly."""
    records: SimpleQueue[logging.LogRecord] = SimpleQueue()
    if not is_foreign:
        yield records
        return
    handler, thread = QueueHandler(records), threading.get_ident()
    # Threads of one worker process log at the same time.
    handler.addFilter(lambda record: record.thread == thread)
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    try:
        yield records
    finally:
        _log.removeHandler(handler)


@contextmanager
def _placed(position: _Position) -> Iterator[None]:
    token = _current.set(position)
    try:
        yield
    finally:
        _current.reset(token)


def _check_jobs(n_jobs: int | None) -> None:
    if n_jobs == 0:
        raise ParameterError("n_jobs is 0: give a number of workers, or -1 for one per core")
