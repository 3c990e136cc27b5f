"""Rows and entries of documents that do not depend on the query, and are computed once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from greylag.base import BoolArray, FloatArray, IntArray
from greylag.index.tables import Int32Array

MAX_BYTES = 1 << 28
"""The size of all documents' rows or entries above which none are cached."""


class RowCache:
    """Rows of numbers of a collection's documents, computed when they are first asked for; safe to share."""

    def __init__(self, n_documents: int, width: int, compute: Callable[[IntArray], FloatArray]) -> None:
        # Zeros take no memory until a page of them is written to.
        n = n_documents if 8 * n_documents * width <= MAX_BYTES else 0
        self._compute, self._rows = compute, np.zeros((n, width))
        self._known: BoolArray = np.zeros(n, dtype=np.bool_)

    def __call__(self, documents: IntArray) -> FloatArray:
        """Return the rows of documents with these numbers, shape (n, width)."""
        if not len(self._rows):
            return self._compute(documents)
        # Two threads may compute a row twice; they write the same, which costs less than a lock.
        missing = documents[~self._known[documents]]
        if len(missing):
            self._rows[missing] = self._compute(missing)
            self._known[missing] = True  # after the rows, which other threads read then
        rows: FloatArray = self._rows[documents]
        return rows


class Entries(NamedTuple):
    """Numbers with weights, such as the terms of n documents, anywhere in two arrays."""

    bounds: IntArray  # document i has ``numbers[bounds[0, i]:bounds[1, i]]``, shape (2, n)
    numbers: Int32Array
    weights: FloatArray


class EntryCache:
    """The entries of a collection's documents, computed when they are first asked for; safe to share."""

    def __init__(self, n_documents: int, n_entries: int, compute: Callable[[IntArray], Entries]) -> None:
        self._keeps = 16 * n_documents + 12 * n_entries <= MAX_BYTES
        n_documents, n_entries = (n_documents, n_entries) if self._keeps else (0, 0)
        self._compute, self._lock, self._size = compute, threading.Lock(), 0
        self._bounds: IntArray = np.full((2, n_documents), -1)
        # Memory that is not written to costs nothing.
        # The arrays never move, so that readers need no lock.
        self._numbers, self._weights = np.empty(n_entries, np.int32), np.empty(n_entries)

    def __call__(self, documents: IntArray) -> Entries:
        """Return the entries of documents with these numbers; the arrays are not to be written to."""
        if not self._keeps:
            return self._compute(documents)
        # Read without the lock, which all later calls save; looked at again once it is held.
        if (self._bounds[1, documents] < 0).any():
            with self._lock:
                self._add(np.unique(documents[self._bounds[1, documents] < 0]))
        return Entries(self._bounds[:, documents], self._numbers, self._weights)

    def _add(self, documents: IntArray) -> None:
        """Compute the entries of different documents, and keep them behind the others."""
        bounds, numbers, weights = self._compute(documents)
        first, self._size = self._size, self._size + len(numbers)
        self._numbers[first : self._size], self._weights[first : self._size] = numbers, weights
        # The ends come last: by them, other threads see that a document is here.
        self._bounds[0, documents] = first + bounds[0]
        self._bounds[1, documents] = first + bounds[1]
