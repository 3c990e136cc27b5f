"""Texts by identifier: titles of documents, which an index has only as part of the text, and aspects of queries."""

from __future__ import annotations

from pathlib import Path

from greylag.errors import FormatError
from greylag.runtime.files import Faults, read_json_lines, read_text


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
        If a line is not such an object, or a docid is repeated.
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


def read_aspects(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Read aspects of queries, such as the sub-questions of a topic or query suggestions.

    Parameters
    ----------
    path : str or Path
        A line ``QID TAB NAME TAB TEXT`` for each aspect.

    Returns
    -------
    dict of str to tuple of str
        The texts of the aspects by qid, in the file's order.

    Raises
    ------
    FormatError
        If a line does not have three fields, a field is empty, an aspect is given twice, or there are none.
    """
    with Faults(path, lenient=None) as faults:
        lines = read_text(path, faults).decode().splitlines()
    aspects: dict[str, dict[str, str]] = {}
    for number, line in enumerate(lines, 1):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 3 or not all(fields):
            raise FormatError(path, number, f"not of the form QID TAB NAME TAB TEXT: {line!r:.60}")
        qid, name, text = fields
        if name in aspects.setdefault(qid, {}):
            raise FormatError(path, number, f"query {qid!r} has the aspect {name!r} twice; keep one")
        aspects[qid][name] = text
    return {qid: tuple(named.values()) for qid, named in aspects.items()}
