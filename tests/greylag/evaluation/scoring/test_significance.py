"""Significance tests against SciPy, closed forms and enumeration.

Tests `power` and `sign_flips`.
"""

import json
import math
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import special, stats

from greylag.evaluation import Scores, compare_scores, holm, parse_measure
from greylag.evaluation.reports.scores import to_dict
from greylag.evaluation.scoring.power import critical_t, detectable_difference
from greylag.evaluation.scoring.significance import compare_collections, equivalence_test, paired_test

AP, LOSS, P5 = (parse_measure(name) for name in ("AP", "subtopic-loss@5", "P@5"))


def scores(values, measures=(AP,)):
    values = np.array(values, dtype=float).reshape(-1, len(measures))
    return Scores(tuple(measures), tuple(f"q{i}" for i in range(len(values))), values, (), ())


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("seed", range(5))
def test_t_and_wilcoxon_equal_scipy_on_the_scores(seed, alternative):
    rng = np.random.default_rng(seed)
    run, baseline = rng.random((2, 40))
    for test, function in (("t", stats.ttest_rel), ("wilcoxon", stats.wilcoxon)):
        expected = function(run, baseline, alternative=alternative)
        [found] = compare_scores(
            {"b": scores(baseline), "r": scores(run)}, "b", test=test, alternative=alternative
        ).comparisons
        assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-6)
        assert found.difference == pytest.approx(run.mean() - baseline.mean(), abs=1e-15)


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("seed", range(8))
def test_randomization_equals_the_enumeration_of_all_signs(seed, alternative):
    rng = np.random.default_rng(seed)
    improvements = rng.integers(-4, 8, 10) / 4  # with zeros and ties
    flips = np.array(list(product([1, -1], repeat=10))) @ improvements
    observed = improvements.sum()
    further = np.abs(flips) >= abs(observed) if alternative == "two-sided" else flips >= observed
    statistic, p = paired_test(improvements, "randomization", alternative)
    assert p == pytest.approx(further.mean(), abs=1e-15)
    assert statistic == pytest.approx(improvements.mean())


@pytest.mark.parametrize("test", ["wilcoxon", "randomization"])
def test_ranks_and_signs_are_exact_for_20_nonzero_improvements(test):
    improvements = np.concatenate([np.zeros(200), np.full(20, 0.1)])
    assert paired_test(improvements, test)[1] == 2 / 2**20
    assert paired_test(improvements, test, "greater")[1] == 1 / 2**20
    assert paired_test(-improvements, test, "greater")[1] == 1


def enumerated(improvements, test, alternative):
    """The share of all flips, in whole numbers, whose sum, or sum of ranks, is at least as extreme."""
    values = [Fraction(round(1000 * x)) for x in improvements if x]
    sizes = sorted(map(abs, values))
    if test == "wilcoxon":  # mean ranks of sizes that tie
        first = {size: sizes.index(size) for size in sizes}
        ranks = [first[abs(x)] + Fraction(sizes.count(abs(x)) + 1, 2) for x in values]
        values = [rank if x > 0 else -rank for x, rank in zip(values, ranks, strict=True)]
    sums = [sum(s * x for s, x in zip(signs, values, strict=True)) for signs in product([1, -1], repeat=len(values))]
    reached = [one >= sum(values) if alternative == "greater" else abs(one) >= abs(sum(values)) for one in sums]
    return float(Fraction(sum(reached), len(reached)))


FEW_CHANGES = [
    *((), (0.5,), (-0.5,), (0.1, 0.1), (-0.1, -0.1), (0.1, -0.1), (0.2, 0.5), (0.5, -0.2), (-0.2, -0.5)),
    *((0.1, 0.2, -0.3), (0.1, 0.1, 0.1), (0.1, 0.2, 0.3, -0.1, 0.4), (0.3, 0.1, 0.2, 0.6, -0.6, -0.2)),
]  # the sums of 0.1, 0.2 and -0.3, in any order, are 0 on paper alone


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("equal", [0, 1, 5, 60])
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("changes", FEW_CHANGES)
def test_few_changes_have_the_p_of_an_enumeration(changes, alternative, equal):
    """Among topics that did not change, few or many; of a t-test with a variance, SciPy's."""
    improvements = np.array([*changes, *[0.0] * equal])
    for test in ("wilcoxon", "randomization") if len(improvements) > 1 else ():
        p = paired_test(improvements, test, alternative)[1]
        assert p == (enumerated(changes, test, alternative) if changes else 1), test
    if len(improvements) > 1:
        t, p = paired_test(improvements, "t", alternative)
        if np.ptp(improvements):
            expected = stats.ttest_1samp(improvements, 0, alternative=alternative)
            assert (t, p) == (expected.statistic, pytest.approx(expected.pvalue))
        else:
            assert p == enumerated(changes, "randomization", alternative)
            assert t == (math.copysign(math.inf, changes[0]) if changes else 0)


@pytest.mark.parametrize("seed", range(20))
def test_t_is_scipys_to_the_bit_wherever_differences_vary(seed):
    """Few or many, of a grid or not, also if all but one are equal."""
    rng = np.random.default_rng(seed)
    for n in (2, 3, 4, 7, 19, 20, 50):
        equal = np.full(n, rng.integers(1, 9) / 10)
        equal[-1] += rng.choice([1e-9, 0.1, 1.0])
        for improvements in (rng.normal(0.1, 1, n), rng.choice([0, 0.5, 1], n), equal):
            if np.ptp(improvements):
                t = stats.ttest_1samp(improvements, 0).statistic
                assert paired_test(improvements)[0] == t
                assert paired_test(improvements)[1] == 2 * special.stdtr(n - 1, -abs(t))


@pytest.mark.parametrize("n", [2, 3, 6, 20, 21, 1000, 5000])
def test_equal_differences_have_no_interval_and_the_exact_p(n):
    """Which differences that are equal on paper have, too: their variance is rounding."""
    found = [np.full(n, 0.1), np.full(n, 0.3) - np.full(n, 0.2), np.arange(n) / n + 0.1 - np.arange(n) / n]
    for improvements in found:
        exact = max(2.0**-n, sys.float_info.min)
        for test in ("t", "randomization", *["wilcoxon"] * (not np.ptp(improvements))):
            assert paired_test(improvements, test)[1] == 2 * exact
            assert paired_test(improvements, test, "greater")[1] == exact
            assert paired_test(-improvements, test, "greater")[1] == 1
        runs = {"b": scores(np.zeros(n)), "r": scores(improvements)}
        for c in (*compare_scores(runs, "b").comparisons, *compare_scores(runs, correction="tukey").comparisons):
            assert (c.statistic, c.p, c.corrected_p) == (math.inf, 2 * exact, 2 * exact)
            assert (c.interval, c.effect_size, c.detectable, c.even_odds) == (None, None, None, None)
            assert c.exact_p == (2 * exact if n < 20 and c.exact_p else None)
            assert "interval" not in c.verdict
            assert c.significant == (n >= 6)


@pytest.mark.parametrize(("test", "correction"), [("t", "holm"), ("t", "bh"), ("wilcoxon", "holm"), ("t", "tukey")])
@pytest.mark.parametrize("n", [2, 19, 20])
def test_below_twenty_topics_an_exact_p_stands_beside_that_of_t(n, test, correction):
    """Corrected over the same comparisons, in a column of tables, frames and JSON, which others do not have."""
    values = np.random.default_rng(n).integers(0, 4, (3, n)) / 4 + [[0], [0.1], [0.2]]
    runs = {name: scores(row) for name, row in zip("abc", values, strict=True)}
    found = compare_scores(runs, test=test, correction=correction)
    beside = n < 20 and (test, correction[0]) != ("wilcoxon", "h") and correction != "tukey"
    raw = [paired_test(np.round(values[b] - values[a], 12), "randomization")[1] for a, b in ((0, 1), (0, 2), (1, 2))]
    expected = (holm(raw) if correction == "holm" else stats.false_discovery_control(raw)).tolist()
    assert [c.exact_p for c in found.comparisons] == (expected if beside else [None] * 3)
    table, content = found.to_frame(), to_dict(runs, found)["significance"]["comparisons"]
    assert ("exact p" in table.columns) == ("exact p" in str(found)) == ("exact p:" in found.columns_note) == beside
    assert [one.get("exact_p") for one in content] == (expected if beside else [None] * 3)
    assert ("exact_p" in content[0]) == beside


def test_of_several_collections_the_small_have_an_exact_p():
    """Corrected as if those of t were exact where there are many topics."""
    small, large = ({name: scores(np.random.default_rng(n + 40).random(n)) for name in "ab"} for n in (9, 30))
    small["b"] = replace(small["b"], values=small["b"].values[::-1])
    large["b"] = replace(large["b"], values=large["b"].values[::-1] + 0.3)
    tests = compare_collections({"small": small, "large": large}, None, "a")
    [one], [other] = (tests[name].comparisons for name in ("small", "large"))
    exact = paired_test((small["b"].values - small["a"].values)[:, 0], "randomization")[1]
    assert (one.exact_p, other.exact_p) == (pytest.approx(holm([exact, other.p])[0]), None)


def test_randomization_of_many_queries_is_near_the_t_test_and_repeats_with_its_seed():
    improvements = np.random.default_rng(0).normal(0.15, 1, 200)
    p = paired_test(improvements, "randomization", seed=1)[1]
    assert p == pytest.approx(paired_test(improvements, "t")[1], abs=0.01)
    assert p == paired_test(improvements, "randomization", seed=1)[1]
    assert p != paired_test(improvements, "randomization", seed=2)[1]


@pytest.mark.parametrize("test", ["t", "wilcoxon", "randomization"])
@pytest.mark.parametrize("measure", [AP, LOSS])
def test_interval_effect_size_and_direction_equal_scipys_and_the_definition(test, measure):
    """They are on the scale of the difference, whatever is better and whatever the test."""
    run, baseline = np.random.default_rng(3).random((2, 40)) + np.array([[0.3], [0.0]])
    [found] = compare_scores(
        {"b": scores(baseline, (measure,)), "r": scores(run, (measure,))}, "b", test=test
    ).comparisons
    expected = stats.ttest_rel(run, baseline).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert found.effect_size == pytest.approx((run - baseline).mean() / np.std(run - baseline, ddof=1))
    assert found.direction == (1 if measure is AP else -1)


@pytest.mark.parametrize("n", [2, 3, 5, 10, 52, 93, 225, 6980])
def test_the_power_at_the_detectable_difference_is_80_percent(n):
    """By SciPy's noncentral t; for many queries the normal approximation, (1.96 + 0.84) SD / sqrt(n)."""
    values = np.random.default_rng(n).normal(0, 0.06, n)
    [found] = compare_scores({"b": scores(np.zeros(n)), "r": scores(values)}, "b").comparisons
    shift = found.detectable * math.sqrt(n) / values.std(ddof=1)
    assert stats.nct.sf(stats.t.isf(0.025, n - 1), n - 1, shift) == pytest.approx(0.8, abs=1e-6)
    if n >= 50:
        approximate = (stats.norm.isf(0.025) + stats.norm.isf(0.2)) * values.std(ddof=1) / math.sqrt(n)
        assert found.detectable == pytest.approx(approximate, rel=1.1 / n)


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("power", [0.5, 0.8])
@pytest.mark.parametrize("n", [8, 25])
def test_simulated_tests_show_the_detectable_difference_as_often_as_said(n, power, sides):
    trials = 20_000
    shift = detectable_difference(1 / math.sqrt(n), n, power=power, critical=critical_t(n, sides=sides))
    samples = np.random.default_rng(0).normal(shift, 1, (trials, n))
    alternative = "greater" if sides == 1 else "two-sided"
    shown = (stats.ttest_1samp(samples, 0, axis=1, alternative=alternative).pvalue < 0.05).mean()
    assert shown == pytest.approx(power, abs=4 * math.sqrt(power * (1 - power) / trials))


@pytest.mark.parametrize("correct", [holm, stats.false_discovery_control])
@pytest.mark.parametrize("others", [0.0, 3.0])
def test_corrected_tests_show_it_at_least_as_often(correct, others):
    """As often by Holm's correction if nothing else is different, and more often if all else is."""
    n, m, trials = 25, 6, 3000
    shift = detectable_difference(1 / math.sqrt(n), n, critical=critical_t(n, comparisons=m))
    means = np.array([shift, *[others] * (m - 1)])[:, None]
    samples = np.random.default_rng(0).normal(means, 1, (trials, m, n))
    ps = stats.ttest_1samp(samples, 0, axis=2).pvalue
    shown = np.mean([correct(p)[0] < 0.05 for p in ps])
    assert shown > 0.8 - 4 * math.sqrt(0.16 / trials)
    if correct is holm and not others:
        assert shown < 0.84  # it is no bound that is far off


def test_comparisons_have_the_differences_that_the_corrected_test_shows():
    rng = np.random.default_rng(4)
    runs = {name: scores(rng.random((20, 2)), (AP, P5)) for name in "abc"}
    for c in compare_scores(runs, "a").comparisons:
        error = c.difference / c.effect_size / math.sqrt(20)
        critical = critical_t(20, comparisons=4)
        assert c.detectable == pytest.approx(detectable_difference(error, 20, critical=critical))
        assert c.even_odds == pytest.approx(detectable_difference(error, 20, critical=critical, power=0.5))
        assert c.even_odds < c.detectable


def test_wilcoxons_ranks_may_contradict_the_means():
    """Many small losses outrank one large gain, which decides the mean."""
    runs = {"b": scores([0.5] * 12), "r": scores([0.4] * 11 + [2.0])}
    assert [compare_scores(runs, "b", test=test).comparisons[0].direction for test in ("t", "wilcoxon")] == [1, 0]


def test_all_pairs_are_the_comparisons_with_each_baseline():
    rng = np.random.default_rng(8)
    runs = {name: scores(rng.random((20, 2)), (AP, P5)) for name in "abc"}
    found = compare_scores(runs).comparisons
    assert [(c.baseline, c.run) for c in found[::2]] == [("a", "b"), ("a", "c"), ("b", "c")]
    for c in found:
        [other] = [o for o in compare_scores(runs, c.baseline).comparisons if (o.run, o.measure) == (c.run, c.measure)]
        same = {"corrected_p": 0, "detectable": 0, "even_odds": 0}  # by the size of the family
        assert replace(c, **same) == replace(other, **same)
    assert [c.corrected_p for c in found] == holm([c.p for c in found]).tolist()


def test_benjamini_and_hochbergs_correction_is_scipys():
    rng = np.random.default_rng(9)
    runs = {name: scores(rng.random((20, 2)) + 0.1 * n, (AP, P5)) for n, name in enumerate("abc")}
    found = compare_scores(runs, correction="bh").comparisons
    assert [c.corrected_p for c in found] == stats.false_discovery_control([c.p for c in found]).tolist()


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("test", ["t", "wilcoxon", "randomization"])
def test_equal_scores_give_p_1(test, alternative):
    same = scores([0.1, 0.5, 0.9])
    [found] = compare_scores({"b": same, "r": same}, "b", test=test, alternative=alternative).comparisons
    assert (found.difference, found.statistic, found.p, found.corrected_p) == (0, 0, 1, 1)
    assert (found.wins, found.ties, found.losses, found.direction) == (0, 3, 0, 0)
    assert (found.interval, found.effect_size, found.detectable) == ((0, 0), None, None)


def test_equal_differences_tie_despite_rounding_errors():
    assert 0.3 - 0.2 != 0.2 - 0.1
    runs = {"b": scores([0.2, 0.2, 0.1, 0.6]), "r": scores([0.3, 0.1, 0.2, 0.8])}
    [found] = compare_scores(runs, "b", test="wilcoxon", alternative="greater").comparisons
    assert found.statistic == 2 + 2 + 4  # the three of 0.1 share rank 2


@pytest.mark.parametrize("seed", range(20))
def test_holm_equals_its_definition(seed):
    """Each p-value is the largest (m - j) p_j, j from 0, over the p-values up to it."""
    rng = np.random.default_rng(seed)
    ps = rng.choice([*rng.random(8), 0.0, 1.0, 1e-300], rng.integers(1, 30))
    corrected = holm(ps)
    for p, value in zip(ps, corrected, strict=True):
        before = [(len(ps) - j) * other for j, other in enumerate(sorted(ps)) if other <= p]
        assert value == min(1, max(before))
    assert holm([]).shape == (0,)


def test_wins_and_sides_follow_the_direction_of_the_measure():
    runs = {
        "b": scores([[0.5, 0.5]] * 6, (AP, LOSS)),
        "r": scores([[0.6, 0.4]] * 4 + [[0.5, 0.5], [0.3, 0.7]], (AP, LOSS)),
    }
    gain, loss = compare_scores(runs, "b", test="wilcoxon", alternative="greater").comparisons
    assert (gain.wins, gain.ties, gain.losses) == (loss.wins, loss.ties, loss.losses) == (4, 1, 1)
    assert gain.p == loss.p
    assert gain.difference == pytest.approx(-loss.difference)


@pytest.mark.parametrize("seed", range(20))
def test_equivalence_is_the_90_percent_interval_within_the_margin(seed):
    """The confidence interval is SciPy's, and so are the two one-sided tests whose larger p it is."""
    rng = np.random.default_rng(seed)
    x, margin = rng.normal(rng.normal(0, 0.01), 0.03, rng.integers(5, 120)), 0.012
    interval = stats.ttest_1samp(x, 0).confidence_interval(0.9)
    p = equivalence_test(x, margin)
    assert (p < 0.05) == (-margin < interval.low and interval.high < margin)
    above = stats.ttest_1samp(x, -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(x, margin, alternative="less").pvalue
    assert p == pytest.approx(max(above, below))
    assert equivalence_test(x, margin, "greater") == pytest.approx(above)


@pytest.mark.parametrize("n", [2, 5, 30])
def test_equivalence_of_equal_differences_is_exact(n):
    """By the one-sided tests of difference + margin and margin - difference; the margin itself is not within."""
    differences, exact = (0.0, 0.05, 0.1, 0.3 - 0.2, -0.1, 0.2 - 0.3, -0.2), 2.0**-n
    found = [equivalence_test(np.full(n, d), 0.1) for d in differences]
    assert found == [exact, exact, 1, 1, 1, 1, 1]
    found = [equivalence_test(np.full(n, d), 0.1, "greater") for d in differences]
    assert found == [exact, exact, exact, exact, 1, 1, 1]


def test_a_margin_adds_corrected_equivalence_to_every_comparison():
    """A small difference of many queries can be significant and within the margin; both are said."""
    rng = np.random.default_rng(2)
    base = rng.random((300, 1))
    runs = {
        "base": scores(base),
        "near": scores(base + rng.normal(0.004, 0.01, (300, 1))),
        "far": scores(base + rng.normal(0.004, 0.9, (300, 1))),
    }
    near, far = compare_scores(runs, "base", margin=0.01).comparisons
    raw = [equivalence_test((runs[name].values - base)[:, 0], 0.01) for name in ("near", "far")]
    assert [near.equivalence_p, far.equivalence_p] == pytest.approx(holm(raw).tolist())
    assert near.corrected_p < 0.05
    assert near.equivalence_p < 0.05 < far.equivalence_p
    assert "is better than base" in near.verdict
    assert "the same within 0.01" in near.verdict
    assert "is not shown" in far.verdict
    assert [c.margin for c in compare_scores(runs, "base").comparisons] == [None, None]


def test_chosen_pairs_are_corrected_together():
    rng = np.random.default_rng(0)
    by_name = {name: Scores.single(AP, {str(q): float(v) for q, v in enumerate(rng.random(30))}) for name in "abc"}
    alone = [compare_scores({a: by_name[a], b: by_name[b]}, a).comparisons[0] for a, b in ("ab", "bc")]
    together = compare_scores(by_name, pairs=["ab", "bc"])
    assert [(c.baseline, c.run) for c in together.comparisons] == [("a", "b"), ("b", "c")]
    assert [c.corrected_p for c in together.comparisons] == holm([c.p for c in alone]).tolist()
    assert all(c.detectable > one.detectable for c, one in zip(together.comparisons, alone, strict=True))
    assert "over 2 comparisons" in together.method


def without(kind, run):
    """Scores of a run that did not run: topics that it lacks, empty rankings, or some of both."""
    cut = {"missing": len(run.qids), "empty": 0, "both": 5}[kind]
    return replace(run, values=np.zeros_like(run.values), missing=run.qids[:cut], empty=run.qids[cut:])


@pytest.mark.parametrize("kind", ["missing", "empty", "both"])
@pytest.mark.parametrize("correction", ["holm", "bh", "tukey"])
@pytest.mark.parametrize("baseline", [None, "a", "absent"])
@pytest.mark.parametrize("measures", [(AP, P5), (LOSS, AP)])
def test_a_run_that_did_not_run_has_no_verdict(kind, correction, baseline, measures):
    """And the others are corrected as if it were not there, on few topics, too, and with a margin."""
    if correction == "tukey" and baseline:
        return
    rng = np.random.default_rng(1)
    runs = {name: scores(rng.random((12, 2)) + 0.2 * n, measures) for n, name in enumerate("abc")}
    every = {**runs, "absent": without(kind, runs["a"])}
    given = {"correction": correction, "margin": None if correction == "tukey" else 0.1}
    found = compare_scores(every, baseline, **given)
    others = [c for c in found.comparisons if "absent" not in (c.run, c.baseline)]
    expected = () if baseline == "absent" else compare_scores(runs, baseline, **given).comparisons
    assert tuple(others) == expected
    assert f"over {len(expected)} comparison" in found.method
    rows = dict(zip(found.comparisons, found.to_frame().to_dict("records"), strict=True))
    content = json.loads(json.dumps(to_dict(every, found), allow_nan=False))["significance"]["comparisons"]
    for c, written in zip(found.comparisons, content, strict=True):
        assert (written.get("not_run") is not None) == ("absent" in (c.run, c.baseline))
        if c not in others:
            assert c.not_run == written["not_run"] == "absent did not run, as it ranks no topic"
            assert c.verdict == f"{c.run} is not compared with {c.baseline}: {c.not_run}."
            assert (c.interval, c.effect_size, c.detectable, c.equivalence_p, c.exact_p) == (None,) * 5
            assert [math.isnan(p) for p in (c.p, c.corrected_p, c.statistic)] == [True] * 3
            assert (c.significant, c.direction) == (False, 0)
            assert written["p"] is written["corrected_p"] is written["interval"] is None
            assert math.isnan(rows[c]["corrected p"])


def test_runs_without_a_topic_in_common_are_not_compared():
    values = np.random.default_rng(0).random(10)
    even, odd = (tuple(f"q{n}" for n in range(start, 10, 2)) for start in (0, 1))
    runs = {"a": replace(scores(values), missing=even), "b": replace(scores(values), empty=odd), "c": scores(values)}
    found = {(c.run, c.baseline): c.not_run for c in compare_scores(runs).comparisons}
    assert found == {("b", "a"): "b and a rank no topic in common", ("c", "a"): "", ("c", "b"): ""}
    assert all(math.isnan(c.p) == bool(c.not_run) for c in compare_scores(runs, correction="tukey").comparisons)
