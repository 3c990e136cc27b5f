"""Compiled sums over the rows of a matrix; a module of its own because numba is slow to import."""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.ranking import FloatArray, IntArray
from greylag.runtime.compilation import compiled


@compiled()
def raise_to_products(indptr: Any, rows: Any, data: Any, columns: Any, values: FloatArray, closest: FloatArray) -> None:
    """Raise `closest` to the inner products of a sparse vector with each of n rows of a matrix, where they are higher.

    Only the columns of the vector are visited, so that the cost is the number of their entries. Numbers of rows are
    unsigned, since Numba would count negative ones from the end of an array.

    Parameters
    ----------
    indptr, rows, data : arrays
        The matrix in CSC format.
    columns, values : arrays
        The entries of the vector.
    closest : array, shape (n,)
        Updated.
    """
    products = np.zeros(len(closest))
    for place in range(len(columns)):
        value, column = values[place], columns[place]
        for entry in range(np.uint64(indptr[column]), np.uint64(indptr[column + 1])):
            products[np.uint64(rows[entry])] += value * data[entry]
    for row in range(len(closest)):
        closest[row] = max(closest[row], products[row])


@compiled()
def sum_left(starts: Any, ends: IntArray, columns: Any, values: FloatArray, sums: FloatArray) -> None:
    """Add up the values of each row's columns, and drop the columns of value 0, which later sums do not need.

    Values are added one by one in the order of the columns, as scipy adds them in a product. The loop has no branch,
    since values of 0 come in no order, and no negative numbers, which Numba would count from the end of an array.

    Parameters
    ----------
    starts : int array, shape (n + 1,)
        Where each row begins in `columns`.
    ends : int array, shape (n,)
        Where the columns of each row end; updated.
    columns : int array
        Those that are left come first in their row; updated.
    values : array, shape (M,)
    sums : array, shape (n,)
        Overwritten.
    """
    for row in range(len(ends)):
        total, end = 0.0, np.uint64(starts[row])
        for entry in range(np.uint64(starts[row]), np.uint64(ends[row])):
            column = np.uint64(columns[entry])
            value = values[column]
            total += value
            columns[end] = column
            end += np.uint64(value != 0.0)
        sums[row], ends[row] = total, end


# The order of a sum is chosen when the loop is compiled, so that, unlike that of BLAS, it does not depend on threads.
@compiled(fastmath={"reassoc", "contract"})
def refresh_gains(
    rows: Any, scales: FloatArray, relevance: FloatArray, novelty_weight: float, picks: IntArray, seen: IntArray,
    closest: FloatArray, gains: FloatArray,
) -> None:  # fmt: skip
    """Make the highest of the gains ``relevance - novelty_weight closest`` exact, shape (n,), for dense rows.

    A gain only falls as documents are picked, so that a gain that is not up to date is a bound, and it is brought up to
    date only if it could be the highest, or within 1e-9 of it.

    Parameters
    ----------
    rows : float32 or float64 array, shape (n, m)
        In C order.
    scales : array, shape (n,)
        `inverse_lengths`.
    relevance : array, shape (n,)
    novelty_weight : float
    picks : int array, shape (p,)
        The picked rows, at least one. Their gains are minus infinity.
    seen : int array, shape (n,)
        The number of picks that each gain takes into account; updated.
    closest : array, shape (n,)
        The highest cosine with these picks, from -1; updated.
    gains : array, shape (n,)
        Updated.
    """
    highest = -np.inf
    while True:
        best = int(np.argmax(gains))
        if seen[best] < len(picks):
            row = best
        else:
            highest, row = gains[best], -1
            for other in range(len(gains)):
                if seen[other] < len(picks) and gains[other] >= highest - 1e-9:
                    row = other
                    break
            if row < 0:
                return
        for pick in picks[seen[row] :]:
            product = 0.0
            for j in range(rows.shape[1]):
                product += np.float64(rows[row, j]) * np.float64(rows[pick, j])
            closest[row] = max(closest[row], product * scales[row] * scales[pick])
        seen[row] = len(picks)
        gains[row] = relevance[row] - novelty_weight * closest[row]


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
