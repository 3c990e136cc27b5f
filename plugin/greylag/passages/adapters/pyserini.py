"""Pyserini: its topics, judgements, hits and searchers. Nothing here needs its neural models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from greylag.base import (
    Hit,
    ParameterError,
    Query,
    Ranking,
    Run,
    RunLike,
    Source,
    TopicsLike,
    as_identifier,
    as_run,
    check_counts,
    check_text,
    qrels_of_rows,
    shown,
    unique_ids,
)
from greylag.evaluation import Qrels


def topics_from_pyserini(topics: Mapping[Any, Any], *, field: str = "title") -> dict[str, str]:
    """Convert the result of ``pyserini.search.get_topics`` to texts by qid, of the `field` to search for."""
    if not isinstance(topics, Mapping):
        raise ParameterError(f"{shown(topics)} is not what get_topics returns: a mapping from qid to fields")

    def words(qid: Any, fields: Any) -> str:
        if not isinstance(fields, Mapping) or field not in fields:
            there = ", ".join(map(str, fields)) if isinstance(fields, Mapping) else shown(fields)
            raise ParameterError(f"topic {qid} has no field {field!r}, only {there}: choose one with field=")
        # Titles keep the line breaks and indents of TREC's files.
        return " ".join(check_text(fields[field], f"topic {qid}").split())

    return unique_ids(((as_identifier(q, "a topic's identifier"), words(q, f)) for q, f in topics.items()), "topic")


def qrels_from_pyserini(qrels: Mapping[Any, Mapping[Any, Any]]) -> Qrels:
    """Convert the result of ``pyserini.search.get_qrels``: grades are strings, and keys may be integers."""
    rows = ((qid, docid, value) for qid, grades in qrels.items() for docid, value in grades.items())
    # Whole numbers alone: other text is no grade, and is refused as such.
    integer = re.compile(r"\s*[-+]?\d+\s*")
    return qrels_of_rows(
        (qid, docid, int(v) if isinstance(v, str) and integer.fullmatch(v) else v) for qid, docid, v in rows
    )


def run_from_pyserini(
    hits: Mapping[Any, Iterable[Any]], *, topics: TopicsLike | None = None, tag: str = "pyserini"
) -> Run:
    """Return the run in what ``batch_search`` of any searcher, sparse or dense, returns.

    Parameters
    ----------
    hits : mapping of str or int to iterable of hits
        Hits have the attributes ``docid`` and ``score``, and are in the order of the ranking.
    topics : TopicsLike, optional
        Query texts by qid; other queries are left out. By default every text is "".
    tag : str, default "pyserini"
        The run's name.
    """
    if not isinstance(hits, Mapping):
        raise ParameterError(
            f"{shown(hits)} is not what batch_search returns, a mapping from qid to hits: for the hits of one "
            "query, use Ranking.from_hits(qid, query, hits)"
        )
    # Iterators are read here: the form of a query's hits is looked at before they are taken.
    listed = {qid: [*own] if isinstance(own, Iterator) else own for qid, own in hits.items()}
    return as_run(listed, topics, tag=tag)


def run_to_pyserini(run: RunLike) -> dict[str, list[Hit]]:
    """Convert a run to hits by qid, in the form of ``batch_search``."""
    return {ranking.qid: [ranking[n] for n in range(len(ranking))] for ranking in as_run(run).rankings}


@dataclass(frozen=True)
class PyseriniSource(Source):
    """Any searcher of Pyserini as a source, with its own settings: Lucene, impact, FAISS or hybrid.

    Parameters
    ----------
    searcher : object
        With a method ``search(query, k)`` that returns hits.
    k : int >= 1, default 1000
        Number of documents to retrieve.
    """

    searcher: Any
    _: KW_ONLY
    k: int = 1000

    def __post_init__(self) -> None:
        if not callable(getattr(self.searcher, "search", None)):
            raise ParameterError(f"{shown(self.searcher)} is not a searcher of Pyserini: it has no method search")
        check_counts(k=self.k)

    def __call__(self, query: Query, /) -> Ranking:
        """Search for one query."""
        return Ranking.from_hits(query.qid, query.text, self.searcher.search(query.text, k=self.k))
