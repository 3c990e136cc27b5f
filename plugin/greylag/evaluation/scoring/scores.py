"""The scores of a run against judgements of documents or of subtopics.

pytrec_eval computes the measures of trec_eval. It receives the ranking as scores n, n - 1, ..., 1, which float32
represents exactly, so that only the order of the `Ranking` is scored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from greylag.base import (
    NO_SUBTOPIC,
    SEEN,
    BoolArray,
    FloatArray,
    IntArray,
    Library,
    ParameterError,
    Printed,
    QrelsLike,
    Ranking,
    Run,
    RunLike,
    SubtopicQrelsLike,
    Table,
    as_frame,
    as_qrels,
    as_run,
    as_subtopic_qrels,
    guided,
    is_frame,
    refuse_attribute,
)
from greylag.evaluation.scoring.agreement import (
    check_order_of_arguments,
    check_rows,
    check_ties,
    document_grades,
    few_names,
)
from greylag.evaluation.scoring.measures import (
    IMPORTANCES,
    RECIPROCAL_RANK,
    UNJUDGED,
    Graded,
    Measure,
    parse_measures,
)
from greylag.evaluation.scoring.subtopics import relevant_documents, subtopic_grades
from greylag.evaluation.trec.qrels import GRADE_LIMIT, Nuggets, Qrels, SubtopicQrels

DIFFERENCE_DECIMALS = 12  # of scores and means that are compared; the others are errors of rounding
MIN_OF_GEOMETRIC = 1e-5  # trec_eval's, for queries without a relevant document
DEFAULT_MEASURES = "AP", "P@10", "nDCG@10"
TOP = 10  # documents of each ranking that a run read in parts keeps
NO_DOCUMENT = "-greylag-no-document-"
_log = logging.getLogger("greylag")


def mean_difference(mean: float, other: float) -> float:
    """Subtract a mean from another; 0, never -0, if they are equal but for rounding."""
    return float(mean - other) if round(float(mean - other), DIFFERENCE_DECIMALS) else 0.0


@guided
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scores(Printed):
    """The scores of a run for every judged query.

    Parameters
    ----------
    measures, qids : tuple of Measure, tuple of str
        The columns of `values`, and its rows: the judged queries, in the order of the judgements.
    values : array, shape (queries, measures)
    missing : tuple of str
        The judged queries that the run lacks. They score as an empty ranking (0, or 1 for a loss), as with trec_eval's
        option -c.
    unjudged : tuple of str
        The queries of the run without judgements, which are ignored.
    seen : bool, default False
        Whether the run's tag says, by ``+training-topics``, that a model ranked topics that it was trained on.
    empty : tuple of str, default ()
        The judged queries whose rankings have no document.
    """

    measures: tuple[Measure, ...]
    qids: tuple[str, ...]
    values: FloatArray
    missing: tuple[str, ...]
    unjudged: tuple[str, ...]
    seen: bool = False
    empty: tuple[str, ...] = ()

    @classmethod
    def single(cls, measure: Measure, by_query: Mapping[str, float]) -> Scores:
        """Wrap scores by a single measure that were computed elsewhere."""
        return cls((measure,), tuple(by_query), np.array([*by_query.values()])[:, None], (), ())

    if not TYPE_CHECKING:
        __getattr__ = refuse_attribute

    def __getitem__(self, key: Any) -> Any:
        raise ParameterError("scores have no items: by_measure has the means by measure, by_query the scores by qid")

    @property
    def ranked(self) -> BoolArray:
        """The queries for which the run has documents, as booleans of shape (queries,)."""
        without = {*self.missing, *self.empty}
        return np.array([qid not in without for qid in self.qids], np.bool_)

    @property
    def rounded_means(self) -> FloatArray:
        """`means` by which runs are ranked, correlated and chosen: those that are equal on paper are equal."""
        return np.round(self.means, DIFFERENCE_DECIMALS)

    @property
    def means(self) -> FloatArray:
        """The mean over queries of each measure, shape (measures,); of totals the sum, of gm_map the geometric mean."""
        # Not all are means, but trec_eval prints all of them in the row of means.
        means = np.asarray(self.values.mean(axis=0), dtype=np.float64)
        for column, measure in enumerate(self.measures):
            if measure.family.summary == "sum":
                means[column] = self.values[:, column].sum()
            elif measure.family.summary == "geometric mean":
                means[column] = np.exp(np.log(np.maximum(self.values[:, column], MIN_OF_GEOMETRIC)).mean())
        return means

    @property
    def by_measure(self) -> dict[str, float]:
        """The mean over queries by name of measure, in the order of `measures`."""
        return dict(zip(map(str, self.measures), self.means.tolist(), strict=True))

    @property
    def by_query(self) -> dict[str, float]:
        """The scores by the first measure, by qid in the order of `qids`."""
        return dict(zip(self.qids, self.values[:, 0].tolist(), strict=True))

    def _table(self) -> Table:
        return Table(f"means over {len(self.qids)} queries", ("measure", "mean"), [*self.by_measure.items()])

    def to_frame(self, library: Library = "pandas") -> Any:
        """Return a data frame of pandas or polars: qid, and a column for each measure."""
        rows = zip(self.qids, *self.values.T.tolist(), strict=True)
        return as_frame({"qid": str, **dict.fromkeys(map(str, self.measures), float)}, rows, library)


@guided
def evaluate(
    run: RunLike,
    qrels: QrelsLike,
    measures: Sequence[Measure | str | Any] = DEFAULT_MEASURES,
) -> Scores:
    """Score a run against judgements of documents.

    A document is relevant from grade 1, or from ``rel`` in the measure. nDCG is trec_eval's: gains are grades, the
    discount is log2(rank + 1), and the ideal ranking covers all judged documents; nDCG(dcg='exp-log2') has gains of
    2^grade - 1. RR@k is RR if a relevant document is among the top k, else 0. The scale of ERR ends at the highest
    grade in `qrels` (see `expected_reciprocal_rank`). Judged@k is the share of the top k documents that are judged. RBP
    counts documents as relevant or not; RBP-residual is what it would gain if all others that are not judged were
    relevant (Moffat and Zobel 2008).

    Rankings are scored in their order. A warning counts the queries where trec_eval, which orders scores that tie in
    float32 by docid, descending, would give judged documents other ranks.

    Parameters
    ----------
    run : RunLike
        The rankings to score: a `Run`, scores by qid and docid, lists of pairs or of Pyserini's hits by qid, a data
        frame with the columns qid, docno and score, ``ranx.Run``, or scored documents of ir_measures. Scores alone are
        ordered as in files (see `Run.from_dict`); lists, and frames with a column rank, keep their order where scores
        tie.
    qrels : QrelsLike
        The judgements: grades by qid and docid, a data frame with the columns qid, docno and label, ``ranx.Qrels``, or
        judgements of ir_measures. Whole floats are grades; texts and truth values are none.
    measures : sequence of Measure, str or measure of ir_measures, default AP, P@10 and nDCG@10
        Measures or their names (see `parse_measure`); duplicates are dropped.
    """
    parsed, run, judged = parse_measures(measures), _one_run(run), as_qrels(qrels)
    check_rows(run, judged)
    _warn(run, judged)
    return score_documents(run, judged, parsed)


def _warn(run: Run, judgements: Mapping[str, Mapping[str, Any]]) -> None:
    for warning in (*check_order_of_arguments(run, judgements), *check_ties(run, judgements)):
        _log.warning("run %s: %s", run.tag, warning)


def score_documents(run: Run, qrels: Qrels, measures: Sequence[Measure | str | Any]) -> Scores:
    """Score a run as `evaluate` does, without warnings."""
    parsed = parse_measures(measures)
    check_judged(parsed, by_subtopic=False)
    foreign = [measure for measure in parsed if measure.family.from_ir_measures]
    others = [measure for measure in parsed if not (measure.family.from_grades or measure.family.from_ir_measures)]
    # Three programs, each with its own measures; the order of the request is restored at the end.
    columns = _trec_eval_columns(run, qrels, others) | _ir_measures_columns(run, qrels, foreign)
    columns |= _grade_columns(run, qrels, [measure for measure in parsed if measure.family.from_grades])
    return _assemble(run, tuple(qrels), {measure: columns[measure] for measure in parsed})


class PartsScores:
    """The scores of a run that is read in parts of whole queries, whose rankings are not kept; see `by_query_alone`."""

    def __init__(self, qrels: Qrels, measures: Sequence[Measure], parts: Iterable[Run]) -> None:
        self._qrels, self._measures = qrels, tuple(measures)
        self._values: dict[str, FloatArray] = {}
        self.retrieved: dict[str, set[str]] = {}
        tops, keys, tag = list[Ranking](), set[tuple[str, int]](), ""
        for part in parts:
            check_rows(part, qrels)
            judged = {qid: qrels[qid] for qid in part if qid in qrels}
            if judged:
                self._values.update(zip(judged, score_documents(part, judged, measures).values, strict=True))
            self.retrieved.update(retrieved_documents(part, qrels))
            keys |= ranking_keys(part)
            tops += [_top_and_judged(ranking, qrels.get(ranking.qid, {})) for ranking in part.rankings]
            tag = part.tag
        self.tops = Run(tuple(tops), tag)
        self.keys = frozenset(keys)

    def scores(self) -> Scores:
        """Return what `score_documents` returns for the whole run."""
        # But for values, the first documents show all, such as a run of other topics, which is refused.
        tops = score_documents(self.tops, self._qrels, self._measures)
        rows = [self._values.get(qid, row) for qid, row in zip(tops.qids, tops.values, strict=True)]
        return replace(tops, values=np.array(rows).reshape(tops.values.shape))


def retrieved_documents(run: Run, judgements: Mapping[str, Mapping[str, Any]]) -> dict[str, set[str]]:
    """Return the judged documents of a run, by qid."""
    return {qid: {*document_grades(judgements[qid])}.intersection(run[qid].docids) for qid in run if qid in judgements}


def ranking_keys(run: Run) -> frozenset[tuple[str, int]]:
    """Make a value that is equal for equal rankings, whatever their scores."""
    return frozenset((ranking.qid, hash(ranking.docids)) for ranking in run.rankings)


def by_query_alone(measures: Sequence[Measure]) -> bool:
    """Return whether a query's scores by these measures depend on no other query's judgements."""
    # The scale of ERR is that of all judgements.
    return not any(measure.family.name == "ERR" or measure.family.from_ir_measures for measure in measures)


def _top_and_judged(ranking: Ranking, grades: Mapping[str, int]) -> Ranking:
    """Return the first ten documents, and the first judged one."""
    judged = next((place for place, docid in enumerate(ranking.docids) if docid in grades), 0)
    kept = [*range(min(TOP, len(ranking))), *([judged] if judged >= TOP else [])]
    return Ranking(ranking.qid, ranking.query, tuple(ranking.docids[place] for place in kept), ranking.scores[kept])


def evaluate_by_subtopic(run: RunLike, qrels: SubtopicQrelsLike, measures: Sequence[Measure | str | Any]) -> Scores:
    """Score a run against judgements by subtopic.

    Measures of relevance, such as AP, use the highest grade of each document over the subtopics. A query without a
    relevant document scores 0 by every measure of diversity.

    Parameters
    ----------
    run, measures
        See `evaluate`.
    qrels : SubtopicQrelsLike
        Judgements by subtopic.
    """
    parsed, run, judged = parse_measures(measures), _one_run(run), as_subtopic_qrels(qrels)
    _warn(run, judged)
    return score_subtopics(run, judged, parsed)


def score_subtopics(run: Run, qrels: SubtopicQrels, measures: Sequence[Measure | str | Any]) -> Scores:
    """Score a run as `evaluate_by_subtopic` does, without warnings."""
    parsed = parse_measures(measures)
    columns: dict[Measure, FloatArray] = {}
    relevance = [measure for measure in parsed if not measure.family.from_subtopics]
    if relevance:
        values = score_documents(run, highest_grades(qrels), relevance).values
        columns.update(zip(relevance, values.T, strict=True))
    # The pool is that of a level, so that measures of one level share the tables of grades.
    for level in dict.fromkeys(measure.rel for measure in parsed if measure.family.from_subtopics):
        graded = []  # by subtopic, the grades of the ranked documents, and of all relevant ones by descending docid
        for qid, docids in _ranked(run, qrels):
            subtopics = [grades for name, grades in qrels[qid].items() if name != NO_SUBTOPIC]
            pool = sorted(set().union(*relevant_documents(qrels[qid], level)), reverse=True)
            graded.append((qid, subtopic_grades(docids, subtopics), subtopic_grades(pool, subtopics)))
        for measure in parsed:
            if measure.family.from_subtopics and measure.rel == level:
                columns[measure] = np.array(
                    [
                        _coverage(measure, ranked, _weights(measure, qid, qrels[qid]))
                        if measure.family.every_subtopic
                        else _by_subtopic(measure, ranked, pool)
                        for qid, ranked, pool in graded
                    ]
                )
    return _assemble(run, tuple(qrels), {measure: columns[measure] for measure in parsed})


def check_judged(measures: Sequence[Measure], *, by_subtopic: bool) -> None:
    """Raise `ParameterError` for measures of subtopics, unless the judgements are by subtopic."""
    if wrong := next((measure for measure in measures if measure.family.from_subtopics and not by_subtopic), None):
        raise ParameterError(
            f"{wrong} needs judgements by subtopic: read them with read_subtopic_qrels, or --subtopics in the shell"
        )


def _one_run(value: Any) -> Run:
    """Convert a run; refuse several runs by name, whose names would be taken for qids."""
    if isinstance(value, Mapping) and not isinstance(value, Run):
        first = next(iter(value.values()), None)
        queries = [*first.values()] if isinstance(first, Mapping) else []
        if is_frame(first) or any(isinstance(ranking, Mapping | Ranking) for ranking in queries):
            raise ParameterError(
                f"{next(iter(value))!r} is a run, and evaluate scores one: compare(runs, qrels) scores several"
            )
    return as_run(value)


def _by_subtopic(measure: Measure, ranked: IntArray, pool: IntArray) -> float:
    """Score a query from grades by document and subtopic; 0 without a relevant document."""
    # No ranking can cover a subtopic without a relevant document.
    compute, counted = measure.family.from_subtopics, (pool >= measure.rel).any(axis=0)
    if compute is None or not counted.any():
        return 0.0
    ranked, pool = ranked[:, counted], pool[:, counted]
    if measure.family.by_grade:
        return compute(ranked, pool, measure.cutoff or len(ranked))
    return compute(ranked >= measure.rel, pool >= measure.rel, measure.cutoff or len(ranked))


def _coverage(measure: Measure, ranked: IntArray, weights: FloatArray) -> float:
    """Score a query by the weights of its subtopics."""
    credit = np.where(ranked >= measure.rel, 1.0, np.where(ranked > 0, measure.partial, 0.0))
    return measure.family.from_subtopics(credit, weights, measure.cutoff or len(ranked))  # type: ignore[misc]


def _weights(measure: Measure, qid: str, judged: Mapping[str, Mapping[str, int]]) -> FloatArray:
    """Return the weight of each subtopic of a query, shape (S,), by its importance if the measure asks for it."""
    names = [name for name in judged if name != NO_SUBTOPIC]
    if measure.importance is None:
        return np.ones(len(names))
    importance = judged.importance if isinstance(judged, Nuggets) else {}
    if lacking := next((name for name in names if name not in importance), None):
        raise ParameterError(
            f"{measure} needs the importance of nuggets, vital or okay, which query {qid!r} has not for "
            f"{lacking!r:.60}: leave importance out, or give nuggetizer's output with it"
        )
    return np.array([IMPORTANCES[measure.importance][importance[name]] for name in names])


def highest_grades(qrels: SubtopicQrels) -> Qrels:
    """Reduce judgements by subtopic to judgements of documents: the highest grade over the subtopics of a query."""
    return {qid: document_grades(subtopics) for qid, subtopics in qrels.items()}


def _ranked(run: Run, qids: Iterable[str]) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Return the documents of the run for each query, best first; () if it has none."""
    return ((qid, run[qid].docids if qid in run else ()) for qid in qids)


def _assemble(run: Run, qids: tuple[str, ...], columns: Mapping[Measure, FloatArray]) -> Scores:
    """Assemble columns of scores, each of shape (queries,), as a `Scores`."""
    missing = tuple(qid for qid in qids if qid not in run)
    # A run without a ranking is scored as 0; one of other topics is a mistake.
    if (run or not qids) and not any(qid in run for qid in qids):
        theirs, ours = (few_names([*names]) or "none" for names in (run, qids))
        raise ParameterError(
            f"run {run.tag!r} and the judgements have no query in common ({theirs} against {ours}): check that both "
            "are for the same topics"
        )
    judged = set(qids)
    unjudged = tuple(qid for qid in run if qid not in judged)
    empty = tuple(qid for qid in qids if qid in run and not run[qid].docids)
    values = np.column_stack(list(columns.values()))
    return Scores(tuple(columns), qids, values, missing, unjudged, SEEN in run.tag, empty)


def _grade_columns(run: Run, qrels: Qrels, measures: Sequence[Measure]) -> dict[Measure, FloatArray]:
    # ERR has one scale for all queries, or a query with low grades would gain by them.
    top_grade = max((grade for grades in qrels.values() for grade in grades.values()), default=0)
    columns = {measure: np.zeros(len(qrels)) for measure in measures}
    # Rankings may be a thousand times as long as what a measure of the top 10 looks at.
    whole = any(measure.judged_only or measure.cutoff is None for measure in measures)
    depth = None if whole else max((measure.cutoff or 0 for measure in measures), default=0)
    for row, (qid, docids) in enumerate(_ranked(run, qrels) if measures else ()):
        grades = [qrels[qid].get(docid, UNJUDGED) for docid in docids[:depth]]
        judged = [grade for grade in grades if grade >= 0]
        ideal = sorted((grade for grade in qrels[qid].values() if grade > 0), reverse=True)
        for measure in measures:
            if compute := measure.family.from_grades:
                ranked = (judged if measure.judged_only else grades)[: measure.cutoff]
                columns[measure][row] = compute(Graded(ranked, ideal[: measure.cutoff], top_grade, measure))
    return columns


def _trec_eval_columns(run: Run, qrels: Qrels, measures: Sequence[Measure]) -> dict[Measure, FloatArray]:
    """Return the measures for which grades count only as relevant, not relevant (from 0), or not judged (negative)."""
    columns = {}
    # pytrec_eval takes both for all of its measures at once.
    for rel, judged_only in dict.fromkeys((measure.rel, measure.judged_only) for measure in measures):
        # Here, since it takes a while to import, and most measures of subtopics do without it.
        import pytrec_eval

        same = [measure for measure in measures if (measure.rel, measure.judged_only) == (rel, judged_only)]
        # It has no cut-off for RR, and a query's value is that under a geometric mean.
        whole = [replace(measure, cutoff=None) if measure.family is RECIPROCAL_RANK else measure for measure in same]
        names = [Measure(measure.family, measure.cutoff).trec_name.removeprefix("gm_") for measure in whole]
        binary = {
            qid: {docid: 1 if grade >= rel else 0 if grade >= 0 else -1 for docid, grade in grades.items()}
            for qid, grades in _with_a_grade(qrels).items()
        }
        evaluator = pytrec_eval.RelevanceEvaluator(binary, names, judged_docs_only_flag=judged_only)
        scores = evaluator.evaluate(_as_scores(run, qrels))
        for measure, name in zip(same, names, strict=True):
            column = np.array([scores.get(qid, {}).get(name, 0.0) for qid in qrels])
            if measure.family is RECIPROCAL_RANK and measure.cutoff is not None:
                column[column < 1 / measure.cutoff] = 0.0
            columns[measure] = column
    return columns


def _ir_measures_columns(run: Run, qrels: Qrels, measures: Sequence[Measure]) -> dict[Measure, FloatArray]:
    if not measures:
        return {}
    import ir_measures

    names = ", ".join(map(str, measures))
    for qid, judged in qrels.items():
        if max(judged.values(), default=0) > GRADE_LIMIT:
            raise ParameterError(f"query {qid} has a grade above {GRADE_LIMIT}, the limit of ir_measures for {names}")
    theirs = {measure: ir_measures.parse_measure(str(measure)) for measure in measures}
    grades = {qid: {d: int(grade) for d, grade in judged.items()} for qid, judged in _with_a_grade(qrels).items()}
    order = {qid: scores for qid, scores in _as_scores(run, qrels).items() if scores}
    try:
        # At once: it groups measures by the program that computes them.
        metrics = list(ir_measures.iter_calc([*theirs.values()], grades, order))
    except Exception as error:  # of any of the programs that ir_measures calls
        raise ParameterError(f"ir_measures cannot compute {names}: {error}") from error
    values = {(metric.measure, metric.query_id): metric.value for metric in metrics}
    return {
        measure: np.array([values.get((theirs[measure], qid), theirs[measure].DEFAULT) for qid in qrels], np.float64)
        for measure in measures
    }


def _with_a_grade(qrels: Qrels) -> Qrels:
    """Add to each query without a grade of 0 or more a judged document that no run has."""
    # trec_eval writes outside its arrays for a query without such a grade.
    return {
        qid: grades if any(grade >= 0 for grade in grades.values()) else {NO_DOCUMENT: 0, **grades}
        for qid, grades in qrels.items()
    }


def _as_scores(run: Run, qids: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return each query's documents with scores n, n - 1, ..., 1."""
    return {q: dict(zip(docids, range(len(docids), 0, -1), strict=True)) for q, docids in _ranked(run, qids)}
