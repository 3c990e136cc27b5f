"""The files that settings, options and models name, be it in features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from greylag.errors import GreylagError
from greylag.features.spec import feature_files, parse_features


def named_files(value: Any) -> Iterator[str]:
    """The texts in a value of JSON, and the files of those that are features. Most of them name no file."""
    for text in _texts(value):
        yield from [text, *_files_of_features(text)]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def _files_of_features(text: str) -> list[str]:
    """The files that features are read from, such as that of ``run:FILE``; none if the text is not of features."""
    try:
        return feature_files(parse_features(text))
    except GreylagError:
        return []
