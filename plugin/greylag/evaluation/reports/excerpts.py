"""Titles and excerpts of documents for a query, with the words that match it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import unescape
from itertools import groupby
from operator import itemgetter

Piece = tuple[str, bool]
"""A piece of text, and True if it is marked."""
Show = Callable[[str, str], tuple[str, tuple[Piece, ...]]]
"""From a query and a docid to the document's title and an excerpt, both empty if its text is unknown."""

WORDS, BEFORE, TITLE = 28, 4, 120  # of an excerpt, before its first match, and characters of a title
_WORD = re.compile(r"(\S{1,40})(\s*)")  # longer ones in pieces: a text without spaces is no single word
_CORE = re.compile(r"(\W*)(.*?)(\W*)", re.DOTALL)


def excerpts(texts: Mapping[str, str], analyze: Callable[[str], Sequence[str]]) -> Show:
    """Show documents by `texts`; words are marked that have a term of the query by `analyze`."""
    terms_of = cache(lambda text: frozenset(analyze(text)))

    def show(query: str, docid: str) -> tuple[str, tuple[Piece, ...]]:
        title, body = split_title(texts.get(docid, ""))
        return title, excerpt(body, terms_of(query), terms_of)

    return show


def split_title(text: str) -> tuple[str, str]:
    """Split off the first line of a text as its title; a single line is no title."""
    first, _, rest = unescape(text).strip().partition("\n")
    if not rest.strip():
        return "", first
    return (first if len(first) <= TITLE else f"{first[:TITLE]}\N{HORIZONTAL ELLIPSIS}").strip(), rest


def excerpt(text: str, wanted: frozenset[str], terms_of: Callable[[str], frozenset[str]]) -> tuple[Piece, ...]:
    """Choose the `WORDS` words with the most wanted terms, then the most matches, then the first; mark matches."""
    words = [(match[1], bool(match[2])) for match in _WORD.finditer(text)]
    matches = [terms_of(word) & wanted for word, _ in words]
    # A window begins a few words before a match; of windows that are equally good, `max` takes the first.
    starts = [0, *(max(0, number - BEFORE) for number, terms in enumerate(matches) if terms)]

    def worth(start: int) -> tuple[int, int]:
        inside = [terms for terms in matches[start : start + WORDS] if terms]
        return len(frozenset().union(*inside)), len(inside)

    start = max(starts, key=worth)
    pieces: list[Piece] = [("\N{HORIZONTAL ELLIPSIS} ", False)] if start else []
    for (word, spaced), terms in zip(words[start : start + WORDS], matches[start:], strict=False):
        left, core, right = _CORE.fullmatch(word).groups()  # type: ignore[union-attr]
        pieces += [(left, False), (core, bool(terms)), (right + " " * spaced, False)]
    if start + WORDS < len(words):
        pieces.append(("\N{HORIZONTAL ELLIPSIS}", False))
    # Neighbours that are marked alike become one element of the page.
    alike = groupby((piece for piece in pieces if piece[0]), key=itemgetter(1))
    return tuple(("".join(part for part, _ in group), marked) for marked, group in alike)
