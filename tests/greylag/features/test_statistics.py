"""Collection counts of windows, compared with Lucene on CACM."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greylag.features.spec import SINGLE_TERM
from greylag.features.statistics import CliqueTable, WindowStatistics
from greylag.index.positional import PositionalIndex
from tests.greylag.lucene import oracle as lucene_oracle


def test_phrase_df_is_lucenes_phrase_query(cacm: Path, topics: dict[str, str]) -> None:
    index = PositionalIndex.from_lucene(cacm)
    phrases = set()
    for text in topics.values():
        terms = index.analyze(text)
        phrases |= set(pairwise(terms)) | set(zip(terms, terms[1:], terms[2:], strict=False))
    found = 0
    for phrase in sorted(phrases)[::2]:
        table = CliqueTable(True, index.term_numbers(phrase)[None, :], (SINGLE_TERM,), "indri")
        df = int(WindowStatistics(index).counts(table)[0][1, 0, 0])
        assert df == lucene_oracle.phrase_document_frequency(cacm, phrase), phrase
        found += df > 0
    assert found > 100


class _ClearedAfterTheFirstLook(dict[bytes, Any]):
    """Another thread clears it as soon as one has found something in it."""

    def __contains__(self, key: object) -> bool:
        found = super().__contains__(key)
        self.clear()
        return found

    def get(self, key: bytes, default: Any = None) -> Any:
        found = super().get(key, default)
        self.clear()
        return found


def test_other_threads_may_clear_what_is_in_memory() -> None:
    index = PositionalIndex.from_texts({"1": "new york"})
    statistics, table = WindowStatistics(index), CliqueTable(True, np.array([[0]]), (SINGLE_TERM,), "indri")
    (counts,) = statistics.counts(table)
    statistics._known = _ClearedAfterTheFirstLook(statistics._known)
    assert statistics.counts(table)[0].tolist() == counts.tolist() == [[[1]], [[1]]]


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    index = PositionalIndex.from_texts({str(number): f"w{number} goose" for number in range(50)})
    tables = [CliqueTable(True, np.array([[term]]), (SINGLE_TERM,), "indri") for term in range(index.n_terms)]
    size = 16  # bytes of a table's counts
    monkeypatch.setattr("greylag.features.statistics._MEMORY_LIMIT", 10 * size)
    statistics = WindowStatistics(index)
    for table in tables:
        assert statistics.counts(table)[0][1, 0, 0] == index.document_frequencies[table.cliques[0, 0]]
        assert statistics._bytes == sum(counts.nbytes for counts in statistics._known.values()) <= 11 * size
