"""Inner products of sparse rows against the dense product."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.diversity.products import row_products
from tests.greylag.diversity import samples


@pytest.mark.parametrize("row", range(8))
def test_equals_the_dense_product(row: int) -> None:
    matrix = samples.frequencies(3)
    by_column, vector = matrix.tocsc(), matrix[row]
    products = row_products(by_column.indptr, by_column.indices, by_column.data, vector.indices, vector.data, 8)
    np.testing.assert_allclose(products, matrix.toarray() @ vector.toarray().ravel(), rtol=1e-14)
