"""Analysis of texts in each language without Java.

English and white space are analysed exactly as by Lucene, Chinese and Korean by bigrams as by its CJKAnalyzer. Other
languages differ from Lucene: words are stemmed by Snowball where NLTK has the language, and no stop words are left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import chain
from typing import Any

from greylag.base import ParameterError
from greylag.index.analysis import STOP_WORDS, lower_case, nltk_module, split_words, tokens
from greylag.index.languages import ENGLISH, NAMES, WHITESPACE, language_code
from greylag.index.word_breaks import MARKS, MAX_TOKEN, words

_SNOWBALL = frozenset("ar da de es fi fr hu it nl no pt ro ru sv".split())
_BIGRAMS = frozenset({"ja", "ko", "zh"})
AS_LUCENE = frozenset({ENGLISH, WHITESPACE, "ko", "zh"})
"""The languages with the same index terms as Lucene's analyzers."""
_ELISION = {language: re.compile("^.*['’](?=.)") for language in ("fr", "it")}  # l'avion, dell’arte
_CEDILLAS = str.maketrans(
    "\u0219\u021b", "\u015f\u0163"
)  # comma below, as Romanian is written; NLTK knows cedillas alone
_WIDE = re.compile("[\u30a1-\u30fe]?[\uff01-\uff5e\uff65-\uff9f]+")  # CJKWidthFilter's
_CJK_STOP_WORDS = STOP_WORDS - {"an"} | {"s", "t", "www"}


@dataclass(frozen=True)
class Analysis:
    """The analysis of texts in a language without Java."""

    language: str

    def tokens(self, text: str) -> Sequence[str | None]:
        """Return the index terms of `text` in order, with None in the place of a stop word."""
        return _tokenizer(self.language)(text)

    def __call__(self, text: str) -> list[str]:
        """Return the index terms of `text` in order."""
        return [term for term in self.tokens(text) if term is not None]


def analysis_of(language: str) -> Analysis:
    """Return the analysis of a language by its name or code, without Java."""
    code = language_code(language)
    if code == "th":
        raise ParameterError("language is 'th': Thai words have no breaks between them; greylag index --language th")
    return Analysis(code)


@cache
def _tokenizer(language: str) -> Callable[[str], Sequence[str | None]]:
    """Return the function from a text to its terms with gaps."""
    if language == ENGLISH:
        return tokens
    if language == WHITESPACE:
        return split_words
    return _bigrams if language in _BIGRAMS else partial(_stems, language)


def _stems(language: str, text: str) -> list[str]:
    """Return the words of `text` in lower case, stemmed where there is a stemmer of the language."""
    chunks = text.split()
    terms = _stems_of if max(map(len, chunks), default=0) <= MAX_TOKEN else _stems_of.__wrapped__
    return [*chain.from_iterable(terms(language, chunk) for chunk in chunks)]


@lru_cache(maxsize=1 << 16)
def _stems_of(language: str, chunk: str) -> tuple[str, ...]:
    """Return the stems of a piece of text between white space."""
    folded: Iterable[str] = map(lower_case, words(chunk))
    if language in _ELISION:
        folded = (_ELISION[language].sub("", word) for word in folded)
    if language not in _SNOWBALL:
        return tuple(folded)
    if language == "ro":
        folded = (word.translate(_CEDILLAS) for word in folded)
    # A stemmer for each word: NLTK's Arabic one keeps a word's state, which other threads would change.
    stemmer = getattr(nltk_module("nltk.stem.snowball"), f"{NAMES[language]}Stemmer")
    return tuple(str(stemmer().stem(word)) or word for word in folded)


def _bigrams(text: str) -> list[str | None]:
    """Analyse `text` as Lucene's CJKAnalyzer: overlapping bigrams of ideographs, kana and hangul, other words whole."""
    terms: list[str | None] = []
    for word, joined in _joined_runs(text):
        # A single character is a term of its own, as there is no pair.
        if joined and len(word) > 1:
            terms += [word[n : n + 2] for n in range(len(word) - 1)]
        else:
            terms.append(None if word in _CJK_STOP_WORDS else word)
    return terms


@cache
def _joined_letters() -> Any:
    """Match words of the types that Lucene's CJKBigramFilter joins."""
    import regex  # slow to import

    letter = r"[\p{Script=Han}\p{Script=Hiragana}\p{WB=Katakana}\p{Script=Hangul}--\u3005]"
    return regex.compile(rf"(?:{letter}[{MARKS}]*+)++", regex.V1)


def _joined_runs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of `text` in lower case; ideographs, kana and hangul are joined where they touch."""
    run, end = "", 0
    for word in words(text):
        start = text.index(word, end)
        joined = _joined_letters().fullmatch(word) is not None
        if run and (start > end or not joined):
            yield run, True
            run = ""
        end = start + len(word)
        folded = lower_case(_WIDE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), word))
        if joined:
            run += folded
        else:
            yield folded, False
    if run:
        yield run, True
