"""Inner products of one row with all others; a module of its own because numba is slow to import."""

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


# The order of a sum is chosen when the loop is compiled, so that, unlike that of BLAS, it does not depend on threads.
@compiled(fastmath={"reassoc", "contract"})
def raise_to_cosines(rows: Any, scales: FloatArray, row: int, closest: FloatArray) -> None:
    """Raise `closest`, shape (n,), to the cosines of each of n dense rows with one of them, where these are greater.

    Parameters
    ----------
    rows : float32 or float64 array, shape (n, m)
        In C order.
    scales : array, shape (n,)
        `inverse_lengths`.
    row : int
        The number of the row.
    """
    picked = rows[row].astype(np.float64)
    for i in range(len(rows)):
        product = 0.0
        for j in range(rows.shape[1]):
            product += picked[j] * rows[i, j]
        closest[i] = max(closest[i], product * scales[i] * scales[row])


@compiled(fastmath={"reassoc", "contract"})
def inverse_lengths(rows: Any) -> FloatArray:
    """The inverse Euclidean length of each dense row, shape (n,); 0 for a zero row."""
    scales = np.zeros(len(rows))
    for i in range(len(rows)):
        square = 0.0
        for j in range(rows.shape[1]):
            square += np.float64(rows[i, j]) * np.float64(rows[i, j])
        if square > 0:
            scales[i] = 1.0 / np.sqrt(square)
    return scales
