"""Rows that are computed once, against those that are computed each time."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from greylag.index import row_caches
from greylag.index.row_caches import Entries, EntryCache, RowCache
from greylag.index.tables import offsets, ranges


@pytest.mark.parametrize("kept", [True, False])
def test_rows_are_those_that_were_computed(kept, monkeypatch):
    if not kept:
        monkeypatch.setattr(row_caches, "MAX_BYTES", 8 * 50 * 3 - 1)
    table, computed = np.random.default_rng(0).standard_normal((50, 3)), []
    rows = RowCache(50, 3, lambda documents: computed.extend(documents) or table[documents])
    for documents in ([4, 2, 49], [], [2, 7, 7, 0], [49, 7]):
        numbers = np.array(documents, dtype=np.int64)
        found = rows(numbers)
        np.testing.assert_array_equal(found, table[numbers])
        found[:] = 0.0  # the caller's own
    assert computed == ([4, 2, 49, 7, 7, 0] if kept else [4, 2, 49, 2, 7, 7, 0, 49, 7])


SIZES = np.random.default_rng(1).integers(0, 6, 50)
STARTS = offsets(SIZES)
NUMBERS = np.arange(STARTS[-1], dtype=np.int32)


def compute_entries(documents):
    own = NUMBERS[ranges(STARTS[documents], SIZES[documents])]
    starts = offsets(SIZES[documents])
    return Entries(np.array([starts[:-1], starts[1:]]), own, own / 7)


def check_entries(found, documents):
    for document, first, end in zip(documents, *found.bounds, strict=True):
        expected = NUMBERS[STARTS[document] : STARTS[document + 1]]
        np.testing.assert_array_equal(found.numbers[first:end], expected)
        np.testing.assert_array_equal(found.weights[first:end], expected / 7)


@pytest.mark.parametrize("kept", [True, False])
def test_entries_are_those_that_were_computed(kept, monkeypatch):
    monkeypatch.setattr(row_caches, "MAX_BYTES", 16 * 50 + 12 * len(NUMBERS) - (not kept))
    computed = []
    entries = EntryCache(50, len(NUMBERS), lambda documents: computed.extend(documents) or compute_entries(documents))
    for documents in ([4, 2, 49], [], [2, 7, 7, 0], [*range(50)]):
        numbers = np.array(documents, dtype=np.int64)
        check_entries(entries(numbers), numbers)
    assert len(computed) == (50 if kept else 57)


def test_threads_share_entries():
    for seed in range(50):
        entries = EntryCache(50, len(NUMBERS), compute_entries)
        asked = [np.random.default_rng([seed, n]).integers(0, 50, 30) for n in range(16)]
        with ThreadPoolExecutor(8) as pool:
            for documents, found in zip(asked, pool.map(entries, asked), strict=True):
                check_entries(found, documents)
