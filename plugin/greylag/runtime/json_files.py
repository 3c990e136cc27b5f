"""Reading JSON, strictly: no key twice in an object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from greylag.errors import FormatError
from greylag.runtime.files import Faults, read_text


def read_json_lines(path: str | Path, *, lenient: bool | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read JSON lines: one object per line. Blank lines are skipped.

    Parameters
    ----------
    path : str or Path
        The file, which may be gzipped.
    lenient : bool or None, default None
        Whether to repair the faults of `read_text` instead of raising.

    Yields
    ------
    tuple of int and dict
        The line number, from 1, and the object.

    Raises
    ------
    FormatError
        As in `read_text`; if a line is not a JSON object.
    """
    with Faults(path, lenient) as faults:
        content = read_text(path, faults)
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            try:
                record = parse_json(line.decode())
            except json.JSONDecodeError as error:
                reason = f"not a JSON object: {error.msg} at column {error.colno}"
                raise FormatError(path, number, reason) from None
            except (ValueError, RecursionError) as error:  # a huge number, deep nesting
                raise FormatError(path, number, f"not a JSON object: {error}") from None
            if not isinstance(record, dict):
                raise FormatError(path, number, f"not a JSON object: {type(record).__name__}")
            yield number, record


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; `ValueError` if it is not JSON or an object has a key twice."""
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {next(key for key in keys if keys.count(key) > 1)!r:.60}; keep one of them")
    return found
