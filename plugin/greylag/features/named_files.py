"""The files that settings, options and models name, be it in features or in other models."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from greylag.errors import FormatError, GreylagError
from greylag.features.spelling import parse_features
from greylag.runtime.files import parse_json, read_blocks, read_bytes


def named_files(value: Any) -> Iterator[str]:
    """The texts in a value of JSON, and the files of those that are features. Most of them name no file."""
    if isinstance(value, str):
        yield value
        with suppress(GreylagError):
            yield from [file for feature in parse_features(value) for file in feature.files()]
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from named_files(part)


def is_model_file(path: Path) -> bool:
    """Whether a file begins as models do."""
    return path.is_file() and re.match(rb'\s*{\s*"kind"', next(read_blocks(path), b"")) is not None


def followed(paths: Iterable[Path]) -> Iterator[Path]:
    """What exists of these paths, and the files that models among them name, directly or through other models."""
    waiting, seen = list(paths), set()
    while waiting:
        path = waiting.pop(0)
        if path in seen or not os.path.exists(path):  # a text that is too long for a path does not exist either
            continue
        seen.add(path)
        yield path
        with suppress(FormatError, ValueError, RecursionError):  # whatever reads the file says it
            if is_model_file(path):
                waiting += [Path(name) for name in named_files(parse_json(read_bytes(path))) if os.path.isfile(name)]
