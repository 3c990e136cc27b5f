"""Cosines of sparse vectors with one of them, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from greylag.index.tables import drop_empty_columns
from greylag.ranking import FloatArray
from greylag.runtime.compilation import compiled

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def cosines_by_column(vectors: csr_matrix) -> Callable[[int], FloatArray]:
    """Make a function from the number of a row to its inner products with all rows, of unit length or zero."""
    rows = drop_empty_columns(vectors) if vectors.shape[1] > vectors.nnz else vectors
    # By column, so that a pick visits only the documents that share a word with it.
    columns, starts = rows.tocsc(), rows.indptr.tolist()

    def cosines(row: int) -> FloatArray:
        entries = slice(starts[row], starts[row + 1])
        products = np.zeros(rows.shape[0])
        _add_products(
            columns.indptr, columns.indices, columns.data, rows.indices[entries], rows.data[entries], products
        )
        return products

    return cosines


@compiled()
def _add_products(indptr: Any, rows: Any, data: Any, columns: Any, values: FloatArray, products: FloatArray) -> None:
    """Add the inner products of a sparse vector, `columns` and `values`, with the rows of a CSC matrix.

    Only the vector's columns are visited. Rows are unsigned, since Numba counts negative ones from the end of an array.
    """
    for number in range(len(columns)):
        value, column = values[number], columns[number]
        for entry in range(np.uint64(indptr[column]), np.uint64(indptr[column + 1])):
            products[np.uint64(rows[entry])] += value * data[entry]
