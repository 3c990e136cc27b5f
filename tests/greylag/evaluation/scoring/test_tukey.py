"""Tukey's HSD against the t-test of two runs, least squares, SciPy's integral, and simulations of equal runs."""

import numpy as np
import pytest
from scipy import stats

from greylag.evaluation import compare_scores
from greylag.evaluation.scoring.significance import Design, compare_collections
from greylag.evaluation.scoring.tukey import residual_variance, tukey_critical, tukey_p
from tests.greylag.evaluation.scoring.test_significance import AP, LOSS, P5, scores


def table(values, measures=(AP,)):
    """The scores of runs, shape (runs, topics) or (runs, topics, measures)."""
    return {f"r{n}": scores(run, measures) for n, run in enumerate(values)}


def test_of_two_runs_it_is_the_paired_t_test():
    values = np.random.default_rng(0).random((2, 30)) * [[1], [1.4]]
    [found] = compare_scores(table(values), correction="tukey").comparisons
    expected = stats.ttest_rel(*values[::-1])
    assert (found.statistic, found.p, found.corrected_p) == pytest.approx((expected.statistic, *[expected.pvalue] * 2))
    assert found.interval == pytest.approx(tuple(expected.confidence_interval(0.95)))


@pytest.mark.parametrize("seed", range(3))
def test_the_variance_is_what_least_squares_on_runs_and_topics_leave(seed):
    """And p is SciPy's of the studentized range, also of the second of three measures, where lower is better."""
    m, n = 5, 12
    values = np.random.default_rng(seed).random((m, n, 3)) + np.linspace(0, 0.4, m)[:, None, None]
    run, topic = np.indices((m, n)).reshape(2, -1)
    design = np.column_stack([run[:, None] == np.arange(m), topic[:, None] == np.arange(1, n)])
    y = values[:, :, 1].ravel()
    left = y - design @ np.linalg.lstsq(design.astype(float), y, rcond=None)[0]
    variance, freedom = residual_variance(values[:, :, 1])
    assert (variance, freedom) == (pytest.approx(left @ left / 44), 44)
    found = compare_scores(table(values, (AP, LOSS, P5)), correction="tukey").comparisons
    assert len(found) == 30
    for c in found[1::3]:
        q = abs(c.difference) / np.sqrt(left @ left / 44 / n)
        assert c.p == pytest.approx(stats.studentized_range.sf(q, m, 44), rel=1e-6)
        assert c.corrected_p == min(1, 3 * c.p)
        assert (c.interval[0] > 0 or c.interval[1] < 0) == (c.corrected_p < 0.05)
        assert c.effect_size == pytest.approx(c.difference / np.sqrt(variance))
        assert c.direction == -np.sign(c.difference)


def test_two_collections_are_two_families():
    values = np.random.default_rng(5).random((3, 20)) * [[1], [1.1], [1.2]]
    one, two = table(values), table(values[:, ::-1][:, :15])
    tests = compare_collections({"a": one, "b": two}, None, design=Design(correction="tukey", all_pairs=True))
    for name, scored in (("a", one), ("b", two)):
        alone = compare_scores(scored, correction="tukey").comparisons
        assert [c.p for c in tests[name].comparisons] == [c.p for c in alone]
        assert [c.corrected_p for c in tests[name].comparisons] == [min(1, 2 * c.p) for c in alone]


def test_p_of_many_pairs_are_the_integral_that_is_interpolated():
    t = np.random.default_rng(1).gamma(1.5, 2, 1770)
    found, some = tukey_p(t, 60, 59 * 39), slice(0, None, 60)
    assert found[some] == pytest.approx(stats.studentized_range.sf(np.sqrt(2) * t[some], 60, 59 * 39), abs=1e-8)
    assert (found[np.argsort(t)][:-1] >= found[np.argsort(t)][1:] - 1e-9).all()
    assert tukey_p(np.array([0.0, 50.0, np.inf]), 60, 59 * 39).tolist() == [1, pytest.approx(0, abs=1e-99), 0]


def test_of_equal_runs_one_in_twenty_tables_has_a_difference():
    """Topics differ far more than runs, which a test of independent samples would drown in; a real one is found."""
    rng, trials, m, n = np.random.default_rng(2), 3000, 8, 20
    critical = {families: tukey_critical(m, (m - 1) * (n - 1), families) for families in (1, 2)}
    wrong = {1: 0, 2: 0}
    for _ in range(trials):
        values = rng.normal(0, 0.1, (2, m, n)) + rng.normal(0, 5, n)
        largest = [np.ptp(one.mean(axis=1)) / np.sqrt(2 * residual_variance(one)[0] / n) for one in values]
        wrong[1] += largest[0] > critical[1]
        wrong[2] += max(largest) > critical[2]
    for count in wrong.values():
        assert count / trials == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / trials))
    values[1][0] += 0.2
    found = compare_scores(table(values[1]), correction="tukey").comparisons
    assert {c.baseline for c in found if c.significant} == {"r0"}


@pytest.mark.parametrize("n", [2, 6, 30])
def test_without_a_residual_p_is_exact_for_all_pairs(n):
    """That of all flips of one pair's signs, three times, and again for each of two measures."""
    topics = np.random.default_rng(3).random((n, 2))
    found = compare_scores(table([topics, topics, topics + 0.1], (AP, P5)), correction="tukey").comparisons
    same, other, better = found[::2]
    exact = min(1, 3 * 2 / 2**n)
    assert [c.p for c in found] == [1, 1, *[exact] * 4]
    assert other.corrected_p == better.corrected_p == min(1, 2 * exact)
    assert (same.effect_size, same.interval, other.detectable, other.interval) == (None, (0, 0), None, None)
