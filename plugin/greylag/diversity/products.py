"""Inner products of one sparse row with all others, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from greylag.ranking import FloatArray


@njit(cache=True, nogil=True)
def row_products(indptr: Any, rows: Any, data: Any, columns: Any, values: FloatArray, n: int) -> FloatArray:
    """Products of the vector with `values` in `columns` with each of n rows, shape (n,).

    indptr, rows, data : the matrix by column (CSC). Only the vector's columns are visited, so that the cost is the
    number of entries in them.
    """
    products = np.zeros(n)
    for place in range(len(columns)):
        for entry in range(indptr[columns[place]], indptr[columns[place] + 1]):
            products[rows[entry]] += values[place] * data[entry]
    return products
