"""Inner products of rows against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.diversity.products import inverse_lengths, raise_to_products, refresh_gains
from tests.greylag.diversity import samples


@pytest.mark.parametrize("row", range(8))
def test_equals_the_dense_product(row: int) -> None:
    matrix = samples.frequencies(3)
    by_column, vector = matrix.tocsc(), matrix[row]
    closest = np.arange(8) - 3.0
    expected = np.maximum(closest, matrix.toarray() @ vector.toarray().ravel())
    raise_to_products(by_column.indptr, by_column.indices, by_column.data, vector.indices, vector.data, closest)
    np.testing.assert_allclose(closest, expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_cosines_of_dense_rows(dtype: str) -> None:
    rows = np.random.default_rng(2).standard_normal((9, 37)).astype(dtype)
    rows[4] = 0
    rows[5] = 3 * rows[1].astype("f4")
    exact = rows.astype(np.float64)
    lengths = np.sqrt((exact**2).sum(axis=1))
    scales = inverse_lengths(rows)
    np.testing.assert_allclose(scales, np.divide(1, lengths, where=lengths > 0, out=np.zeros(9)), rtol=1e-14)
    relevance, picks = np.linspace(1, 0, 9), np.array([1, 6])
    seen, closest, gains = np.zeros(9, dtype=np.int64), np.full(9, -1.0), relevance + 0.5
    seen[picks], gains[picks] = 99, -np.inf
    refresh_gains(rows, scales, relevance, 0.5, picks, seen, closest, gains)
    unit = exact * scales[:, None]
    expected = relevance - 0.5 * (unit @ unit[picks].T).max(axis=1)
    expected[picks] = -np.inf
    assert np.argmax(gains) == np.argmax(expected)
    fresh = seen == 2
    np.testing.assert_allclose(gains[fresh], expected[fresh], atol=1e-14)
    assert fresh[gains >= gains.max() - 1e-9].all()
    assert (gains >= expected - 1e-14).all()
