"""Rows of numbers by document that do not depend on the query, and are computed once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from greylag.ranking import BoolArray, FloatArray, IntArray

MAX_BYTES = 1 << 28
"""Of the rows of all documents; of a larger collection, none are kept."""


class KeptRows:
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
        missing = documents[~self._known[documents]]
        if len(missing):
            self._rows[missing] = self._compute(missing)
            self._known[missing] = True  # after the rows, which other threads read then
        rows: FloatArray = self._rows[documents]
        return rows
