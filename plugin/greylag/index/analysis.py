"""Text analysis without a JVM: Lucene's English and white-space analyzers in Python, and stop lists for queries.

`PositionalIndex.from_texts` uses the analyzers. An index that comes from Lucene is analysed by Lucene, except for ASCII
queries in English. Both keep most function words, because Lucene's list has 33 words only. `shorten_query` removes the
words of a longer list from queries, which is all that matters to ranking by query terms, except for document lengths
and positions.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Literal

from greylag.base import Faults, FormatError, Names, ParameterError, Ranking, read_text
from greylag.index.word_breaks import MAX_TOKEN, pattern_of, units, words

if TYPE_CHECKING:
    from greylag.index.lucene.lucene_index import LuceneIndex

# Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)

STOP_LISTS = ("lucene", "scikit-learn")
Unit = Literal["words", "characters"]  # of the words as they are written

_LOWER = str.maketrans("İΣ", "iσ")  # as Java lowers them
_NO_SPACE = re.compile("[^\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]+")  # Java's
_SENTENCE_END = re.compile(r"(?<=[.?!])\s")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_importing = Lock()
_POSSESSIVE = re.compile(r"['’＇][sS]$")


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Stem a lower-case word by Porter, with the two changes of his own implementation, as in Lucene."""
    if word.isascii() or max(word) <= "\uffff":
        return str(_stemmer().stem(word, to_lowercase=False))
    # The stemmer counts characters, and Java's are halves of those beyond U+FFFF.
    halves = _ASTRAL.sub(lambda match: "".join(map(chr, struct.unpack("<2H", match[0].encode("utf-16-le")))), word)
    stemmed = str(_stemmer().stem(halves, to_lowercase=False))  # of Java's characters
    return stemmed.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    porter = nltk_module("nltk.stem.porter").PorterStemmer
    return porter(mode=porter.MARTIN_EXTENSIONS)


@cache
def nltk_module(module: str) -> Any:
    """Import a module of stemmers without the rest of NLTK, which takes a second, and scikit-learn with it."""
    with _importing:
        before = {name for name in sys.modules if name.partition(".")[0] == "nltk"}
        try:
            for name in ("nltk", "nltk.stem", "nltk.corpus"):
                spec = find_spec(name)
                assert spec is not None
                sys.modules.setdefault(name, module_from_spec(spec))  # a package that has its folder, and is not run
            corpora: Any = sys.modules["nltk.corpus"]
            if not hasattr(corpora, "stopwords"):
                corpora.stopwords = None  # which Snowball's stemmers import, and do not use
            return import_module(module)
        finally:
            for name in [name for name in sys.modules if name.partition(".")[0] == "nltk" and name not in before]:
                del sys.modules[name]  # whoever imports NLTK gets all of it


def tokens(text: str) -> list[str | None]:
    """Analyse `text` into its index terms in order. A stop word leaves a gap, None, as in Lucene."""
    # Pieces recur in natural text, so that most are analysed by a look into a cache.
    chunks = text.split() if text.isascii() else text.split(" ")  # no token has a space
    terms = _terms if max(map(len, chunks), default=0) <= MAX_TOKEN else _terms.__wrapped__
    return list(chain.from_iterable(map(terms, chunks)))


def lower_case(word: str) -> str:
    """Lower a word as Java does, a character at a time."""
    return word.translate(_LOWER).lower()


@lru_cache(maxsize=1 << 16)
def _terms(chunk: str) -> tuple[str | None, ...]:
    """Return the `tokens` of a piece of text between spaces."""
    lowered = [lower_case(_POSSESSIVE.sub("", token)) for token in words(chunk)]
    return tuple(None if word in STOP_WORDS else stem(word) for word in lowered)


def written_words(text: str) -> list[str]:
    """Return the words of `text` in order, in lower case, with stop words, not stemmed."""
    return [*chain.from_iterable(map(_words_of_piece, text.split()))]


@lru_cache(maxsize=1 << 16)
def _words_of_piece(chunk: str) -> tuple[str, ...]:
    """Return the `written_words` of a piece of text between white space."""
    return tuple(word.lower() for word in words(chunk))


def analyze(text: str) -> list[str]:
    """Return the index terms of `text` in order: lower-case words without English stop words, Porter-stemmed."""
    return [term for term in tokens(text) if term is not None]


def split_words(text: str) -> list[str]:
    """Split on white space, exactly as Lucene's WhitespaceAnalyzer."""
    return [*chain.from_iterable(map(_cut_word, _NO_SPACE.findall(text)))]


def _cut_word(word: str) -> Iterator[str]:
    """Cut a word into pieces of at most 255 of Java's characters, as Lucene does."""
    start = 0
    # No more of the word than decides: slices of all that is left would take quadratic time.
    while len(seen := word[start : start + MAX_TOKEN + 1]) > MAX_TOKEN // 2 and units(seen) > MAX_TOKEN:
        end = next(end for end in range(MAX_TOKEN // 2, MAX_TOKEN + 1) if units(seen[:end]) >= MAX_TOKEN)
        yield seen[:end]
        start += end
    if start < len(word):
        yield word[start:]


@dataclass(frozen=True)
class LuceneAnalysis:
    """The analysis of a Lucene index, which starts the JVM only where this module may differ from Java's."""

    # Starting the JVM takes longer than reranking a run. Beyond ASCII, Java's version of Unicode decides.
    lucene: LuceneIndex

    @property
    def language(self) -> str:
        """The language of the index."""
        return self.lucene.language

    def __call__(self, text: str) -> list[str]:
        """Return the index terms of `text` in order."""
        return analyze(text) if text.isascii() and self.lucene.is_plainly_english else self.lucene.analyze(text)


def read_stop_words(source: str | Path) -> frozenset[str]:
    """Read a stop list: a file with a word per line, or "lucene" (33 words) or "scikit-learn" (318 words)."""
    # FormatError if the file cannot be read, has a line of several words, or has no words
    if source == "lucene":
        return STOP_WORDS
    if source == "scikit-learn":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    with Faults(source, lenient=False) as faults:
        lines = read_text(source, faults).decode().splitlines()
    for number, line in enumerate(lines, 1):
        if len(line.split()) > 1:
            raise FormatError(source, number, f"{line!r} is not one word; a stop list has one word per line")
    return frozenset(line.strip().lower() for line in lines if line.strip())


StopWords = Annotated[str, Names(lambda name: () if name in STOP_LISTS else (name,))]
"""A stop list, as `read_stop_words` takes it."""


def shorten_query(text: str, *, stop_words: Set[str] = frozenset(), first_sentence: bool = False) -> str:
    """Shorten a query towards a title: remove stop words, all sentences but the first, or both."""
    # Stop words are compared in lower case, before stemming; a query of stop words alone keeps them.
    if first_sentence:
        text = _SENTENCE_END.split(text.strip(), maxsplit=1)[0]
    kept = pattern_of(text).sub(lambda match: "" if match.group().lower() in stop_words else match.group(), text)
    shorter = " ".join(kept.split()) if pattern_of(kept).search(kept) else text
    # Without "the", "3.the cones" has the end of a sentence.
    return shorter if shorter == text else shorten_query(shorter, stop_words=stop_words, first_sentence=first_sentence)


@dataclass(frozen=True)
class QueryForm:
    """The rules by which texts of topics became the queries of a model, so that its users have the same queries."""

    first_sentence: bool = False
    stop_words: frozenset[str] = frozenset()

    def shorten(self, text: str) -> str:
        """Shorten the text of a query, which keeps its other fields."""
        if self == QueryForm():
            return text
        return shorten_query(text, stop_words=self.stop_words, first_sentence=self.first_sentence)

    def apply(self, ranking: Ranking) -> Ranking:
        """Shorten the query of a ranking."""
        query = self.shorten(ranking.query)
        return ranking if query == ranking.query else Ranking(ranking.qid, query, ranking.docids, ranking.scores)

    def as_dict(self) -> dict[str, Any]:
        """Return the form as JSON, with the stop words in one string; the inverse of `from_dict`."""
        return {"first_sentence": self.first_sentence, "stop_words": " ".join(sorted(self.stop_words))}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> QueryForm:
        """Read the result of `as_dict`; `ParameterError` if an entry is missing or of another type."""
        sentence, words = content.get("first_sentence"), content.get("stop_words")
        if not isinstance(sentence, bool) or not isinstance(words, str):
            raise ParameterError(f"the form of queries needs first_sentence and stop_words, not {content!r:.60}")
        return cls(sentence, frozenset(words.split()))
