"""Window counts in a SQLite file. The file is a cache: without it, counts are computed again."""

from __future__ import annotations

import hashlib
import logging
import math
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from greylag.ranking import IntArray

_PATIENCE = 0.02  # seconds to wait for a lock that another process holds
_PAUSE = 1.0  # seconds without the file after a lock was not released in time
_DIGEST = 16  # bytes
# The file is damaged, unless SQLite's primary result code is one of these.
_PASSING = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY,
}  # fmt: skip
_SELECT = "SELECT counts FROM windows WHERE key = ?"
_CREATE = "CREATE TABLE IF NOT EXISTS windows (key BLOB PRIMARY KEY, counts BLOB) WITHOUT ROWID"
_INSERT = "INSERT OR REPLACE INTO windows (key, counts) VALUES (?, ?)"
_log = logging.getLogger("greylag")


class CountStore:
    """Counts by key, in a file that any number of threads and processes may share.

    Nothing that is wrong with the file is an error. A damaged file is deleted with a warning. If it cannot be read or
    written, or another process holds its lock, nothing is found and nothing is stored.

    Parameters
    ----------
    path : Path
        The SQLite file, which need not exist. Every row carries a checksum.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._resume = 0.0

    def load(self, key: bytes, shape: tuple[int, ...]) -> IntArray | None:
        """The counts of a key, int64, read-only, or None if they are not stored."""
        if not self.path.exists():
            return None

        def select(store: sqlite3.Connection) -> IntArray | None:
            row = store.execute(_SELECT, (key,)).fetchone()
            return None if row is None else _unseal(key, row[0], shape)

        found: IntArray | None = self._attempt(select)
        return found

    def save(self, key: bytes, counts: IntArray) -> None:
        """Store the counts of a key."""

        def insert(store: sqlite3.Connection) -> None:
            store.execute("PRAGMA synchronous = OFF")  # what a power loss damages is found and counted again
            store.execute(_CREATE)
            store.execute(_INSERT, (key, _seal(key, counts)))

        self._attempt(insert)

    def _attempt(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """The result of `work` in one transaction, or None if it failed."""
        with self._lock:
            if time.monotonic() < self._resume:
                return None
            try:
                with closing(sqlite3.connect(self.path, timeout=_PATIENCE)) as store, store:
                    store.text_factory = bytes
                    return work(store)
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
                if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    self._resume = time.monotonic() + _PAUSE
                elif code not in _PASSING and not _is_new(error):
                    self._drop(str(error))
        return None

    def _drop(self, reason: str) -> None:
        _log.warning("%s is damaged (%s): its counts are computed again", self.path, reason)
        try:
            for path in (self.path.with_name(f"{self.path.name}-journal"), self.path):
                path.unlink(missing_ok=True)
        except OSError:  # it cannot be replaced either
            self._resume = math.inf


def _seal(key: bytes, counts: IntArray) -> bytes:
    """Counts with a checksum of them and their key."""
    content = counts.astype(np.int64).tobytes()
    return _digest(key, content) + content


def _unseal(key: bytes, sealed: Any, shape: tuple[int, ...]) -> IntArray:
    """The counts of `_seal`; `sqlite3.DatabaseError` if it is something else."""
    content = sealed[_DIGEST:] if isinstance(sealed, bytes) else b""
    if len(content) != 8 * math.prod(shape) or sealed[:_DIGEST] != _digest(key, content):
        raise sqlite3.DatabaseError("a row has a wrong checksum")
    return np.frombuffer(content, dtype=np.int64).reshape(shape)


def _digest(key: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(key + content, digest_size=_DIGEST).digest()


def _is_new(error: sqlite3.Error) -> bool:
    """Whether the file has no table yet, as when another process is making it."""
    return str(error) == "no such table: windows"
