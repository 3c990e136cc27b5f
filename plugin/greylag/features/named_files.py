"""The files that features, stages and models name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from greylag.base import FormatError, GreylagError, Names, parse_json, read_blocks, read_bytes
from greylag.index import array_of


def feature_files(text: str) -> list[str]:
    """Return the files of comma-separated features."""
    from greylag.features.spelling import parse_features  # all kinds of features; most commands name none

    return [file for feature in parse_features(text) for file in feature.files()]


FEATURE_FILES = Names(feature_files)
FeatureText = Annotated[str, FEATURE_FILES]
"""Features, comma-separated, whose files are inputs."""


def stage_files(text: str) -> list[str]:
    """Return the files of a stage's options, and the module of a class."""
    from greylag.features.stage_registry import StageStep

    step = StageStep.parse(text)
    return [*step.files(), *step.modules]


STAGE_FILES = Names(stage_files)


def is_model_file(path: Path) -> bool:
    """Return whether a file begins as models do."""
    return path.is_file() and re.match(rb'\s*{\s*"kind"', next(read_blocks(path), b"")) is not None


def followed(paths: Iterable[Path]) -> dict[Path, Any]:
    """Return the paths that exist, with the content of models.

    Among them are the files that models name, also through others, and the ids of vectors.
    """
    # Each path once, so that models that name each other come to an end.
    waiting, found = list(paths), dict[Path, Any]()
    while waiting:
        path = waiting.pop(0)
        if path in found or not os.path.exists(path):  # a text that is too long for a path does not exist either
            continue
        found[path] = None
        with suppress(FormatError, ValueError, RecursionError):  # whatever reads the file says it
            waiting += array_of(path) or ()
            if is_model_file(path):
                found[path] = parse_json(read_bytes(path))
                waiting += [Path(name) for name in _files_in(found[path]) if os.path.isfile(name)]
    return found


def _files_in(value: Any) -> Iterator[str]:
    """Yield the files of all texts in a model that are features, wherever its kind of model has them."""
    if isinstance(value, str):
        with suppress(GreylagError):
            yield from feature_files(value)
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            if isinstance(part, str | dict | list):  # and not each number of a tree
                yield from _files_in(part)
