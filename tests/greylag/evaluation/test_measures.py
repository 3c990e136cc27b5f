from itertools import product

import numpy as np
import pytest
import pytrec_eval

from greylag.errors import ParameterError
from greylag.evaluation import evaluate, expected_reciprocal_rank, parse_measure
from greylag.evaluation.measures import FAMILIES
from greylag.ranking import Ranking, Run


@pytest.mark.parametrize(
    ("spellings", "usual", "trec"),
    [
        ("map AP ap MAP", "AP", "map"),
        ("map_cut_10 AP@10 map_cut.10 map@10", "AP@10", "map_cut_10"),
        ("ndcg nDCG NDCG", "nDCG", "ndcg"),
        ("ndcg_cut_10 nDCG@10 ndcg_cut.10 NDCG@10 nDCG@010", "nDCG@10", "ndcg_cut_10"),
        ("P_30 P@30 p@30 P.30", "P@30", "P_30"),
        ("recall_1000 R@1000 Recall@1000", "R@1000", "recall_1000"),
        ("recip_rank RR", "RR", "recip_rank"),
        ("RR@10 rr@10 recip_rank@10", "RR@10", "RR@10"),
        ("success_5 Success@5", "Success@5", "success_5"),
        ("Rprec", "Rprec", "Rprec"),
        ("bpref", "bpref", "bpref"),
        ("infAP", "infAP", "infAP"),
        ("set_P SetP", "SetP", "set_P"),
        ("set_recall SetR", "SetR", "set_recall"),
        ("set_F SetF", "SetF", "set_F"),
        ("ERR", "ERR", "ERR"),
        ("ERR@20 err@20", "ERR@20", "ERR@20"),
        ("alpha-nDCG@20 alpha_nDCG@20", "alpha-nDCG@20", "alpha-nDCG@20"),
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
        ("nDGC@10", r"'nDGC@10' is unknown; the nearest are nDCG$"),
        ("mpa", r"'mpa' is unknown; the nearest are AP$"),
        ("successes@3", r"the nearest are Success@k$"),
        ("qwxyz", r"'qwxyz' is unknown; there are AP, nDCG, P@k, .*subtopic-loss@k$"),
        ("", r"'' is unknown; there are AP"),
        ("P", r"'P' lacks its cut-off; write, say, P@10$"),
        ("ndcg_cut", r"'ndcg_cut' lacks its cut-off; write, say, nDCG@10$"),
        ("Rprec@5", r"'Rprec@5' takes no cut-off; write Rprec$"),
        ("nDCG@0", r"'nDCG@0' has a cut-off that is not from 1"),
        ("nDCG@99999999999", r"cut-off that is not from 1"),
        ("nDCG@-3", r"'nDCG@-3' is unknown; the nearest are nDCG$"),
        ("nDCG@1.5", r"is unknown"),
    ],
)
def test_names_that_are_wrong(name, reason):
    with pytest.raises(ParameterError, match=reason):
        parse_measure(name)


TREC_MEASURES = ["map", "ndcg", "recip_rank", "Rprec", "bpref", "infAP", "set_P", "set_recall", "set_F", "map_cut_3"]
TREC_MEASURES += [f"{base}_{cutoff}" for base in ("P", "recall", "success", "ndcg_cut") for cutoff in (1, 7, 10, 50)]


@pytest.mark.parametrize("seed", range(10))
def test_figures_equal_trec_eval_on_the_order_of_the_ranking(seed):
    """Ties in scores are in the order of the ranking, whatever the documents are called."""
    rng = np.random.default_rng(seed)
    run, qrels = random_case(rng)
    order = {r.qid: {d: float(-i) for i, d in enumerate(r.docids)} for r in run.rankings if r.qid in qrels}
    expected = pytrec_eval.RelevanceEvaluator(qrels, TREC_MEASURES).evaluate(order)
    scores = evaluate(run, qrels, TREC_MEASURES)
    assert [measure.trec_name for measure in scores.measures] == TREC_MEASURES
    for qid, row in zip(scores.qids, scores.values, strict=True):
        assert row.tolist() == [expected.get(qid, {}).get(measure, 0.0) for measure in TREC_MEASURES]
    means = [np.mean([expected.get(qid, {}).get(m, 0.0) for qid in qrels]) for m in TREC_MEASURES]
    np.testing.assert_allclose(scores.means, means, rtol=1e-15)


@pytest.mark.parametrize("cutoff", [1, 2, 3, 7, 49])
def test_reciprocal_rank_at_a_cutoff_is_that_of_the_shortened_run(cutoff):
    run, qrels = random_case(np.random.default_rng(cutoff), relevant=0.1)
    short = Run(tuple(ranking.head(cutoff) for ranking in run.rankings))
    at_cutoff = evaluate(run, qrels, [f"RR@{cutoff}"]).values
    assert at_cutoff.tolist() == evaluate(short, qrels, ["RR"]).values.tolist()


def test_queries_on_one_side_only():
    run = Run((Ranking("1", "", ("a",), [1]), Ranking("9", "", ("a",), [1]), Ranking("3", "", (), [])))
    scores = evaluate(run, {"2": {"a": 1}, "1": {"a": 1}, "3": {"a": 1}}, ["P@1", "map", "AP"])
    assert [str(measure) for measure in scores.measures] == ["P@1", "AP"]
    assert scores.qids == ("2", "1", "3")
    assert scores.values.tolist() == [[0, 0], [1, 1], [0, 0]]
    assert scores.means.tolist() == [1 / 3, 1 / 3]
    assert (scores.missing, scores.unjudged) == (("2", "3"), ("9",))


def test_no_query_in_common():
    run = Run((Ranking("a1", "", ("d",), [1]), Ranking("a2", "", ("d",), [1])), "mine")
    with pytest.raises(ParameterError, match=r"run 'mine' .*no query in common: a1, a2 against 1, 2, 3, \.\.\.; are"):
        evaluate(run, {str(q): {"d": 1} for q in range(1, 5)}, ["AP"])
    with pytest.raises(ParameterError, match=r"a1, a2 against none"):
        evaluate(run, {}, ["AP"])


def test_measures_that_these_judgements_cannot_give():
    run = Run((Ranking("1", "", ("a",), [1]),))
    with pytest.raises(ParameterError, match="alpha-nDCG@5 needs judgements by subtopic"):
        evaluate(run, {"1": {"a": 1}}, ["AP", "alpha-nDCG@5"])
    with pytest.raises(ParameterError, match="no measure"):
        evaluate(run, {"1": {"a": 1}}, [])


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


def test_err_of_a_run_has_one_scale_for_all_queries():
    qrels = {"1": {"a": 1, "b": 0}, "2": {"a": 3, "c": -1}}
    run = Run((Ranking("1", "", ("x", "b", "a"), [3, 2, 1]), Ranking("2", "", ("c", "a"), [2, 1])))
    scores = evaluate(run, qrels, ["ERR", "ERR@2", "ERR@1"])
    third, half = (1 / 8) / 3, (7 / 8) / 2
    np.testing.assert_allclose(scores.values, [[third, 0, 0], [half, half, 0]], atol=1e-15)


def test_err_of_huge_grades_does_not_overflow():
    assert expected_reciprocal_rank([10_000, 0], 10_000) == pytest.approx(1.0)


def random_case(rng, relevant=0.4):
    """Rankings with tied scores, graded and unretrieved judgements, queries on either side only."""
    docids = [f"d{i:02}" for i in range(60)]
    qrels = {}
    for q in range(12):
        judged = rng.choice(docids, 30, replace=False).tolist()
        grades = np.where(rng.random(30) < relevant, rng.integers(1, 4, 30), rng.integers(-1, 1, 30))
        qrels[f"q{q}"] = dict(zip(judged, grades.tolist(), strict=True))
    qids = [f"q{q}" for q in rng.permutation(14)[:11]]
    lengths = rng.integers(0, 50, len(qids))
    rankings = [
        Ranking(qid, "", rng.permutation(docids)[:n].tolist(), -np.sort(rng.integers(0, 9, n)).astype(float))
        for qid, n in zip(qids, lengths, strict=True)
    ]
    return Run(tuple(rankings)), qrels
