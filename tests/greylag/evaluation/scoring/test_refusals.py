"""Arguments that the functions of evaluation refuse: the call, and parts of the message."""

from dataclasses import replace

import numpy as np
import pytest

from greylag import evaluation
from greylag.base import ParameterError, Ranking, Run
from greylag.evaluation import at_level
from greylag.evaluation.scoring.agreement import check_levels
from greylag.evaluation.scoring.holes import score_holes
from greylag.evaluation.scoring.predicted import evaluate_with_predictions
from tests.greylag.evaluation.scoring.samples import ir_measures
from tests.refusals import refuses

RUN = Run((Ranking("1", "", ("a",), [1.0]), Ranking("2", "", ("a",), [1.0])))
QRELS = {"1": {"a": 1}, "2": {"a": 1}}
SUBTOPICS = {"1": {"s": {"a": 1}}}
SCORES = evaluation.evaluate(RUN, QRELS, ["AP"])
BY_QID = {"1": 0.5, "2": 0.25}
FEW = np.arange(8.0)
OTHER = evaluation.Scores.single(evaluation.parse_measure("AP"), {"1": 0.5})
TOTAL = evaluation.evaluate(RUN, QRELS, ["num_ret"])
TWO = {"a": SCORES, "b": SCORES}


def another_total():
    """A measure of ir_measures that is summed, as none is that greylag lacks."""
    kind = type(theirs("NumQ"))
    return type("Another", (kind,), {"NAME": "Another", "__NAME__": "Another", "__module__": "ir_measures"})()


def theirs(name):
    """A measure of ir_measures; a test is skipped without it."""
    return ir_measures().parse_measure(name)


REFUSED = [
    # Mappings, sets and strings where their order, names or letters would be taken for something else
    (lambda: evaluation.evaluate({"a": RUN, "b": RUN}, QRELS), ("'a'", "compare(runs, qrels)")),
    (lambda: evaluation.evaluate({"a": RUN.to_dict()}, QRELS), ("'a'", "compare(runs, qrels)")),
    (lambda: evaluation.evaluate_by_subtopic({"a": RUN}, SUBTOPICS, ["S-recall@5"]), ("'a'",)),
    (lambda: evaluation.evaluate(RUN, QRELS, {"AP", "P@5"}), ("measures", "set")),
    (lambda: score_holes([RUN], QRELS, ["AP"]), ("by name",)),
    (lambda: evaluation.compare_scores([SCORES, SCORES]), ("by name",)),
    (lambda: evaluation.compare_scores(TWO, pairs={("a", "b")}), ("pairs", "set")),
    (lambda: evaluation.best_of_many([SCORES], "a"), ("by name",)),
    (lambda: evaluate_with_predictions([SCORES], [SCORES]), ("by name",)),
    (lambda: evaluation.correct_by_people(BY_QID, FEW, FEW), ("people", "dict")),
    (lambda: evaluation.paired_test({0.1, 0.2}), ("improvements", "set")),
    (lambda: evaluation.paired_test([0.1, np.nan], "wilcoxon"), ("improvements has nan",)),
    (lambda: evaluation.equivalence_test([0.1, -np.inf], 0.1), ("improvements has -inf",)),
    (lambda: evaluation.holm([0.1, np.nan]), ("p_values has nan",)),
    (lambda: evaluation.equivalence_test(BY_QID, 0.1), ("improvements", "dict")),
    (lambda: evaluation.holm(BY_QID), ("p_values", "dict")),
    (lambda: evaluation.split_folds({"1", "2"}, 2, 0), ("qids", "set")),
    (lambda: evaluation.fit_by_fold(len, ["1", "2"], {"a": ["1"]}), ("folds", "dict")),
    (lambda: evaluation.fit_by_fold(len, ["1", "2"], ["1"]), ("fold", "'1'")),
    (lambda: evaluation.rerank_by_fold([len], ["1"], RUN), ("fold", "'1'")),
    (lambda: evaluation.rerank_by_fold({"1": len}, [["1"]], RUN), ("stages", "dict")),
    (lambda: evaluation.Subtopics.from_qrels({"a", "b"}, SUBTOPICS["1"]), ("docids", "set")),
    # Comparisons
    (lambda: evaluation.compare_scores({"a": SCORES}, "a"), ("'a'",)),
    (lambda: evaluation.compare_scores(TWO, "c"), ("'c'", "a, b")),
    (lambda: evaluation.compare_scores({"a": OTHER, "b": OTHER}), ("two queries",)),
    (lambda: evaluation.compare_scores({"a": SCORES, "b": OTHER}), ("'a'", "'b'")),
    (lambda: evaluation.compare_scores(TWO, test="z"), ("test", "'z'", "wilcoxon")),
    (lambda: evaluation.compare_scores(TWO, "a", alternative="less"), ("alternative", "'less'", "greater")),
    (lambda: evaluation.compare_scores(TWO, correction="dunnett"), ("correction", "'dunnett'", "bh")),
    (lambda: evaluation.compare_scores(TWO, pairs=[("a", "b")], correction="tukey"), ("'tukey'", "all pairs")),
    (lambda: evaluation.compare_scores(TWO, correction="tukey", margin=0.1), ("'tukey'", "margin")),
    (lambda: evaluation.compare_scores(TWO, correction="tukey", test="wilcoxon"), ("'tukey'", "test")),
    (lambda: evaluate_with_predictions(TWO, TWO, "a", correction="tukey"), ("'tukey'", "all pairs")),
    (lambda: evaluation.compare_scores(TWO, alternative="greater"), ("baseline",)),
    (lambda: evaluation.compare_scores({}), ("no scores",)),
    *(
        (lambda bad=bad, call=call: call({"a": SCORES, "b": replace(SCORES, values=np.array([[0.5], [bad]]))}), parts)
        for bad in (np.nan, np.inf, -np.inf)
        for call, parts in (
            (evaluation.compare_scores, ("AP of 'b' on query '2'", str(bad))),
            (lambda scores: evaluation.best_of_many(scores, "a"), ("AP of 'b' on query '2'", str(bad))),
        )
    ),
    (lambda: evaluation.compare_scores({"a": TOTAL, "b": TOTAL}), ("num_ret", "sum")),
    *(
        (lambda margin=margin: evaluation.equivalence_test(np.zeros(5), margin), ("margin",))
        for margin in (0, -1, np.inf)
    ),
    (lambda: score_holes({"a": RUN}, QRELS, ["Judged@10"]), ("Judged@10",)),
    (lambda: score_holes({"a": RUN}, QRELS, ["RBP-residual"]), ("RBP-residual",)),
    (lambda: evaluate_with_predictions({"a": SCORES}, {"a": SCORES}, "a"), ("'a'",)),
    (lambda: evaluate_with_predictions({"a": TOTAL}, {"a": TOTAL}), ("num_ret", "sum")),
    (lambda: evaluation.correct_by_people(FEW[:7], FEW[:7], FEW), ("7", "8")),
    (lambda: evaluation.correct_by_people(FEW, FEW, FEW[:0]), ("0",)),
    (lambda: evaluation.best_of_many(TWO, "z"), ("'z'",)),
    (lambda: evaluation.best_of_many({"a": OTHER}, "a"), ("two queries",)),
    # Scores and folds
    (lambda: evaluation.parse_measure(theirs("ERR@20")), ("ERR@20",)),
    (lambda: evaluation.parse_measure(another_total()), ("not a mean", "a total")),
    (lambda: evaluation.evaluate(RUN, QRELS, [theirs("INST(max_rel=2)")]), ("INST", "ir_measures")),
    *(
        (lambda name=name: evaluation.evaluate(RUN, {**QRELS, "3": {"a": 10**9}}, [theirs(name)]), ("query 3", "10000"))
        for name in ("SetP(relative=True)", "nDCG(gains={1:5})@5")
    ),
    (lambda: evaluation.evaluate(RUN, {"7": {"a": 1}, "8": {}}, ["AP"]), ("'greylag'", "1, 2", "7, 8")),
    (lambda: evaluation.evaluate(RUN, {}, ["AP"]), ("1, 2", "none")),
    (lambda: evaluation.evaluate_by_subtopic(RUN, {"8": {"1": {"a": 1}}}, ["NRBP"]), ("1, 2", "8")),
    (lambda: evaluation.evaluate(RUN, QRELS, ["AP", "alpha-nDCG@5"]), ("alpha-nDCG@5", "read_subtopic_qrels")),
    (lambda: evaluation.evaluate(RUN, QRELS, []), ("no measures",)),
    (lambda: check_levels([evaluation.parse_measure("AP(rel=3)")], {"1": {"a": 2}}), ("3", "2")),
    (lambda: at_level(QRELS, 0), ("1", "0")),
    (lambda: evaluation.split_folds(["1", "2"], 1, 0), ("2", "1")),
    (lambda: evaluation.split_folds(["1", "2"], 3, 0), ("2", "3")),
]


@pytest.mark.parametrize(("call", "parts"), REFUSED)
def test_refused(call, parts):
    refuses(call, ParameterError, "|".join(parts), "|")


def test_a_mapping_of_qids_and_lists_of_numbers_are_taken():
    assert evaluation.split_folds(QRELS, 2, 0) == evaluation.split_folds(["1", "2"], 2, 0)
    assert evaluation.holm([0.01, 0.02]).tolist() == [0.02, 0.02]
    assert evaluation.paired_test([0.1, 0.2, 0.4]) == evaluation.paired_test(np.array([0.1, 0.2, 0.4]))
