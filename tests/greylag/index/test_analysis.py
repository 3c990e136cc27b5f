"""Analysis in Python, compared with Lucene's."""

from __future__ import annotations

import doctest
import gzip
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import greylag.index.analysis
from greylag.errors import FormatError
from greylag.index.analysis import analyze, read_stop_words, shorten_query, stem, tokens
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


def test_stop_lists(tmp_path: Path) -> None:
    assert (len(read_stop_words("lucene")), len(read_stop_words("scikit-learn"))) == (33, 318)
    (tmp_path / "own.txt").write_text("The\n\n of \n")
    assert read_stop_words(tmp_path / "own.txt") == {"the", "of"}


@pytest.mark.parametrize(("content", "reason"), [("the\nof the\n", "2: 'of the' is not one word"), ("\n", "own.txt")])
def test_faulty_stop_lists(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "own.txt").write_text(content)
    with pytest.raises(FormatError, match=reason):
        read_stop_words(tmp_path / "own.txt")


@pytest.mark.parametrize(
    ("text", "stop_words", "first_sentence", "expected"),
    [
        ("What is it?", {"what", "is", "it"}, False, "What is it?"),
        ("The theory of THE ring", {"the", "of"}, False, "theory ring"),
        ("the U.S. law", {"the", "u"}, False, "U.S. law"),
        ("x3.5 of it. And more", {"it"}, True, "x3.5 of ."),
        ("no full stop", set(), True, "no full stop"),
        ("kept   as it is", set(), False, "kept as it is"),
    ],
)
def test_shorter_queries(text: str, stop_words: set[str], first_sentence: bool, expected: str) -> None:
    assert shorten_query(text, stop_words=stop_words, first_sentence=first_sentence) == expected


def test_examples() -> None:
    assert doctest.testmod(greylag.index.analysis).failed == 0
