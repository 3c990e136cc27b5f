"""Passages come in here: texts, with identifiers and other fields."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import count, repeat
from typing import Any, NamedTuple, TypeAlias

from greylag.base.core import labels
from greylag.base.core.checks import check_sequences
from greylag.base.core.hints import remedy, shown
from greylag.base.core.labels import Frame, Series, check_text, has_labels
from greylag.base.errors import ParameterError

PassagesLike: TypeAlias = (
    Iterable[str | Mapping[str, Any] | tuple[Any, str]] | Mapping[Any, str | Mapping[str, Any]] | Series | Frame
)
"""Passages: texts, pairs (docid, text), or mappings with ``text``, perhaps ``id`` or ``docno``, and other fields, in
any order; by docid in a mapping or a Series, by its labels; or a frame with such columns.
"""


_IDS = "id", *labels.COLUMN_NAMES["docno"], "_id"
"""What packages and collections call the identifier."""
_TEXTS = "content", "page_content", "contents", "body", "chunk", "passage", "document"
"""What other packages call the text."""


class Passage(NamedTuple):
    """A passage as it was given."""

    key: Any  # its identifier, or else its place
    text: str
    fields: Mapping[str, Any]  # without those two


def as_passages(value: PassagesLike, *, named: bool = False) -> list[Passage]:
    """Return passages with their identifiers, all different, and their fields; there may be none.

    Without an identifier, it is the place, from 0, unless all must be `named`.
    """
    passages = _listed(value, repeat(None) if named else count())
    if named and (bare := next((passage for passage in passages if passage.key is None), None)):
        raise ParameterError(f"the passage {bare.text!r:.40} has no id: give it as {{'id': ..., 'text': ...}}")
    if len({passage.key for passage in passages}) < len(passages):
        keys = [passage.key for passage in passages]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ParameterError(f"passage {twice!r} occurs twice: give each passage an 'id' of its own, or all none")
    return passages


def _listed(value: Any, places: Iterable[int | None]) -> list[Passage]:
    if labels.is_frame(value):
        columns = {name: labels.column_values(value, name) for name in value.columns}
        rows = zip(*columns.values(), strict=True)
        return [_passage(place, dict(zip(columns, row, strict=True))) for place, row in zip(places, rows, strict=False)]
    if has_labels(value):
        return [_passage(key, given, keyed=True) for key, given in value.items()]
    check_sequences(passages=value)
    if not isinstance(value, Iterable):
        raise ParameterError(f"passages are {shown(value)}: {remedy(value) or 'pass texts, or texts by docid'}")
    return [_passage(place, given) for given, place in zip(value, places, strict=False)]


def as_texts(value: PassagesLike) -> dict[str, str]:
    """Return the texts of passages by docid; `ParameterError` for a docid that occurs twice."""
    if isinstance(value, dict) and {*map(type, value), *map(type, value.values())} <= {str}:
        return value
    pairs = ((labels.as_identifier(key, "a docid"), text) for key, text, _ in as_passages(value))
    return labels.unique_ids(pairs, "document")


def _passage(key: Any, given: Any, *, keyed: bool = False) -> Passage:
    if type(given) is str:
        return Passage(key, given, {})
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str) and not keyed:
        return Passage(given[0], given[1], {})
    if not isinstance(given, Mapping):
        return Passage(key, check_text(given, f"passage {key}"), {})
    if keyed and "id" in given and str(given["id"]) != str(key):
        raise ParameterError(f"passage {key!r} has the id {given['id']!r}, too: keep one of them")
    own = "id" if keyed else next((name for name in _IDS if name in given), "id")
    key = key if keyed else given.get(own, key)
    if "text" not in given and (named := next((name for name in _TEXTS if name in given), None)):
        raise ParameterError(f"passage {key!r} has no text, but {named!r}: give it as {{'text': passage[{named!r}]}}")
    if not isinstance(key, Hashable):
        raise ParameterError(f"the id of a passage is {shown(key)}: give a string or an integer")
    fields = {name: field for name, field in given.items() if name not in (own, "text")}
    return Passage(key, check_text(given.get("text"), f"passage {key}"), fields)
