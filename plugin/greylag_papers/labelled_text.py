"""Labelled texts from JSON lines, for the categorisation study.

The layout is a file of JSON objects, one a line, or a folder of such files, with these fields:

    id      a string or number, different for each document
    label   a string or number, or a list of them: a document counts where it has exactly one
    text    a string
    split   "train" or "test", in either case; optional

Files that name their fields otherwise need no conversion: `Documents` says which fields are meant.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from greylag.errors import CollectionError, FormatError
from greylag.experiments import config
from greylag.files import Faults, read_text

SUFFIXES = (".jsonl", ".jsonl.gz")
_BLANK_LINE = re.compile(r"^[ \t\r]*\n", re.MULTILINE)


class Documents(config.Settings):
    """Which documents, and which of their fields.

    Parameters
    ----------
    path : a file, or a folder whose .jsonl and .jsonl.gz files are read in the order of their names.
    id, label, split : the fields' names.
    text : the names of the fields that make up the text, one below the other.
    labels : only documents of these labels count; all where there are none.
    skip_headers : of each text only what follows its first blank line counts, as in mail and news.
    """

    path: str
    id: str = "id"
    label: str = "label"
    text: Annotated[tuple[str, ...], Field(min_length=1)] = ("text",)
    split: str = "split"
    labels: tuple[str, ...] = ()
    skip_headers: bool = False


@dataclass(frozen=True)
class LabelledTexts:
    """Documents with one label each.

    Parameters
    ----------
    ids, labels, texts : of the documents, in the files' order.
    splits : each document's "train" or "test", or "" where it has neither.
    left_out : how many others there were, by the reason why they don't count.
    """

    ids: tuple[str, ...]
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    splits: tuple[str, ...]
    left_out: Mapping[str, int]


def read_labelled_texts(path: Path, documents: Documents) -> LabelledTexts:
    """Read the documents that count.

    Raises
    ------
    CollectionError
        Nothing at `path`, no such file in the folder, or no document that counts.
    FormatError
        A line that is no JSON object, lacks a field or has one of another kind; an id that two documents have that
        count. Also what `greylag.files.read_text` refuses.
    """
    kept: dict[str, tuple[str, str, str]] = {}
    left_out: Counter[str] = Counter()
    for record in _records(path):
        docid = record.name(documents.id)
        if docid in kept:
            raise record.fault(f"id {docid!r} stands twice; ids have to differ")
        names = record.names(documents.label)
        text = "\n".join(record.text(field) for field in documents.text)
        if documents.skip_headers:
            text = "".join(_BLANK_LINE.split(text, maxsplit=1)[1:])
        if reason := _reason_to_leave_out(names, text, documents):
            left_out[reason] += 1
        else:
            split = str(record.content.get(documents.split, "")).lower()
            kept[docid] = names[0], text, split if split in ("train", "test") else ""
    if not kept:
        raise CollectionError(f"{path}: no document counts; left out: {dict(left_out)}; check label, labels and text")
    labels, texts, splits = zip(*kept.values(), strict=True)
    return LabelledTexts(tuple(kept), labels, texts, splits, dict(sorted(left_out.items())))


@dataclass(frozen=True)
class _Record:
    """A line's JSON object, and where it stands."""

    file: Path
    line: int
    content: Mapping[str, Any]

    def fault(self, reason: str) -> FormatError:
        return FormatError(self.file, self.line, reason)

    def field(self, field: str) -> Any:
        if field not in self.content:
            there = ", ".join(self.content) or "none"
            raise self.fault(f"there is no field {field!r}, but {there}; say under documents which is meant")
        return self.content[field]

    def text(self, field: str) -> str:
        value = self.field(field)
        if not isinstance(value, str):
            raise self.fault(f"{field} is {value!r:.60}: it must be a string")
        return value

    def name(self, field: str) -> str:
        return self._as_name(field, self.field(field))

    def names(self, field: str) -> list[str]:
        value = self.field(field)
        return [self._as_name(field, each) for each in (value if isinstance(value, list) else [value])]

    def _as_name(self, field: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.fault(f"{field} is {value!r:.60}: it must be a string or a number")
        return str(value)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(file for file in path.glob("*") if file.name.endswith(SUFFIXES)) if path.is_dir() else []
    if not files:
        what = f"no {' or '.join(SUFFIXES)} file in it" if path.is_dir() else "no such file or folder"
        raise CollectionError(f"{path}: {what}; set GREYLAG_DATA to the folder that the collections are in")
    return files


def _records(path: Path) -> Iterator[_Record]:
    """The objects of all files, line by line; blank lines are passed over."""
    for file in _files(path):
        with Faults(file, lenient=None) as faults:
            lines = read_text(file, faults).decode().split("\n")
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    content = json.loads(line)
                except json.JSONDecodeError as error:
                    raise FormatError(file, number, f"not JSON: {error.msg} at column {error.colno}") from None
                if not isinstance(content, dict):
                    raise FormatError(file, number, f"{type(content).__name__} where an object should be")
                yield _Record(file, number, content)


def _reason_to_leave_out(labels: list[str], text: str, documents: Documents) -> str:
    """Why a document doesn't count, or ""."""
    if len(labels) != 1:
        return "no label" if not labels else "several labels"
    if documents.labels and labels[0] not in documents.labels:
        return "another label"
    return "" if any(character.isalpha() for character in text) else "no word"
