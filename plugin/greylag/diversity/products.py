"""Inner products of one sparse row with all others; a module of its own because numba is slow to import."""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.compilation import compiled
from greylag.ranking import FloatArray


@compiled()
def row_products(indptr: Any, rows: Any, data: Any, columns: Any, values: FloatArray, n: int) -> FloatArray:
    """Inner products of a sparse vector with each of n rows of a matrix, shape (n,).

    Only the columns of the vector are visited, so that the cost is the number of their entries.

    Parameters
    ----------
    indptr, rows, data : arrays
        The matrix in CSC format.
    columns, values : arrays
        The entries of the vector.
    n : int
        Number of rows.
    """
    products = np.zeros(n)
    for place in range(len(columns)):
        for entry in range(indptr[columns[place]], indptr[columns[place] + 1]):
            products[rows[entry]] += values[place] * data[entry]
    return products
