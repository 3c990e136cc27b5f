"""Analysis in Python, compared with Lucene's."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from greylag.index.analysis import analyze, stem, tokens
from greylag.lucene.lucene_index import LuceneIndex


@pytest.mark.parametrize(("name", "file", "field"), [
    ("cranfield", "docs.jsonl.gz", "contents"), ("rec_newsgroups", "newsgroups.jsonl.gz", "text"),
])  # fmt: skip
def test_analysis_equals_lucenes(data: Callable[[str], Path], index: Path, name: str, file: str, field: str) -> None:
    lucene = LuceneIndex(index)
    with gzip.open(data(name) / file, "rt") as lines:
        for line in itertools.islice(lines, 0, None, 5):
            text = json.loads(line)[field]
            assert analyze(text) == lucene.analyze(text)


def test_stop_words_leave_gaps_in_positions() -> None:
    assert list(tokens("The Bank of America's banks")) == [("bank", 1), ("america", 3), ("bank", 4)]


@pytest.mark.parametrize(("word", "expected"), [("geese", "gees"), ("relational", "relat"), ("possibly", "possibl")])
def test_stems(word: str, expected: str) -> None:
    assert stem(word) == expected
