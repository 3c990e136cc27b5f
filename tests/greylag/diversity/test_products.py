"""Inner products of rows against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.diversity.products import inverse_lengths, raise_to_cosines, row_products
from tests.greylag.diversity import samples


@pytest.mark.parametrize("row", range(8))
def test_equals_the_dense_product(row: int) -> None:
    matrix = samples.frequencies(3)
    by_column, vector = matrix.tocsc(), matrix[row]
    products = row_products(by_column.indptr, by_column.indices, by_column.data, vector.indices, vector.data, 8)
    np.testing.assert_allclose(products, matrix.toarray() @ vector.toarray().ravel(), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_cosines_of_dense_rows(dtype: str) -> None:
    rows = np.random.default_rng(2).standard_normal((9, 37)).astype(dtype)
    rows[4] = 0
    rows[5] = 3 * rows[1].astype("f4")
    exact = rows.astype(np.float64)
    lengths = np.sqrt((exact**2).sum(axis=1))
    scales = inverse_lengths(rows)
    np.testing.assert_allclose(scales, np.divide(1, lengths, where=lengths > 0, out=np.zeros(9)), rtol=1e-14)
    closest = np.full(9, -np.inf)
    closest[3] = 2.0
    raise_to_cosines(rows, scales, 1, closest)
    expected = (exact * scales[:, None]) @ (exact[1] * scales[1])
    expected[3] = 2.0
    np.testing.assert_allclose(closest, expected, atol=1e-14)
