"""Analysis in Python, compared with Lucene's."""

import doctest
import gzip
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import greylag.index.analysis
from greylag.errors import FormatError, ParameterError
from greylag.index.analysis import QueryForm, analyze, read_stop_words, shorten_query, stem, tokens
from greylag.lucene.lucene_index import LuceneIndex
from greylag.ranking import Ranking


@pytest.mark.parametrize(("name", "file", "field"), [
    ("cranfield", "docs.jsonl.gz", "contents"), ("rec_newsgroups", "newsgroups.jsonl.gz", "text"),
])  # fmt: skip
def test_analysis_equals_lucenes(data: Callable[[str], Path], index: Path, name: str, file: str, field: str) -> None:
    lucene = LuceneIndex(index)
    with gzip.open(data(name) / file, "rt") as lines:
        for line in itertools.islice(lines, 0, None, 5):
            text = json.loads(line)[field]
            assert analyze(text) == lucene.analyze(text)


LATIN = [*"abcdeEIsSt0123'..,,::;;-_/&@ ’‘“”·…–éüßÅñ©™½²ªµ€", "n\u0303", "e\u0301", "\u0301", "\u00ad", "  "]
OTHERS = [*"İıſﬁΩΣςΆжёЙѢ٣ⅣﬀŒﬁǅ．․＇‿：；，﹒", *"\ufeff\u200e\u200d\u0327\u0307\u0483\u20dd\u1e9e\u02bc\u2028"]


@pytest.mark.parametrize("characters", [LATIN, LATIN + OTHERS])
def test_analysis_of_any_characters_equals_lucenes(index: Path, characters: list[str]) -> None:
    lucene, rng = LuceneIndex(index), random.Random(1)
    for _ in range(2000):
        text = "".join(rng.choices(characters, k=rng.randint(1, 25)))
        assert analyze(text) == lucene.analyze(text), text


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


PARTS = [
    "the", "The", "b", "slabs", "u.s.", "it's", "b'the", "x.the", "3.the", "a,b", "?", "!", ". ", "  ",
]  # fmt: skip


@given(
    st.lists(st.sampled_from(PARTS)).map(" ".join),
    st.booleans(),
    st.frozensets(st.sampled_from(["the", "b", "slabs", "it's", "x.the", "s"])),
)
def test_shortening_a_query_again_changes_nothing(text: str, first_sentence: bool, stop_words: frozenset[str]) -> None:
    """A model shortens queries that may have been shortened before."""
    form = QueryForm(first_sentence, stop_words)
    query = form.shorten(text)
    assert form.shorten(query) == query
    if form == QueryForm():
        assert query == text


def test_forms_of_queries_as_json() -> None:
    for form in (QueryForm(), QueryForm(True, frozenset({"the", "of"}))):
        assert QueryForm.from_dict(json.loads(json.dumps(form.as_dict()))) == form
    words = frozenset("the of a to in is it was for on".split())
    assert QueryForm(stop_words=words).as_dict()["stop_words"] == "a for in is it of on the to was"
    for wrong in ({}, {"first_sentence": 1, "stop_words": ""}, {"first_sentence": True, "stop_words": ["the"]}):
        with pytest.raises(ParameterError, match="needs first_sentence and stop_words"):
            QueryForm.from_dict(wrong)


def test_a_form_keeps_all_of_a_ranking_but_its_query() -> None:
    ranking = Ranking("q", "The slabs. The cones.", ("a", "b"), np.array([2.0, 1.0]))
    found = QueryForm(True, frozenset({"the"})).apply(ranking)
    assert found == Ranking("q", "slabs.", ("a", "b"), np.array([2.0, 1.0]))
    assert QueryForm().apply(ranking) is ranking
