"""Which files a value names, by its type: how options and settings know the input files among them.

A type says so by `Names` in `Annotated`: of text that is the name of a file, or of text that has files in it, such as
the spelling of a feature. A `Path` is a file. No text is tried as a path to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints


@dataclass(frozen=True)
class Names:
    """Marks text, in `Annotated`, that names input files: those that `files` finds in it."""

    files: Callable[[str], Iterable[str]]


def named_files(hint: Any, value: Any) -> Iterator[str]:
    """Yield the files that a value of this type names, also within sequences, mappings and records."""
    # `hint` has its `Annotated` marks, as from ``get_type_hints(..., include_extras=True)``; those of a sequence or
    # mapping hold for its items. Values with a method `files`, such as features, list theirs.
    marks = list(_marks(hint))
    for leaf in _leaves(value):
        if isinstance(leaf, Path):
            yield str(leaf)
        elif isinstance(leaf, str):
            for mark in marks:
                yield from mark.files(leaf)
        elif hasattr(leaf, "files"):
            yield from leaf.files()
        else:
            yield from record_files(leaf)


def record_files(record: Any, *without: str) -> Iterator[str]:
    """Yield the files that the fields of a dataclass or pydantic model name, but for the fields `without`."""
    for name, hint in get_type_hints(type(record), include_extras=True).items():
        if name in vars(record) and name not in without:
            yield from named_files(hint, getattr(record, name))


def _marks(hint: Any) -> Iterator[Names]:
    """Yield the marks anywhere in a type."""
    yield from (part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Names))
    for part in get_args(hint):
        yield from _marks(part)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the texts, paths and records in a value. Keys of mappings name no files."""
    if isinstance(value, str | Path) or is_dataclass(value) or hasattr(type(value), "model_fields"):
        yield value
    elif isinstance(value, Mapping | Sequence | Set):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(part)
