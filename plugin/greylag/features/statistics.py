"""cf and df of windows over the whole collection: counted exactly, once, and kept beside the index."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from greylag.features.spec import UNLIMITED, Window
from greylag.index.positional import PositionalIndex
from greylag.ranking import IntArray

_FILE = "windows.sqlite"
_MEMORY_LIMIT = 1 << 28  # bytes of counts held in memory; beyond it they are read from the file again
ANYWHERE = 1 << 40  # wider than any document, and still without overflow when multiplied by a clique's size


@dataclass(frozen=True, eq=False)
class CliqueTable:
    """Cliques that are matched alike, and the windows to count them in.

    ordered : whether the order of a row's terms matters.
    cliques : shape (cliques, largest): term numbers, as `windows.collection_counts` takes them.
    windows : those whose widths are counted.
    overlap : whether matches that overlap one already counted are counted too.
    """

    ordered: bool
    cliques: IntArray
    windows: tuple[Window, ...]
    overlap: bool

    @property
    def widths(self) -> IntArray:
        """The windows' widths, an unlimited one as `ANYWHERE`."""
        return np.array([ANYWHERE if w.width == UNLIMITED else w.width for w in self.windows], dtype=np.int64)

    @property
    def key(self) -> bytes:
        """Identifies the table's counts."""
        digest = hashlib.sha256(repr((self.ordered, self.overlap, self.cliques.shape, self.windows)).encode())
        digest.update(self.cliques.tobytes())
        return digest.digest()


@dataclass(frozen=True)
class WindowStatistics:
    """Collection counts of windows for one index.

    The counts of a query's cliques are computed when they are first asked for, held in memory, and stored in
    ``windows.sqlite`` in the index's folder, which is named after its fingerprint. Without a folder, or where it cannot
    be written, they are held in memory only.
    """

    index: PositionalIndex
    _known: dict[bytes, IntArray] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def counts(self, table: CliqueTable) -> IntArray:
        """Counts cf and df, shape (2, cliques, windows)."""
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
        from greylag.features.windows import collection_counts

        index = self.index
        counts: IntArray = collection_counts(
            table.ordered, table.cliques, index.postings_offsets, index.postings_docs, index.postings_starts,
            index.positions, table.widths, table.overlap,
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
        except sqlite3.OperationalError:  # not readable, or another process is just creating it
            return None
        return None if row is None else bytes(row[0])

    def _store(self, key: bytes, counts: IntArray) -> None:
        if self._file is None:
            return
        try:
            with closing(sqlite3.connect(self._file, timeout=60)) as store, store:
                store.execute("CREATE TABLE IF NOT EXISTS windows (key BLOB PRIMARY KEY, counts BLOB) WITHOUT ROWID")
                store.execute("INSERT OR IGNORE INTO windows VALUES (?, ?)", (key, counts.tobytes()))
        except sqlite3.OperationalError:  # a read-only place: memory has to do
            return
