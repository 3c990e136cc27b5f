"""Hints in errors: values of other packages are recognised, and their converter is named."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from greylag.errors import ParameterError

PYSERINI = "greylag.adapters.qrels_from_pyserini"


def shown(value: Any) -> str:
    """Return the type and the beginning of a value, on one line."""
    return f"{type(value).__name__} {value!r:.60}".replace("\n", " ")


def remedy(value: Any) -> str:
    """Return the function of greylag that reads a value of another package, or "" if there is none."""
    item = next(iter(value.values()), None) if isinstance(value, Mapping) else value
    first = value[0] if isinstance(value, list | tuple) and value else value
    kinds = (
        (
            hasattr(value, "columns"),
            "frames with greylag.adapters.run_from_frame, topics_from_frame or qrels_from_frame",
        ),
        (
            isinstance(item, list | tuple) and item and hasattr(item[0], "docid"),
            "hits with greylag.adapters.run_from_pyserini",
        ),
        (hasattr(value, "docid"), "the hits of a query with Ranking.from_hits(qid, query, hits)"),
        (
            isinstance(item, Mapping) and {"title", "description"} & item.keys(),
            "topics with greylag.adapters.topics_from_pyserini(topics, field='title')",
        ),
        (
            any(hasattr(one, name) for one in (value, first) for name in ("queries_iter", "query_id")),
            "them with greylag.adapters.topics_from_ir_datasets, qrels_from_ir_datasets or run_from_ir_datasets",
        ),
        (
            type(value).__module__.startswith("ranx."),
            "them with greylag.adapters.run_from_ranx or qrels_from_ranx",
        ),
    )
    return next((f"read {how}" for is_one, how in kinds if is_one), "")


def check_qrels(qrels: Any) -> None:
    """Raise `ParameterError` if judgements are not a mapping of qid to docid to grade, such as a frame."""
    if not isinstance(qrels, Mapping):
        how = remedy(qrels) or "pass a mapping of qid to docid to grade, such as read_qrels returns"
        raise ParameterError(f"judgements are a {type(qrels).__name__}: {how}")
    for qid, grades in qrels.items():
        if not isinstance(qid, str):
            raise ParameterError(f"judgements have the query {shown(qid)}: identifiers are strings; see {PYSERINI}")
        if not isinstance(grades, Mapping):
            raise ParameterError(f"what is judged for query {qid} is {shown(grades)}, not a mapping of docid to grade")
        for docid, grade in grades.items():
            if not isinstance(docid, str) or not isinstance(grade, int | Integral):
                raise ParameterError(
                    f"query {qid} judges document {shown(docid)} as {shown(grade)}: docids are strings and grades "
                    f"integers; see {PYSERINI}"
                )
