"""Runs and judgements that do not belong together are told, or refused if nothing can be scored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greylag.base import ParameterError, Ranking, Run
from greylag.evaluation import evaluate, parse_measure
from greylag.evaluation.scoring.agreement import check_agreement, check_levels, check_order_of_arguments
from tests.refusals import refuses


def run_of(rankings):
    return Run(tuple(Ranking(qid, "", tuple(d), -np.arange(len(d), dtype=float)) for qid, d in rankings.items()))


RUN = run_of({str(qid): [str(100 * qid + rank) for rank in range(20)] for qid in range(1, 11)})
QRELS = {str(qid): {str(100 * qid + rank): 1 for rank in range(0, 40, 3)} for qid in range(1, 11)}


def exchanged(qrels):
    found = {}
    for qid, grades in qrels.items():
        for docid, grade in grades.items():
            found.setdefault(docid, {})[qid] = grade
    return found


def test_what_belongs_together_is_not_told():
    assert check_agreement(RUN, QRELS) == []
    assert check_agreement(RUN, {qid: {"1": dict(grades)} for qid, grades in QRELS.items()}) == []
    assert check_agreement(RUN, {**QRELS, "77": {"1": 1}}) == []


def test_a_run_in_the_place_of_judgements_is_told():
    """By ranx's order of arguments, also with whole scores; not the right order, nor a run of grades."""
    scores = {str(q): {str(100 * q + rank): float(99 - rank) for rank in range(20)} for q in range(1, 11)}
    graded = {qid: {docid: int(docid) % 3 for docid in of} for qid, of in QRELS.items()}
    for qrels in (graded, {qid: dict(list(of.items())[:1]) for qid, of in graded.items()}):
        right, wrong = (
            check_order_of_arguments(Run.from_dict(run), judged) for run, judged in ((scores, qrels), (qrels, scores))
        )
        assert (right, [*map(len, [wrong])]) == ([], [1])
        assert "write the run first" in wrong[0]
    assert check_order_of_arguments(Run.from_dict(graded), graded) == []


def test_queries_that_are_documents_are_not_exchanged():
    """As in query by example: every document is a query."""
    names = [str(number) for number in range(30)]
    run = run_of({qid: [docid for docid in names if docid != qid] for qid in names})
    assert check_agreement(run, {qid: {docid: 1 for docid in names[:9] if docid != qid} for qid in names}) == []


OTHERS = {qid: {f"d{docid}": grade for docid, grade in grades.items()} for qid, grades in QRELS.items()}


@pytest.mark.parametrize("by_subtopic", [False, True])
@pytest.mark.parametrize(
    ("qrels", "parts"),
    [
        (exchanged(QRELS), "exchanged"),
        (exchanged(QRELS | {"1": {"1": 1, "2": 0} | QRELS["1"]}), "exchanged"),  # documents named as queries
        (OTHERS, "'100' 'd100'"),
    ],
)
def test_what_cannot_be_scored_is_refused(by_subtopic, qrels, parts):
    given = {qid: {"1": grades} if by_subtopic else grades for qid, grades in qrels.items()}
    refuses(lambda: check_agreement(RUN, given), ParameterError, parts)


@given(st.integers(1, 10))
def test_topics_without_a_ranking(ranked):
    told = check_agreement(Run(RUN.rankings[:ranked]), QRELS)
    assert len(told) == (ranked <= 1)
    assert all(f"{10 - ranked} of 10 judged topics" in line for line in told)


@pytest.mark.parametrize(
    ("names", "number"), [("AP(rel=2) nDCG", 0), ("AP(rel=3) nDCG Judged@5", 1), ("AP(rel=3) P(rel=2)@5", 1)]
)
def test_levels_that_no_document_has(names, number):
    measures, qrels = [parse_measure(name) for name in names.split()], {"1": {"a": 1, "b": 2}, "2": {"c": 0}}
    assert len(check_levels(measures, qrels)) == number
    assert (evaluate(run_of({"1": ["a", "b"]}), qrels, measures).means[0] == 0) == (number > 0)
