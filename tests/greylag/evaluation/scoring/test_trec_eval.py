"""The files of trec_eval 10's own tests, and what it prints for them; the measures that it has and pytrec_eval lacks.

Tests `measures`.
"""

import numpy as np
import pytest
import pytrec_eval

from greylag.base import ParameterError, Ranking, Run
from greylag.evaluation import evaluate, read_qrels, read_run
from greylag.evaluation.scoring.measures import (
    MULTIPLES,
    RECALL_LEVELS,
    Family,
    Measure,
    _precision_at_multiple,
    parse_measure,
    parse_measures,
)
from greylag.evaluation.trec.runs import open_run
from tests.greylag.evaluation.scoring import samples

FILES = [
    ("qrels.test", "results.test", "out.test.aq"),
    ("qrels.comment.test.gz", "results.comment.test.gz", "out.comment.test"),
]


def printed(path):
    """What trec_eval printed, by name of measure and query, with "all" for the mean."""
    return {
        (name.strip(), qid): value for name, qid, value in (line.split("\t") for line in path.read_text().splitlines())
    }


@pytest.mark.parametrize(("qrels", "results", "output"), FILES)
def test_every_figure_of_trec_eval_10(data, qrels, results, output):
    """To the four decimals that it prints; lines of the first run are not sorted, docids of the second have a #."""
    expected = printed(data("trec_eval10") / output)
    names = [name for name, qid in expected if qid == "all" and name != "runid"]
    run = read_run(data("trec_eval10") / results)
    assert [*open_run(data("trec_eval10") / results).rankings] == [*run.rankings]
    scores = evaluate(run, read_qrels(data("trec_eval10") / qrels), names)
    assert [measure.trec_name for measure in scores.measures] == names
    for name, column, average in zip(names, scores.values.T.tolist(), scores.means.tolist(), strict=True):
        for qid, value in [*zip(scores.qids, column, strict=True), ("all", average)]:
            text = expected.get((name, qid), f"{value:.4f}")  # not all are printed by query
            assert f"{value:.{4 if '.' in text else 0}f}" == text, (name, qid)


def test_figures_of_trec_eval_10_on_a_small_case():
    """By hand: three relevant documents, of grades 2, 1 and 1, at ranks 2 and 4 of five and below; x is not judged."""
    run = Run((Ranking("q", "", ("x", "b", "n", "a", "m"), [5, 4, 3, 2, 1]),))
    judged = {"q": {"a": 2, "b": 1, "c": 1, "n": 0, "m": 0}}
    by_hand = {
        "iprec_at_recall_0.40": 1 / 2,  # of .4 * 3 = 1.2 documents, 1; version 9 took 2
        "iprec_at_recall_0.50": 1 / 2,  # of 1.5, 2
        "iprec_at_recall_0.80": 1 / 2,  # of 2.4, 2; version 9 took 3
        "iprec_at_recall_0.90": 0,  # of 2.7, 3
        "11pt_avg": 9 / 2 / 11,
        "rbp": 0.1 * (0.9 / 2 + 0.9**3),  # of the query's highest grade
        "rbp_resid": 0.1 + 0.9**5,
        "unj_5": 1 / 5,
        "unj_10": 1 / 10,
        "num_nonrel_judged_ret": 2,
        "num_q": 1,
        "utility": 2 - 3,
        "relative_P_10": 2 / 3,
        "Rprec_mult_0.40": 1 / 2,  # of 1.2, 2: version 10 truncates here
        "iprec_at_recall_0.25": 1 / 2,  # of .75, 1
        "IPrec@0.99": 0,
        "11pt_avg_.25,.5,.75,1": 3 / 2 / 4,
        "Rprec_mult_0.35": 0,  # of 1.05, 1
        "Rprec_mult_5.00": 2 / 15,
        "utility_2,-1,0,0": 2 * 2 - 3,
        "utility_1.5,0,-.5,0": 3 - 0.5,
        "ndcg_1=3,2=9,4=4.5": (3 / np.log2(3) + 9 / np.log2(5)) / (9 + 3 / np.log2(3) + 3 / np.log2(4)),
        "ndcg_2=0.5": (1 / np.log2(3) + 0.5 / np.log2(5)) / (1 + 1 / np.log2(3) + 0.5 / np.log2(4)),
        "G": (1 / np.log2(2 + 3 - 1) + 2 / np.log2(2 + 5 - 3)) / 4,
    }
    scores = evaluate(run, judged, [*by_hand])
    np.testing.assert_allclose(scores.values[0], [*by_hand.values()], rtol=1e-12)
    assert [parse_measure(str(measure)) for measure in scores.measures] == [*scores.measures]
    below = evaluate(run, {"q": {**judged["q"], "m": -1}}, ["num_nonrel_judged_ret"])
    assert below.values.tolist() == [[1]]  # a grade below 0 is no judgement, as in trec_eval
    everything = {"q": {**judged["q"], "x": 0}}
    assert evaluate(run, everything, ["rbp_resid", "unj_5"]).values.tolist() == [[0, 0]]


@pytest.mark.parametrize("seed", range(5))
def test_numbers_of_trec_evals_own_are_its_figures(seed):
    run, qrels = samples.random_case(np.random.default_rng(seed), relevant=(0.1, 0.4, 0.9)[seed % 3])
    own = [f"Rprec_mult_{multiple:.2f}" for multiple in MULTIPLES]
    names = [*own, "utility", *(f"iprec_at_recall_{recall:.2f}" for recall in RECALL_LEVELS)]
    family = {
        name: Family(f"x{name}", None, from_grades=_precision_at_multiple, numbers=(float(name[-4:]),)) for name in own
    }
    ours = [*(Measure(family[name]) for name in own), "utility_1,-1,0,0", *names[-11:]]
    np.testing.assert_allclose(evaluate(run, qrels, ours).values, evaluate(run, qrels, names).values, atol=1e-12)


def test_names_that_stand_for_several(data):
    for name, output in (("all_trec", "out.test.aq"), ("official", "out.comment.test")):
        expected = [n for n, qid in printed(data("trec_eval10") / output) if qid == "all" and n != "runid"]
        assert [measure.trec_name for measure in parse_measures(name)] == expected
    assert parse_measures(["iprec", "AP"]) == parse_measures(["iprec_at_recall", "map"])
    for name in "utility_1,2,3 utility_a 11pt_avg_2 iprec_at_recall_1.5 Rprec_mult_0 ndcg_1.5=2 ndcg_1=x".split():
        with pytest.raises(ParameterError, match="measure"):
            parse_measure(name)
    with pytest.raises(ParameterError, match="size of the collection"):
        parse_measure("utility_1,-1,-1,1")


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("judged_only", [False, True])
def test_graded_measures_equal_pytrec_eval(seed, judged_only):
    run, qrels = samples.random_case(np.random.default_rng(seed), relevant=(0.1, 0.4, 0.9)[seed % 3])
    order = {r.qid: {d: float(-i) for i, d in enumerate(r.docids)} for r in run.rankings if r.qid in qrels}
    names = ["G", "ndcg_rel", "Rndcg"]
    theirs = pytrec_eval.RelevanceEvaluator(qrels, names, judged_docs_only_flag=judged_only).evaluate(order)
    scores = evaluate(run, qrels, [f"{name}(judged_only={judged_only})" for name in names])
    for qid, row in zip(scores.qids, scores.values.tolist(), strict=True):
        assert row == pytest.approx([theirs.get(qid, {}).get(name, 0.0) for name in names], abs=1e-12)
    bpref, geometric = evaluate(run, qrels, ["bpref", "gm_bpref"]), np.maximum
    np.testing.assert_allclose(bpref.means[1], np.exp(np.log(geometric(bpref.values[:, 0], 1e-5)).mean()))


@pytest.mark.parametrize("recall", [0.4, 0.45])
def test_interpolated_precision_of_ir_measures_is_that_of_version_10(recall):
    run = Run((Ranking("q", "", ("a", "x", "b"), [3, 2, 1]),))
    judged = {"q": {"a": 1, "b": 1, "c": 1}}
    assert evaluate(run, judged, [samples.ir_measures().IPrec @ recall]).values.tolist() == [[1.0]]
