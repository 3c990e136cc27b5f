"""The effect of a reranker on each query: both rankings, moved documents, and reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from greylag.base import Run
from greylag.evaluation.reports.excerpts import Piece, Show
from greylag.evaluation.scoring.scores import Scores
from greylag.evaluation.trec.qrels import Qrels, SubtopicQrels

Why = Callable[[str, Sequence[str], Sequence[str]], Sequence[str]]
"""From a query and its top documents before and after reranking to a line for each of the latter: why it is there."""


@dataclass(frozen=True, slots=True)
class Place:
    """A document at the top of a ranking."""

    rank: int  # from 1
    docid: str
    grade: int | None  # None if the document is not judged
    moved: str  # where it came from or went to, in words
    why: str = ""  # why it is there
    title: str = ""
    excerpt: tuple[Piece, ...] = ()
    covers: tuple[Piece, ...] = ()  # its subtopics; marked if no document above has them


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A query with its scores and the tops of its rankings before and after reranking."""

    qid: str
    text: str
    before: float
    after: float
    left: tuple[Place, ...]
    right: tuple[Place, ...]

    @property
    def change(self) -> float:
        """The difference of the scores."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class QueryChanges:
    """A list of queries that a report shows, to be searched, sorted and opened."""

    caption: str
    measure: str  # of the scores
    names: tuple[str, str]  # of the rankings before and after
    queries: tuple[QueryChange, ...]
    level: int = 1  # the lowest grade of relevant documents, which are highlighted


def query_changes(
    caption: str,
    before: Run,
    after: Run,
    scores: Mapping[str, Scores],
    qrels: Qrels,
    *,
    top: int = 10,
    why: Why | None = None,
    show: Show | None = None,
    subtopics: SubtopicQrels | None = None,
) -> QueryChanges:
    """Compare the tops of two runs, query by query; queries without judgements are left out.

    Parameters
    ----------
    before, after : Run
        Of the same queries.
    scores : mapping of tag to Scores
        The first measure is shown.
    qrels : mapping of qid to docid to grade
    top : int >= 1, default 10
        The number of documents shown.
    why : callable, optional
        Explains the documents at the top of `after`; not called for a query that retrieves nothing.
    show : callable, optional
        From a query and a docid to the title and an excerpt.
    subtopics : mapping of qid to subtopic to docid to grade, optional
        Adds the subtopics of each document.
    """
    old, new, measure = scores[before.tag].by_query, scores[after.tag].by_query, scores[before.tag].measures[0]
    queries = []
    for qid in (qid for qid in after if qid in before and qid in old):
        first, last = before[qid].docids, after[qid].docids
        whys = why(qid, first[:top], last[:top]) if why and last else [""] * top
        places = partial(_places, after[qid].query, qrels[qid], (subtopics or {}).get(qid, {}), show, measure.rel)
        left = places(first[:top], last, ("not ranked any more", "up to", "down to"), [""] * top)
        right = places(last[:top], first, ("was not ranked", "down from", "up from"), whys)
        queries.append(QueryChange(qid, after[qid].query, old[qid], new[qid], left, right))
    return QueryChanges(caption, str(measure), (before.tag, after.tag), tuple(queries), measure.rel)


def _places(
    query: str,
    grades: Mapping[str, int],
    topics: Mapping[str, Mapping[str, int]],
    show: Show | None,
    level: int,
    docids: Sequence[str],
    others: Sequence[str],
    words: tuple[str, str, str],
    reasons: Sequence[str],
) -> tuple[Place, ...]:
    """Describe the top of a ranking; `words` are for documents that the other lacks, has higher, and has lower."""
    ranks, above, places = {d: rank for rank, d in enumerate(others, 1)}, set[str](), []
    for rank, (docid, reason) in enumerate(zip(docids, reasons, strict=False), 1):
        other = ranks.get(docid)
        moved = words[0] if other is None else "" if other == rank else f"{words[1 + (other > rank)]} {other}"
        title, excerpt = show(query, docid) if show else ("", ())
        names = [name for name, judged in topics.items() if judged.get(docid, 0) >= level]
        # Marked where a subtopic is new at this rank, which is what a diversifier gains by.
        covers = tuple((name, name not in above) for name in names)
        places.append(Place(rank, docid, grades.get(docid), moved, reason, title, excerpt, covers))
        above.update(names)
    return tuple(places)


def most_changed(before: Run, after: Run, scores: Mapping[str, Scores], limit: int) -> tuple[Run, Run]:
    """Return both runs with the `limit` queries alone whose scores by the first measure differ most, in their order."""
    if len(after) <= limit:
        return before, after
    old, new = scores[before.tag].by_query, scores[after.tag].by_query
    shown = sorted(old, key=lambda qid: -abs(new[qid] - old[qid]))[:limit]
    return before.select_queries(shown), after.select_queries(shown)
