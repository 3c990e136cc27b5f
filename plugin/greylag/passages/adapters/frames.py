"""Data frames of pandas and polars, with PyTerrier's columns; `greylag.read_run` and its like read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from greylag.base import Library, Ranking, Run, as_frame


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
