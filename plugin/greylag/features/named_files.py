"""The files that settings, options and models name, be it in features or in other models."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from greylag.errors import FormatError, GreylagError
from greylag.features.spelling import parse_features
from greylag.runtime.files import parse_json, read_blocks, read_bytes


def named_files(value: Any) -> Iterator[str]:
    """The texts in a value of JSON, and the files of those that are features. Most of them name no file."""
    for text in _texts(value):
        yield from [text, *_files_of_features(text)]


def followed(paths: Iterable[Path]) -> Iterator[Path]:
    """What exists of these paths, and the files that models among them name, directly or through other models."""
    waiting, seen = list(paths), set()
    while waiting:
        path = waiting.pop(0)
        if path in seen or not os.path.exists(path):  # a text that is too long for a path does not exist either
            continue
        seen.add(path)
        yield path
        if path.is_file():
            waiting += [Path(name) for name in named_files(_model(path)) if os.path.isfile(name)]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def _files_of_features(text: str) -> list[str]:
    """The files that features are read from, such as that of ``run:FILE``; none if the text is not of features."""
    try:
        return [file for feature in parse_features(text) for file in feature.files()]
    except GreylagError:
        return []


def _model(path: Path) -> Any:
    """The content of a model, which begins with its kind; None for any other file, and for a damaged one."""
    try:
        return parse_json(read_bytes(path)) if re.match(rb'\s*{\s*"kind"', next(read_blocks(path), b"")) else None
    except (FormatError, ValueError, RecursionError):  # whatever reads the file says it
        return None
