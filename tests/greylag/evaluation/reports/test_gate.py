"""A gate against SciPy's one-sided paired t-test, with Holm's correction written out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from greylag.base import ParameterError
from greylag.evaluation import Scores, compare_scores
from greylag.evaluation.reports.gate import MOST_CHECKS, GateRule, check_gate
from greylag.evaluation.reports.parts import scores_by_category
from tests.greylag.evaluation.reports.test_verdict import scores
from tests.refusals import refuses


def check(parts, tests, fail_if):
    """The gate by a rule as users write it."""
    return check_gate(parts, tests, GateRule.parse(fail_if))


def holm_by_hand(p_values):
    """Reject in order of p while p is at most 0.05 / (m - k); corrected p by its definition."""
    order, found = sorted(range(len(p_values)), key=lambda i: p_values[i]), {}
    for k, i in enumerate(order):
        found[i] = min(1.0, max([(len(p_values) - k) * p_values[i], *(found[j] for j in order[:k])]))
    return [found[i] for i in range(len(p_values))]


def within_range(found):
    """Scores from 0 to 1."""
    return {name: replace(one, values=one.values / 1.6) for name, one in found.items()}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fail_if", ["lower", "worse", 0.05, 0.2])
def test_checks_are_scipys(seed, fail_if):
    found = within_range(scores(np.random.default_rng(seed), "abc", ["AP", "subtopic-loss@5"]))
    parts = {"all": found} | {
        name: {run: type(one)(one.measures, one.qids[rows], one.values[rows], (), ()) for run, one in found.items()}
        for name, rows in (("easy", slice(0, 11)), ("hard", slice(11, 30)))
    }
    gate = check(parts, compare_scores(found, "a"), fail_if)
    expected = {}
    for name, part in parts.items():
        for run in "bc":
            for column, (measure, sign) in enumerate((("AP", 1), ("subtopic-loss@5", -1))):
                new, old = (sign * part[one].values[:, column] for one in (run, "a"))
                limit = 0 if isinstance(fail_if, str) else fail_if
                side = "less" if fail_if == "worse" else "greater"
                p = stats.ttest_rel(new + limit, old, alternative=side).pvalue
                expected[name, run, measure] = (new - old).mean(), float(p)
    corrected = holm_by_hand([p for _, p in expected.values()])
    assert len(gate.checks) == len(expected) == 12
    for (key, (gain, _)), p in zip(expected.items(), corrected, strict=True):
        made = next(one for one in gate.checks if (one.topics, one.run, one.measure) == key)
        failed = {"lower": gain < 0, "worse": p < 0.05}.get(fail_if, p >= 0.05)
        assert (made.improvement, made.failed) == (pytest.approx(gain), failed)
        assert made.p == (None if fail_if == "lower" else pytest.approx(p))
    failing = [check.failed for check in gate.checks]
    assert failing == sorted(failing, reverse=True)
    assert gate.passed == (not any(failing))
    assert str(gate).startswith(f"gate {'passed' if gate.passed else 'failed'}: {sum(failing)} of 12 checks fail; ")
    assert len(str(gate).splitlines()) <= MOST_CHECKS + 3
    assert gate.to_dict()["passed"] == gate.passed


@pytest.mark.parametrize("test", ["t", "wilcoxon", "randomization"])
@pytest.mark.parametrize("change", [0.3, -0.3])
def test_a_single_topic_that_changed_is_tested_in_categories(test, change):
    """In one category it is the only one of several topics, in another nothing changed."""
    values = np.linspace(0, 0.5, 12)[:, None]
    changed = values + change * (np.arange(12) == 3)[:, None]
    measures, qids = scores(np.random.default_rng(0), "a", ["AP", "P@5"])["a"].measures[:1], [*map(str, range(12))]
    found = {name: Scores(measures, tuple(qids), one, (), ()) for name, one in (("a", values), ("b", changed))}
    parts = {
        "all": found,
        **scores_by_category(found, {qid: "early" if n < 6 else "late" for n, qid in enumerate(qids)}),
    }
    gate = check(parts, compare_scores(found, "a", test=test, correction="bh"), "worse")
    n = {"all": 12, "early": 6, "late": 6}
    t = {name: stats.t.sf(-np.sign(change), n[name] - 1) for name in ("all", "early")}
    exact = dict.fromkeys(("all", "early"), 0.5 if change < 0 else 1.0)
    expected = stats.false_discovery_control([*(t if test == "t" else exact).values()])
    found = {check.topics: check.p for check in gate.checks}
    assert found.pop("late") is None
    assert found == pytest.approx(dict(zip(("all", "early"), expected, strict=True)))
    assert {check.note for check in gate.checks if check.topics == "late"} == {"identical"}
    assert gate.passed


def test_baselines_are_not_checked():
    found = scores(np.random.default_rng(0), "abc", ["AP", "P@5"])
    gate = check({"all": found}, compare_scores(found, ["a", "b"]), "lower")
    assert {(check.run, check.baseline) for check in gate.checks} == {("c", "a"), ("c", "b")}


def test_equal_runs_pass():
    found = scores(np.random.default_rng(0), "a", ["AP", "P@5"])
    same = found | {"b": found["a"]}
    lost = Scores(found["a"].measures[:1], ("1", "2", "3"), np.array([[0.0], [0.1], [0.2]]), (), ())
    moved = {"a": lost, "b": replace(lost, values=np.array([[0.3], [0.0], [0.0]]))}  # 0.3 - 0.1 - 0.2 is below 0
    assert check({"all": moved}, compare_scores(moved, "a"), "lower").passed
    assert all(check({"all": same}, compare_scores(same, "a"), by).passed for by in ("lower", "worse", 1e-9))


@pytest.mark.parametrize(
    ("fail_if", "part"),
    [
        ("better", "'better'"),
        ("0", "not 0"),
        (0.0, "not 0"),
        (-1, "-1"),
        (np.nan, "nan"),
        (True, "True"),
        ("2%", "0.02"),
    ],
)
def test_refused(fail_if, part):
    refuses(lambda: GateRule.parse(fail_if), ParameterError, part)


def test_refused_before_runs_are_read():
    """By the names of runs, and by measures where these are known."""
    measures = scores(np.random.default_rng(0), "a", ["AP", "P@5"])["a"].measures
    for baselines, rule, part in (([], "lower", "needs a baseline"), (["b", "a"], "worse", "all runs are baselines")):
        refuses(lambda: GateRule.parse(rule).check("ab", baselines, ()), ParameterError, part, "|")  # noqa: B023
    refuses(lambda: GateRule.parse(2).check("ab", ["a"], measures), ParameterError, "perhaps 0.02 is meant", "|")
    GateRule.parse("0.02").check("ab", ["a"], measures)
