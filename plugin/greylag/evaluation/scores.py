"""The scores of a run against judgements of documents or of subtopics.

pytrec_eval computes the measures of trec_eval. It receives the ranking as scores n, n - 1, ..., 1, which float32
represents exactly, so that only the order of the `Ranking` is scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from greylag.errors import ParameterError
from greylag.evaluation.measures import RECIPROCAL_RANK, Measure, parse_measures
from greylag.evaluation.subtopics import coverage, relevant_documents
from greylag.hints import check_qrels, remedy
from greylag.ranking import BoolArray, FloatArray, Run
from greylag.tables import html_table
from greylag.trec import Qrels, SubtopicQrels


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The scores of a run for every judged query.

    Parameters
    ----------
    measures : tuple of Measure
        The columns of `values`.
    qids : tuple of str
        The judged queries, in the order of the judgements; the rows of `values`.
    values : array, shape (queries, measures)
        The scores.
    missing : tuple of str
        The judged queries for which the run has no document. They score as an empty ranking (0, or 1 for a loss), as
        with trec_eval's option -c.
    unjudged : tuple of str
        The queries of the run without judgements, which are ignored.
    """

    measures: tuple[Measure, ...]
    qids: tuple[str, ...]
    values: FloatArray
    missing: tuple[str, ...]
    unjudged: tuple[str, ...]

    @classmethod
    def single(cls, measure: Measure, by_query: Mapping[str, float]) -> Scores:
        """Scores by a single measure that were computed elsewhere."""
        return cls((measure,), tuple(by_query), np.array([*by_query.values()])[:, None], (), ())

    @property
    def means(self) -> FloatArray:
        """The mean over queries of each measure, shape (measures,)."""
        return np.asarray(self.values.mean(axis=0), dtype=np.float64)

    @property
    def by_measure(self) -> dict[str, float]:
        """The mean over queries by name of measure, in the order of `measures`."""
        return dict(zip(map(str, self.measures), self.means.tolist(), strict=True))

    def _repr_html_(self) -> str:
        caption = f"means over {len(self.qids)} queries"
        return html_table(caption, ("measure", "mean"), self.by_measure.items(), len(self.measures))


def evaluate(run: Run, qrels: Qrels, measures: Sequence[Measure | str | Any]) -> Scores:
    """Score a run against judgements of documents.

    A document is relevant from grade 1. nDCG is that of trec_eval: gains are grades, the discount is log2(rank + 1),
    and the ideal ranking covers all judged documents. RR@k is RR if a relevant document is among the top k, else 0. The
    scale of ERR ends at the highest grade in `qrels` (see `expected_reciprocal_rank`).

    Parameters
    ----------
    run : Run
        The rankings to score.
    qrels : mapping
        Grades by qid and docid.
    measures : sequence of Measure, str or measure of ir_measures
        Measures or their names (see `parse_measure`); duplicates are dropped.

    Raises
    ------
    ParameterError
        If the run and the judgements share no query, if a measure is unknown, or if it needs judgements by subtopic.
    """
    parsed = parse_measures(measures)
    _check_inputs(run, qrels)
    for measure in parsed:
        if measure.family.from_subtopics:
            raise ParameterError(f"{measure} needs judgements by subtopic, but these are judgements of documents")
    foreign = [measure for measure in parsed if measure.family.from_ir_measures]
    others = [measure for measure in parsed if not (measure.family.from_grades or measure.family.from_ir_measures)]
    columns = _trec_eval_columns(run, qrels, others) | _ir_measures_columns(run, qrels, foreign)
    top_grade = max((grade for grades in qrels.values() for grade in grades.values()), default=0)
    for measure in parsed:
        if compute := measure.family.from_grades:
            graded = ([qrels[qid].get(docid, 0) for docid in docids] for qid, docids in _ranked(run, qrels))
            columns[measure] = np.array([compute(grades[: measure.cutoff], top_grade) for grades in graded])
    return _assemble(run, tuple(qrels), {measure: columns[measure] for measure in parsed})


def evaluate_by_subtopic(run: Run, qrels: SubtopicQrels, measures: Sequence[Measure | str | Any]) -> Scores:
    """Score a run against judgements by subtopic.

    Measures of relevance, such as AP, use the highest grade of each document over the subtopics. A query without a
    relevant document scores 0 by every measure of diversity.

    Parameters
    ----------
    run : Run
        The rankings to score.
    qrels : mapping
        Grades by qid, subtopic and docid.
    measures : sequence of Measure, str or measure of ir_measures
        Measures or their names (see `parse_measure`); duplicates are dropped.

    Raises
    ------
    ParameterError
        If the run and the judgements share no query, or if a measure is unknown.
    """
    parsed = parse_measures(measures)
    columns: dict[Measure, FloatArray] = {}
    relevance = [measure for measure in parsed if not measure.family.from_subtopics]
    if relevance:
        values = evaluate(run, highest_grades(qrels), relevance).values
        columns.update(zip(relevance, values.T, strict=True))
    covers = [_covered_and_pool(docids, qrels[qid]) for qid, docids in _ranked(run, qrels)]
    for measure in parsed:
        if compute := measure.family.from_subtopics:
            cutoffs = [measure.cutoff or len(covered) for covered, _ in covers]
            scores = [compute(*pair, k) if pair[1].size else 0.0 for pair, k in zip(covers, cutoffs, strict=True)]
            columns[measure] = np.array(scores)
    return _assemble(run, tuple(qrels), {measure: columns[measure] for measure in parsed})


def highest_grades(qrels: SubtopicQrels) -> Qrels:
    """Reduce judgements by subtopic to judgements of documents: the highest grade over the subtopics of a query."""
    highest: Qrels = {}
    for qid, subtopics in qrels.items():
        grades = highest.setdefault(qid, {})
        for judged in subtopics.values():
            for docid, grade in judged.items():
                grades[docid] = max(grade, grades.get(docid, grade))
    return highest


def _check_inputs(run: Any, qrels: Any) -> None:
    if not isinstance(run, Run):
        how = remedy(run) or "pass a Run, such as read_run returns"
        raise ParameterError(f"cannot score a {type(run).__name__}: {how}")
    check_qrels(qrels)


def _covered_and_pool(
    docids: Sequence[str], judgements: Mapping[str, Mapping[str, int]]
) -> tuple[BoolArray, BoolArray]:
    """The coverage of the ranked documents, and that of all relevant documents by descending docid."""
    relevant = relevant_documents(judgements)
    pool = sorted(set().union(*relevant), reverse=True)
    return coverage(docids, relevant), coverage(pool, relevant)


def _ranked(run: Run, qids: Iterable[str]) -> Iterable[tuple[str, tuple[str, ...]]]:
    """The documents of the run for each query, best first; () if it has none."""
    return ((qid, run[qid].docids if qid in run else ()) for qid in qids)


def _assemble(run: Run, qids: tuple[str, ...], columns: Mapping[Measure, FloatArray]) -> Scores:
    """Columns of scores, each of shape (queries,), as a `Scores`."""
    missing = tuple(qid for qid, docids in _ranked(run, qids) if not docids)
    if len(missing) == len(qids):
        raise ParameterError(
            f"run {run.tag!r} and the judgements have no query in common ({_some(run)} against {_some(qids)}): check "
            "that both are for the same topics"
        )
    judged = set(qids)
    unjudged = tuple(qid for qid in run if qid not in judged)
    return Scores(tuple(columns), qids, np.column_stack(list(columns.values())), missing, unjudged)


def _trec_eval_columns(run: Run, qrels: Qrels, measures: Sequence[Measure]) -> dict[Measure, FloatArray]:
    import pytrec_eval

    names = [(Measure(m.family) if m.family is RECIPROCAL_RANK else m).trec_name for m in measures]
    order = {qid: dict(zip(docids, range(len(docids), 0, -1), strict=True)) for qid, docids in _ranked(run, qrels)}
    found = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(order)
    columns = {}
    for measure, name in zip(measures, names, strict=True):
        column = np.array([found.get(qid, {}).get(name, 0.0) for qid in qrels])
        if measure.family is RECIPROCAL_RANK and measure.cutoff is not None:
            column[column < 1 / measure.cutoff] = 0.0
        columns[measure] = column
    return columns


def _ir_measures_columns(run: Run, qrels: Qrels, measures: Sequence[Measure]) -> dict[Measure, FloatArray]:
    if not measures:
        return {}
    import ir_measures

    theirs = {measure: ir_measures.parse_measure(str(measure)) for measure in measures}
    ranked = ((qid, docids) for qid, docids in _ranked(run, qrels) if docids)
    order = {qid: dict(zip(docids, range(len(docids), 0, -1), strict=True)) for qid, docids in ranked}
    try:
        metrics = list(ir_measures.iter_calc([*theirs.values()], qrels, order))
    except Exception as error:  # of any of the programs that ir_measures calls
        names = ", ".join(map(str, measures))
        raise ParameterError(f"ir_measures cannot compute {names}: {error}") from error
    found = {(metric.measure, metric.query_id): metric.value for metric in metrics}
    return {
        measure: np.array([found.get((own, qid), own.DEFAULT) for qid in qrels], dtype=np.float64)
        for measure, own in theirs.items()
    }


def _some(qids: Iterable[str]) -> str:
    first = list(qids)
    return ", ".join(first[:3]) + (", ..." if len(first) > 3 else "") if first else "none"
