"""ir_datasets: its named tuples, or a data set by name.

Every function takes a data set (``ir_datasets.load("cranfield")``), its name, or an iterable of named tuples.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from greylag.base import (
    CollectionError,
    ParameterError,
    Run,
    TopicsLike,
    as_identifier,
    as_run,
    as_subtopic_qrels,
    check_ids,
    check_text,
    imported,
    qrels_of_rows,
    shown,
    unique_ids,
)
from greylag.evaluation import Qrels, SubtopicQrels


def topics_from_ir_datasets(source: Any, *, field: str | None = None) -> dict[str, str]:
    """Read texts by qid, of the `field` to search for, such as "description"; by default "text", "title" or "query"."""

    def words(query: Any) -> str:
        wanted = (field,) if field else ("text", "title", "query")
        name = next((name for name in wanted if hasattr(query, name)), None)
        if name is None:
            there = ", ".join(getattr(query, "_fields", ()) or vars(query))
            raise ParameterError(f"a query has no field {' or '.join(wanted)}; its fields are {there}: give field=")
        return check_text(getattr(query, name), f"query {query.query_id}")

    queries = _items(source, "queries", "query_id")
    return unique_ids(((as_identifier(q.query_id, "a query_id"), words(q)) for q in queries), "query")


def qrels_from_ir_datasets(source: Any) -> Qrels:
    """Convert judgements to grades by qid and docid; several subtopics of a document give its highest grade."""
    items = _items(source, "qrels", "relevance")
    return qrels_of_rows(((item.query_id, item.doc_id, item.relevance) for item in items), highest=True)


def subtopic_qrels_from_ir_datasets(source: Any) -> SubtopicQrels:
    """Read judgements by subtopic, as `greylag.evaluation.read_subtopic_qrels`: grades by qid, subtopic and docid."""
    return as_subtopic_qrels([*_items(source, "qrels", "subtopic_id")])


def run_from_ir_datasets(source: Any, *, topics: TopicsLike | None = None, tag: str = "ir_datasets") -> Run:
    """Return the run in scored documents, such as the first stage that a data set comes with."""
    return as_run([*_items(source, "scoreddocs", "score")], topics, tag=tag)


def texts_from_ir_datasets(source: Any) -> Iterator[tuple[str, str]]:
    """Yield pairs of docid and text, as `PositionalIndex.from_texts` takes them."""
    for document in _items(source, "docs", "doc_id"):
        words = document.default_text() if hasattr(document, "default_text") else document.text
        yield as_identifier(document.doc_id, "a doc_id"), check_text(words, f"document {document.doc_id!r}")


def write_documents(source: Any, path: Path) -> Path:
    """Write the documents as JSON lines for indexing; returns the path."""
    with path.open("w", encoding="utf-8") as file:
        for docid, text in texts_from_ir_datasets(source):
            file.write(json.dumps({"id": docid, "contents": text}) + "\n")
    return path


def _items(source: Any, kind: str, attribute: str) -> Iterable[Any]:
    dataset = source
    if isinstance(source, str):
        try:
            dataset = imported("ir_datasets", "ir_datasets").load(source.removeprefix("irds:"))
        except KeyError:
            raise CollectionError(f"ir_datasets has no data set {source.removeprefix('irds:')!r}") from None
    if hasattr(dataset, f"has_{kind}"):
        if not getattr(dataset, f"has_{kind}")():
            raise CollectionError(f"the data set {dataset} of ir_datasets has no {kind}")
        # Its iterators download the data when the first item is asked for.
        dataset = _report_failures(getattr(dataset, f"{kind}_iter")(), dataset)
    check_ids(**{kind: dataset})
    if not isinstance(dataset, Iterable):
        raise ParameterError(f"{shown(dataset)} is no data set of ir_datasets and no iterable of its {kind}")
    for item in dataset:
        if not hasattr(item, attribute):
            raise ParameterError(f"{shown(item)} is not one of the {kind} of ir_datasets: it has no {attribute}")
        yield item


def _report_failures(items: Iterator[Any], dataset: Any) -> Iterator[Any]:
    """Yield the items; report in one line whatever goes wrong in getting them, usually without a network."""
    try:
        yield from items
    except Exception as error:
        raise CollectionError(
            f"{dataset} cannot be read by ir_datasets ({type(error).__name__}: {error}): is there a network?"
        ) from error
