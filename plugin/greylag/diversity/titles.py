"""Titles of documents, which an index stores only as part of the text."""

from __future__ import annotations

from pathlib import Path

from greylag.errors import FormatError
from greylag.runtime.json_files import read_json_lines


def read_titles(path: str | Path, *, lenient: bool = False) -> dict[str, str]:
    """Read titles by docid from JSON lines.

    Parameters
    ----------
    path : str or Path
        One object per line with the key ``id`` and optionally ``title``, such as the documents themselves.
    lenient : bool, default False
        Whether to repair faults of encoding and line ends, with a warning, instead of raising.

    Raises
    ------
    FormatError
        If a line is not such an object, if a docid is repeated, or if the file is rejected by `read_json_lines`.
    """
    titles: dict[str, str] = {}
    for number, record in read_json_lines(path, lenient=lenient):
        docid, title = record.get("id"), record.get("title", "")
        if isinstance(docid, bool) or not isinstance(docid, str | int):
            raise FormatError(path, number, "not a JSON object with an id (string or integer) and, optionally, a title")
        if not isinstance(title, str):
            raise FormatError(path, number, f"title {title!r:.40} is not a string: document {docid!r}")
        if str(docid) in titles:
            raise FormatError(path, number, f"duplicate document {str(docid)!r}")
        titles[str(docid)] = title

    return titles
