"""Margins, and the ranges of measures that bound them."""

from itertools import permutations

import numpy as np
import pytest

from greylag.base import ParameterError, Ranking, Run
from greylag.evaluation import compare_scores, evaluate, evaluate_by_subtopic, parse_measure
from greylag.evaluation.scoring.diversity import OVER_GREEDY, alpha_ndcg, nerr_ia, nnrbp
from greylag.evaluation.scoring.margins import check_margin, parse_margin
from greylag.evaluation.scoring.measures import FAMILIES, Measure
from tests.greylag.evaluation.scoring import samples
from tests.greylag.evaluation.scoring.test_significance import scores
from tests.refusals import refuses

EVERY = [Measure(f, cutoff) for f in FAMILIES for cutoff in [None] * bool(f.whole) + [1, 3, 10] * bool(f.cut)]
OTHERS = [parse_measure(name) for name in ("RBP(p=0.95)@5", "RBP(p=0.3)", "AP(rel=2)", "P(judged_only=True)@3")]


@pytest.mark.parametrize("seed", range(30))
def test_scores_are_in_the_range_of_their_measure(seed):
    rng = np.random.default_rng(seed)
    cases = [(samples.random_case(rng, rng.choice([0.1, 0.9])), False), (samples.random_subtopic_case(rng), True)]
    for (run, qrels), by_subtopic in cases:
        measures = [m for m in [*EVERY, *OTHERS] if by_subtopic or not m.family.from_subtopics]
        found = (evaluate_by_subtopic if by_subtopic else evaluate)(run, qrels, measures)
        for measure, values in zip(measures, found.values.T, strict=True):
            low, high = measure.range
            assert low - 1e-12 <= values.min() <= values.max() <= high + 1e-12, measure


@pytest.mark.parametrize(
    "name", "SetP(relative=True) nDCG(gains={1:5})@5 SetF(beta=2.0) Compat(p=0.9) Accuracy@5".split()
)
def test_scores_of_ir_measures_are_in_its_range(name):
    measure = parse_measure(samples.ir_measures().parse_measure(name))
    try:
        values = evaluate(*samples.random_case(np.random.default_rng(0)), [measure]).values
    except ParameterError as error:  # without the program that computes it
        pytest.skip(str(error))
    assert measure.range[0] <= values.min() <= values.max() <= measure.range[1]


def test_ends_of_ranges_are_reached():
    """By RBP all relevant documents, by utility and counts anything, and one below 0."""
    docids, qrels = [f"d{n:03}" for n in range(300)], {"1": {f"d{n:03}": 1 for n in range(300)}, "2": {"d000": 0}}
    run = Run(tuple(Ranking(qid, "", tuple(docids), np.arange(300.0, 0, -1)) for qid in qrels))
    for measure in (m for m in [*EVERY, *OTHERS] if str(m).startswith("RBP") and not m.family.of_judging):
        assert evaluate(run, qrels, [measure]).values[0, 0] == pytest.approx(measure.range[1])
    assert evaluate(run, qrels, ["utility"]).values[:, 0].tolist() == [300, -300]
    assert parse_measure("utility").range == (-np.inf, np.inf)
    assert [parse_measure(name).range for name in ("num_ret", "num_rel_ret")] == [(0, np.inf)] * 2


@pytest.mark.parametrize("compute", [alpha_ndcg, nerr_ia, nnrbp])
def test_rankings_are_above_a_greedy_one_by_no_more_than_its_bound(compute):
    """All orders of random pools; some are above 1, so that a range to 1 would be wrong."""
    most, rng = 0.0, np.random.default_rng(0)
    for _ in range(300):
        pool = rng.random((5, rng.integers(2, 7))) < rng.choice([0.3, 0.5])
        pool = pool[pool.any(axis=1)][:, pool.any(axis=0)]
        for order in permutations(range(len(pool)), min(3, len(pool))) if len(pool) else ():
            most = max(most, compute(pool[list(order)], pool, 3))
    assert 1.001 < most <= OVER_GREEDY


REFUSED = [
    *((text, f"write {share} for '{text}'") for text, share in (("2%", "0.02"), ("0.5 %", "0.005"), ("100%", "1"))),
    *((text, f"lower or a margin such as 0.01, not '{text}'") for text in ("2,5", "x%", "", "1_0", "nan")),
    *((value, "such as 0.01, not ") for value in (True, False, np.nan, None, [0.1], 1j, {})),
    *((value, "above 0") for value in (0, -0.1, np.inf, "inf", "-1")),
]


@pytest.mark.parametrize(("value", "part"), REFUSED)
def test_no_margin(value, part):
    refuses(lambda: parse_margin("margin", value, "lower or "), ParameterError, part, "|")


@pytest.mark.parametrize(("value", "number"), [(0.02, 0.02), ("0.02", 0.02), ("1e-3", 0.001), (np.float32(0.5), 0.5)])
def test_a_margin_is_a_number_or_its_text(value, number):
    assert parse_margin("margin", value) == number


@pytest.mark.parametrize(
    ("name", "margin", "parts"),
    [
        *((name, 2, "margin of 2|not below 1|perhaps 0.02") for name in ("AP", "nDCG@10", "RBP", "subtopic-loss@5")),
        ("alpha-nDCG@10", 1, "not below 1|alpha-nDCG@10|perhaps 0.01"),
        ("RR", 1.0, "not below 1|perhaps 0.01"),
        ("RBP@1", 0.5, "not below 0.2|every run would be within it"),
        ("P@5", 1e6, "every run would be within it"),
    ],
)
def test_margins_that_no_run_could_leave(name, margin, parts):
    measure = parse_measure(name)
    refuses(lambda: check_margin("margin", margin, [parse_measure("utility"), measure]), ParameterError, parts, "|")
    two = {run: scores([0.1, 0.2], (measure,)) for run in "ab"}
    refuses(lambda: compare_scores(two, "a", margin=margin), ParameterError, parts, "|")
    refuses(lambda: compare_scores(two, margin=margin), ParameterError, parts, "|")


@pytest.mark.parametrize(("name", "margin"), [("AP", 0.999), ("AP", 1e-9), ("alpha-nDCG@10", 0.999), ("utility", 30)])
def test_margins_that_a_run_can_leave(name, margin):
    check_margin("margin", margin, [parse_measure(name)])
