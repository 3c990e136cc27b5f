"""Exact collection and document frequencies of windows, counted once and stored with the index."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from greylag.features.spec import UNLIMITED, Window
from greylag.features.store import CountStore
from greylag.features.weighting import Profile
from greylag.features.windows import collection_counts
from greylag.index.positional import PositionalIndex
from greylag.ranking import IntArray

_FILE = "windows.sqlite"
_MEMORY_LIMIT = 1 << 28  # bytes of counts in memory; beyond it they are read from the file again
ANYWHERE = 1 << 40  # wider than any document, without overflow when multiplied by the size of a clique


def widths(windows: Sequence[Window]) -> IntArray:
    """The widths of windows, with `ANYWHERE` for an unlimited one."""
    return np.array([ANYWHERE if w.width == UNLIMITED else w.width for w in windows], dtype=np.int64)


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
        """The widths of the windows; see `widths`."""
        return widths(self.windows)

    @property
    def key(self) -> bytes:
        """The key of the table's counts in storage."""
        digest = hashlib.sha256(repr((self.ordered, self.profile, self.cliques.shape, self.windows)).encode())
        digest.update(self.cliques.tobytes())
        return digest.digest()


class WindowStatistics:
    """The counts of windows over one collection.

    Counts are computed on first use, cached in memory, and stored in ``windows.sqlite`` in the folder of the index. If
    there is no folder, or it cannot be written, they are cached in memory only. Safe with concurrent readers and
    writers.

    Parameters
    ----------
    index : PositionalIndex
    """

    def __init__(self, index: PositionalIndex) -> None:
        self.index = index
        self._store = None if index.folder is None else CountStore(index.folder / _FILE)
        self._known: dict[bytes, IntArray] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def counts(self, table: CliqueTable) -> IntArray:
        """Return cf and df, shape (2, cliques, windows)."""
        key = table.key
        known = self._known.get(key)
        if known is None:
            shape = (2, len(table.cliques), len(table.windows))
            known = self._store.load(key, shape) if self._store else None
            if known is None:
                known = self._compute(table)
                if self._store:
                    self._store.save(key, known)
            self._remember(key, known)
        return known

    def _remember(self, key: bytes, counts: IntArray) -> None:
        with self._lock:
            if self._bytes > _MEMORY_LIMIT:
                self._known.clear()
                self._bytes = 0
            if key not in self._known:
                self._bytes += counts.nbytes
            self._known[key] = counts

    def _compute(self, table: CliqueTable) -> IntArray:
        index = self.index
        counts: IntArray = collection_counts(
            table.ordered, table.cliques, index.postings_offsets, index.postings_docs, index.postings_starts,
            index.positions, table.widths, table.overlap, table.per_term, index.n_documents,
        )  # fmt: skip
        return counts
