"""The effect of a reranker on each query: both rankings, moved documents, and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from greylag.evaluation import Scores
from greylag.index.positional import PositionalIndex
from greylag.rankers.explanation import explain_documents
from greylag.rankers.model import RankingModel
from greylag.ranking import Ranking, Run
from greylag.reports.excerpts import Piece, Show, no_text
from greylag.trec import Qrels, SubtopicQrels

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
        """The score after reranking minus that before."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class QueryChanges:
    """A list of queries that a report shows, to be searched, sorted and opened.

    Parameters
    ----------
    caption : str
    measure : str
        The measure of the scores.
    names : tuple of str and str
        The rankings before and after.
    queries : tuple of QueryChange
    level : int, default 1
        The lowest grade of relevant documents, which are highlighted.
    """

    caption: str
    measure: str
    names: tuple[str, str]
    queries: tuple[QueryChange, ...]
    level: int = 1


def no_reasons(qid: str, before: Sequence[str], after: Sequence[str]) -> Sequence[str]:
    """Return no reasons for rankings that are not explained."""
    return [""] * len(after)


def query_changes(
    caption: str,
    before: Run,
    after: Run,
    scores: Mapping[str, Scores],
    qrels: Qrels,
    *,
    top: int = 10,
    why: Why = no_reasons,
    show: Show = no_text,
    subtopics: SubtopicQrels | None = None,
) -> QueryChanges:
    """Compare the tops of two runs, query by query.

    Parameters
    ----------
    caption : str
    before, after : Run
        Of the same queries.
    scores : mapping of tag to Scores
        The scores of both runs; the first measure is shown.
    qrels : mapping of qid to docid to grade
        Queries without judgements are left out.
    top : int >= 1, default 10
        The number of documents shown.
    why : callable, default gives no reasons
        Explains the documents at the top of `after`; not called for a query that retrieves nothing.
    show : callable, default has no texts
        From a query and a docid to the title and an excerpt.
    subtopics : mapping of qid to subtopic to docid to grade, optional
        Adds the subtopics of each document.
    """
    old, new, measure = scores[before.tag].by_query, scores[after.tag].by_query, scores[before.tag].measures[0]
    queries = []
    for qid in (qid for qid in after if qid in before and qid in old):
        change = _query_change(before[qid], after[qid], (old[qid], new[qid]), qrels[qid], top, why)
        topics = (subtopics or {}).get(qid, {})
        left, right = (
            _described(change.text, places, show, topics, measure.rel) for places in (change.left, change.right)
        )
        queries.append(replace(change, left=left, right=right))
    return QueryChanges(caption, str(measure), (before.tag, after.tag), tuple(queries), measure.rel)


def most_changed(before: Run, after: Run, scores: Mapping[str, Scores], limit: int) -> tuple[Run, Run]:
    """Return both runs with the `limit` queries alone whose scores by the first measure differ most, in their order."""
    if len(after) <= limit:
        return before, after
    old, new = scores[before.tag].by_query, scores[after.tag].by_query
    shown = sorted(old, key=lambda qid: -abs(new[qid] - old[qid]))[:limit]
    return before.select_queries(shown), after.select_queries(shown)


def _query_change(
    before: Ranking, after: Ranking, values: tuple[float, float], grades: Mapping[str, int], top: int, why: Why
) -> QueryChange:
    old = {docid: rank for rank, docid in enumerate(before.docids, 1)}
    new = {docid: rank for rank, docid in enumerate(after.docids, 1)}
    reasons = why(after.qid, before.docids[:top], after.docids[:top]) if after.docids else ()
    left = [
        Place(rank, d, grades.get(d), _moved(rank, new.get(d), "not ranked any more", "to"))
        for d, rank in old.items()
        if rank <= top
    ]
    right = [
        Place(rank, d, grades.get(d), _moved(rank, old.get(d), "was not ranked", "from"), reason)
        for (d, rank), reason in zip(new.items(), reasons, strict=False)
    ]
    return QueryChange(after.qid, after.query, *values, tuple(left), tuple(right))


def _described(
    query: str, places: Iterable[Place], show: Show, topics: Mapping[str, Mapping[str, int]], level: int
) -> tuple[Place, ...]:
    """Return the documents of a ranking with their titles, excerpts and subtopics."""
    above, described = set[str](), []
    for place in places:
        title, excerpt = show(query, place.docid)
        names = [name for name, grades in topics.items() if grades.get(place.docid, 0) >= level]
        covers = tuple((name, name not in above) for name in names)
        described.append(replace(place, title=title, excerpt=excerpt, covers=covers))
        above.update(names)
    return tuple(described)


def _moved(rank: int, other: int | None, absent: str, where: str) -> str:
    """Write where a document came from or went to, by its rank in the other ranking."""
    if other is None:
        return absent
    up = (other > rank) == (where == "from")
    return "" if other == rank else f"{'up' if up else 'down'} {where} {other}"


def reasons(first: Run, models: Mapping[str, RankingModel], index: PositionalIndex) -> Why:
    """Make a function that explains, by linear models, why documents are where they are.

    A reason names the features by which the document's score differs most from the average of the top documents before.

    Parameters
    ----------
    first : Run
        The run that the models rerank.
    models : mapping of qid to RankingModel
        The model that ranked each query.
    index : PositionalIndex
    """

    def why(qid: str, before: Sequence[str], after: Sequence[str]) -> list[str]:
        shown = list(dict.fromkeys([*before, *after]))
        explained = dict(zip(shown, explain_documents(models[qid], index, first[qid], shown), strict=True))
        average = np.mean([[share.contribution for share in explained[docid].features] for docid in before], axis=0)
        return [explained[docid].summary(average.tolist()) for docid in after]

    return why
