"""Exact collection and document frequencies of windows, counted once and stored with the index."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from greylag.features.cliques import ABSENT, FILLER
from greylag.features.spec import UNLIMITED, Window
from greylag.features.store import CountStore
from greylag.features.weighting import Profile
from greylag.features.windows import add_counts, occurrences
from greylag.index.positional import PositionalIndex
from greylag.index.shard import UNKNOWN, Located, Shard
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
        Term numbers, `UNKNOWN` for a term that the collection lacks, padded with `FILLER`.
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

    def rows(self, places: IntArray) -> tuple[IntArray, IntArray]:
        """The terms of some cliques, and these cliques as rows of places among the terms, padded with `ABSENT`."""
        cliques = self.cliques[places]
        vocabulary = np.unique(cliques[cliques != FILLER])
        return vocabulary, np.where(cliques == FILLER, ABSENT, np.searchsorted(vocabulary, cliques))

    def add_counts(self, rows: IntArray, located: Located, places: IntArray, counts: IntArray) -> None:
        """Add what `rows` gives, where its terms are located, to cf and df, shape (2, cliques, windows)."""
        offsets, _, codes, tf = occurrences(self.ordered, rows, *located, self.widths, self.overlap, self.per_term)
        add_counts(offsets, codes, tf, self.widths, places, counts)


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
        self._store = None if index.shard.folder is None else CountStore(index.shard.folder / _FILE)
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
                known = collection_counts(self.index.shard, table)
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


def collection_counts(shard: Shard, table: CliqueTable) -> IntArray:
    """Cf and df of each clique of a table within each window over all documents of a shard.

    The cliques with the same rarest term are counted together, in the documents that have it.
    """
    cliques, df = table.cliques, shard.document_frequencies
    counts = np.zeros((2, len(cliques), len(table.windows)), dtype=np.int64)
    known, single = (cliques != UNKNOWN).all(axis=1), (cliques != FILLER).sum(axis=1) == 1
    alone = cliques[known & single, 0]
    counts[:, known & single] = np.stack([shard.collection_frequencies[alone], df[alone]])[:, :, None]
    several = np.flatnonzero(known & ~single)
    if len(several):
        frequencies = np.where(cliques[several] == FILLER, shard.n_documents + 1, df[cliques[several]])
        rarest = cliques[several, frequencies.argmin(axis=1)]
        for term in np.unique(rarest):
            places = several[rarest == term]
            vocabulary, rows = table.rows(places)
            alone = ((rows == ABSENT) | (vocabulary[rows] == term)).all(axis=1).any()  # a term twice, and no other
            for documents in shard.documents_of(int(term), vocabulary[:0] if alone else vocabulary):
                table.add_counts(rows, shard.locate(vocabulary, documents), places, counts)
    return counts
