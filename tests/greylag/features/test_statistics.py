"""Collection counts of windows, compared with Lucene on CACM."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

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
        df = int(WindowStatistics(index).counts(table)[1, 0, 0])
        assert df == lucene_oracle.phrase_document_frequency(cacm, phrase), phrase
        found += df > 0
    assert found > 100
