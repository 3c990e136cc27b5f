"""Values of other packages: their runs, judgements and topics are recognised and converted.

Identifiers, grades, scores and texts are checked on the way. No other package is imported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

from greylag.base.core.hints import remedy, shown
from greylag.base.errors import ParameterError

COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "qid": ("qid", "query_id", "q_id"),
    "docno": ("docno", "docid", "doc_id"),
    "score": ("score",),
    "query": ("query",),
    "topic": ("query", "text"),  # in topics alone: a hit's text may be the document's
    "label": ("label", "relevance", "rel", "grade"),
}
"""The columns of frames, and the names that packages give them. Frames are made with the first, PyTerrier's."""
Rows = Iterable[tuple[Any, Any, Any]]
"""Query, document, and score or grade."""


class ScoredRows(NamedTuple):
    """A run of another package; without `texts`, its queries' texts are unknown."""

    rows: Rows
    texts: Mapping[str, str] | None = None
    tag: str | None = None
    ranked: bool = False  # whether the rows of a query are in the order of ranks, which they keep where scores tie


def scored_rows(value: Any, *, texts: bool = True) -> ScoredRows | None:
    """Return the run in a frame, a ``ranx.Run`` or scored documents of ir_measures; None of anything else.

    Without `texts`, a frame's column of queries is not read.
    """
    if isinstance(value, ScoredRows):
        return value
    # A frame without documents has topics.
    if is_frame(value):
        return None if column_name(value, "docno") is None else frame_run(value, texts)
    if _is_of_ranx(value, "Run"):
        return ScoredRows(_flat(value.to_dict()), tag=value.name or "ranx")
    if _are_items(value, "query_id", "doc_id", "score"):
        return ScoredRows([(item.query_id, item.doc_id, item.score) for item in value])
    return None


def as_qrels(value: Any) -> dict[str, dict[str, int]]:
    """Return judgements as a mapping of qid to docid to grade, converted from a value of another package."""
    value = listed(value)
    if is_frame(value):
        return qrels_of_rows(zip(*(column_of(value, column) for column in ("qid", "docno", "label")), strict=True))
    if _is_of_ranx(value, "Qrels"):
        return qrels_of_rows(_flat(value.to_dict()))
    if _are_items(value, "query_id", "doc_id", "relevance"):
        return qrels_of_rows(((item.query_id, item.doc_id, item.relevance) for item in value), highest=True)
    if isinstance(value, Mapping):
        value = {q: by_id(of, "document") if isinstance(of, Mapping) else of for q, of in by_id(value, "query").items()}
    check_qrels(value)
    judged: dict[str, dict[str, int]] = value
    return judged


def check_qrels(qrels: Any) -> None:
    """Raise `ParameterError` if judgements are not a mapping of qid to docid to grade."""
    see = "greylag.passages.qrels_from_pyserini"
    if not isinstance(qrels, Mapping):
        how = remedy(qrels) or "pass a mapping of qid to docid to grade, such as read_qrels returns"
        raise ParameterError(f"judgements are a {type(qrels).__name__}: {how}")
    for qid, grades in qrels.items():
        if not isinstance(qid, str):
            raise ParameterError(f"judgements have the query {shown(qid)}: identifiers are strings; see {see}")
        if not isinstance(grades, Mapping):
            raise ParameterError(f"what is judged for query {qid} is {shown(grades)}, not a mapping of docid to grade")
        for docid, grade in grades.items():
            if not isinstance(docid, str) or not isinstance(grade, int | Integral):
                swapped = "; the run comes before the judgements" if isinstance(grade, float) else f"; see {see}"
                raise ParameterError(
                    f"query {qid} judges document {shown(docid)} as {shown(grade)}: docids are strings and grades "
                    f"integers{swapped}"
                )


def as_topics(value: Any) -> Mapping[Any, Any]:
    """Return topics as a mapping of qid to text, of a mapping or a frame; `ParameterError` for anything else."""
    if is_frame(value):
        return texts_of(qids_of(value), column_of(value, "topic"))
    if not isinstance(value, Mapping):
        raise ParameterError(f"topics are {shown(value)}: {remedy(value) or 'pass a path, or texts by qid'}")
    wrong = [text for text in value.values() if not isinstance(text, str)]
    if wrong:
        raise ParameterError(f"topics have {shown(wrong[0])}: {remedy(value) or 'texts are strings'}")
    return by_id(value, "query")


def listed(value: Any) -> Any:
    """Return a list of the items of an iterator, and any other value unchanged."""
    return list(value) if isinstance(value, Iterator) else value


def is_frame(value: Any) -> bool:
    """Return whether a value is a data frame of pandas or polars, by its columns."""
    if hasattr(value, "collect"):  # of polars, Spark
        raise ParameterError(
            f"a {type(value).__name__} has no rows yet: pass its .collect(), or .toPandas() of Spark's"
        )
    return hasattr(value, "columns")


def column_name(frame: Any, column: str) -> str | None:
    """Return a frame's name for one of `COLUMN_NAMES`; None if it has no such column."""
    return next((name for name in COLUMN_NAMES[column] if name in frame.columns), None)


def column_of(frame: Any, column: str) -> list[Any]:
    """Return the values of one of `COLUMN_NAMES`."""
    name = column_name(frame, column)
    if name is None:
        wanted, there = " or ".join(COLUMN_NAMES[column]), ", ".join(map(str, frame.columns)) or "none"
        raise ParameterError(f"the frame has no column {wanted}; its columns are {there}: rename one")
    return _column(frame, name)


def _column(frame: Any, name: str) -> list[Any]:
    values = frame[name]
    if hasattr(values, "columns"):
        raise ParameterError(f"the frame has several columns {name}: drop or rename all but one")
    return values.to_list()  # type: ignore[no-any-return]


def frame_run(frame: Any, texts: bool) -> ScoredRows:
    """Return the run in a frame, in the order of the column ``rank`` if there is one."""
    qids = qids_of(frame)
    rows = list(zip(qids, column_of(frame, "docno"), column_of(frame, "score"), strict=True))
    if ranked := "rank" in frame.columns:  # of equal ranks, the first row comes first
        places = {qid: place for place, qid in enumerate(dict.fromkeys(qids))}
        ranks = [
            check_number(rank, f"the rank in row {row} of the frame")
            for row, rank in enumerate(_column(frame, "rank"), 1)
        ]
        rows = [rows[i] for i in sorted(range(len(rows)), key=lambda i: (places[qids[i]], ranks[i]))]
    texts = texts and column_name(frame, "query") is not None
    return ScoredRows(rows, texts_of(qids, column_of(frame, "query")) if texts else None, ranked=ranked)


def qids_of(frame: Any) -> list[str]:
    """Return the identifier of the query of each row."""
    return [as_identifier(value, "a query's identifier") for value in column_of(frame, "qid")]


def texts_of(qids: Sequence[str], texts: Sequence[Any]) -> dict[str, str]:
    """Return the texts by qid of rows that have both."""
    topics: dict[str, str] = {}
    for qid, query in zip(qids, texts, strict=True):
        if topics.setdefault(qid, check_text(query, f"query {qid}")) != query:
            raise ParameterError(f"query {qid} has two texts, {topics[qid]!r} and {query!r}")
    return topics


def _is_of_ranx(value: Any, kind: str) -> bool:
    return type(value).__name__ == kind and type(value).__module__.startswith("ranx.")


def _are_items(value: Any, *attributes: str) -> bool:
    items = value if isinstance(value, list | tuple) else ()
    lacking = [place for place, item in enumerate(items) if not all(hasattr(item, name) for name in attributes)]
    if lacking and lacking[0]:
        place, kind, names = lacking[0], type(items[0]).__name__, ", ".join(attributes)
        raise ParameterError(f"[{place}] is {shown(items[place])}: it must have {names}, as the {kind} before it")
    return bool(items) and not lacking


def _flat(table: Mapping[Any, Mapping[Any, Any]]) -> Rows:
    return ((qid, docid, value) for qid, by_docid in table.items() for docid, value in by_docid.items())


def as_identifier(value: Any, what: str) -> str:
    """Convert an identifier to a string. Integers, which some packages use, are accepted; floats may lack digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    raise ParameterError(
        f"{what} is {shown(value)}: it must be a string or an integer; convert identifiers with astype(str)"
    )


def check_grade(value: Any, what: str) -> int:
    """Check that a relevance grade is an integer, and return it."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    raise ParameterError(f"the grade of {what} is {shown(value)}: it must be an integer; convert grades with int()")


def check_number(value: Any, what: str) -> float:
    """Check that a score or rank is a finite number, and return it."""
    try:
        if hasattr(value, "__float__") and type(value).__name__ not in ("bool", "bool_"):  # NumPy's, too
            if math.isfinite(found := float(value)):
                return found
            raise ParameterError(f"{what} is {found}: it must be finite")
    except TypeError:  # an array of one number
        pass
    except OverflowError:
        raise ParameterError(f"{what} is beyond the range of floats: it must be finite") from None
    raise ParameterError(f"{what} is {shown(value)}: it must be a number; convert it with float()")


def check_text(value: Any, what: str) -> str:
    """Check that a text is a string, and return it."""
    if not isinstance(value, str):
        how = "; take its .page_content" if hasattr(value, "page_content") else ""
        if isinstance(value, tuple) and value and hasattr(value[0], "page_content"):
            how = "; take its [0].page_content, or give documents to greylag.passages.langchain_compressor"
        how = "; take its .text" if isinstance(getattr(value, "text", None), str) else how
        raise ParameterError(f"the text of {what} is {shown(value)}: it must be a string{how}")
    return value


def by_id(values: Mapping[Any, Any], what: str) -> Mapping[str, Any]:
    """Convert a mapping's keys, the identifiers of queries or documents, to strings."""
    if all(isinstance(key, str) for key in values):
        return values
    return unique_ids(((as_identifier(key, f"a {what}'s identifier"), value) for key, value in values.items()), what)


def unique_ids(pairs: Iterable[tuple[str, Any]], what: str) -> dict[str, Any]:
    """Make a dictionary of pairs with different keys."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ParameterError(f"{what} {key!r} occurs twice")
        values[key] = value
    return values


def qrels_of_rows(rows: Rows, *, highest: bool = False) -> dict[str, dict[str, int]]:
    """Make judgements of rows of qid, docid and grade; of several grades of a document, the `highest`, or an error."""
    qrels: dict[str, dict[str, int]] = {}
    for qid, docid, value in identified(rows):
        grades = qrels.setdefault(qid, {})
        if docid in grades and not highest:
            raise ParameterError(f"query {qid}: document {docid!r} is judged twice")
        new = check_grade(value, f"document {docid!r} for query {qid}")
        grades[docid] = max(new, grades.get(docid, new))
    return qrels


def scores_of(rows: Rows) -> dict[str, dict[str, float]]:
    """Collect the scores of rows by qid and docid, in their order."""
    scores: dict[str, dict[str, float]] = {}
    for qid, docid, score in identified(rows):
        of_query = scores.setdefault(qid, {})
        if docid in of_query:
            raise ParameterError(f"query {qid}: document {docid!r} occurs twice")
        of_query[docid] = check_number(score, f"the score of document {docid!r}")
    return scores


def topic_text(qid: str, topics: Mapping[str, str] | None) -> str:
    """Return the text of a query; "" without topics."""
    if topics is not None and qid not in topics:
        raise ParameterError(f"query {qid!r} is not among the topics, such as {next(iter(topics), None)!r}")
    return "" if topics is None else topics[qid]


def identified(rows: Rows) -> Iterator[tuple[str, str, Any]]:
    """Convert the identifiers of rows."""
    for qid, docid, value in rows:
        yield as_identifier(qid, "a query's identifier"), as_identifier(docid, "a document's identifier"), value
