"""The grammar of measures, and expected reciprocal rank."""

from itertools import product

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.evaluation import expected_reciprocal_rank, parse_measure
from greylag.evaluation.measures import FAMILIES


@pytest.mark.parametrize(
    ("spellings", "usual", "trec"),
    [
        ("map AP ap MAP", "AP", "map"),
        ("map_cut_10 AP@10 AP_10 map_cut.10 map@10 map_10", "AP@10", "map_cut_10"),
        ("ndcg nDCG NDCG", "nDCG", "ndcg"),
        ("ndcg_cut_10 nDCG@10 nDCG_10 ndcg_10 ndcg_cut@10 ndcg_cut.10 NDCG@10 nDCG@010", "nDCG@10", "ndcg_cut_10"),
        ("P_30 P@30 p@30 P.30", "P@30", "P_30"),
        ("recall_1000 R@1000 Recall@1000", "R@1000", "recall_1000"),
        ("recip_rank RR rr", "RR", "recip_rank"),
        ("RR@10 rr@10 RR_10 recip_rank@10 recip_rank_10", "RR@10", "RR@10"),
        ("success_5 Success@5", "Success@5", "success_5"),
        ("Rprec", "Rprec", "Rprec"),
        ("bpref", "bpref", "bpref"),
        ("infAP", "infAP", "infAP"),
        ("set_P SetP", "SetP", "set_P"),
        ("set_recall SetR", "SetR", "set_recall"),
        ("set_F SetF", "SetF", "set_F"),
        ("ERR err", "ERR", "ERR"),
        ("ERR@20 err@20 err_20", "ERR@20", "ERR@20"),
        ("alpha-nDCG@20 alpha_nDCG@20 alpha-ndcg_20", "alpha-nDCG@20", "alpha-nDCG@20"),
        ("ERR-IA@5 ERR_IA@5", "ERR-IA@5", "ERR-IA@5"),
        ("NRBP", "NRBP", "NRBP"),
        ("P-IA@5", "P-IA@5", "P-IA@5"),
        ("S-recall@20 strec@20", "S-recall@20", "strec@20"),
        ("subtopic-loss@20 subtopic_loss@20", "subtopic-loss@20", "subtopic-loss@20"),
    ],
)
def test_names(spellings, usual, trec):
    measures = {parse_measure(spelling) for spelling in [*spellings.split(), usual, trec]}
    assert [(str(measure), measure.trec_name) for measure in measures] == [(usual, trec)]


def test_every_family_parses_from_its_own_spellings():
    for family in FAMILIES:
        for template, cutoff in ((family.whole, None), (family.cut, 7)):
            if template:
                measure = parse_measure(template.format(cutoff))
                assert (measure.family, measure.cutoff) == (family, cutoff)
                assert parse_measure(str(measure)) == measure
                assert measure.trec_name == template.format(cutoff)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nDGC@10", r"unknown measure 'nDGC@10'; did you mean nDCG\?$"),
        ("mpa", r"unknown measure 'mpa'; did you mean AP\?$"),
        ("successes@3", r"did you mean Success@k\?$"),
        ("qwxyz", r"unknown measure 'qwxyz'; choose from AP, nDCG, P@k, .*subtopic-loss@k$"),
        ("", r"unknown measure ''; choose from AP"),
        ("P", r"'P' needs a cut-off, as in P@10$"),
        ("ndcg_cut", r"'ndcg_cut' needs a cut-off, as in nDCG@10$"),
        ("Rprec@5", r"'Rprec@5' takes no cut-off; write Rprec$"),
        ("nDCG@0", r"'nDCG@0': the cut-off must be between 1 and 10\^9, as in nDCG@10, not 0$"),
        ("nDCG@99999999999", r"cut-off must be between 1 and 10\^9, as in nDCG@10, not 99999999999$"),
        ("nDCG@-3", r"unknown measure 'nDCG@-3'; did you mean nDCG\?$"),
        ("nDCG@1.5", r"unknown measure 'nDCG@1.5'"),
    ],
)
def test_invalid_names(name, reason):
    with pytest.raises(ParameterError, match=reason):
        parse_measure(name)


def err_by_stopping(grades, top_grade):
    """The expectation of 1/rank over all the ways in which a user may be satisfied, or not, by each document."""
    stops = [(2 ** max(grade, 0) - 1) / 2**top_grade for grade in grades]
    total = 0.0
    for satisfied in product([False, True], repeat=len(grades)):
        probability = np.prod([stop if yes else 1 - stop for stop, yes in zip(stops, satisfied, strict=True)])
        total += probability / (satisfied.index(True) + 1) if any(satisfied) else 0.0
    return total


@pytest.mark.parametrize("seed", range(20))
def test_err_equals_its_expectation(seed):
    rng = np.random.default_rng(seed)
    top_grade = int(rng.integers(0, 5))
    grades = rng.integers(-2, top_grade + 1, rng.integers(0, 9)).tolist()
    assert expected_reciprocal_rank(grades, top_grade) == pytest.approx(err_by_stopping(grades, top_grade), abs=1e-12)


def test_err_of_huge_grades_does_not_overflow():
    assert expected_reciprocal_rank([10_000, 0], 10_000) == pytest.approx(1.0)


def test_measures_of_ir_measures_that_are_greylags() -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="needs ir_measures")
    for theirs, ours in (
        (ir_measures.AP, "AP"),
        (ir_measures.nDCG @ 10, "nDCG@10"),
        (ir_measures.Bpref, "bpref"),
        (ir_measures.alpha_nDCG @ 20, "alpha-nDCG@20"),
        (ir_measures.StRecall @ 5, "S-recall@5"),
    ):
        assert parse_measure(theirs) == parse_measure(str(theirs)) == parse_measure(ours)
    assert parse_measure(parse_measure("AP")) == parse_measure("AP")
    assert str(parse_measure("AP(rel=2)")) == str(parse_measure(ir_measures.AP(rel=2))) == "AP(rel=2)"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ERR@20", "ERR@20 of ir_measures has grades up to 4, by gdeval: for greylag's, pass the name 'ERR@20'"),
        ("NumRet", "NumRet is not a mean over queries, but a total"),
    ],
)
def test_measures_of_ir_measures_that_mean_something_else(name: str, reason: str) -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="needs ir_measures")
    with pytest.raises(ParameterError, match=reason):
        parse_measure(ir_measures.parse_measure(name))


@pytest.mark.parametrize("value", [3, None, ["AP"]])
def test_what_is_no_measure(value: object) -> None:
    with pytest.raises(ParameterError, match=f"{type(value).__name__} .* is not a measure: pass a name"):
        parse_measure(value)
