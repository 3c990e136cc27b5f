"""A gate against SciPy's one-sided paired t-test, with Holm's correction, which `test_significance` tests."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from greylag.base import ParameterError
from greylag.evaluation import Scores, compare, compare_scores, correct_by_people, holm, parse_measure
from greylag.evaluation.reports.evaluation import Evaluation
from greylag.evaluation.reports.gate import MOST_CHECKS, Floors, GateRule, check_gate, parse_rules
from greylag.evaluation.reports.parts import scores_by_category
from greylag.evaluation.scoring.predicted import evaluate_with_predictions
from tests.greylag.evaluation.reports.test_verdict import scores
from tests.refusals import refuses


def check(parts, tests, fail_if):
    """The gate by a rule as users write it."""
    return check_gate(parts, tests, parse_rules(fail_if))


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
    corrected = holm([p for _, p in expected.values()])
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
        ("better", "'better'"), ("0", "not 0"), (0.0, "not 0"), (-1, "-1"), (np.nan, "nan"), (True, "True"),
        ("2%", "0.02"),
    ],
)  # fmt: skip
def test_refused(fail_if, part):
    refuses(lambda: GateRule.parse(fail_if), ParameterError, part)


def test_refused_before_runs_are_read():
    """By the names of runs, and by measures where these are known."""
    measures = scores(np.random.default_rng(0), "a", ["AP", "P@5"])["a"].measures
    for baselines, rule, part in (([], "lower", "needs a baseline"), (["b", "a"], "worse", "all runs are baselines")):
        refuses(lambda: GateRule.parse(rule).check("ab", baselines, ()), ParameterError, part, "|")  # noqa: B023
    refuses(lambda: GateRule.parse(2).check("ab", ["a"], measures), ParameterError, "perhaps 0.02 is meant", "|")
    GateRule.parse("0.02").check("ab", ["a"], measures)


@pytest.mark.parametrize("baseline", [None, "a"])
@pytest.mark.parametrize("seed", range(4))
def test_floors_are_scipys(seed, baseline):
    """By the mean; by a one-sided t-test of one sample, with Holm's correction over all floors."""
    found = within_range(scores(np.random.default_rng(seed), "abc", ["AP", "P@5"]))
    tests, runs = (compare_scores(found, baseline), "bc") if baseline else (None, "abc")
    floors = {"AP": 0.4, "P@5": str(found["b"].means[1])}
    low = {f"low:{name}": floor for name, floor in floors.items()}
    samples = {(run, name): found[run].values[:, n] for run in runs for n, name in enumerate(floors)}
    p = [
        stats.ttest_1samp(values, float(floors[key[1]]), alternative="greater").pvalue
        for key, values in samples.items()
    ]
    expected = dict(zip(samples, holm(p), strict=True))
    by_mean, by_low = (check_gate({"all": found}, tests, (), Floors.parse(each)) for each in (floors, low))
    for gate, by in ((by_mean, "mean"), (by_low, "low")):
        assert {(check.run, check.measure) for check in gate.checks} == {*samples}
        for check_ in gate.checks:
            key = check_.run, check_.measure
            above = samples[key].mean() - float(floors[check_.measure])
            assert check_.improvement == pytest.approx(above, abs=1e-11)
            assert check_.p == (None if by == "mean" else pytest.approx(expected[key]))
            assert check_.failed == (check_.improvement < 0 if by == "mean" else expected[key] >= 0.05)
    assert next(check for check in by_mean.checks if (check.run, check.measure) == ("b", "P@5")).failed is False
    assert ("low end" in str(by_low), "low end" in str(by_mean)) == (True, False)
    each = check_gate({"all": found}, tests, (), Floors.parse({"low:AP": 0.4, "P@5": floors["P@5"]}))
    assert {(check.baseline[:3], check.measure) for check in each.checks} == {("low", "AP"), ("flo", "P@5")}
    assert ", or not shown to be at its low floor" in each.rule
    both = check_gate({"all": found}, compare_scores(found, "a"), parse_rules("worse"), Floors.parse(low))
    assert len(both.checks) == 8
    floored = {(check.run, check.measure): check.p for check in both.checks if check.baseline != "a"}
    assert not baseline or all(floored[key] >= expected[key] - 1e-9 for key in floored)


@pytest.mark.parametrize(
    ("measure", "values", "floor", "share"),
    [
        ("Success@1", [1] * 5, 0.54, 0.54),
        ("Success@1", [1] * 5, 0.9, 0.9),
        ("Success@1", [1] * 17 + [0] * 3, 0.6, 0.6),
        ("Success@1", [0] * 9, 0.5, 0.5),
        ("AP", [0.6] * 6 + [0] * 2, 0.3, 0.5),
        ("AP", [0.3] * 6, 0.4, 1),
        ("utility", [2] * 6, 1, 1),
    ],
)
def test_two_scores_are_held_against_a_low_floor_by_the_exact_binomial_test(measure, values, floor, share):
    """Of which t is none, and half of all signs no chance: a rate of .9 has five of five in 59 % of cases."""
    two = {"a": Scores.single(parse_measure(measure), dict(zip(map(str, range(30)), map(float, values), strict=False)))}
    (made,) = check_gate({"all": two}, None, (), Floors.parse({f"low:{measure}": floor})).checks
    assert made.p == pytest.approx(stats.binomtest(sum(map(bool, values)), len(values), share, "greater").pvalue)
    assert made.failed == (made.p >= 0.05)
    few = {"a": Scores.single(parse_measure("AP"), dict.fromkeys("1234", 1.0))}
    low = Floors.parse({"low:AP": 0.9})
    refuses(
        lambda: check_gate({"all": few}, None, (), low), ParameterError, "at least 5 topics, not 4|without low:", "|"
    )


def test_equal_scores_by_people_are_held_against_a_low_floor_by_their_number():
    """Where they are equal, a corrected mean has no error."""
    measures, qids = (parse_measure("AP"),), tuple(map(str, range(20)))
    people = {"a": Scores(measures, qids[:8], np.ones((8, 1)), (), ())}
    predicted = {"a": Scores(measures, qids, np.linspace(0.5, 1, 20)[:, None], (), ())}
    found = Evaluation(people, corrections=evaluate_with_predictions(people, predicted, None))
    (made,) = found.gated(floors={"low:AP": 0.9}).gate.checks
    assert (made.mean, made.p, made.failed) == (1.0, pytest.approx(0.9**8), True)


def test_floors_beside_tukeys_test_are_corrected_by_holm():
    """As the studentised range is of pairs of runs."""
    found = within_range(scores(np.random.default_rng(0), "abc", ["AP"]))
    tukey = Evaluation(found).tested(compare_scores(found, correction="tukey"))
    gate = tukey.gated(floors={"low:AP": 0.45}).gate
    p = [stats.ttest_1samp(run.values[:, 0], 0.45, alternative="greater").pvalue for run in found.values()]
    assert sorted(check.p for check in gate.checks) == pytest.approx(sorted(holm(p)))
    assert "Holm's correction" in gate.rule


def test_a_gate_is_true_if_it_passed_and_names_runs_without_rankings():
    qrels = {str(q): {"a": 1} for q in range(20)}
    whole = {qid: {"a": 1.0} for qid in qrels}
    less = {qid: scores if int(qid) % 10 else {} for qid, scores in whole.items()} | {"19": {"b": 1.0}}
    del less["7"]
    found = compare({"then": whole, "now": less}, qrels, ["AP"], baseline="then")
    passed, failed = found.gated(floors={"AP": 0.5}), found.gated("lower")
    assert bool(passed.gate) is passed.gate.passed is True
    assert bool(failed.gate) is failed.gate.passed is False
    for form in ("text", "junit", "markdown", "html", "latex"):
        assert re.search("now has no ranking for 3 topics|without a ranking in now.{1,9}3", failed.format(form)), form
    assert failed.to_dict()["gate"]["topics_without_ranking"] == {"now": 3}
    refuses(lambda: passed.gated("lower"), ParameterError, "one call")
    refuses(lambda: passed.released("2"), ParameterError, "released before gated")
    refuses(lambda: passed.by_category(dict.fromkeys(qrels, "x")), ParameterError, "by_category before gated")
    refuses(lambda: found.by_category(dict.fromkeys(qrels, "x")).powered(0.1), ParameterError, "power categories")


@pytest.mark.parametrize(
    ("floors", "part"),
    [
        ({"AP": 0.0}, "above 0"),
        ({"AP": 1.1}, "up to 1"),
        ({"low:AP": 1}, "no low end reaches"),
        ({"AP": "30%"}, "such as 0.3"),
        ({"AP": np.nan}, "such as 0.3"),
        ({"AP": True}, "such as 0.3"),
        ({"AP": None}, "such as 0.3"),
        ("AP=0.3", "by name of measure"),
        ({"AP": 0.3, "map": 0.2}, "AP is given twice"),
        ({"subtopic-loss@5": 0.3}, "better the higher"),
        ({"gm_map": 0.3}, "leave it out"),
        ({}, "needs a rule or floors"),
        ({"P@9": 0.3}, "scored by AP, P@5"),
    ],
)
def test_floors_are_refused(floors, part):
    found = Evaluation(scores(np.random.default_rng(0), "ab", ["AP", "P@5"]))
    refuses(lambda: found.gated(floors=floors), ParameterError, part, "|")


@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize("fail_if", ["lower", "worse", 0.05, 0.3])
def test_predicted_differences_are_held_by_their_own_error(fail_if, follow):
    """A margin shifts people's scores: half of the two-sided p of what is shifted is the one-sided p."""
    rng, qids = np.random.default_rng(3), tuple(map(str, range(60)))
    measures = parse_measure("AP"), parse_measure("subtopic-loss@5")
    whole = {name: np.clip(rng.uniform(0.3, 0.6, (60, 2)) - 0.04 * (name == "b"), 0, 1) for name in "ab"}
    guesses = {n: np.clip(v + 0.1, 0, 1) if follow else rng.uniform(0, 1, (60, 2)) for n, v in whole.items()}
    people = {name: Scores(measures, qids[:20], values[:20], (), ()) for name, values in whole.items()}
    predicted = {name: Scores(measures, qids, values, (), ()) for name, values in guesses.items()}
    corrections = evaluate_with_predictions(people, predicted, "a")
    found = Evaluation(people, corrections=corrections).gated(fail_if, floors={"low:AP": 0.4}).gate
    shift, expected = 0.0 if isinstance(fail_if, str) else fail_if, {}
    for column, sign in ((0, 1), (1, -1)):
        gains, guessed = (sign * (one["b"][:, column] - one["a"][:, column]) for one in (whole, guesses))
        moved = correct_by_people(gains[:20] + shift, guessed[:20], guessed[20:])
        above = moved.p / 2 if moved.corrected > 0 else 1 - moved.p / 2
        expected["a", str(measures[column])] = (moved.corrected - shift, 1 - above if fail_if == "worse" else above)
    floor = correct_by_people(whole["b"][:20, 0] - 0.4, guesses["b"][:20, 0], guesses["b"][20:, 0])
    expected["low floor 0.4", "AP"] = floor.corrected, floor.p / 2 if floor.corrected > 0 else 1 - floor.p / 2
    tested = [key for key in expected if fail_if != "lower" or key[0] != "a"]
    corrected = dict(zip(tested, holm([expected[key][1] for key in tested]), strict=True))
    assert {(check.baseline, check.measure) for check in found.checks} == {*expected}
    for one in found.checks:
        key = one.baseline, one.measure
        assert one.improvement == pytest.approx(expected[key][0], abs=1e-11)
        assert one.p == (pytest.approx(corrected[key]) if key in corrected else None)
        worse = key[0] == "a" and fail_if == "worse"
        failed = (corrected[key] < 0.05) == worse if key in corrected else expected[key][0] < 0
        assert one.failed == failed
    assert "corrected differences" in found.rule or fail_if == "lower"
