"""Text analysis without a JVM: Lucene's English analyzer in Python.

`PositionalIndex.from_texts` uses it; an index that comes from Lucene is analysed by Lucene.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

# Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)

# The word boundaries of Unicode (UAX #29) for alphabetic scripts, as in Lucene's StandardTokenizer: an apostrophe, full
# stop or colon does not separate letters; a comma, semicolon, apostrophe or full stop does not separate digits.
_LETTER, _WORD = r"[^\W\d_]", r"\w"
_TOKEN = re.compile(rf"{_WORD}+(?:(?:(?<={_LETTER})['’.:·](?={_LETTER})|(?<=\d)[,.;'’](?=\d)){_WORD}+)*")
_POSSESSIVE = re.compile(r"['’＇][sS]$")


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Porter's stem of a lower-case word, with the two changes of his own implementation, as in Lucene."""
    return str(_stemmer().stem(word, to_lowercase=False))


@lru_cache(maxsize=1)
def _stemmer():  # type: ignore[no-untyped-def]
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer(mode=PorterStemmer.MARTIN_EXTENSIONS)


def tokens(text: str) -> Iterator[tuple[str, int]]:
    """The index terms of `text` with their positions. Stop words leave gaps in the positions, as in Lucene."""
    for position, match in enumerate(_TOKEN.finditer(text)):
        word = _POSSESSIVE.sub("", match.group()).lower()
        if word not in STOP_WORDS and any(character.isalnum() for character in word):
            yield stem(word), position


def analyze(text: str) -> list[str]:
    """The index terms of `text` in order: lower-case words without English stop words, Porter-stemmed."""
    return [term for term, _ in tokens(text)]
