"""Text analysis without a JVM: what Lucene's English analyzer does, in Python.

`PositionalIndex.from_texts` and text categorisation use it; an index that comes from Lucene is analysed by Lucene.
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

# Unicode's word boundaries (UAX #29) for alphabetic scripts, as Lucene's StandardTokenizer draws them: letters hold
# together over one apostrophe, full stop or colon, digits over one comma, semicolon, apostrophe or full stop.
_LETTER, _WORD = r"[^\W\d_]", r"\w"
_TOKEN = re.compile(rf"{_WORD}+(?:(?:(?<={_LETTER})['’.:·](?={_LETTER})|(?<=\d)[,.;'’](?=\d)){_WORD}+)*")
_POSSESSIVE = re.compile(r"['’＇][sS]$")


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Porter's stem of a lower-case word, with the two departures that his own program makes, as in Lucene."""
    return str(_stemmer().stem(word, to_lowercase=False))


@lru_cache(maxsize=1)
def _stemmer():  # type: ignore[no-untyped-def]
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer(mode=PorterStemmer.MARTIN_EXTENSIONS)


def tokens(text: str) -> Iterator[tuple[str, int]]:
    """Index terms of `text` with their positions; a stop word leaves a hole in the positions, as in Lucene."""
    for position, match in enumerate(_TOKEN.finditer(text)):
        word = _POSSESSIVE.sub("", match.group()).lower()
        if word not in STOP_WORDS and any(character.isalnum() for character in word):
            yield stem(word), position


def analyze(text: str) -> list[str]:
    """Index terms of `text` in order: words, lower case, without English stop words, Porter-stemmed."""
    return [term for term, _ in tokens(text)]
