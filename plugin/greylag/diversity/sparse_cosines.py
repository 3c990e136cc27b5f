"""Cosines of sparse vectors with one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from greylag.base import FloatArray
from greylag.index import drop_empty_columns

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def cosines_by_row(vectors: csr_matrix) -> Callable[[int], FloatArray]:
    """Make a function from the number of a row to its inner products with all rows, of unit length or zero."""
    rows = drop_empty_columns(vectors) if vectors.shape[1] > vectors.nnz else vectors
    starts = rows.indptr.tolist()

    def cosines(row: int) -> FloatArray:
        entries, vector = slice(starts[row], starts[row + 1]), np.zeros(rows.shape[1])
        vector[rows.indices[entries]] = rows.data[entries]
        return np.asarray(rows @ vector)

    return cosines
