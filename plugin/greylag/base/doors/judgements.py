"""Judgements come in here: of documents for a query, or for the subtopics of a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias, cast

from greylag.base.core import labels
from greylag.base.core.hints import remedy, shown
from greylag.base.core.labels import MAX_GRADE, Frame, Series, by_label, check_grade, has_labels
from greylag.base.errors import ParameterError

NO_SUBTOPIC = ""
"""The subtopic of judged documents that belong to none. No file can name it."""
UNNAMED_SUBTOPICS = "0", "Q0"  # in rows, subtopics that are none unless a document is relevant to them


class JudgedDocument(Protocol):
    """A judgement of ir_datasets or ir_measures."""

    @property
    def query_id(self) -> Any:
        """The query."""

    @property
    def doc_id(self) -> Any:
        """The document."""

    @property
    def relevance(self) -> Any:
        """The grade."""


class RanxTable(Protocol):
    """``ranx.Run`` or ``ranx.Qrels``."""

    def to_dict(self) -> Mapping[Any, Mapping[Any, Any]]:
        """Return scores or grades by qid and docid."""


QrelsLike: TypeAlias = Mapping[Any, Mapping[Any, Any] | Series] | Frame | Iterable[JudgedDocument] | RanxTable
"""Judgements: grades by qid and docid, as mappings or Series by their labels; a frame with the columns qid, docno and
label; ``ranx.Qrels``; or the judgements of ir_datasets and ir_measures.
"""
SubtopicQrelsLike: TypeAlias = Mapping[Any, Mapping[Any, Mapping[Any, Any] | Series]] | Frame | Iterable[JudgedDocument]
"""Judgements by subtopic: grades by qid, subtopic and docid; a frame with the columns qid, subtopic, docno and label;
or the judgements of ir_datasets, with subtopics.
"""


def as_qrels(value: QrelsLike) -> dict[str, dict[str, int]]:
    """Return judgements as grades by qid and docid, in their order.

    Grades are whole numbers; whole floats are converted, texts and truth values refused. Of several judgements of a
    document in ir_datasets' form, by subtopic or round, the highest counts; elsewhere, they are refused. An empty value
    gives judgements without queries.
    """
    value = labels.listed(value)
    if type(value).__name__ == "Run":  # greylag's or ranx's
        raise ParameterError("judgements are a Run: the run comes before the judgements")
    if labels.is_frame(value):
        columns = (labels.column_of(value, column) for column in ("qid", "docno", "label"))
        return qrels_of_rows(zip(*columns, strict=True))
    if labels.is_of_ranx(value, "Qrels"):
        return qrels_of_rows(labels.flat(value.to_dict()))  # type: ignore[union-attr]
    if labels.are_items(value, "query_id", "doc_id", "relevance"):
        return qrels_of_rows(((item.query_id, item.doc_id, item.relevance) for item in value), highest=True)  # type: ignore[union-attr]
    if not isinstance(value, Mapping):
        how = remedy(value) or "pass a mapping of qid to docid to grade, such as read_qrels returns"
        raise ParameterError(f"judgements are a {type(value).__name__}: {how}")
    return {qid: _grades(f"query {qid}", judged) for qid, judged in by_label(value, "query").items()}


def as_subtopic_qrels(value: SubtopicQrelsLike) -> dict[str, dict[str, dict[str, int]]]:
    """Return judgements by subtopic as grades by qid, subtopic and docid, in their order; grades as in `as_qrels`.

    In rows, as in files, subtopic 0 without a relevant document is none.
    """
    value = labels.listed(value)
    names = "query_id", "subtopic_id", "doc_id", "relevance"
    if labels.is_frame(value):
        columns = (labels.column_of(value, column) for column in ("qid", "subtopic", "docno", "label"))
        return _by_subtopic(zip(*columns, strict=True))
    if labels.are_items(value, *names):
        return _by_subtopic(tuple(getattr(item, name) for name in names) for item in value)  # type: ignore[union-attr]
    if not isinstance(value, Mapping):
        how = remedy(value) or "pass a mapping of qid to subtopic to docid to grade"
        raise ParameterError(f"judgements by subtopic are {shown(value)}: {how}")
    judged = {}
    for qid, given in by_label(value, "query").items():
        if not isinstance(given, Mapping):
            raise ParameterError(f"what is judged for query {qid} is {shown(given)}: pass grades by subtopic and docid")
        named = by_label(given, "subtopic").items()
        grades = {name: _grades(f"query {qid} and subtopic {name}", by_docid) for name, by_docid in named}
        # The importance of nuggets stays with their judgements.
        same = isinstance(given, dict) and all(by_docid is given.get(name) for name, by_docid in grades.items())
        judged[qid] = cast(dict[str, dict[str, int]], given) if same else grades
    return judged


def has_subtopics(value: Any) -> bool:
    """Return whether judgements, which may be of documents or by subtopic, are by subtopic."""
    if isinstance(value, Mapping):
        judged = (grades for grades in value.values() if isinstance(grades, Mapping))
        return any(has_labels(by_docid) for grades in judged for by_docid in grades.values())
    if labels.is_frame(value):
        return any(name in value.columns for name in ("subtopic", "subtopic_id"))
    return isinstance(value, list | tuple) and bool(value) and hasattr(value[0], "subtopic_id")


def named_subtopic(subtopic: tuple[str, dict[str, int]]) -> tuple[str, dict[str, int]]:
    """Rename subtopic 0 if no document is relevant to it; its documents stay, as their query counts in means."""
    name, grades = subtopic
    return (NO_SUBTOPIC if name in UNNAMED_SUBTOPICS and max(grades.values(), default=0) <= 0 else name), grades


def qrels_of_rows(rows: Iterable[tuple[Any, ...]], *, highest: bool = False) -> dict[str, dict[str, int]]:
    """Make judgements of rows of qid, docid and grade; of several grades of a document, the `highest`, or an error."""
    qrels: dict[str, dict[str, int]] = {}
    for qid, docid, value in labels.identified(rows):
        grades = qrels.setdefault(qid, {})
        if docid in grades and not highest:
            raise ParameterError(f"query {qid}: document {docid!r} is judged twice")
        grade = check_grade(value, f"document {docid!r} for query {qid}")
        grades[docid] = max(grade, grades.get(docid, grade))
    return qrels


def _by_subtopic(rows: Iterable[tuple[Any, ...]]) -> dict[str, dict[str, dict[str, int]]]:
    """Make judgements of rows of qid, subtopic, docid and grade."""
    qrels: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        kinds = "a query's identifier", "a subtopic's name", "a document's identifier"
        qid, subtopic, docid = map(labels.as_identifier, row, kinds)
        grades = qrels.setdefault(qid, {}).setdefault(subtopic, {})
        place = f"document {docid!r} for query {qid} and subtopic {subtopic}"
        if docid in grades:
            raise ParameterError(f"{place} is judged twice")
        grades[docid] = check_grade(row[-1], place)
    return {qid: dict(map(named_subtopic, judged.items())) for qid, judged in qrels.items()}


def _grades(where: str, judged: Any) -> dict[str, int]:
    """Return grades by docid."""
    if not has_labels(judged):
        raise ParameterError(f"what is judged for {where} is {shown(judged)}, not a mapping of docid to grade")
    by_docid = by_label(judged, "document")
    if isinstance(by_docid, dict) and all(
        type(grade) is int and abs(grade) <= MAX_GRADE for grade in by_docid.values()
    ):
        return by_docid
    return {docid: check_grade(grade, f"document {docid!r} for {where}") for docid, grade in by_docid.items()}
