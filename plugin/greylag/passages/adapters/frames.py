"""Data frames of pandas and polars, with PyTerrier's columns; `greylag.read_run` and its like read them."""

from __future__ import annotations

from typing import Any

from greylag.base import Library, QrelsLike, RunLike, TopicsLike, as_frame, as_qrels, as_run, as_topics


def run_to_frame(run: RunLike, library: Library = "pandas") -> Any:
    """Make a data frame of a run or rankings, as `Run.to_frame` does."""
    return as_run(run).to_frame(library)


def topics_to_frame(topics: TopicsLike, library: Library = "pandas") -> Any:
    """Make a data frame of topics, with the columns qid and query."""
    return as_frame({"qid": str, "query": str}, as_topics(topics).items(), library)


def qrels_to_frame(qrels: QrelsLike, library: Library = "pandas") -> Any:
    """Make a data frame of judgements, with the columns qid, docno and label."""
    rows = [(qid, docid, value) for qid, grades in as_qrels(qrels).items() for docid, value in grades.items()]
    return as_frame({"qid": str, "docno": str, "label": int}, rows, library)
