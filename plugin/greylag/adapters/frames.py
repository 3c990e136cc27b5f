"""Data frames of pandas and polars, with the columns of PyTerrier, ir_datasets, ir_measures or ranx."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from greylag.adapters import names
from greylag.core.hints import shown
from greylag.core.tables import Library, as_frame
from greylag.errors import ParameterError
from greylag.ranking import Ranking, Run
from greylag.trec import Qrels

COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "qid": ("qid", "query_id", "q_id"),
    "docno": ("docno", "docid", "doc_id"),
    "score": ("score",),
    "query": ("query", "text"),
    "label": ("label", "relevance", "rel", "grade"),
}
"""The columns, and the names that packages give them. Frames are made with the first, which are PyTerrier's."""


def run_from_frame(frame: Any, *, topics: Mapping[str, str] | None = None, tag: str = "greylag") -> Run:
    """Return the run in a data frame with a row for each retrieved document.

    Documents are ranked by their scores, in descending order. Ties go by the column ``rank``, if there is one, then by
    the order of rows.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        With the columns qid, docno and score, by any of the names in `COLUMN_NAMES`, and optionally query.
    topics : mapping of str to str, optional
        Query texts by qid. By default the column query, or "".
    tag : str, default "greylag"
        The run's name.
    """
    qids = _qids(frame)
    rows = list(zip(qids, _column(frame, "docno"), _column(frame, "score"), strict=True))
    if "rank" in frame.columns:  # sorted by it first: `run_of` keeps the order of equal scores
        ranks, places = frame["rank"].to_list(), {qid: place for place, qid in enumerate(dict.fromkeys(qids))}
        rows = [rows[i] for i in sorted(range(len(rows)), key=lambda i: (places[qids[i]], ranks[i]))]
    if topics is None and _name(frame, "query") is not None:
        topics = _texts(qids, _column(frame, "query"))
    return names.run_of(rows, topics, tag)


def topics_from_frame(frame: Any) -> dict[str, str]:
    """Read topics from a data frame with the columns qid and query, by any of the names in `COLUMN_NAMES`."""
    return _texts(_qids(frame), _column(frame, "query"))


def qrels_from_frame(frame: Any) -> Qrels:
    """Read judgements from a data frame with the columns qid, docno and label, by any name in `COLUMN_NAMES`."""
    return names.qrels_of(zip(*(_column(frame, column) for column in ("qid", "docno", "label")), strict=True))


def run_to_frame(run: Run | Iterable[Ranking], library: Library = "pandas") -> Any:
    """Make a data frame of a run or rankings, as `Run.to_frame` does."""
    return (run if isinstance(run, Run) else Run(tuple(run))).to_frame(library)


def topics_to_frame(topics: Mapping[str, str], library: Library = "pandas") -> Any:
    """Make a data frame of topics, with the columns qid and query."""
    return as_frame({"qid": str, "query": str}, topics.items(), library)


def qrels_to_frame(qrels: Mapping[str, Mapping[str, int]], library: Library = "pandas") -> Any:
    """Make a data frame of judgements, with the columns qid, docno and label."""
    rows = [(qid, docid, value) for qid, grades in qrels.items() for docid, value in grades.items()]
    return as_frame({"qid": str, "docno": str, "label": int}, rows, library)


def _name(frame: Any, column: str) -> str | None:
    if not hasattr(frame, "columns"):
        raise ParameterError(f"{shown(frame)} is not a data frame of pandas or polars")
    return next((name for name in COLUMN_NAMES[column] if name in frame.columns), None)


def _column(frame: Any, column: str) -> list[Any]:
    name = _name(frame, column)
    if name is None:
        wanted, there = " or ".join(COLUMN_NAMES[column]), ", ".join(map(str, frame.columns)) or "none"
        raise ParameterError(f"the frame has no column {wanted}; its columns are {there}: rename one")
    values: list[Any] = frame[name].to_list()
    return values


def _qids(frame: Any) -> list[str]:
    return [names.identifier(value, "a query's identifier") for value in _column(frame, "qid")]


def _texts(qids: Sequence[str], texts: Sequence[Any]) -> dict[str, str]:
    topics: dict[str, str] = {}
    for qid, query in zip(qids, texts, strict=True):
        if topics.setdefault(qid, names.text(query, f"query {qid}")) != query:
            raise ParameterError(f"query {qid} has two texts, {topics[qid]!r} and {query!r}")
    return topics
