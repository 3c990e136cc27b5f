"""Texts by identifier: titles of documents, which an index has only within the text, and aspects of queries."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

from greylag.base import Faults, FormatError, parse_number, read_json_lines, read_text, split_rows

AspectScores = dict[str, dict[str, dict[str, float]]]
"""qid to aspect to docid to score."""


def read_titles(path: str | Path) -> dict[str, str]:
    """Read titles by docid from JSON lines with ``id`` and perhaps ``title``, such as the documents themselves.

    `FormatError` if a line is something else, or a docid is repeated.
    """
    return {docid: record.get("title", "") for docid, record in read_fields(path).items()}


def read_groups(path: str | Path) -> dict[str, str]:
    """Read groups by docid, such as the site of a page or the document of a passage, as `read_titles` by ``group``.

    A document without a group has no entry.
    """
    return {docid: record["group"] for docid, record in read_fields(path, "group").items() if record.get("group")}


def read_fields(path: str | Path, key: str = "title") -> dict[str, dict[str, Any]]:
    """Read all fields by docid of JSON lines, except ``contents``; those under the key must be strings."""
    records: dict[str, dict[str, Any]] = {}
    for number, record in read_json_lines(path):
        docid, value = record.get("id"), record.get(key, "")
        # True is an int in Python, and 1.5 would be another name in every program.
        if isinstance(docid, bool) or not isinstance(docid, str | int):
            raise FormatError(
                path, number, f"not a JSON object with an id (string or integer) and, optionally, a {key}"
            )
        if not isinstance(value, str):
            raise FormatError(path, number, f"{key} {value!r:.40} is not a string: document {docid!r}")
        if str(docid) in records:
            raise FormatError(path, number, f"duplicate document {str(docid)!r}")
        records[str(docid)] = {name: field for name, field in record.items() if name != "contents"}
    return records


def read_aspects(path: str | Path) -> dict[str, tuple[str, ...]] | AspectScores:
    """Read aspects of queries, such as the sub-questions of a topic or query suggestions.

    `FormatError` if a line has another form than the first, a field is empty, an aspect or a document for it is given
    twice, a score is not a finite number, or there are none.

    Parameters
    ----------
    path : str or Path
        A line ``QID TAB NAME TAB TEXT`` for each aspect. Or scores of documents: a line ``qid aspect docid score`` for
        each, or TREC runs one after another, an aspect each, whose tags name the aspects.

    Returns
    -------
    dict of str to tuple of str, or dict of str to dict of str to dict of str to float
        The texts of the aspects by qid, in the file's order; or scores by qid, aspect and docid.
    """
    with Faults(path, lenient=None) as faults:
        content = read_text(path, faults)
        lines = filter(None, map(bytes.strip, io.BytesIO(content)))
        first = next((line for line in lines if not line.startswith(b"# ")), b"")  # runs have comments at their head
        # Tabs decide first: a text may have as many words as a line of scores has columns.
        if first.count(b"\t") == 2 or len(first.split()) not in (4, 6):
            return _aspect_texts(path, content.decode().removesuffix("\n").split("\n"))
        columns = "qid aspect docid score" if len(first.split()) == 4 else "qid Q0 docid rank score tag"
        order = [columns.split().index(name) for name in ("qid", "docid", "score")]
        name_at = 1 if len(first.split()) == 4 else 5
        by_query: AspectScores = {}
        for number, row in split_rows([content], columns, faults, comments=True):
            qid, docid, text = (row[column].decode() for column in order)
            aspect, score = row[name_at].decode(), parse_number(text.encode())
            if not math.isfinite(score):
                raise FormatError(path, number, f"score {text!r:.40} is not a finite number")
            scores = by_query.setdefault(qid, {}).setdefault(aspect, {})
            if docid in scores:
                raise FormatError(
                    path,
                    number,
                    f"document {docid!r} has two scores for aspect {aspect!r} of query {qid!r}"
                    + ("; the tag of a run names its aspect: give each run its own" if name_at == 5 else ""),
                )
            scores[docid] = score
    return by_query


def _aspect_texts(path: str | Path, lines: list[str]) -> dict[str, tuple[str, ...]]:
    """Read the texts of lines ``QID TAB NAME TAB TEXT``."""
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
