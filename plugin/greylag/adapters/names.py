"""Helpers for adapters: strict conversion of identifiers, grades and texts, and optional imports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from typing import Any

from greylag.core.hints import shown
from greylag.errors import ParameterError
from greylag.ranking import Ranking, Run
from greylag.trec import Qrels


def identifier(value: Any, what: str) -> str:
    """Convert an identifier to a string. Integers, which some packages use, are accepted; floats may lack digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    raise ParameterError(
        f"{what} is {shown(value)}: it must be a string or an integer; convert identifiers with astype(str)"
    )


def grade(value: Any, what: str) -> int:
    """Check that a relevance grade is an integer, and return it."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    raise ParameterError(f"the grade of {what} is {shown(value)}: it must be an integer; convert grades with int()")


def number(value: Any, what: str) -> float:
    """Check that a score is a number, and return it."""
    try:
        if hasattr(value, "__float__") and not isinstance(value, bool):  # float() reads strings
            return float(value)
    except TypeError:  # an array of one number
        pass
    except OverflowError:
        raise ParameterError(f"the score of {what} is beyond the range of floats: it must be finite") from None
    raise ParameterError(f"the score of {what} is {shown(value)}: it must be a number; convert scores with float()")


def text(value: Any, what: str) -> str:
    """Check that a text is a string, and return it."""
    if not isinstance(value, str):
        raise ParameterError(f"the text of {what} is {shown(value)}: it must be a string")
    return value


def unique(pairs: Iterable[tuple[str, Any]], what: str) -> dict[str, Any]:
    """Make a dictionary of pairs with different keys."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ParameterError(f"{what} {key!r} occurs twice")
        values[key] = value
    return values


def topic(qid: str, topics: Mapping[str, str] | None) -> str:
    """Return the text of a query; "" without topics."""
    if topics is not None and qid not in topics:
        raise ParameterError(f"query {qid!r} is not among the topics, such as {next(iter(topics), None)!r}")
    return "" if topics is None else topics[qid]


def run_of(rows: Iterable[tuple[Any, Any, Any]], topics: Mapping[str, str] | None, tag: str) -> Run:
    """Make a run of rows of qid, docid and score; equal scores keep the order of the rows."""
    scored: dict[str, dict[str, float]] = {}
    for qid, docid, score in _identified(rows):
        scores = scored.setdefault(qid, {})
        if docid in scores:
            raise ParameterError(f"query {qid}: document {docid!r} occurs twice")
        scores[docid] = number(score, f"document {docid!r}")
    return Run(tuple(Ranking.sort(qid, topic(qid, topics), [*by], [*by.values()]) for qid, by in scored.items()), tag)


def qrels_of(rows: Iterable[tuple[Any, Any, Any]], *, highest: bool = False) -> Qrels:
    """Make judgements of rows of qid, docid and grade; of several grades of a document, the `highest`, or an error."""
    qrels: Qrels = {}
    for qid, docid, value in _identified(rows):
        grades = qrels.setdefault(qid, {})
        if docid in grades and not highest:
            raise ParameterError(f"query {qid}: document {docid!r} is judged twice")
        new = grade(value, f"document {docid!r} for query {qid}")
        grades[docid] = max(new, grades.get(docid, new))
    return qrels


def _identified(rows: Iterable[tuple[Any, Any, Any]]) -> Iterator[tuple[str, str, Any]]:
    for qid, docid, value in rows:
        yield identifier(qid, "a query's identifier"), identifier(docid, "a document's identifier"), value
