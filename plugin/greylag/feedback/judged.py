"""The judged documents of one query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from greylag.index.positional import PositionalIndex

Feedback = Mapping[str, Mapping[str, int]]
"""Grades of judged documents by qid and docid; relevant from grade 1."""


class Judged(NamedTuple):
    """Docids of the judged documents of one query that are in the index, in ascending order."""

    relevant: tuple[str, ...]
    others: tuple[str, ...]


def judged_documents(index: PositionalIndex, feedback: Feedback, qid: str) -> Judged:
    """The judged documents of a query, without those outside the index."""
    grades = dict(sorted(feedback.get(qid, {}).items()))
    known = [docid for docid, number in zip(grades, index.documents([*grades]).tolist(), strict=True) if number >= 0]
    relevant = tuple(docid for docid in known if grades[docid] > 0)
    return Judged(relevant, tuple(docid for docid in known if grades[docid] <= 0))
