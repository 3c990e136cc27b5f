"""A retriever's passages: as they were given, or in a file, from which each is read when it is asked for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from greylag.base import IntArray, ParameterError, parse_json, shown
from greylag.index import offsets

PLAIN = {str, int, float, bool, type(None)}
"""What nobody can change."""
Passage: TypeAlias = tuple[str, dict[str, Any]]
"""A text, and all other fields."""


@dataclass(frozen=True, eq=False)
class HeldPassages(Mapping[str, Passage]):
    """Passages by identifier, in their order."""

    entries: Mapping[str, Passage | int]  # a number is that of a passage in the file
    fields: Mapping[str, int]  # how many passages have each field
    nested: Mapping[str, int]  # and how many a value in it that somebody could change
    content: Any = None  # the bytes of the file's passages, each in JSON
    starts: IntArray | None = None  # where each begins, and the last one ends

    @classmethod
    def of(cls, passages: Mapping[str, Passage]) -> HeldPassages:
        """Return passages that are given."""
        return cls({}, {}, {}).changed(passages)

    @classmethod
    def opened(cls, docids: Iterable[str], arrays: Mapping[str, Any]) -> HeldPassages:
        """Return the passages of `packed`, which stay there; `ParameterError` if they have other identifiers."""
        content, starts = arrays["passages"], arrays["passage_offsets"]
        entries = {docid: number for number, docid in enumerate(docids)}
        if len(starts) != len(entries) + 1 or (np.diff(starts, prepend=0, append=len(content)) < 0).any():
            raise ParameterError("is no retriever that was saved: it has not as many passages as its index")
        fields, nested = parse_json(arrays["fields"].tobytes())
        if {*map(type, (fields, nested))} != {dict} or {*map(type, chain(fields.values(), nested.values()))} - {int}:
            raise ParameterError("is no retriever that was saved: it has not its fields")
        return cls(entries, fields, nested, content, starts)

    def packed(self) -> dict[str, Any]:
        """Return arrays of all passages; `ParameterError` if a field is not what JSON has."""
        texts = [
            self._read(entry) if isinstance(entry, int) else _format(docid, entry)
            for docid, entry in self.entries.items()
        ]
        parts = b"".join(texts), json.dumps([self.fields, self.nested]).encode()
        content, fields = (np.frombuffer(part, np.uint8) for part in parts)
        return {"passages": content, "passage_offsets": offsets([*map(len, texts)]), "fields": fields}

    def changed(self, entries: Mapping[str, Passage | int]) -> HeldPassages:
        """Return other passages; those whose entry is one of these are the same."""
        new = replace(self, entries=entries)
        gone = [self[docid] for docid, entry in self.entries.items() if entries.get(docid) is not entry]
        come = [new[docid] for docid, entry in entries.items() if self.entries.get(docid) is not entry]
        # Counters drop what is at 0.
        fields = Counter(self.fields) + _count_fields(come) - _count_fields(gone)
        nested = Counter(self.nested) + _count_nested(come) - _count_nested(gone)
        return replace(new, fields=fields, nested=nested)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __contains__(self, docid: object) -> bool:
        return docid in self.entries

    def __getitem__(self, docid: str) -> Passage:
        entry = self.entries[docid]
        if isinstance(entry, tuple):
            return entry
        fields = json.loads(self._read(entry))
        if not isinstance(fields, dict) or not isinstance(text := fields.pop("text", None), str):
            raise ParameterError(f"passage {docid} has no text in the file of the retriever: save it again")
        return text, fields

    def _read(self, number: int) -> bytes:
        assert self.starts is not None
        return bytes(self.content[self.starts[number] : self.starts[number + 1]])


def _count_fields(passages: Iterable[Passage]) -> Counter[str]:
    return Counter(chain.from_iterable(fields for _, fields in passages))


def _count_nested(passages: Iterable[Passage]) -> Counter[str]:
    return Counter(name for _, fields in passages for name, value in fields.items() if type(value) not in PLAIN)


def _format(docid: str, passage: Passage) -> bytes:
    """Format a passage as JSON that is read back as it is."""
    given = {**passage[1], "text": passage[0]}
    if (text := _kept(given)) is None:
        name, value = next(entry for entry in given.items() if _kept(dict([entry])) is None)
        raise ParameterError(
            f"passage {docid}: the field {name!r} cannot be saved: {shown(value)}; names are strings, and values what "
            "JSON has"
        )
    return text


def _kept(fields: dict[str, Any]) -> bytes | None:
    """Format fields as JSON; None if they are not read back as they are."""
    try:
        text = json.dumps(fields, allow_nan=False)
        # By their spelling, which tells kinds of numbers and of mappings, too.
        return text.encode() if repr(json.loads(text)) == repr(fields) else None
    except (TypeError, ValueError, RecursionError):
        return None
