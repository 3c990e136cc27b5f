"""Judgements by nugget in JSON lines, of FreshStack and of the nuggetizer of TREC's RAG track.

`greylag.evaluation.read_subtopic_qrels` says what the objects are.

References
----------
Thakur et al., FreshStack: building realistic benchmarks for evaluating retrieval on technical documents, 2025.
Pradeep et al., The great nugget recall: automating fact extraction and RAG evaluation with large language models, 2025.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from greylag.base import Faults, FormatError

IMPORTANCES = "vital", "okay"
SUPPORT_GRADES = {"support": 2, "partial_support": 1, "not_support": 0}
FORMS = "neither a query of FreshStack (query_id, nuggets), nor a document of the nuggetizer (qid, docid, nuggets)"

Judgement = tuple[int, str, str | None, str | None, int]
Importance = dict[str, dict[str, str]]
"""By qid and nugget, vital or okay; of nuggets that have it."""


def nugget_judgements(
    records: Iterator[tuple[int, dict[str, Any]]], faults: Faults, importance: Importance
) -> Iterator[Judgement]:
    """Yield line, qid, nugget, docid and grade of each judgement; None where a query or nugget has none."""
    for line, record in records:
        get = _Fields(faults, line)
        if "query_id" in record:
            judgements = _query_judgements(get, record)
        elif "nuggets" in record:
            judgements = _document_judgements(get, record, importance)
        else:
            raise FormatError(faults.path, line, FORMS)
        yield from ((line, *judgement) for judgement in judgements)


class _Fields:
    """Typed fields of the objects in a line; another type is a `FormatError`."""

    def __init__(self, faults: Faults, line: int) -> None:
        self.faults, self.line = faults, line

    def error(self, reason: str) -> FormatError:
        return FormatError(self.faults.path, self.line, reason)

    def name(self, record: dict[str, Any], key: str) -> str:
        """Return the identifier under a key."""
        value = record.get(key)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise self.error(f"{key} is {value!r:.40}: it must be a string or an integer")
        return str(value)

    def items(self, record: dict[str, Any], key: str, kind: type) -> list[Any]:
        """Return the list under a key, of elements of a type."""
        values = record.get(key)
        if not isinstance(values, list) or not all(type(value) is kind for value in values):
            raise self.error(f"{key} is {values!r:.40}: it must be a list of {kind.__name__}")
        return values


def _query_judgements(get: _Fields, record: dict[str, Any]) -> Iterator[tuple[str, str | None, str | None, int]]:
    """Yield the judgements of a query of FreshStack."""
    qid, nuggets = get.name(record, "query_id"), get.items(record, "nuggets", dict)
    # A query without nuggets is there, too: it counts in means.
    yield qid, None, None, 0
    names = [get.name(nugget, "_id") for nugget in nuggets]
    if len(set(names)) < len(names):
        raise get.error(f"query {qid!r} has two nuggets of one _id")
    for name, nugget in zip(names, nuggets, strict=True):
        yield qid, name, None, 0
        # In this order, since a lenient reader keeps the first; FreshStack lets the second list win, too.
        for grade, key in enumerate(("non_relevant_corpus_ids", "relevant_corpus_ids")):
            yield from ((qid, name, docid, grade) for docid in get.items(nugget, key, str))


def _document_judgements(
    get: _Fields, record: dict[str, Any], importance: Importance
) -> Iterator[tuple[str, str | None, str | None, int]]:
    """Yield the judgements of a document with nuggets of the nuggetizer; add the importance of nuggets."""
    qid, nuggets = get.name(record, "qid"), get.items(record, "nuggets", dict)
    if "docid" not in record or not all("assignment" in nugget for nugget in nuggets):
        raise get.error(
            "nuggets that are not assigned to a document: assign them to the run's documents first, with nuggetizer "
            "assign --input-kind retrieval"
        )
    docid = get.name(record, "docid")
    yield qid, None, None, 0
    for nugget in nuggets:
        name, assigned = get.name(nugget, "text"), nugget["assignment"]
        if "importance" in nugget:
            given, known = nugget["importance"], importance.setdefault(qid, {})
            if given not in IMPORTANCES:
                reason = f"importance {given!r:.40} is none of {', '.join(IMPORTANCES)}"
                get.faults.repair(get.line, reason, "takes the nugget as one without importance")
            elif known.setdefault(name, given) != given:  # one for all documents
                reason = f"nugget {name!r:.60} is {given} here and {known[name]} for another document"
                get.faults.repair(get.line, reason, "keeps the first")
        if assigned in SUPPORT_GRADES:
            yield qid, name, docid, SUPPORT_GRADES[assigned]
        else:
            reason = f"assignment {assigned!r:.40} is none of {', '.join(SUPPORT_GRADES)}"
            get.faults.repair(get.line, reason, "skips the judgement")
