"""Data frames of pandas and polars, with the columns of PyTerrier, ir_datasets, ir_measures or ranx."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from greylag.core import foreign
from greylag.core.tables import Library, as_frame
from greylag.ranking import Ranking, Run, as_run
from greylag.trec import Qrels


def run_from_frame(frame: Any, *, topics: Mapping[str, str] | None = None, tag: str = "greylag") -> Run:
    """Return the run in a data frame with a row for each retrieved document.

    Documents are ranked by their scores, in descending order. Ties go by the column ``rank``, if there is one, then by
    the order of rows.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        With the columns qid, docno and score, by any name that PyTerrier, ir_datasets, ir_measures or ranx give them,
        and optionally query.
    topics : mapping of str to str, optional
        Query texts by qid. By default the column query, or "".
    tag : str, default "greylag"
        The run's name.
    """
    rows, texts, _ = foreign.frame_run(frame)
    return as_run(foreign.Scored(rows, texts if topics is None else topics, tag))


def topics_from_frame(frame: Any) -> dict[str, str]:
    """Read topics from a data frame with the columns qid and query (or text)."""
    return foreign.texts_of(foreign.qids_of(frame), foreign.column_of(frame, "query"))


def qrels_from_frame(frame: Any) -> Qrels:
    """Read judgements from a data frame with the columns qid, docno and label (or relevance, rel, grade)."""
    return foreign.qrels_of(zip(*(foreign.column_of(frame, name) for name in ("qid", "docno", "label")), strict=True))


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
