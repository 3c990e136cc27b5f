"""Exact collection and document frequencies of windows, counted once and stored with the index."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from greylag.features.spec import UNLIMITED, Window
from greylag.features.weighting import Profile
from greylag.features.windows import collection_counts
from greylag.index.positional import PositionalIndex
from greylag.ranking import IntArray

_FILE = "windows.sqlite"
_MEMORY_LIMIT = 1 << 28  # bytes of counts in memory; beyond it they are read from the file again
ANYWHERE = 1 << 40  # wider than any document, without overflow when multiplied by the size of a clique


@dataclass(frozen=True, eq=False)
class CliqueTable:
    """Cliques to count, and the windows to count them in.

    Parameters
    ----------
    ordered : bool
        Whether the order of terms matters.
    cliques : int array, shape (cliques, largest)
        Term numbers, as `windows.collection_counts` takes them.
    windows : tuple of Window
        All of the same order.
    profile : "indri", "galago" or "inquery"
        How windows are matched; see `FeatureParameters`.
    """

    ordered: bool
    cliques: IntArray
    windows: tuple[Window, ...]
    profile: Profile

    @property
    def overlap(self) -> bool:
        """Whether overlapping matches count."""
        return self.profile == "galago"

    @property
    def per_term(self) -> bool:
        """Whether the width of an unordered window is multiplied by the size of the clique."""
        return self.profile != "inquery"

    @property
    def widths(self) -> IntArray:
        """The widths of the windows, with `ANYWHERE` for an unlimited one."""
        return np.array([ANYWHERE if w.width == UNLIMITED else w.width for w in self.windows], dtype=np.int64)

    @property
    def key(self) -> bytes:
        """The key of the table's counts in storage."""
        digest = hashlib.sha256(repr((self.ordered, self.profile, self.cliques.shape, self.windows)).encode())
        digest.update(self.cliques.tobytes())
        return digest.digest()


@dataclass(frozen=True)
class WindowStatistics:
    """The counts of windows over one collection.

    Counts are computed on first use, cached in memory, and stored in ``windows.sqlite`` in the folder of the index. If
    there is no folder, or it cannot be written, they are cached in memory only. Safe with concurrent readers and
    writers.

    Parameters
    ----------
    index : PositionalIndex
    """

    index: PositionalIndex
    _known: dict[bytes, IntArray] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def counts(self, table: CliqueTable) -> IntArray:
        """Return cf and df, shape (2, cliques, windows)."""
        key = table.key
        shape = (2, len(table.cliques), len(table.windows))
        known = self._known.get(key)
        if known is None:
            stored = self._load(key)
            known = self._compute(table) if stored is None else np.frombuffer(stored, np.int64).reshape(shape)
            with self._lock:
                if sum(counts.nbytes for counts in self._known.values()) > _MEMORY_LIMIT:
                    self._known.clear()
                self._known[key] = known
            if stored is None:
                self._store(key, known)
        return known

    def _compute(self, table: CliqueTable) -> IntArray:
        index = self.index
        counts: IntArray = collection_counts(
            table.ordered, table.cliques, index.postings_offsets, index.postings_docs, index.postings_starts,
            index.positions, table.widths, table.overlap, table.per_term,
        )  # fmt: skip
        return counts

    @property
    def _file(self) -> Path | None:
        return None if self.index.folder is None else self.index.folder / _FILE

    def _load(self, key: bytes) -> bytes | None:
        if self._file is None or not self._file.exists():
            return None
        try:
            with closing(sqlite3.connect(self._file, timeout=60)) as store:
                row = store.execute("SELECT counts FROM windows WHERE key = ?", (key,)).fetchone()
        except sqlite3.OperationalError:  # not readable, or being created by another process
            return None
        return None if row is None else bytes(row[0])

    def _store(self, key: bytes, counts: IntArray) -> None:
        if self._file is None:
            return
        try:
            with closing(sqlite3.connect(self._file, timeout=60)) as store, store:
                store.execute("CREATE TABLE IF NOT EXISTS windows (key BLOB PRIMARY KEY, counts BLOB) WITHOUT ROWID")
                store.execute("INSERT OR IGNORE INTO windows VALUES (?, ?)", (key, counts.tobytes()))
        except sqlite3.OperationalError:  # read-only: the cache in memory must suffice
            return
