"""Exact collection and document frequencies of windows, counted once and stored with the index."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np

from greylag.base import Cache, IntArray, compiled, is_array
from greylag.features.cliques import ABSENT, FILLER
from greylag.features.spec import UNLIMITED, Window
from greylag.features.weighting import Profile
from greylag.features.windows import add_counts, occurrences
from greylag.index import UNKNOWN, Int32Array, Located, Part, PositionalIndex, Shard, Tables

_FILE = "windows.sqlite"
_MAX_UNSAVED_POSTINGS = 1 << 15  # postings that are read in less time than a file of counts is opened
_MEMORY_LIMIT = 1 << 28  # bytes of counts in memory; beyond it they are read from the file again
_jit = compiled(error_model="numpy")
ANYWHERE = 1 << 40  # wider than any document, without overflow when multiplied by the size of a clique


@lru_cache(maxsize=1024)
def widths(windows: tuple[Window, ...]) -> IntArray:
    """Return the widths of windows, with `ANYWHERE` for an unlimited one; the array must not be written to."""
    return np.array([ANYWHERE if w.width == UNLIMITED else w.width for w in windows], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class CliqueTable:
    """Cliques to count, and the windows to count them in."""

    ordered: bool  # whether the order of terms matters
    cliques: IntArray  # (cliques, largest): term numbers, UNKNOWN for one that the collection lacks, padded with FILLER
    windows: tuple[Window, ...]  # all of the same order
    profile: Profile  # see FeatureParameters

    @property
    def widths(self) -> IntArray:
        """The widths of the windows; see `widths`."""
        return widths(self.windows)

    @property
    def of_terms(self) -> bool:
        """Whether all cliques have one term."""
        return self.cliques.shape[1] == 1 or bool((self.cliques[:, 1:] == FILLER).all())

    @property
    def key(self) -> bytes:
        """The key of the table's counts in storage."""
        # By content, so that other queries and models find it; the file stands for the shard.
        digest = hashlib.sha256(repr((self.ordered, self.profile, self.cliques.shape, self.windows)).encode())
        digest.update(self.cliques.tobytes())
        return digest.digest()

    def rows(self, vocabulary: IntArray, numbers: IntArray) -> IntArray:
        """Return the cliques of these numbers as rows of indices into an ascending vocabulary, padded with `ABSENT`."""
        cliques = self.cliques[numbers]
        return np.where(cliques == FILLER, ABSENT, np.searchsorted(vocabulary, cliques))

    def occurrences(
        self, located: Located, rows: IntArray, *, first: bool = False, lead: int | None = None
    ) -> tuple[IntArray, Int32Array, Int32Array, Int32Array]:
        """Find `windows.occurrences` of cliques, given as rows of located terms."""
        within = ANYWHERE if lead is None else lead
        # Galago counts overlapping matches; all but InQuery multiply an unordered width by the size of the clique.
        overlap, per_term = self.profile == "galago", self.profile != "inquery"
        matched = occurrences(self.ordered, rows, *located, self.widths, overlap, per_term, first, within)
        return cast(tuple[IntArray, Int32Array, Int32Array, Int32Array], matched)


class WindowStatistics:
    """The counts of windows over one collection: computed on first use, and kept in memory and with each shard."""

    def __init__(self, index: PositionalIndex) -> None:
        self._index = index
        self._shards = [_ShardStatistics(part) for part in index.parts]
        self._known: dict[bytes, IntArray] = {}
        self._bytes = 0
        # Of `_known` and `_bytes` together. Lookups take none: one of a dict is atomic.
        self._lock = threading.Lock()

    def counts(self, *tables: CliqueTable) -> list[IntArray]:
        """Return cf and df of each table, shape (2, cliques, windows); unknown tables are counted in one pass."""
        keys = [b"" if table.of_terms else table.key for table in tables]  # a digest takes a while
        by_key = {key: table for key, table in zip(keys, tables, strict=True) if key}
        # Other threads may clear what is known at any time, so that each key is looked up once.
        counts = {key: known for key in by_key if (known := self._known.get(key)) is not None}
        missing = [key for key in by_key if key not in counts]
        if missing:
            # Two threads may count the same table, and get the same numbers: waiting would cost as much as counting.
            by_shard = [shard.counts([by_key[key] for key in missing]) for shard in self._shards]
            for key, parts in zip(missing, zip(*by_shard, strict=True), strict=True):
                # Integers: no order of shards changes a sum.
                counts[key] = sum(parts[1:], start=parts[0])
                self._remember(key, counts[key])
        return [
            counts[key] if key else _of_terms(self._index, table)[0] for key, table in zip(keys, tables, strict=True)
        ]

    def _remember(self, key: bytes, counts: IntArray) -> None:
        with self._lock:
            # All at once: the counts that later queries need are unknown, and the file has them all.
            if self._bytes > _MEMORY_LIMIT:
                self._known.clear()
                self._bytes = 0
            if key not in self._known:
                self._bytes += counts.nbytes
            self._known[key] = counts


class _ShardStatistics:
    """The counts of windows over one shard, stored in its folder by its own numbers of terms."""

    def __init__(self, part: Part) -> None:
        self._part = part
        folder = part.shard.folder
        self._store = None if folder is None else Cache(folder / _FILE)

    def counts(self, tables: Sequence[CliqueTable]) -> list[IntArray]:
        """Count cf and df of each table, in the collection's numbers of terms; quick counts are not stored."""
        # Stored by the shard's own numbers of terms, so that counts stay valid whichever shards it is joined with.
        local = [replace(table, cliques=self._part.shard_terms(table.cliques)) for table in tables]
        terms = _terms_of([table.cliques for table in local])
        if self._part.shard.document_frequencies[terms].sum() < _MAX_UNSAVED_POSTINGS:
            return collection_counts(self._part.shard, local)
        stored = [self._load(table) for table in local]
        missing = [table for table, counts in zip(local, stored, strict=True) if counts is None]
        counted = collection_counts(self._part.shard, missing) if missing else []
        if self._store:
            for table, counts in zip(missing, counted, strict=True):
                self._store.save(table.key, counts)
        new = iter(counted)
        return [next(new) if counts is None else counts for counts in stored]

    def _load(self, table: CliqueTable) -> IntArray | None:
        shape = 2, len(table.cliques), len(table.windows)
        if not len(table.cliques):
            return np.zeros(shape, dtype=np.int64)
        counts: Any = self._store.load(table.key) if self._store else None
        shard = self._part.shard
        # The file is a cache that anyone may have written: df is at most N and cf, and a token begins few matches.
        most = max(1, table.cliques.shape[1]) * int(shard.document_lengths.sum())
        if not is_array(counts, "int64", shape, 0, most):
            return None
        return counts if (counts[1] <= np.minimum(counts[0], shard.n_documents)).all() else None


def collection_counts(shard: Shard, tables: Sequence[CliqueTable]) -> list[IntArray]:
    """Count cf and df of each clique of each table within each window over all documents of a shard."""
    # Positions are read once, in the documents that have as many of the terms as the clique that has the fewest.
    # Single terms need no positions: the index has their cf and df.
    counts, longer = zip(*[_of_terms(shard, table) for table in tables], strict=True)
    if any(map(len, longer)):
        vocabulary = _terms_of([table.cliques[numbers] for table, numbers in zip(tables, longer, strict=True)])
        rows = [table.rows(vocabulary, numbers) for table, numbers in zip(tables, longer, strict=True)]
        least = min(_fewest(table_rows, ABSENT) for table_rows in rows if len(table_rows))
        for located in shard.locate_jointly(vocabulary, least):
            for table, table_rows, numbers, table_counts in zip(tables, rows, longer, counts, strict=True):
                offsets, _, codes, tf = table.occurrences(located, table_rows)
                add_counts(offsets, codes, tf, table.widths, numbers, table_counts)
    return list(counts)


def _terms_of(cliques: Sequence[IntArray]) -> IntArray:
    """Return the different known terms of cliques, ascending."""
    terms = np.concatenate([rows.ravel() for rows in cliques])
    terms.sort()
    differs = np.empty(len(terms), bool)
    differs[:1] = True
    np.not_equal(terms[1:], terms[:-1], out=differs[1:])
    return terms[differs & (terms >= 0)]


def _of_terms(tables: Tables, table: CliqueTable) -> tuple[IntArray, IntArray]:
    """Return the counts of a table's cliques of one term, 0 for the others, and the numbers of longer cliques."""
    counts = np.zeros((2, len(table.cliques), len(table.windows)), dtype=np.int64)
    totals = tables.collection_frequencies, tables.document_frequencies
    return counts, _count_terms(table.cliques, FILLER, UNKNOWN, *totals, counts)


@_jit
def _count_terms(cliques: IntArray, filler: int, unknown: int, cf: IntArray, df: IntArray, out: IntArray) -> IntArray:
    """Set the counts of cliques of one term, by those of all terms; return the numbers of longer, known cliques."""
    longer, n = np.empty(len(cliques), np.int64), 0
    for c in range(len(cliques)):
        size, known = 0, True
        for term in cliques[c]:
            size += term != filler
            known &= term != unknown
        if known and size == 1:
            for w in range(out.shape[2]):
                out[0, c, w], out[1, c, w] = cf[cliques[c, 0]], df[cliques[c, 0]]
        elif known:
            longer[n] = c
            n += 1
    return longer[:n]


@_jit
def _fewest(rows: IntArray, absent: int) -> int:
    """Count the distinct terms of the clique that has the fewest."""
    least: Any = rows.shape[1]
    for row in rows:
        size = 0
        for j in range(len(row)):
            new = row[j] != absent
            for i in range(j):
                new &= row[i] != row[j]
            size += new
        least = min(least, size)
    return least  # type: ignore[no-any-return]


def term_counts(tables: Tables, terms: IntArray) -> IntArray:
    """Return cf and df of terms, shape (2, terms); 0 for one that the collection lacks."""
    counts = np.zeros((2, len(terms), 1), np.int64)
    _count_terms(terms[:, None], FILLER, UNKNOWN, tables.collection_frequencies, tables.document_frequencies, counts)
    return counts[:, :, 0]
