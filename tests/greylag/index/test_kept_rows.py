"""Rows that are computed once, against those that are computed each time."""

import numpy as np
import pytest

from greylag.index import kept_rows
from greylag.index.kept_rows import KeptRows
from greylag.ranking import FloatArray, IntArray


@pytest.mark.parametrize("kept", [True, False])
def test_rows_are_those_that_were_computed(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kept:
        monkeypatch.setattr(kept_rows, "MAX_BYTES", 8 * 50 * 3 - 1)
    table, computed = np.random.default_rng(0).standard_normal((50, 3)), list[int]()

    def compute(documents: IntArray) -> FloatArray:
        computed.extend(documents.tolist())
        return table[documents]

    rows = KeptRows(50, 3, compute)
    for documents in ([4, 2, 49], [], [2, 7, 7, 0], [49, 7]):
        numbers = np.array(documents, dtype=np.int64)
        found = rows(numbers)
        np.testing.assert_array_equal(found, table[numbers])
        found[:] = 0.0  # the caller's own
    assert computed == ([4, 2, 49, 7, 7, 0] if kept else [4, 2, 49, 2, 7, 7, 0, 49, 7])
