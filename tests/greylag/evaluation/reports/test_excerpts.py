"""Excerpts against all windows of the text, and titles."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greylag.evaluation.reports.excerpts import BEFORE, TITLE, WORDS, excerpt, excerpts, split_title
from greylag.index.analysis import analyze

WORD = st.sampled_from(["alpha", "Beta,", "(gamma)", "delta's", "x", "\u65e5\u672c\u8a9e", "--"])


@given(words=st.lists(WORD, max_size=80), query=st.sampled_from(["alpha", "betas gamma", "delta x", "none", ""]))
def test_the_window_has_the_most_terms_and_every_match_is_marked(words, query):
    wanted, text = frozenset(analyze(query)), " ".join(words)
    pieces = excerpt(text, wanted, lambda word: frozenset(analyze(word)))
    assert "".join(part for part, _ in pieces).strip("\u2026 ") in text
    for part, marked in pieces:
        assert marked == bool(wanted & set(analyze(part)))
    assert all(one[1] != other[1] for one, other in pairwise(pieces))
    shown = wanted & set(analyze("".join(part for part, _ in pieces)))
    least = WORDS - BEFORE  # a window begins so many words before a match
    windows = (words[start : start + least] for start in range(max(1, len(words) - least + 1)))
    assert len(shown) >= max(len(wanted & set(analyze(" ".join(window)))) for window in windows)


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("A title\nand text", "A title", "and text"),
        ("only text", "", "only text"),
        ("\n\n  Head  \n\n body", "Head", "\n body"),
        ("a &amp; b\n&lt;c&gt;", "a & b", "<c>"),
        ("w" * 200 + "\nbody", "w" * TITLE + "\u2026", "body"),
        ("", "", ""),
    ],
)
def test_titles(text, title, body):
    assert split_title(text) == (title, body)


def test_a_document_without_text_has_neither():
    show = excerpts({"d": "Title\nwhat birds eat"}, analyze)
    assert show("bird", "d") == ("Title", (("what ", False), ("birds", True), (" eat", False)))
    assert show("bird", "other") == ("", ())
