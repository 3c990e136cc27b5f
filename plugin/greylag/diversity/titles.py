"""Documents' titles, which an index holds only as part of the text."""

from __future__ import annotations

import io
import json
from pathlib import Path

from greylag.errors import FormatError
from greylag.files import Faults, read_text


def read_titles(path: str | Path, *, lenient: bool = False) -> dict[str, str]:
    """Titles by docid, from JSON lines: objects with ``id`` and perhaps ``title``, such as the documents themselves.

    Raises
    ------
    FormatError
        A line that is no such object, or that has a document's title again. Also what `greylag.files.read_text`
        refuses.
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
                raise FormatError(path, number, "not a JSON object with an id and perhaps a title") from None
            if not isinstance(title, str) or docid in titles:
                reason = "is there twice" if docid in titles else f"has the title {title!r:.40}, which is no string"
                raise FormatError(path, number, f"document {docid!r} {reason}")
            titles[docid] = title
    return titles
