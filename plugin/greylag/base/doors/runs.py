"""Runs and rankings come in here."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from greylag.base.core import labels
from greylag.base.core.hints import remedy, shown
from greylag.base.core.labels import Frame, check_number, has_labels
from greylag.base.core.ties import Ties
from greylag.base.doors.judgements import RanxTable
from greylag.base.doors.topics import TopicsLike, as_topics
from greylag.base.errors import ParameterError
from greylag.base.ranking import Ranking, Run, Scored, is_scored

_log = logging.getLogger("greylag")


class ScoredDocument(Protocol):
    """A scored document of ir_datasets or ir_measures."""

    @property
    def query_id(self) -> Any:
        """The query."""

    @property
    def doc_id(self) -> Any:
        """The document."""

    @property
    def score(self) -> Any:
        """The score."""


RunLike: TypeAlias = Run | Iterable[Ranking] | Mapping[Any, Scored] | Frame | Iterable[ScoredDocument] | RanxTable
"""A run: rankings; scores by qid and docid, or lists of pairs or Pyserini's hits by qid; a frame with the columns qid,
docno and score, and perhaps rank and query; ``ranx.Run``; or scored documents of ir_datasets and ir_measures.
"""


class _Rows(NamedTuple):
    """The rows of a run; without `texts`, its queries' texts are unknown."""

    rows: Iterable[tuple[Any, Any, Any]]  # query, document, score
    texts: Mapping[str, str] | None = None
    tag: str | None = None
    ranked: bool = False  # whether the rows of a query are in the order of ranks, which they keep where scores tie


def as_ranking(value: Any) -> Ranking:
    """Return a ranking unchanged, and `is_scored` lists, best first, as the ranking of a query "query" without text."""
    if is_scored(value):
        return Ranking.from_hits("query", "", value)
    if not isinstance(value, Ranking):
        raise ParameterError(f"{shown(value)} is no ranking: pass a Ranking, or pairs (docid, score), best first")
    return value


def as_run(value: RunLike, topics: TopicsLike | None = None, *, tag: str = "greylag") -> Run:
    """Return a run unchanged, and other forms as a run; an empty value gives a run without queries.

    What states an order, as lists do and frames with ranks, keeps it where scores tie; scores alone are ordered as by
    `Run.from_dict`. `topics` are the texts of the queries, instead of a run's or a frame's own: queries that are not
    among them are left out. `tag` is the name of a run that has none. `ParameterError` for anything else.
    """
    run = value if isinstance(value, Run) else _made(labels.listed(value), topics is None, tag)
    return run if topics is None else _with_texts(run, as_topics(topics))


def _made(value: Any, texts: bool, tag: str) -> Run:
    """Make a run, with the texts of a frame or without."""
    if rows := _rows(value, texts=texts):
        return _run_of_rows(rows, tag)
    if isinstance(value, list | tuple) and all(isinstance(ranking, Ranking) for ranking in value):
        return Run(tuple(value), tag)
    wrong = ""
    if isinstance(value, Mapping):
        unfit = ((qid, given) for qid, given in value.items() if not (has_labels(given) or is_scored(given)))
        if not (other := next(unfit, ())):
            return Run.from_dict(value, tag=tag)
        wrong = f", since query {other[0]} has {shown(other[1])}"
    others = [item for item in value if not is_scored([item])] if isinstance(value, list | tuple) else []
    if others and len(others) < len(value):
        wrong = f", since it has {shown(others[0])}"
    first = value[0] if isinstance(value, list | tuple) and value else None
    judged = type(value).__name__ == "Qrels" or hasattr(first, "relevance")
    how = "the run comes before the judgements" if judged else remedy(value)
    how = how or "pass a Run, such as read_run returns, {qid: {docid: score}} or {qid: [(docid, score), ...]}"
    raise ParameterError(f"a {type(value).__name__} is no run{wrong}: {how}")


def _with_texts(run: Run, topics: Mapping[str, str]) -> Run:
    """Give the rankings the texts of their queries; those that are not among the topics are left out."""
    if left_out := [qid for qid in run if qid not in topics]:
        what = f"{len(left_out)} queries that are not among the topics, such as {left_out[0]!r}"
        if len(left_out) == len(run):
            first = next(iter(topics), None)
            raise ParameterError(f"run {run.tag} has {what}, and these are such as {first!r}: give the run's topics")
        _log.info("run %s: left out are %s", run.tag, what)
    known = (ranking for ranking in run.rankings if ranking.qid in topics)
    return Run(tuple(Ranking.trusted(r.qid, topics[r.qid], r.docids, r.scores) for r in known), run.tag)


def is_run(value: Any) -> bool:
    """Return whether a value is a run, in any form of `RunLike` but a list of rankings, and not topics."""
    if isinstance(value, Mapping) and not isinstance(value, Run):
        return any(is_scored(scores) or _are_scores(scores) for scores in value.values())
    if labels.is_frame(value):  # one without documents has topics
        return labels.column_name(value, "docno") is not None
    own = isinstance(value, Run) or labels.is_of_ranx(value, "Run")
    return own or labels.are_items(value, "query_id", "doc_id", "score")


def _are_scores(value: Any) -> bool:
    return has_labels(value) and not any(isinstance(score, str) for _, score in value.items())


def _rows(value: Any, *, texts: bool) -> _Rows | None:
    """Return the run in a frame, a ``ranx.Run`` or scored documents; None of anything else, such as a frame of topics.

    Without `texts`, a frame's column of queries is not read.
    """
    if labels.is_frame(value):
        return None if labels.column_name(value, "docno") is None else _rows_of_frame(value, texts)
    if labels.is_of_ranx(value, "Run"):
        return _Rows(labels.flat(value.to_dict()), tag=value.name or "ranx")
    if labels.are_items(value, "query_id", "doc_id", "score"):
        return _Rows([(item.query_id, item.doc_id, item.score) for item in value])
    return None


def _rows_of_frame(frame: Any, texts: bool) -> _Rows:
    """Return the run in a frame, in the order of the column ``rank`` if there is one."""
    qids = labels.qids_of(frame)
    rows = list(zip(qids, labels.column_of(frame, "docno"), labels.column_of(frame, "score"), strict=True))
    if ranked := "rank" in frame.columns:  # of equal ranks, the first row comes first
        places = {qid: place for place, qid in enumerate(dict.fromkeys(qids))}
        ranks = [
            check_number(rank, f"the rank in row {row} of the frame")
            for row, rank in enumerate(labels.column_values(frame, "rank"), 1)
        ]
        rows = [rows[i] for i in sorted(range(len(rows)), key=lambda i: (places[qids[i]], ranks[i]))]
    texts = texts and labels.column_name(frame, "query") is not None
    known = labels.texts_of(qids, labels.column_of(frame, "query")) if texts else None
    return _Rows(rows, known, ranked=ranked)


def _run_of_rows(given: _Rows, tag: str) -> Run:
    """Make a run of rows, in the order of their ranks or scores."""
    scores: dict[str, dict[str, float]] = {}
    for qid, docid, score in labels.identified(given.rows):
        by_docid = scores.setdefault(qid, {})
        if docid in by_docid:
            raise ParameterError(f"query {qid}: document {docid!r} occurs twice")
        by_docid[docid] = check_number(score, f"the score of document {docid!r}")
    texts = given.texts or {}
    if not given.ranked:
        return Run.from_dict(scores, texts, tag=given.tag or tag)
    run = Run(tuple(Ranking.sort(qid, texts.get(qid, ""), [*by], [*by.values()]) for qid, by in scores.items()), tag)
    turned = sum(run[qid].docids != tuple(by) for qid, by in scores.items())
    Ties(queries=len(run), turned=turned).warn(f"run {tag}", "rank")
    return run
