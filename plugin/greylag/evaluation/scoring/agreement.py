"""Detect what makes scores mean something else: judgements of other topics or documents, ties, and equal runs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from greylag.base import ParameterError, Ranking, Run, is_row, split_grades, trec_order
from greylag.evaluation.scoring.measures import Measure

MOST_NAMES = 5  # in a sentence
MIN_DISTINCT, MOST_LEVELS = 5, 10
"""With this many documents of a topic, grades that all differ look like scores; the most levels that grades have."""
NEARLY_ALL = 0.9
"""The share of topics or documents from which on nearly all are meant."""


def check_agreement(run: Run, judgements: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Check that judgements are of a run's queries and documents; return warnings, raise if none can be scored."""
    common = [qid for qid in run if qid in judgements]
    judged = {qid: set(document_grades(grades)) for qid, grades in judgements.items()}
    documents = set[str]().union(*judged.values())
    # Documents that are named like queries: the columns are exchanged, or queries are documents themselves. Of these,
    # the judged ones are queries of the run.
    named_like_queries = sum(qid in documents for qid in run)
    if documents and named_like_queries >= NEARLY_ALL * len(documents) and 2 * len(common) < len(judgements):
        raise ParameterError(
            f"the judgements' documents, such as {min(documents)!r}, are queries of the run, and their queries, as "
            f"{next(qid for qid in judgements if qid not in run)!r}, are not: query and document look exchanged"
        )
    # A judged document anywhere is enough: runs of another pool may have few.
    ranked = next((run[qid].docids[0] for qid in common if run[qid].docids), None)
    if ranked is not None and all(judged[qid].isdisjoint(run[qid].docids) for qid in common):
        raise ParameterError(
            f"no document of the run is judged ({ranked!r} against {min(documents, default='none')!r}): check "
            "that run and judgements have the same identifiers of documents"
        )
    without = len(judgements) - len(common)
    if common and without >= NEARLY_ALL * len(judgements):
        return [
            f"{without} of {len(judgements)} judged topics have no ranking and count as 0; if the run is of a part of "
            "the topics, --topics scores this part"
        ]
    return []


def check_order_of_arguments(run: Run, judgements: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a warning if run and judgements look exchanged, as by ranx's order: each may pass for the other."""
    pools = ([*document_grades(grades).values()] for grades in judgements.values())
    differ = (len({*grades}) == len(grades) for grades in pools if len(grades) >= MIN_DISTINCT)
    if not next(differ, False) or not all(differ):  # as a rule, the first topic tells
        return []
    scores = [score for ranking in run.rankings for score in ranking.scores.tolist()]
    levels = {*scores}
    if len(levels) > min(MOST_LEVELS, len(scores) - 1) or not all(score.is_integer() for score in levels):
        return []
    return [
        "no two documents of a topic have the same grade, as if grades were scores, and all scores of the run are "
        f"among {len(levels)} whole numbers, as if they were grades: if the two are exchanged, write the run first"
    ]


def check_ties(run: Run, judgements: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a warning if trec_eval, which orders ties by docid, gives judged documents other ranks than the run."""
    common = [qid for qid in run if qid in judgements]
    if turned := sum(_differs(run[qid], judgements[qid]) for qid in common):
        return [
            f"{turned} of {len(common)} queries have documents with equal scores, as 32-bit numbers, in another order "
            "than by docid, descending, so that trec_eval would score them otherwise; write_run keeps the order"
        ]
    return []


def check_rows(run: Run, judgements: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a run whose documents cannot be told apart in judgements of rows that are named by their values."""
    for qid, grades in ((qid, judgements[qid]) for qid in run if qid in judgements):
        if (row := next(filter(is_row, grades), None)) is None:
            continue
        if number := next((docid for docid in run[qid].docids if docid.isdecimal() and docid not in grades), None):
            raise ParameterError(
                f"query {qid}: the run has document {number!r}, the number of a line, but documents without docids are "
                f"named by their values, as {row!r} is, since lines move: rank the feature file again, or write docids"
            )
        split = split_grades(grades)
        if docid := next((docid for docid in run[qid].docids if docid in split), None):
            twins = few_names([twin for twin, name in split.items() if name == split[docid]], " and ")
            without = ", ".join(name for name, judged in judgements.items() if split_grades(judged))  # to be copied
            raise ParameterError(
                f"query {qid}: {twins} have equal values but other grades, so that nobody knows which of them has a "
                f"rank: write docids in the feature file, or leave out all queries with such documents: {without}"
            )


def _differs(ranking: Ranking, judged: Mapping[str, Any]) -> bool:
    """Return whether trec_eval's order has other judgements at some rank."""
    order = trec_order(ranking.docids, ranking.scores)
    by_subtopic = [grades for grades in judged.values() if isinstance(grades, Mapping)] or [judged]
    ranked = [tuple(grades.get(docid) for grades in by_subtopic) for docid in ranking.docids if order]
    return order is not None and [ranked[place] for place in order] != ranked


def few_names(names: Sequence[str], last: str = ", ") -> str:
    """List names; of many, the first. Before the last of two stands `last`."""
    if len(names) <= MOST_NAMES:
        return (last if len(names) == 2 else ", ").join(names)
    return f"{', '.join(names[: MOST_NAMES - 1])} and {len(names) - MOST_NAMES + 1} more"


def identical(rankings: Mapping[str, Hashable]) -> list[str]:
    """Return warnings for runs, by name, whose rankings are equal for every query."""
    return [f"{few_names(names, ' and ')} are the same rankings" for names in group_equal(rankings)]


def group_equal(keys: Mapping[str, Hashable]) -> list[list[str]]:
    """Group the names of runs with equal keys, such as their rankings or tags; single ones are left out."""
    same: dict[Hashable, list[str]] = {}
    for name, key in keys.items():
        same.setdefault(key, []).append(name)
    return [names for names in same.values() if len(names) > 1]


def check_levels(measures: Sequence[Measure], judgements: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return warnings for measures whose relevance level no document has; `ParameterError` if no measure has one."""
    top = max((max(document_grades(grades).values(), default=0) for grades in judgements.values()), default=0)
    empty = [measure for measure in measures if measure.family.has_level and measure.rel > top]
    if not empty:
        return []
    level = min(measure.rel for measure in empty)
    reason = f"no document has grade {level} or a higher one (the highest is {top}), as {empty[0]} needs"
    # Some measures may be left out on purpose; if none can be above 0, the judgements are wrong.
    if len(empty) == len(measures):
        raise ParameterError(f"{reason}: give a lower level, as in AP(rel=1), or other judgements")
    return [f"{reason}: the scores by {', '.join(map(str, empty))} are 0"]


def document_grades(judged: Mapping[str, Any]) -> dict[str, int]:
    """Return the grades by docid; judgements by subtopic give each document its highest grade."""
    if set(map(type, judged.values())) == {int}:  # as most are; the loop takes ten times as long
        return dict(judged)
    grades: dict[str, int] = {}
    for name, value in judged.items():
        for docid, grade in value.items() if isinstance(value, Mapping) else ((name, value),):
            grades[docid] = max(grade, grades.get(docid, grade))
    return grades
