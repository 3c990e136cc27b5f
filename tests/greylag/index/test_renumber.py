"""Renumbering, compared with NumPy's unique values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from greylag.index.renumber import drop_empty_columns, renumber


@given(st.lists(st.integers(0, 999)), st.sampled_from([np.int32, np.int64]))
def test_numbers_are_places_among_the_distinct_ones(numbers: list[int], dtype: type) -> None:
    distinct, places = np.unique(np.array(numbers, dtype=dtype), return_inverse=True)
    found, n = renumber(np.array(numbers, dtype=dtype), 1000)
    assert found.tolist() == places.tolist()
    assert n == len(distinct)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, -2.0]), min_size=130, max_size=130), min_size=1, max_size=3))
def test_empty_columns_are_dropped(rows: list[list[float]]) -> None:
    dense = np.array(rows)
    found = drop_empty_columns(csr_matrix(dense))
    kept = dense[:, (dense != 0).any(axis=0)]
    assert found.toarray().tolist() == (kept if kept.shape[1] else np.zeros((len(rows), 1))).tolist()
