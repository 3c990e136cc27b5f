"""The grammar of measures, expected reciprocal rank, and scores against trec_eval and ir_measures.

Tests `measures`.
"""

import math
import re
import sys
from dataclasses import fields
from itertools import product

import numpy as np
import pytest
import pytrec_eval
from sklearn.metrics import ndcg_score

from greylag.base import ParameterError, Ranking, Run
from greylag.evaluation import at_level, evaluate, evaluate_by_subtopic, parse_measure
from greylag.evaluation.scoring.holes import score_holes
from greylag.evaluation.scoring.measures import FAMILIES, PARAMETERS, Measure, expected_reciprocal_rank, parse_measures
from greylag.evaluation.scoring.scores import highest_grades
from greylag.learning.data import RankingData
from greylag.learning.linesearch.objectives import Objective
from tests.greylag.evaluation.scoring import samples
from tests.refusals import refuses


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
        ("set_map SetAP", "SetAP", "set_map"),
        ("IPrec@0.1 iprec_at_recall_0.10", "IPrec@0.1", "iprec_at_recall_0.10"),
        ("gm_map", "gm_map", "gm_map"),
        ("num_rel_ret NUM_REL_RET", "num_rel_ret", "num_rel_ret"),
        ("RBP@10 RBP_10", "RBP@10", "RBP@10"),
        ("rbp Rbp", "rbp", "rbp"),
        ("unj_5 UNJ@5", "unj@5", "unj_5"),
        ("Rprec_mult_0.20 rprec_mult@0.2", "Rprec_mult@0.2", "Rprec_mult_0.20"),
        ("ERR err", "ERR", "ERR"),
        ("ERR@20 err@20 err_20", "ERR@20", "ERR@20"),
        ("alpha-nDCG@20 alpha_nDCG@20 alpha-ndcg_20", "alpha-nDCG@20", "alpha-nDCG@20"),
        ("ERR-IA@5 ERR_IA@5", "ERR-IA@5", "ERR-IA@5"),
        ("NRBP", "NRBP", "NRBP"),
        ("P-IA@5", "P-IA@5", "P-IA@5"),
        ("S-recall@20 strec@20", "S-recall@20", "strec@20"),
        ("I-rec@20 i_rec@20", "S-recall@20", "strec@20"),
        ("d#-ndcg@10 D#_nDCG.10", "D#-nDCG@10", "D#-nDCG@10"),
        ("map-ia MAP_IA", "MAP-IA", "MAP-IA"),
        ("subtopic-loss@20 subtopic_loss@20", "subtopic-loss@20", "subtopic-loss@20"),
        ("mrr MRR", "RR", "recip_rank"),
        ("mrr@10 MRR@10 mrr_at_10", "RR@10", "RR@10"),
        ("ndcg_at_10 NDCG_AT_10", "nDCG@10", "ndcg_cut_10"),
        ("precision@10", "P@10", "P_10"),
        ("precision", "SetP", "set_P"),
        ("recall", "SetR", "set_recall"),
        ("recall@100", "R@100", "recall_100"),
        ("f1", "SetF", "set_F"),
        ("hit_rate@10 hit-rate@10", "Success@10", "success_10"),
        ("r-precision", "Rprec", "Rprec"),
        ("map-l2", "AP(rel=2)", "AP(rel=2)"),
        ("mrr@10-l2", "RR(rel=2)@10", "RR(rel=2)@10"),
    ],
)
def test_names(spellings, usual, trec):
    measures = {parse_measure(spelling) for spelling in [*spellings.split(), usual, trec]}
    assert [(str(measure), measure.trec_name) for measure in measures] == [(usual, trec)]


def test_one_name_of_trec_eval_for_eleven_levels():
    # Its values are trec_eval's own, in test_trec_eval.
    names = [f"iprec_at_recall_{level / 10:.2f}" for level in range(11)]
    assert [measure.trec_name for measure in parse_measures("iprec_at_recall")] == names


def test_every_family_parses_from_its_own_spellings():
    for family in FAMILIES:
        for template, cutoff in ((family.whole, None), (family.cut, 7)):
            if template:
                measure = parse_measure(template.format(cutoff))
                assert (measure.family, measure.cutoff) == (family, cutoff)
                assert parse_measure(str(measure)) == measure
                assert measure.trec_name == template.format(cutoff)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("nDGC@10", "'nDGC@10' nDCG"),
        ("mpa", "'mpa' AP?"),
        ("successes@3", "Success@k?"),
        ("qwxyz", "'qwxyz' AP, subtopic-loss@k"),
        ("", "'' AP,"),
        ("P", "'P' cut-off P@10"),
        ("ndcg_cut", "'ndcg_cut' cut-off nDCG@10"),
        ("Rprec@5", "'Rprec@5' cut-off Rprec"),
        ("nDCG@0", "'nDCG@0' cut-off 0"),
        ("nDCG@99999999999", "cut-off 99999999999"),
        ("nDCG@-3", "'nDCG@-3' nDCG"),
        ("nDCG@1.5", "'nDCG@1.5'"),
        ("RBP(p=1e400)", "RBP"),
        ("alpha_nDCG(alpha=1e400)@5", "alpha_nDCG"),
        ("rbp@10", "'rbp@10' RBP@10"),
        ("rbp.95", "'rbp.95' RBP(p=0.95)"),
        ("ndcg@10-l2", "nDCG rel"),
        ("hits@10", "'hits@10' P@10, num_rel_ret"),
        ("hit_rate", "'hit_rate' Success@10"),
        ("f1@10", "'f1@10' SetF"),
        ("ndcg_burges@10", "exp-log2"),
        ("runid", "'runid' tag"),
        ("prefs_simp", "'prefs_simp' preference not read leave"),
        ("P_avgjg_10", "'P_avgjg_10' assessors"),
        ("AP(rel=0x2)", "'AP(rel=0x2)'"),
        ("AP(rel=1_0)", "'AP(rel=1_0)'"),
        ("nDCG(rel=2)@10", "nDCG rel"),
        ("ERR(rel=2)", "ERR rel"),
        ("Judged(rel=2)@5", "Judged rel"),
        ("AP(rel=0)", "AP: rel 0"),
        ("AP(rel=-1)", "'AP(rel=-1)' AP"),
        ("AP(rel=2,rel=3)", "twice"),
        ("P(rel=2)", "'P(rel=2)' cut-off"),
        ("Judged(judged_only=True)@5", "Judged judged"),
        ("NRBP(judged_only=True)", "NRBP judged"),
        ("RBP(p=1)", "RBP: p 1"),
        ("AP(p=0.5)", "AP: p out"),
        ("rbp(rel=2)", "rbp rel"),
        ("AP(importance=vital)", "AP: rel judged_only not importance"),
        ("S-recall(rel=2,partial=0.5)@10", "S-recall: partial"),
        ("Coverage(partial=0.5)@10", "partial=0.5 rel Coverage(rel=2,partial=0.5)@10"),
        ("Coverage(rel=2,partial=1)@10", "partial=1"),
        ("Coverage(importance=okay)@10", "unknown Coverage@k"),
        ("unj(judged_only=True)@5", "unj judged"),
        (3, "int 3 measure"),
        (None, "NoneType measure"),
        (["AP"], "list ['AP'] measure"),
    ],
)
def test_what_is_no_measure(name, parts):
    refuses(lambda: parse_measure(name), ParameterError, parts)


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


def test_measures_of_ir_measures_that_are_greylags():
    for name in ("AP", "nDCG@10", "Bpref", "alpha_nDCG@20", "StRecall@5", "AP(rel=2)"):
        ours = parse_measure(name.replace("StRecall", "S-recall"))
        assert (
            parse_measure(samples.ir_measures().parse_measure(name))
            == parse_measure(name)
            == parse_measure(ours)
            == ours
        )
    run, qrels = {"q": {"a": 1.0, "b": 0.5}, "p": {"c": 1.0}}, {"q": {"a": 1, "z": 2}, "p": {"c": 0}}
    for name, ours, value in (
        ("NumQ", "num_q", 2), ("NumRel", "num_rel", 2), ("NumRet", "num_ret", 3), ("NumRet(rel=1)", "num_rel_ret", 1),
    ):  # fmt: skip
        assert parse_measure(samples.ir_measures().parse_measure(name)) == parse_measure(name) == parse_measure(ours)
        assert evaluate(Run.from_dict(run), qrels, [name]).means == [value]


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("map(rel=2)", "AP(rel=2)"),
        ("ap( REL = 2 )@10".lower(), "AP(rel=2)@10"),
        ("AP(rel=1)", "AP"),
        ("AP(rel=3,judged_only=False)@10", "AP(rel=3)@10"),
        ("P(judged_only=True,rel=2)@10", "P(rel=2,judged_only=True)@10"),
        ("ndcg(judged_only=True)_10", "nDCG(judged_only=True)@10"),
        ("Bpref(rel=2)", "bpref(rel=2)"),
        ("alpha_nDCG(rel=2)@10", "alpha-nDCG(rel=2)@10"),
        ("judged@10", "Judged@10"),
        ("RBP(p=0.95,rel=2)@10", "RBP(rel=2,p=0.95)@10"),
        ("iprec(rel=2)@0.5", "IPrec(rel=2)@0.5"),
    ],
)
def test_relevance_levels_and_judged_documents_are_spelt_as_by_ir_measures(name, spelt):
    measure = parse_measure(name)
    assert str(measure) == spelt
    assert parse_measure(spelt) == measure
    assert not measure.family.from_ir_measures
    theirs = samples.ir_measures().parse_measure(spelt.replace("bpref", "Bpref").replace("-", "_"))
    assert parse_measure(theirs) == measure


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("coverage(importance=vital,rel=2)_20", "Coverage(rel=2,importance=vital)@20"),
        ("Coverage(rel=2, partial=.50, importance=weighted)@5", "Coverage(rel=2,importance=weighted,partial=0.5)@5"),
        ("Coverage(partial=0,rel=2)@5", "Coverage(rel=2)@5"),
    ],
)
def test_importance_and_partial_credit_have_one_spelling(name, spelt):
    assert str(parse_measure(name)) == parse_measure(name).trec_name == spelt
    assert parse_measure(spelt) == parse_measure(name)


def test_a_level_for_names_that_give_none():
    names = ["AP", "AP(rel=1)", "RR(rel=3)@10", "nDCG@10", "Judged@10", "alpha-nDCG@5"]
    assert [parse_measure(name, rel=2).rel for name in names] == [2, 1, 3, 1, 1, 2]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("judged_only", [False, True])
def test_relevance_levels_equal_trec_eval_and_the_definitions(seed, level, judged_only):
    """Its options -l and -J; nDCG ignores -l, and documents of negative grade count as not judged."""
    run, qrels = samples.random_case(np.random.default_rng(seed))
    order = {r.qid: {d: float(-i) for i, d in enumerate(r.docids)} for r in run.rankings if r.qid in qrels}
    theirs = pytrec_eval.RelevanceEvaluator(
        qrels, TREC_MEASURES, relevance_level=level, judged_docs_only_flag=judged_only
    ).evaluate(order)
    families = [parse_measure(name) for name in TREC_MEASURES]
    measures = [Measure(m.family, m.cutoff, 1 if m.family.by_grade else level, judged_only) for m in families]
    scores = evaluate(run, qrels, measures)
    assert scores.values.tolist() == [[theirs.get(q, {}).get(m, 0.0) for m in TREC_MEASURES] for q in scores.qids]
    np.testing.assert_allclose(scores.means, scores.values.mean(axis=0), rtol=1e-15)
    assert scores.by_measure == dict(zip(map(str, scores.measures), scores.means.tolist(), strict=True))
    if level == 1 and not judged_only:
        assert [measure.trec_name for measure in measures] == TREC_MEASURES
    for qid, row in zip(scores.qids, scores.values, strict=True):
        docids = run[qid].docids if qid in run else ()
        kept = [d for d in docids if not judged_only or qrels[qid].get(d, -1) >= 0]
        slow = slow_scores(kept, qrels[qid], 7, level)
        for measure, value in zip(families, row, strict=True):
            if str(measure) in slow:
                assert value == pytest.approx(slow[str(measure)], abs=1e-12), measure
        first = next((rank for rank, d in enumerate(kept, 1) if qrels[qid].get(d, 0) >= level), 99)
        cut = Measure(parse_measure("RR@3").family, 3, level, judged_only)
        at_cutoff = evaluate(run, qrels, [cut]).values[scores.qids.index(qid), 0] if qid in run else 0.0
        assert at_cutoff == pytest.approx(1 / first if first <= 3 else 0.0)


def test_a_level_is_that_of_the_judgements_at_that_level():
    run, qrels = samples.random_case(np.random.default_rng(1))
    binary = [name for name in TREC_MEASURES if "ndcg" not in name]
    at = evaluate(run, qrels, [parse_measure(name, rel=2) for name in binary])
    assert at.values.tolist() == evaluate(run, at_level(qrels, 2), binary).values.tolist()
    assert [str(measure) for measure in at.measures[:2]] == ["AP(rel=2)", "RR(rel=2)"]
    assert at_level({"q": {"a": 3, "b": 2, "c": 1, "d": 0, "e": -2}}, 2) == {
        "q": {"a": 3, "b": 2, "c": 0, "d": 0, "e": -2}
    }


TREC_MEASURES = ["map", "ndcg", "recip_rank", "Rprec", "bpref", "infAP", "set_P", "set_recall", "set_F", "map_cut_3"]
TREC_MEASURES += ["set_map", "set_relative_P", "relative_P_3", "binG", "utility"]
TREC_MEASURES += [f"Rprec_mult_{fifths / 5:.2f}" for fifths in range(1, 11)]
TREC_MEASURES += [f"{base}_{cutoff}" for base in ("P", "recall", "success", "ndcg_cut") for cutoff in (1, 7, 10, 50)]


def slow_scores(docids, grades, k, level=1):
    """The measures by their definitions. Negative grades mean not judged, to bpref and infAP, else not relevant."""
    relevant = [grades.get(docid, 0) >= level for docid in docids]
    judged = [grades.get(docid) for docid in docids]
    R, N = (sum(low <= grade < high for grade in grades.values()) for low, high in ((level, math.inf), (0, level)))
    hits = [rank for rank, yes in enumerate(relevant, 1) if yes]
    precisions = [sum(relevant[:rank]) / rank for rank in hits]

    def dcg(gains):
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1) if gain > 0)

    def preferred(rank):
        above = sum(grade is not None and 0 <= grade < level for grade in judged[: rank - 1])
        return 1 - min(above, R) / min(N, R) if above else 1.0

    def expected_precision(rank):
        above = [grade for grade in judged[: rank - 1] if grade is not None]
        yes, no = sum(grade >= level for grade in above), sum(0 <= grade < level for grade in above)
        return (1 + len(above) * (yes + 1e-5) / (yes + no + 2e-5)) / rank

    gains, ideal = [grades.get(docid, 0) for docid in docids], sorted(grades.values(), reverse=True)
    precision, recall = (len(hits) / n if n else 0.0 for n in (len(docids), R))
    return {
        "AP": sum(precisions) / max(R, 1),
        f"AP@{k}": sum(p for p, rank in zip(precisions, hits, strict=True) if rank <= k) / max(R, 1),
        "nDCG": dcg(gains) / dcg(ideal) if dcg(ideal) else 0.0,
        f"nDCG@{k}": dcg(gains[:k]) / dcg(ideal[:k]) if dcg(ideal) else 0.0,
        f"P@{k}": sum(relevant[:k]) / k,
        f"R@{k}": sum(relevant[:k]) / max(R, 1),
        "RR": 1 / hits[0] if hits else 0.0,
        "Rprec": sum(relevant[:R]) / max(R, 1),
        "bpref": sum(map(preferred, hits)) / max(R, 1),
        "infAP": sum(map(expected_precision, hits)) / max(R, 1),
        f"Success@{k}": float(any(relevant[:k])),
        "SetP": precision,
        "SetR": recall,
        "SetF": 2 * precision * recall / (precision + recall) if hits else 0.0,
    }


@pytest.mark.parametrize("seed", range(8))
def test_odd_judgements(seed):
    """trec_eval writes outside its memory for queries that have negative grades only, or none, or enormous ones."""
    rng = np.random.default_rng(seed)
    docids = [f"d{i}" for i in range(30)]
    choices = ([-2], [-1], [-1, -2, -(10**12)], [], [0], [0, -2], [-2, -1, 0, 1, 2], [1, 10**9, 10**15, -(10**9)])
    qrels = {
        f"{q}": {d: np.int64(rng.choice(of)) for d in rng.choice(docids, 15, replace=False)} if of else {}
        for q, of in enumerate(choices * 3)
    }
    lengths = rng.integers(0, 25, len(qrels))
    rankings = [Ranking(q, "", rng.permutation(docids)[:n], np.zeros(n)) for q, n in zip(qrels, lengths, strict=True)]
    expected = [slow_scores(r.docids, {d: int(g) for d, g in qrels[r.qid].items()}, 7) for r in rankings]
    scores = evaluate(Run(tuple(rankings)), qrels, [*expected[0]])
    np.testing.assert_allclose(scores.values, [[*row.values()] for row in expected], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["SetP(relative=True)", "nDCG(gains={1:5})@5"])
def test_odd_judgements_for_ir_measures(name):
    samples.ir_measures()
    rankings = [Ranking(str(q), "", ("a", "b"), np.zeros(2)) for q in range(40)]
    qrels = {str(q): {"a": -2, "c": -(10**9)} if q else {"a": np.int64(2)} for q in range(40)}
    scores = evaluate(Run(tuple(rankings)), qrels, [name])
    assert scores.values[1:].tolist() == [[0.0]] * 39


EXPONENTIAL = "nDCG(dcg='exp-log2')"


@pytest.mark.parametrize("cutoff", [None, 1, 5, 40])
def test_ndcg_with_exponential_gains_is_that_of_scikit_learn(cutoff):
    rng = np.random.default_rng(5)
    docids, measure = [f"d{i}" for i in range(30)], EXPONENTIAL + (f"@{cutoff}" if cutoff else "")
    for _ in range(20):
        grades, values = rng.integers(-1, 5, 30), rng.permutation(30)
        run = Run((Ranking.sort("1", "", docids, values),))
        ours = evaluate(run, {"1": dict(zip(docids, grades.tolist(), strict=True))}, [measure]).means[0]
        theirs = ndcg_score([2.0 ** np.maximum(grades, 0) - 1], [values], k=cutoff)
        assert ours == pytest.approx(theirs, rel=1e-12)
        data = RankingData(("a",), ("1",), np.array([0, 30]), tuple(docids), values[:, None] * 1.0, grades,
                           (grades[grades > 0],))  # fmt: skip
        assert Objective.parse(measure).evaluate(data, data.columns[0])[0] == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "right"),
    [("INST", "INST(max_rel=1)"), ("INSQ(T=2)", "INSQ(max_rel=1,T=2.0)"), ("NERR8", "NERR8(max_rel=1)@10"),
     ("NERR11", "NERR11(max_rel=1)"), ("SDCG@20", "SDCG(max_rel=1)@20"), ("BPM(T=1)@5", "BPM(max_rel=1,T=1.0)@5")],
)  # fmt: skip
def test_measures_of_ir_measures_that_lack_the_highest_grade_are_told(name, right):
    samples.ir_measures()
    with pytest.raises(ParameterError, match=re.escape(f"write {right},")):
        parse_measure(name)
    assert parse_measure(right).family.from_ir_measures


def test_exponential_gains_are_spelt_as_by_ir_measures_and_need_no_other_package(monkeypatch):
    theirs = samples.ir_measures().parse_measure(f"{EXPONENTIAL}@10")
    assert parse_measure(theirs) == parse_measure(f"{EXPONENTIAL}@10")
    both = parse_measure("nDCG(dcg='exp-log2',judged_only=True)@10")
    assert parse_measure(str(both)) == both == parse_measure(samples.ir_measures().parse_measure(str(both)))
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    for text in ("nDCG(dcg=exp-log2)@10", 'ndcg(dcg="exp-log2")@10', "NDCG(dcg='exp-log2')_10"):
        assert str(parse_measure(text)) == f"{EXPONENTIAL}@10"
    assert parse_measure("nDCG(dcg='log2')@10") == parse_measure("nDCG@10")
    refuses(lambda: parse_measure("AP(dcg='exp-log2')"), ParameterError, "AP")


def test_grades_without_an_exact_exponential_gain_are_refused():
    run = Run((Ranking("1", "", ("a",), [1]),))
    assert evaluate(run, {"1": {"a": 50, "b": 50}}, [f"{EXPONENTIAL}@1"]).means == 1
    refuses(lambda: evaluate(run, {"1": {"a": 1, "b": 51}}, [EXPONENTIAL]), ParameterError, "51")


def test_queries_that_only_the_run_or_the_judgements_have():
    run = Run((Ranking("1", "", ("a",), [1]), Ranking("9", "", ("a",), [1]), Ranking("3", "", (), [])))
    scores = evaluate(run, {"2": {"a": 1}, "1": {"a": 1}, "3": {"a": 1}}, ["P@1", "map", "AP"])
    assert [str(measure) for measure in scores.measures] == ["P@1", "AP"]
    assert scores.qids == ("2", "1", "3")
    assert scores.values.tolist() == [[0, 0], [1, 1], [0, 0]]
    assert scores.means.tolist() == [1 / 3, 1 / 3]
    assert (scores.missing, scores.empty, scores.unjudged) == (("2",), ("3",), ("9",))
    assert scores.ranked.tolist() == [False, True, False]


@pytest.mark.parametrize("rankings", [(), ("1",), ("1", "2"), ("9", "1")])
def test_a_run_without_documents_is_0_for_each_judged_topic(rankings):
    run = Run((*(Ranking(qid, "", ("a",) if qid == "9" else (), [1.0] if qid == "9" else []) for qid in rankings),))
    scores = evaluate(run, {"1": {"a": 1}, "2": {"a": 1}}, ["AP", "ERR", "Judged@10"])
    assert not scores.values.any()
    assert {*scores.empty} == {*rankings} & {"1", "2"} == {"1", "2"} - {*scores.missing}
    losses = evaluate_by_subtopic(run, {"1": {"s": {"a": 1}}, "2": {"s": {"a": 1}}}, ["subtopic-loss@5", "AP"])
    assert losses.means.tolist() == [1.0, 0.0]
    holes = score_holes({"run": run}, {"1": {"a": 1}}, ["AP"])
    assert holes.judged["run"].tolist() == [0.0]


def test_err_of_a_run_has_one_scale_for_all_queries():
    qrels = {"1": {"a": 1, "b": 0}, "2": {"a": 3, "c": -1}}
    run = Run((Ranking("1", "", ("x", "b", "a"), [3, 2, 1]), Ranking("2", "", ("c", "a"), [2, 1])))
    scores = evaluate(run, qrels, ["ERR", "ERR@2", "ERR@1"])
    third, half = (1 / 8) / 3, (7 / 8) / 2
    np.testing.assert_allclose(scores.values, [[third, 0, 0], [half, half, 0]], atol=1e-15)


def test_queries_missing_from_the_run_or_without_subtopics():
    qrels = {"1": {"1": {"a": 1}}, "2": {"1": {"a": 1}}, "3": {}, "4": {"1": {"a": 0}}}
    run = Run(tuple(Ranking(qid, "", ("a",), [1]) for qid in "1349"))
    scores = evaluate_by_subtopic(
        run, qrels, ["S-recall@1", "subtopic-loss@1", "NRBP", "AP", "alpha-nDCG@1", "ERR-IA@1", "P-IA@1"]
    )
    assert scores.values[1].tolist() == [0, 1, 0, 0, 0, 0, 0]
    assert not scores.values[2:].any()
    assert (scores.missing, scores.unjudged) == (("2",), ("9",))


def test_measures_of_relevance_use_the_highest_grade():
    run, qrels = samples.random_subtopic_case(np.random.default_rng(3))
    both = evaluate_by_subtopic(run, qrels, ["AP", "NRBP", "nDCG@5"])
    documents = evaluate(run, highest_grades(qrels), ["AP", "nDCG@5"])
    assert [str(measure) for measure in both.measures] == ["AP", "NRBP", "nDCG@5"]
    assert both.values[:, [0, 2]].tolist() == documents.values.tolist()
    assert highest_grades({"1": {"1": {"a": 1, "b": 0}, "2": {"a": 3, "b": -1}}}) == {"1": {"a": 3, "b": 0}}


MEASURES = """AP AP@10 nDCG@10 nDCG P@5 RR RR@3 Success@5 R@10 Rprec SetP SetR SetF Bpref infAP AP(rel=2) P(rel=2)@5
RR(rel=3)@3 R(rel=2)@10 Bpref(rel=2) infAP(rel=3) SetF(rel=2) Success(rel=3)@2 Rprec(rel=2) Judged@5 Judged@25
nDCG(judged_only=True)@5 nDCG(judged_only=True) AP(rel=2,judged_only=True) P(judged_only=True,rel=3)@4
SetP(judged_only=True)
"""


@pytest.mark.parametrize("name", MEASURES.split())
def test_agrees_with_ir_measures(name):
    """Whichever of the two computes it, query by query, with a query that the run lacks and one without documents."""
    ir_measures = samples.ir_measures()
    rng = np.random.default_rng(0)
    docids = [f"d{i}" for i in range(30)]
    qrels = {f"q{q}": {d: int(rng.integers(-1, 4)) for d in rng.choice(docids, 12, replace=False)} for q in range(9)}
    rankings = [Ranking(f"q{q}", "", tuple(rng.permutation(docids)[:20]), np.zeros(20)) for q in range(7)]
    run = Run((*rankings, Ranking("q7", "", (), np.empty(0))), "random")
    measure = ir_measures.parse_measure(name)
    order = {r.qid: {d: float(-rank) for rank, d in enumerate(r.docids)} for r in rankings}
    theirs = {metric.query_id: metric.value for metric in ir_measures.iter_calc([measure], qrels, order)}
    ours = evaluate(run, qrels, [measure])
    assert ours.values[:, 0] == pytest.approx([theirs.get(qid, 0.0) for qid in ours.qids], abs=1e-12)
    assert evaluate(run, qrels, [name]).by_measure == ours.by_measure


@pytest.mark.parametrize("seed", range(4))
def test_totals_and_the_geometric_mean_equal_trec_evals(seed):
    """Its summary over queries: sums of counts, and exp of the mean log of AP, with at least 1e-5."""
    run, qrels = samples.random_case(np.random.default_rng(seed))
    order = {r.qid: {d: float(-i) for i, d in enumerate(r.docids)} for r in run.rankings if r.qid in qrels and len(r)}
    names = ["num_ret", "num_rel", "num_rel_ret", "gm_map"]
    theirs = pytrec_eval.RelevanceEvaluator({q: qrels[q] for q in order}, {*names, "map"}).evaluate(order)
    ours = evaluate(run, {q: qrels[q] for q in order}, names)
    expected = [pytrec_eval.compute_aggregated_measure(n, [theirs[q][n] for q in order]) for n in names]
    assert ours.means == pytest.approx(expected)
    whole = evaluate(run, qrels, names)
    relevant = sum(grade > 0 for grades in qrels.values() for grade in grades.values())
    assert whole.by_measure["num_rel"] == relevant  # also of queries that the run lacks


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["RBP", "RBP@3", "RBP(rel=2,p=0.5)@4"])
def test_rbp_and_its_residual_are_the_ends_of_all_judgements(seed, name):
    """RBP if nobody judged the others relevant; RBP and its residual if all, and all below a long ranking, were."""
    rng = np.random.default_rng(seed)
    docids = tuple(f"d{i}" for i in range(6))
    qrels = {"q": {d: int(rng.integers(-1, 4)) for d in rng.choice(docids, 3, replace=False)}}
    run, measure = Run((Ranking("q", "", docids, np.zeros(6)),)), parse_measure(name)
    residual = parse_measure(name.replace("RBP", "RBP-residual").replace("rel=2,", ""))
    below = tuple(f"below{i}" for i in range(500))
    longer = Run((Ranking("q", "", docids[: measure.cutoff] + below, np.zeros(len(docids[: measure.cutoff]) + 500)),))
    [[rbp, left]] = evaluate(run, qrels, [measure, residual]).values
    filled = {"q": {**dict.fromkeys(docids + below, 3), **qrels["q"]}}
    whole = evaluate(longer, filled, [Measure(measure.family, None, measure.rel, p=measure.p)]).values[0, 0]
    assert rbp + left == pytest.approx(whole, abs=1e-9)
    grades = [qrels["q"].get(docid, 0) >= measure.rel for docid in docids[: measure.cutoff]]
    assert rbp == pytest.approx(sum((1 - measure.p) * measure.p**rank for rank, yes in enumerate(grades) if yes))
    empty = evaluate(Run((*run.rankings, Ranking("r", "", (), []))), {**qrels, "r": {"x": 1}}, [measure, residual])
    assert empty.values[1].tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", [1, 2])
def test_interpolated_precision_equals_its_definition(seed, level):
    """By version 10, which rounds the number of documents that a recall needs, halves up."""
    run, qrels = samples.random_case(np.random.default_rng(seed))
    names = [f"iprec_at_recall_{tenths / 10:.2f}" for tenths in range(11)]
    scores = evaluate(run, qrels, [parse_measure(name, rel=level) for name in names])
    averages = evaluate(run, qrels, [parse_measure("11pt_avg", rel=level)]).values[:, 0]
    for qid, row, average in zip(scores.qids, scores.values.tolist(), averages.tolist(), strict=True):
        hits = [qrels[qid].get(docid, 0) >= level for docid in (run[qid].docids if qid in run else ())]
        found = [(sum(hits[:rank]), sum(hits[:rank]) / rank) for rank in range(1, len(hits) + 1)]
        relevant = sum(grade >= level for grade in qrels[qid].values())
        needed = [(2 * tenths * relevant + 10) // 20 for tenths in range(11)]
        assert row == [max((p for n, p in found if n >= least), default=0.0) for least in needed]
        assert average == pytest.approx(sum(row) / 11)


SPELT_VALUES = {"rel": "2", "judged_only": "True", "p": "0.5", "importance": "vital", "partial": "0.5"}


@pytest.mark.parametrize("name", SPELT_VALUES)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_measure_takes_the_parameters_that_it_states(family, name):
    level = "rel=2," if name == "partial" else ""
    text = f"{family.name.partition('(')[0]}({level}{name}={SPELT_VALUES[name]})" + ("" if family.whole else "@10")
    if "(" in family.name or "@" in family.name:  # spelt with parameters of its own
        return
    if name in family.parameters:
        measure = parse_measure(text)
        assert (str(getattr(measure, name)), str(measure)) == (SPELT_VALUES[name], text)
    else:
        with pytest.raises(ParameterError, match=r"it takes|unknown|one of ir_measures"):
            parse_measure(text)


def test_a_cut_off_that_lacks_its_sign_is_spelt():
    for text, ours in (("ndcg10", "nDCG@10"), ("P5", "P@5"), ("map_10_", "did you mean"), ("recall100", "R@100")):
        with pytest.raises(ParameterError, match=f"write {ours}$" if "@" in ours else ours):
            parse_measure(text)


def test_parameters_are_attributes_of_a_measure():
    assert set(SPELT_VALUES) == PARAMETERS.keys() < {field.name for field in fields(Measure)}
