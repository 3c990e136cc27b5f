"""Analysis in Python, compared with Lucene's.

Tests `word_breaks`.
"""

import gzip
import itertools
import json
import random
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import greylag.index.analysis
from greylag.base import Ranking
from greylag.index import PositionalIndex
from greylag.index.analysis import (
    LuceneAnalysis,
    QueryForm,
    analyze,
    read_stop_words,
    shorten_query,
    split_words,
    tokens,
)
from greylag.index.lucene.build import build_index
from greylag.index.lucene.jvm import calls_java, java_class
from greylag.index.lucene.lucene_index import LuceneIndex, analyzer_of
from greylag.index.multilingual import analysis_of


@pytest.mark.parametrize(("name", "file", "field"), [
    ("cranfield", "docs.jsonl.gz", "contents"), ("rec_newsgroups", "newsgroups.jsonl.gz", "text"),
])  # fmt: skip
def test_analysis_equals_lucenes(data, index, name, file, field):
    lucene = LuceneIndex(index)
    with gzip.open(data(name) / file, "rt") as lines:
        for line in itertools.islice(lines, 0, None, 5):
            text = json.loads(line)[field]
            assert analyze(text) == lucene.analyze(text)


def test_analysis_of_real_texts_with_signs_equals_lucenes(index):
    texts = [
        "within ¼ inch",
        "brand® ™ ©",
        "½ cup, 1½, ², x² + y³",
        "日本語のテキスト",
        "서울 한국어",
        "ภาษาไทย ລາວ",
        "צה״ל ג'ירפה",
        "👩‍🔬 👍🏽 🇫🇷🇩🇪 1️⃣ #️⃣ ℹ️ ❤️",
        "ﬁnance ＦＵＬＬ １２３",
        "a_b __ c ___",
        "price: €5.00–€7,50 (±2°)",
        "العربية ۱۲۳",
        "Ελληνικός ΟΔΟΣ İstanbul",
    ]
    lucene = LuceneIndex(index)
    for text in texts:
        assert analyze(text) == lucene.analyze(text), text
    together = {"d": " . ".join(texts)}
    terms = PositionalIndex.from_texts(together)
    (index.parent / "signs.jsonl").write_text(json.dumps({"id": "d", "contents": together["d"]}))
    build_index(index.parent / "signs.jsonl", index.parent / "signs")
    assert PositionalIndex.from_lucene(index.parent / "signs").fingerprint == terms.fingerprint


OLD = [chr(c) for c in range(1, 0x20000) if unicodedata.ucd_3_2_0.category(chr(c)) not in ("Cn", "Co", "Cs")]
"""The characters of Unicode 3.2, of which later versions and Java have all."""
SIGNS = [
    *"aZ1'\".:,;_ \u200d\ufe0f\ufe0e\u20e3#*אבע׳״ー日のはกข\u0e31한ⓂℹℹⓂ🅰🌍👩👨🏻🏿\u0301\u00ad©™½²🇩🇫",
    "\U000e0062", "\U000e007f", "𝐚s", "'s",
]  # fmt: skip


def test_analysis_of_each_character_equals_lucenes(index):
    lucene = LuceneIndex(index)
    for first in range(0, len(OLD), 500):
        for form in ("x{}y", "1{0}{0}2"):
            text = " \n ".join(map(form.format, OLD[first : first + 500]))
            assert analyze(text) == lucene.analyze(text), first


@pytest.mark.parametrize("part", ["a", "é", "日", "𝐚", "1.", "a.", "_", "한", "🌍"])
@pytest.mark.parametrize("language", ["en", "whitespace"])
def test_long_tokens_are_cut_as_by_lucene(index, part, language):
    analyzer, java = java_class("io.anserini.analysis.AnalyzerUtils"), calls_java(analyzer_of)(language)
    for n in (100, 127, 128, 254, 255, 256, 511, 600):
        text = part * n + " x"
        assert analysis_of(language)(text) == list(analyzer.analyze(java, text).toArray()), n


def test_white_space_is_javas(index):
    _, java = index, calls_java(analyzer_of)("whitespace")
    text = "".join(f"a{chr(c)}B" for c in range(1, 0x3100) if not 0xD800 <= c < 0xE000)
    found = list(java_class("io.anserini.analysis.AnalyzerUtils").analyze(java, text).toArray())
    assert split_words(text) == found
    assert PositionalIndex.from_texts({"d": "x"}, language="whitespace").analyze("The Cats") == ["The", "Cats"]


LATIN = [*"abcdeEIsSt0123'..,,::;;-_/&@ ’‘“”·…–éüßÅñ©™½²ªµ€", "n\u0303", "e\u0301", "\u0301", "\u00ad", "  "]
OTHERS = [*"İıſﬁΩΣςΆжёЙѢ٣ⅣﬀŒﬁǅ．․＇‿：；，﹒", *"\ufeff\u200e\u200d\u0327\u0307\u0483\u20dd\u1e9e\u02bc\u2028"]


@pytest.mark.parametrize(
    "characters", [LATIN, LATIN + OTHERS, OLD, SIGNS, OLD + SIGNS * (len(OLD) // len(SIGNS))], ids=len
)
def test_analysis_of_any_characters_equals_lucenes(index, characters):
    lucene, rng = LuceneIndex(index), random.Random(1)
    for _ in range(2000):
        text = "".join(rng.choices(characters, k=rng.randint(1, 25)))
        assert analyze(text) == lucene.analyze(text), ascii(text)


def test_java_is_asked_beyond_ascii_and_in_other_languages(index, tmp_path, monkeypatch):
    (tmp_path / "docs.jsonl").write_text('{"id": "d", "contents": "The Geese"}')
    build_index(tmp_path / "docs.jsonl", tmp_path / "plain", language="whitespace")
    assert LuceneAnalysis(LuceneIndex(tmp_path / "plain"))("The Geese") == ["The", "Geese"]
    lucene = LuceneIndex(index)
    text = "".join(map(chr, range(128))) + " geese"
    assert LuceneAnalysis(lucene)(text) == lucene.analyze(text)
    monkeypatch.setattr(LuceneIndex, "analyze", lambda _, text: ["by Lucene", text])
    assert LuceneAnalysis(lucene)("The Geese") == ["gees"]
    assert LuceneAnalysis(lucene)("Gänse") == ["by Lucene", "Gänse"]
    lucene = LuceneIndex(index)
    lucene._of_searcher = True
    assert LuceneAnalysis(lucene)("The Geese") == ["by Lucene", "The Geese"]


@given(
    st.text(st.sampled_from("aB1_'.,:; \t\x1c\xa0\u202f\u3000\u0301\u200d\u263a\u05d0\u4e2d"), max_size=30),
    st.booleans(),
)
def test_what_stands_between_spaces_is_analysed_by_itself(text, long):
    text = text.replace("a", "a" * 300) if long else text
    assert [*tokens(text)] == [*greylag.index.analysis._terms.__wrapped__(text)]


def test_stop_words_leave_gaps_in_positions():
    assert tokens("The Bank of America's banks") == [None, "bank", None, "america", "bank"]


def test_stop_lists(tmp_path):
    assert (len(read_stop_words("lucene")), len(read_stop_words("scikit-learn"))) == (33, 318)
    (tmp_path / "own.txt").write_text("The\n\n of \n")
    assert read_stop_words(tmp_path / "own.txt") == {"the", "of"}


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
def test_shorter_queries(text, stop_words, first_sentence, expected):
    assert shorten_query(text, stop_words=stop_words, first_sentence=first_sentence) == expected


PARTS = [
    "the", "The", "b", "slabs", "u.s.", "it's", "b'the", "x.the", "3.the", "a,b", "?", "!", ". ", "  ",
]  # fmt: skip


@given(
    st.lists(st.sampled_from(PARTS)).map(" ".join),
    st.booleans(),
    st.frozensets(st.sampled_from(["the", "b", "slabs", "it's", "x.the", "s"])),
)
def test_shortening_a_query_again_changes_nothing(text, first_sentence, stop_words):
    """A model shortens queries that may have been shortened before."""
    form = QueryForm(first_sentence, stop_words)
    query = form.shorten(text)
    assert form.shorten(query) == query
    if form == QueryForm():
        assert query == text


def test_forms_of_queries_as_json():
    for form in (QueryForm(), QueryForm(True, frozenset({"the", "of"}))):
        assert QueryForm.from_dict(json.loads(json.dumps(form.as_dict()))) == form
    words = frozenset("the of a to in is it was for on".split())
    assert QueryForm(stop_words=words).as_dict()["stop_words"] == "a for in is it of on the to was"


def test_a_form_keeps_all_of_a_ranking_but_its_query():
    ranking = Ranking("q", "The slabs. The cones.", ("a", "b"), np.array([2.0, 1.0]))
    found = QueryForm(True, frozenset({"the"})).apply(ranking)
    assert found == Ranking("q", "slabs.", ("a", "b"), np.array([2.0, 1.0]))
    assert QueryForm().apply(ranking) is ranking
