"""Labelled texts in JSON lines.

The input is a file of JSON objects, one per line, or a folder of such files. The fields of an object are

    id      a string or number, unique
    label   a string or number, or a list of them; only documents with exactly one selected label are kept
    text    a string
    split   "train" or "test", in either case; optional

`Documents` names the fields of files that call them otherwise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from greylag import FormatError
from greylag.base import CollectionError, read_json_lines
from greylag.studies import Context, Experiment, InputFile, Settings

SUFFIXES = (".jsonl", ".jsonl.gz")
_BLANK_LINE = re.compile(r"^[ \t\r]*\n", re.MULTILINE)


class Documents(Settings):
    """The files of documents, and the names of their fields."""

    path: InputFile
    """A file, or a folder whose .jsonl and .jsonl.gz files are read in order of name."""
    id: str = "id"
    """Names of the fields."""
    label: str = "label"
    """Names of the fields."""
    text: Annotated[tuple[str, ...], Field(min_length=1)] = ("text",)
    """Names of the fields that form the text, joined by line breaks."""
    split: str = "split"
    """Names of the fields."""
    labels: tuple[str, ...] = ()
    """The selected labels; () selects all. Labels that are not selected are ignored."""
    skip_headers: bool = False
    """Keep only what follows the first blank line of a text, as in mail and news."""


class TextSettings(Experiment):
    """A study on labelled texts."""

    documents: Documents


@dataclass(frozen=True)
class LabelledTexts:
    """Documents with one label each."""

    ids: tuple[str, ...]  # ids, labels, texts: one entry per document, in the order of the files
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    splits: tuple[str, ...]  # "train", "test" or "" (neither) for each document
    left_out: Mapping[str, int]  # number of documents that were left out


def open_texts(settings: TextSettings, context: Context) -> LabelledTexts:
    """Open the documents of a study; see `read_labelled_texts`."""
    return read_labelled_texts(settings.path(settings.documents.path), settings.documents)


def read_labelled_texts(path: Path, documents: Documents) -> LabelledTexts:
    """Read the documents that `documents` selects."""
    selected_texts: dict[str, tuple[str, str, str]] = {}
    left_out: Counter[str] = Counter()
    for record in (_Record(file, *line) for file in _files(path) for line in read_json_lines(file)):
        docid = record.as_name(documents.id, record.field(documents.id))
        if docid in selected_texts:
            raise record.fault(f"duplicate id {docid!r}")
        names = record.names(documents.label)
        # Labels that are not selected do not count: a text with one selected label among others is kept.
        selected = [name for name in names if not documents.labels or name in documents.labels]
        text = "\n".join(record.text(field) for field in documents.text)
        if documents.skip_headers:
            text = "".join(_BLANK_LINE.split(text, maxsplit=1)[1:])
        if reason := _reason_to_leave_out(names, selected, text):
            left_out[reason] += 1
        else:
            split = str(record.content.get(documents.split, "")).lower()
            selected_texts[docid] = selected[0], text, split if split in ("train", "test") else ""
    if not selected_texts:
        raise CollectionError(f"{path}: no documents left; left out: {dict(left_out)}; check label, labels and text")
    labels, texts, splits = zip(*selected_texts.values(), strict=True)
    return LabelledTexts(tuple(selected_texts), labels, texts, splits, dict(sorted(left_out.items())))


@dataclass(frozen=True)
class _Record:
    """The JSON object of a line, and the line's position."""

    file: Path
    line: int
    content: Mapping[str, Any]

    def fault(self, reason: str) -> FormatError:
        return FormatError(self.file, self.line, reason)

    def field(self, field: str) -> Any:
        if field not in self.content:
            present = ", ".join(self.content) or "none"
            raise self.fault(f"no field {field!r} (found: {present}); name the field to use under documents")
        return self.content[field]

    def text(self, field: str) -> str:
        value = self.field(field)
        if not isinstance(value, str):
            raise self.fault(f"{field} must be a string, got {value!r:.60}")
        return value

    def names(self, field: str) -> list[str]:
        value = self.field(field)
        return [self.as_name(field, each) for each in (value if isinstance(value, list) else [value])]

    def as_name(self, field: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.fault(f"{field} must be a string or a number, got {value!r:.60}")
        return str(value)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(file for file in path.glob("*") if file.name.endswith(SUFFIXES))
    if not files:
        reason = f"no {' or '.join(SUFFIXES)} file in this folder" if path.is_dir() else "no such file or folder"
        raise CollectionError(f"{path}: {reason}; set GREYLAG_DATA to the folder that holds the collections")
    return files


def _reason_to_leave_out(names: list[str], selected: list[str], text: str) -> str:
    """Return the reason for leaving a document out, or ""."""
    if len(selected) != 1:
        return "several labels" if selected else "another label" if names else "no label"
    return "" if any(character.isalpha() for character in text) else "no word"
