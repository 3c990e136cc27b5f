"""Values in a SQLite file: the results of unfinished work, beside its output, and counts that take long.

The file is a cache, for any number of threads and processes. A fault of the file is no error: what it lacks is
computed again. SQLite makes it safe against killed processes, and a checksum of each value against other damage.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import sqlite3
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from greylag.base.runtime.encoding import decode, encode
from greylag.base.runtime.interrupts import is_interrupt
from greylag.base.runtime.parallel import keeping
from greylag.base.runtime.reads import Reads, at_present, reading

MIN_KEPT_SECONDS = 1.0
"""Seconds of work that are not worth keeping."""
SUFFIX = ".greylag-work"
interruptions: list[str] = []
"""Messages about interrupted work, for the command line to print."""

_WAIT = 0.02  # seconds to wait for a lock that another process holds
_PAUSE = 1.0  # seconds to do without the file after its lock was not released in time
_DIGEST = 16  # bytes
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}  # the last of other tables
_HEADERS = b"", b"SQLite format 3\0"  # a file that was made, and nothing written to it, is empty
_SELECT = "SELECT content FROM kept WHERE key = ?"
# Not WITHOUT ROWID: SQLite would read the whole content of every row that a search for another key compares with.
_CREATE = "CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, content BLOB)"
_INSERT = "INSERT OR REPLACE INTO kept (key, content) VALUES (?, ?)"
_log = logging.getLogger("greylag")


class Cache:
    """Values by key in a SQLite file, which need not exist.

    A checksum shows damage, not who wrote a value: the caller checks it (see `is_array`) or computes it again. Without
    access or the lock, nothing is found and nothing is kept. A damaged file is removed, with a warning; a `private` one
    is the user's alone, of a name that may be another file's: one that others own or may write is not used.
    """

    def __init__(self, path: Path, *, private: bool = False) -> None:
        self.path, self._private = path, private
        self._lock, self._resume = threading.Lock(), 0.0
        self._writable, self._warned = True, False

    def load(self, key: bytes) -> Any:
        """Load the value of a key, or None."""
        if not self.path.exists():
            return None
        kept = self._attempt(lambda store: [_unseal(key, content) for (content,) in store.execute(_SELECT, (key,))])
        return kept[0] if kept else None

    def save(self, key: bytes, value: Any) -> bool:
        """Keep a value; return whether it is kept. `TypeError` if it is not data (see `encode`)."""
        return self.insert([_seal(key, value)])

    def insert(self, rows: list[tuple[bytes, bytes]]) -> bool:
        """Keep keys and sealed contents in one transaction; return whether they are kept."""

        def insert(store: sqlite3.Connection) -> bool:
            store.execute("PRAGMA synchronous = OFF")  # what a power loss damages is found and computed again
            # Each time, as another process may have dropped a damaged file.
            store.execute(_CREATE)
            store.executemany(_INSERT, rows)
            return True

        return self._writable and bool(self._attempt(insert))

    def remove(self) -> None:
        """Remove the file, unless it is not the user's database."""
        with suppress(OSError):
            if self.path.is_file() and self._is_usable() and self.path.open("rb").read(16) in _HEADERS:
                self._unlink()

    def _attempt(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """Return the result of `work` in one transaction, or None if it failed."""
        # Threads of this process wait for each other here: in SQLite they would find the file busy, and pause.
        with self._lock:
            if time.monotonic() < self._resume or not self._is_usable():
                return None
            try:
                # A connection for each call: those of SQLite belong to one thread, and a kept one would hold the file
                # open for ever.
                with closing(sqlite3.connect(self.path, timeout=_WAIT)) as store, store:
                    # What damage has turned into text is compared with its checksum, too.
                    store.text_factory = bytes
                    return work(store)
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
                # Someone else writes: do without the file for a moment rather than wait at each of thousands of calls.
                if code in _BUSY:
                    self._resume = time.monotonic() + _PAUSE
                elif code not in _DAMAGED:
                    self._fail(str(error))
                elif str(error) != "no such table: kept":  # which another process is making
                    self._drop(str(error))
        return None

    def _is_usable(self) -> bool:
        """Return whether the file, which is made if it is absent, may be read: SQLite would wait for a pipe."""
        try:
            with suppress(FileExistsError):
                mode = 0o600 if self._private else 0o666
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            state = os.lstat(self.path)
        except OSError as error:
            self._fail(error.strerror or str(error))
            return False
        # Results decide rankings: a private file that others could have written is not believed.
        is_own = state.st_uid == os.geteuid() and state.st_nlink == 1 and not state.st_mode & 0o022
        is_usable = stat.S_ISREG(state.st_mode) and (is_own or not self._private)
        if self._private and not is_usable:
            self._warn("is not a file that only you may write: what is done is not kept")
        return is_usable

    def _fail(self, reason: str) -> None:
        """Write no more."""
        self._writable = False
        if self._private and "is full" in reason:  # the output, which may yet be finished, needs the room
            self.remove()
            self._warn("was removed, as the disk is full: an interrupted command begins anew")
        elif self._private and self.path.parent.is_dir():
            self._warn(f"cannot be written: {reason}; what is done is not kept from here")

    def _drop(self, reason: str) -> None:
        """Remove a damaged file; of a private one, which may be someone else's, what is whole is used."""
        self._warn(f"is damaged ({reason}): what it lacks is computed again")
        try:
            if not self._private:
                self._unlink()
        except OSError:  # it cannot be replaced either
            self._resume = math.inf

    def _unlink(self) -> None:
        for path in (self.path.with_name(f"{self.path.name}-journal"), self.path):
            path.unlink(missing_ok=True)

    def _warn(self, message: str) -> None:
        """Log a warning, once."""
        if not self._warned:
            _log.warning("%s %s", self.path, message)
        self._warned = True


def is_array(value: Any, dtype: str, shape: Sequence[int | None], least: float, most: float) -> bool:
    """Return whether a value from a file is an array of this type and shape (None: any length), in [least, most]."""
    return (
        type(value) is np.ndarray
        and value.dtype == np.dtype(dtype)
        and value.dtype.isnative
        and value.flags.c_contiguous
        and len(value.shape) == len(shape)
        and all(wanted in (None, size) for wanted, size in zip(shape, value.shape, strict=True))
        and bool(((value >= least) & (value <= most)).all())  # false for NaN
    )


class WorkLog:
    """The results of unfinished work, under keys that begin with a digest of all that they depend on.

    The file is made after `MIN_KEPT_SECONDS` seconds, and results wait for as long until they are written together: a
    transaction takes longer than many results.
    """

    def __init__(self, path: Path, depends: Callable[[], str], reads: Reads) -> None:
        self.path, self._cache = path, Cache(path, private=True)
        self._depends, self._scope = depends, b""
        self._reads, self._reads_key = reads, b""
        self._earlier: dict[str, Any] = {}
        self._was_there, self._resumed = os.path.lexists(path), False
        self._written = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._waiting: dict[bytes, tuple[str, bytes]] = {}  # the step and sealed content of each key

    def load_result(self, key: str) -> Any:
        """Load the result of this key, or None."""
        if not self._is_begun():
            return None
        name = self._key(key)
        waiting = self._waiting.get(name)
        result = self._cache.load(name) if waiting is None else _unseal(name, waiting[1])
        self._counts[_step_name(key)] += result is not None
        if self._was_there and result is not None and not self._resumed:
            self._resumed = True
            _log.info("going on from %s, which an interrupted command left", self.path)
        return result

    def save_result(self, key: str, result: Any) -> bool:
        """Keep a result, unless it is not data; whether it is kept, or waits to be written."""
        waited = time.monotonic() - self._written >= MIN_KEPT_SECONDS
        if not (waited or self._is_begun()):
            return False
        try:
            name, content = _seal(self._key(key), result)
        except TypeError:
            return False
        self._waiting[name] = _step_name(key), content
        return not waited or self._write()

    def _write(self) -> bool:
        """Write the results that wait; return whether they are kept."""
        # Forgotten even if they cannot be written: they would pile up in memory.
        waiting, self._waiting, self._written = self._waiting, {}, time.monotonic()
        if not waiting:
            return False
        # With what they depend on, in one transaction: what was read for the results of before, and what is read now.
        depends = json.dumps(self._earlier | self._reads.state())
        rows = [_seal(self._reads_key, depends), *((name, content) for name, (_, content) in waiting.items())]
        is_kept = self._cache.insert(rows)
        self._counts.update(step for step, _ in waiting.values() if is_kept)
        return is_kept

    def summary(self) -> str:
        """Write what waits, and return a line about the kept results; "" if there are none."""
        self._write()
        if not self.path.is_file() or not self._is_begun():
            return ""
        steps = ", ".join(f"{what} ({count})" for what, count in self._counts.items() if what and count)
        return f"kept in {self.path}: {steps or 'what was done before'}; the same command goes on from there"

    def remove(self) -> None:
        """Remove the file, if it is the log's."""
        self._cache.remove()

    # Until something is kept, nothing is looked up either: the digest of all inputs would take longer than a short
    # command.
    def _is_begun(self) -> bool:
        return self._was_there or self._counts.total() > 0

    def _key(self, key: str) -> bytes:
        if not self._scope:
            self._scope, anew = hashlib.sha256(self._depends().encode()).digest(), False
            self._reads_key = _digest(self._scope, b"reads")
            while self._was_there and (kept := self._cache.load(self._reads_key)):
                self._earlier = json.loads(kept)
                if (present := at_present(self._earlier)) == self._earlier:
                    break
                # Under what the files are now, so that a third command goes on from a second.
                self._scope, self._earlier = _digest(self._scope, json.dumps(present, sort_keys=True).encode()), {}
                self._reads_key, anew = _digest(self._scope, b"reads"), True
            if anew and not self._earlier:
                _log.info("%s: files that were read for it have changed, so that the work begins anew", self.path)
        return _digest(self._scope, key.encode())


def beside(output: Path) -> Path:
    """Return the path of the log of the work on an output file."""
    target = Path(os.path.realpath(output))
    return target.with_name(f".{target.name}{SUFFIX}")


@contextmanager
def resuming(path: Path, depends: Callable[[], str], *without: Path) -> Iterator[Reads]:
    """Keep the results of the maps in the block in a file, and use those that are there; yield what is read."""
    # `depends` gives a digest of what the results depend on beside the files that are read, but for the outputs
    # `without`. The file stays if the block fails.
    with reading(path, *without) as reads:
        log = WorkLog(path, depends, reads)
        try:
            with keeping(log):
                yield reads
        except (Exception, KeyboardInterrupt) as error:
            summary = log.summary()
            if is_interrupt(error):
                interruptions.append(summary or "nothing is kept, as there was less than a second's work")
            elif summary:
                _log.info("%s", summary)
            raise
        log.remove()


def _step_name(key: str) -> str:
    """Return the name of the step whose result has this key; "" inside of a fold."""
    path, _, what = key.rpartition(":")[0].partition(":")
    return what if path.count("/") == 1 else ""


def _seal(key: bytes, value: Any) -> tuple[bytes, bytes]:
    """Return a key and the content to keep of its value, with a checksum of both."""
    content = encode(value)
    return key, _digest(key, content) + content


def _unseal(key: bytes, sealed: Any) -> Any:
    """Return the value of sealed content; raise `sqlite3.DatabaseError` if it is something else."""
    content = sealed[_DIGEST:] if isinstance(sealed, bytes) else b""
    if not content or sealed[:_DIGEST] != _digest(key, content):
        raise sqlite3.DatabaseError("a row has a wrong checksum")
    try:
        return decode(content)
    except ValueError as error:
        raise sqlite3.DatabaseError(str(error)) from None


def _digest(key: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(len(key).to_bytes(8, "little") + key + content, digest_size=_DIGEST).digest()
