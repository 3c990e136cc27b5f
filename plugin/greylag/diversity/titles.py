"""Titles of documents, which an index stores only as part of the text."""

from __future__ import annotations

import io
import json
from pathlib import Path

from greylag.errors import FormatError
from greylag.files import Faults, read_text


def read_titles(path: str | Path, *, lenient: bool = False) -> dict[str, str]:
    """Read titles by docid from JSON lines.

    Parameters
    ----------
    path : str or Path
        One object per line with the key ``id`` and optionally ``title``, such as the documents themselves.
    lenient : bool, default False
        Whether to skip invalid lines with a warning.

    Raises
    ------
    FormatError
        If a line is not such an object, if a docid is repeated, or if `greylag.files.read_text` rejects the file.
    """
    titles: dict[str, str] = {}
    with Faults(path, lenient) as faults:
        for number, line in enumerate(io.BytesIO(read_text(path, faults)), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                docid, title = str(record["id"]), record.get("title") or ""
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                raise FormatError(path, number, "not a JSON object with an id and, optionally, a title") from None
            if not isinstance(title, str) or docid in titles:
                reason = "duplicate document" if docid in titles else f"title {title!r:.40} is not a string: document"
                raise FormatError(path, number, f"{reason} {docid!r}")
            titles[docid] = title
    return titles
