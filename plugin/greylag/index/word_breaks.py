"""The tokens of a text as Lucene's StandardTokenizer finds them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

# Tokens of ASCII text: an apostrophe, full stop or colon does not separate letters; a comma, semicolon, apostrophe or
# full stop does not separate digits. Underscores alone are no token: they match without the group. Possessive, so that
# each character is looked at once.
_ASCII = re.compile(
    r"_++(?![A-Za-z0-9])|([A-Za-z0-9_]++"
    r"(?:(?:(?<=[A-Za-z])['.:](?=[A-Za-z])|(?<=[0-9])['.,;](?=[0-9]))[A-Za-z0-9_]++)*+)"
)
MAX_TOKEN = 255  # characters of a token in UTF-16, after which Lucene begins another
# What extends the character before it. Properties are those of a later Unicode, but for characters that have changed.
MARKS = r"\p{WB=Format}\p{WB=Extend}\p{WB=ZWJ}\u0600-\u0605\u06dd\u070f\u08e2\U000110bd"
# Extended_Pictographic in Unicode 11.
_PICTURES = (
    r"\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u2388\u23cf\u23e9-\u23f3\u23f8-\u23fa"
    r"\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2714"
    r"\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763-\u2767\u2795-\u2797\u27a1\u27b0"
    r"\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001f0ff"
    r"\U0001f10d-\U0001f10f\U0001f12f\U0001f16c-\U0001f171\U0001f17e\U0001f17f\U0001f18e\U0001f191-\U0001f19a"
    r"\U0001f1ad-\U0001f1e5\U0001f201-\U0001f20f\U0001f21a\U0001f22f\U0001f232-\U0001f23a\U0001f23c-\U0001f23f"
    r"\U0001f249-\U0001f3fa\U0001f400-\U0001f53d\U0001f546-\U0001f64f\U0001f680-\U0001f6ff\U0001f774-\U0001f77f"
    r"\U0001f7d5-\U0001f7ff\U0001f80c-\U0001f80f\U0001f848-\U0001f84f\U0001f85a-\U0001f85f\U0001f888-\U0001f88f"
    r"\U0001f8ae-\U0001f8ff\U0001f90c-\U0001f93a\U0001f93c-\U0001f945\U0001f947-\U0001fffd"
)


@lru_cache(maxsize=1)
def _unicode() -> Any:
    """Split text as Lucene's StandardTokenizer: words by UAX #29 in Unicode 9, and the emoji of Unicode 11."""
    # Lucene's grammar takes the longest match of its rules. Its rules for words begin with characters of their own, but
    # for a few letters that are emoji, too. Emoji precede these if they reach further, to an emoji that is no letter.
    import regex

    after = f"[{MARKS}]*+"  # rule WB4

    def any_of(characters: str) -> str:
        return f"[{characters}]{after}"

    letter = any_of(r"[\p{WB=ALetter}\p{WB=Hebrew_Letter}]--[\xb8\u070f\u02e5-\u02eb\u055a\u055f\u058a\ua708-\ua716]")
    hebrew, katakana = any_of(r"\p{WB=Hebrew_Letter}"), any_of(r"\p{WB=Katakana}")
    joint, indicator = any_of(r"\p{WB=ExtendNumLet}"), any_of(r"\p{WB=Regional_Indicator}")
    asian, han, hiragana = any_of(r"\p{LB=SA}\u19da"), any_of(r"\p{Script=Han}"), any_of(r"\p{Script=Hiragana}")
    digit = any_of(r"[\p{WB=Numeric}\uff10-\uff19]--[\u0600-\u0605\u06dd\u070f\u08e2\u19da\U000110bd]")
    single, double = any_of(r"\p{WB=Single_Quote}"), any_of(r"\p{WB=Double_Quote}")
    in_word = any_of(r"[\p{WB=MidLetter}\p{WB=MidNumLet}\p{WB=Single_Quote}:]--[\u055f]")
    in_number = any_of(r"\p{WB=MidNum}\p{WB=MidNumLet}\p{WB=Single_Quote}\ufe10\ufe14")
    unit = f"(?:{hebrew}(?:{single}|{double}{hebrew})|{letter}(?:{in_word}{letter})*+|{digit}(?:{in_number}{digit})*+)"
    run = f"(?:{unit}++|(?:{katakana})++)"
    word = f"(?:{joint})*+{run}(?:(?:{joint})++{run})*+(?:{joint})*+"

    both = r"\u2139\u24c2\U0001f170\U0001f171\U0001f17e\U0001f17f"  # emoji and letters
    modifier, inside = r"[\U0001f3fb-\U0001f3ff]", rf"[[{MARKS}]--[\ufe0e\ufe0f]]*+"
    emoji = rf"[{_PICTURES}]{inside}\ufe0f?+"
    sequence = (
        # Bounded by what Lucene sees at once, so that joiners without an emoji are not read again from each of them.
        rf"(?:\u200d{{0,255}}+{emoji}|{modifier}{inside})"
        rf"(?:(?<=\u200d){emoji}|(?<=\ufe0f)\u200d++{emoji}|(?<=\ufe0f)\u200d{modifier}{inside})*+"
    )
    keycap = rf"[#*][[{MARKS}]--[\ufe0e\ufe0f]]*\ufe0f?\u20e3{inside}"
    return regex.compile(
        rf"((?=[{both}]){sequence}(?<=[[{_PICTURES}]--[{both}]][{MARKS}]*)|{word}|{sequence}|"
        rf"{keycap}|(?:{indicator}){{2}}|(?:{asian})++|{han}|{hiragana})|\p{{WB=ExtendNumLet}}++",
        regex.V1,
    )


def pattern_of(text: str) -> Any:
    """Return a pattern of the tokens of `text`: a match with a group is a token."""
    return _ASCII if text.isascii() else _unicode()


def words(text: str) -> Iterator[str]:
    """Yield the tokens of `text`."""
    pattern = pattern_of(text)
    for match in pattern.finditer(text):
        if (word := match[1]) is None:
            continue
        if 2 * len(word) > MAX_TOKEN and units(word) > MAX_TOKEN:
            yield from _cut_words(pattern, text, match.start())
            return
        yield word


def _cut_words(pattern: Any, text: str, start: int) -> Iterator[str]:
    """Find the tokens of `text` from `start` as Lucene does, which sees no more than `MAX_TOKEN` characters at once."""
    while start < len(text):
        # Of a token that begins among the first MAX_TOKEN characters, all that Lucene sees is before this end.
        match = pattern.search(text, start, start + 2 * MAX_TOKEN + 1)
        if match is None or match.start() > start + MAX_TOKEN:
            start += MAX_TOKEN + 1
            continue
        first, end = match.span()
        if units(text[first:end]) > MAX_TOKEN:
            end = first + len(text[first:end].encode("utf-16-le")[: 2 * MAX_TOKEN].decode("utf-16-le", "ignore"))
            match = pattern.match(text, first, end)
        start = match.end() if match else first + 1
        if match and match[1] is not None:
            yield match[1]


def units(word: str) -> int:
    """Count Java's characters."""
    return len(word.encode("utf-16-le")) // 2
