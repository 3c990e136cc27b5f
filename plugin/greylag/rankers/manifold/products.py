"""Compiled inner products of sparse points; a module of its own because Numba is slow to import.

Products are summed over coordinates in ascending order, as SciPy does, so that both give the same bits. `by_point` and
`by_coordinate` are ``indptr``, ``indices`` and ``data`` of the points in CSR and in CSC format, indices ascending.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.base import FloatArray, IntArray, compiled

_jit = compiled(error_model="numpy")


@_jit
def _products_after(i: int, by_point: Any, by_coordinate: Any, after: IntArray, row: FloatArray) -> None:
    """Set ``row[i + 1:]`` to the inner products of point i with the points after it; call it for i = 0, 1, ....

    `after` holds, for each coordinate, its first entry of a point that has not been visited, in CSC format.
    """
    indptr, coordinates, data = by_point
    starts, points, values = by_coordinate
    for other in range(i + 1, len(row)):
        row[other] = 0.0
    for entry in range(indptr[i], indptr[i + 1]):
        coordinate, value = coordinates[entry], data[entry]
        # Point i is the next entry of the column, since points come in order: what is left are those after it.
        after[coordinate] += 1
        for other in range(after[coordinate], starts[coordinate + 1]):
            row[np.uint32(points[other])] += value * values[other]


@_jit
def nearest(by_point: Any, by_coordinate: Any, squared_norms: FloatArray, neighbours: IntArray, squares: Any) -> None:
    """Find the k < n nearest neighbours of each of n points, in ascending order of Euclidean distance.

    They are written to `neighbours`, shape (n, k), and their squared distances to `squares`, which has infinities. Ties
    go to the lower number: points come in ascending order, and none goes before one at the same distance.
    """
    n, last = len(squared_norms), squares.shape[1] - 1
    row, after = np.empty(n), by_coordinate[0][:-1].copy()
    for i in range(n):
        _products_after(i, by_point, by_coordinate, after, row)
        # Each product serves both of its points, and no pair is visited twice.
        for j in range(i + 1, n):
            double = -2 * row[j]
            from_i = double + squared_norms[i] + squared_norms[j]
            if from_i < squares[i, last]:
                _insert(squares, neighbours, i, from_i, j)
            from_j = double + squared_norms[j] + squared_norms[i]
            if from_j < squares[j, last]:
                _insert(squares, neighbours, j, from_j, i)


@_jit
def _insert(squares: FloatArray, neighbours: IntArray, row: int, square: float, point: int) -> None:
    """Insert a point into the ascending list of a row, in place of the last one."""
    # Shifting beats a heap for the few neighbours that graphs have, and keeps the order that decides ties.
    slot = squares.shape[1] - 1
    while slot > 0 and squares[row, slot - 1] > square:
        squares[row, slot], neighbours[row, slot] = squares[row, slot - 1], neighbours[row, slot - 1]
        slot -= 1
    squares[row, slot], neighbours[row, slot] = square, point


@_jit
def pair_terms(by_point: Any, n_coordinates: int, rows: IntArray, columns: IntArray) -> Any:
    """Return the terms of the inner products of some pairs of points, in ascending order of coordinates, without zeros.

    Those of pair p, of the points ``rows[p]`` and ``columns[p]``, are ``terms[offsets[p]:offsets[p + 1]]``. It is
    fastest if equal rows are adjacent.
    """
    indptr, coordinates, data = by_point
    room = 0
    for point in columns:
        room += indptr[point + 1] - indptr[point]
    terms, offsets, n = np.empty(room), np.zeros(len(rows) + 1, np.int64), 0
    dense, last = np.zeros(n_coordinates), -1  # the coordinates of the pair's first point
    for p in range(len(rows)):
        if rows[p] != last:
            if last >= 0:
                for entry in range(indptr[last], indptr[last + 1]):
                    dense[coordinates[entry]] = 0.0
            last = rows[p]
            for entry in range(indptr[last], indptr[last + 1]):
                dense[coordinates[entry]] = data[entry]
        for entry in range(indptr[columns[p]], indptr[columns[p] + 1]):
            terms[n] = dense[coordinates[entry]] * data[entry]
            n += terms[n] != 0
        offsets[p + 1] = n
    return terms[:n], offsets
