"""A gate: whether runs hold what a baseline reached, as a build server asks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from greylag import __version__
from greylag.base import (
    FloatArray,
    Marked,
    ParameterError,
    Table,
    as_text,
    visible,
)
from greylag.evaluation.scoring.agreement import few_names
from greylag.evaluation.scoring.margins import as_number, check_margin, parse_margin
from greylag.evaluation.scoring.measures import Measure, parse_measure
from greylag.evaluation.scoring.power import SIGNIFICANCE_LEVEL
from greylag.evaluation.scoring.predicted import Corrected, Corrections, Estimate
from greylag.evaluation.scoring.scores import DIFFERENCE_DECIMALS, Scores
from greylag.evaluation.scoring.significance import (
    CORRECTION_NAMES,
    TEST_NAMES,
    Comparison,
    Correction,
    Significance,
    Test,
    correct,
    equivalence_test,
    paired_test,
)

MOST_CHECKS = 6  # that are printed, so that a gate with a warning fits ten lines
MIN_MARGIN_TOPICS = math.ceil(-math.log2(SIGNIFICANCE_LEVEL))
"""The fewest topics on which an exact one-sided test can show anything: 1 / 2^5 is below .05."""
ALL = "all"  # topics
IDENTICAL = "identical"


@dataclass(frozen=True, slots=True)
class GateRule:
    """When a check fails: a mean is lower, shown to be worse, not shown to be within a margin, or lacks topics."""

    kind: Literal["lower", "worse", "margin", "missing"]
    margin: float | None = None

    @classmethod
    def parse(cls, fail_if: str | float) -> GateRule:
        """Parse "lower", "worse", "missing", or a margin, a number or its text; `ParameterError` for any other."""
        if isinstance(fail_if, str) and fail_if in ("lower", "worse", "missing"):
            return cls(fail_if)  # type: ignore[arg-type]
        return cls("margin", parse_margin("fail_if", fail_if, "lower, worse, missing or "))

    def check(self, runs: Iterable[str], baselines: Sequence[str], measures: Iterable[Measure]) -> None:
        """Raise `ParameterError` if none of these runs could fail by these measures."""
        if not (baselines or self.kind == "missing"):
            raise ParameterError("fail_if needs a baseline: name the run that others are held against")
        if {*runs} <= {*baselines}:
            raise ParameterError("fail_if holds runs against baselines, and all runs are baselines: give another run")
        if self.margin is not None:
            check_margin("fail_if", self.margin, measures)

    def describe(self, test: str, correction: str) -> str:
        """Write what a mean is if a check fails, by any rule but missing."""
        if self.kind == "lower":
            return "lower"
        rule = "shown to be worse" if self.margin is None else f"not shown to be at most {self.margin:g} worse"
        return f"{rule} (one-sided {test}, {correction} correction, p below {SIGNIFICANCE_LEVEL})"

    def p(self, gains: FloatArray, test: Test) -> float:
        """Test the gains of a run, one-sided."""
        if self.margin is None:
            return paired_test(-gains, test, "greater")[1]
        return equivalence_test(gains, self.margin, "greater")

    def p_of_estimate(self, gain: Estimate, sign: int) -> float:
        """Test an estimated difference, one-sided; a gain has this sign."""
        return gain.p_above(0.0, -sign) if self.margin is None else gain.p_above(-self.margin, sign)

    def __str__(self) -> str:
        return self.kind if self.margin is None else str(self.margin)


FailIf = GateRule | str | float
"""A rule of a gate, or how it is spelt."""


def parse_rules(fail_if: FailIf | Sequence[FailIf] | None) -> tuple[GateRule, ...]:
    """Parse a rule or several, of which one at most holds runs against a baseline."""
    several: Any = fail_if if isinstance(fail_if, list | tuple) else [fail_if] * (fail_if is not None)
    rules = [rule if isinstance(rule, GateRule) else GateRule.parse(rule) for rule in several]
    if len({rule.kind == "missing" for rule in rules}) < len(rules):
        names = " and ".join(map(str, rules))
        raise ParameterError(f"fail_if is {names}: give lower, worse or a margin once, and missing beside it")
    return tuple(rules)


@dataclass(frozen=True, slots=True)
class Floors:
    """The least means that runs may have: a check fails if the mean, or the low end of its interval, is below."""

    least: Mapping[Measure, float]
    low: frozenset[Measure] = frozenset()  # those that are held against the low end

    def __post_init__(self) -> None:
        for measure, floor in self.least.items():
            low, high = measure.range
            if measure.family.lower_is_better or measure.family.summary != "mean":
                raise ParameterError(f"floor of {measure}: only a mean that is better the higher has one, leave it out")
            if not low < floor <= high:
                raise ParameterError(
                    f"floor of {measure} is {floor:g}: give one above {low:g}, as all have that, up to {high:g}"
                )
            if measure in self.low and floor == high:
                raise ParameterError(f"floor of {measure} is {floor:g}, which no low end reaches: leave out low:")

    @classmethod
    def parse(cls, floors: Mapping[str, str | float]) -> Floors:
        """Parse floors by name of measure, numbers or their text; ``low:`` before the name is of the low end."""
        if not isinstance(floors, Mapping) or not all(isinstance(name, str) for name in floors):
            raise ParameterError(f"floors are by name of measure, such as {{'AP': 0.3}}, not {floors!r:.60}")
        least, low = dict[Measure, float](), set[Measure]()
        for name, given in floors.items():
            measure = parse_measure(name.removeprefix("low:"))
            low |= {measure} if name.startswith("low:") else set()
            if not math.isfinite(floor := as_number(given)):
                raise ParameterError(f"floor of {measure} is {given!r:.60}: give a score such as 0.3")
            if measure in least:
                raise ParameterError(f"floor of {measure} is given twice: give it once")
            least[measure] = floor
        return cls(least, frozenset(low))

    def check(self, measures: Iterable[Measure]) -> None:
        """Raise `ParameterError` for a floor of a measure that runs are not scored by."""
        known = [*measures]
        if lacking := next((measure for measure in self.least if measure not in known), None):
            scored = ", ".join(map(str, known))
            raise ParameterError(f"floor of {lacking}: runs are scored by {scored}; give one of these, or this with -m")

    def describe(self, correction: str) -> str:
        """Write what a mean is if a check fails."""
        shown = (
            "not shown to be at its low floor or above (low end of its one-sided 95 % interval, t or exact binomial, "
            f"{correction} correction, p below {SIGNIFICANCE_LEVEL})"
        )
        return ", or ".join(["below its floor"] * (len(self.low) < len(self.least)) + [shown] * bool(self.low))


class Check(NamedTuple):
    """A run against a baseline, a floor or all topics, by a measure, on all topics or on those of a category."""

    topics: str
    run: str
    baseline: str  # or "floor 0.3", "low floor 0.3", or "all topics"
    measure: str  # or "topics ranked"
    mean: float
    improvement: float  # of the mean, below 0 if the run is worse, or below the floor
    p: float | None  # corrected over all checks; None for the rule "lower", and where nothing was tested
    failed: bool
    note: str = ""  # "identical" if each topic's score is the baseline's; why there is no test


class _Held(NamedTuple):
    """A check before p is corrected."""

    check: Check
    topics: int = 0  # of a run's test against a baseline, by which an exact test reaches a p
    worse: bool = False  # whether a small p fails, and not a large one


@dataclass(frozen=True, slots=True)
class Gate:
    """The checks of a gate, those that failed first; ``str`` has at most nine lines."""

    rule: str  # when a check fails
    checks: tuple[Check, ...]
    uncategorised: int = 0  # topics without a category, if others have one
    release: str = ""  # what was checked
    unranked: Mapping[str, int] = field(default_factory=dict)  # topics without a ranking, which count as 0, by run

    def __bool__(self) -> bool:
        """Whether it passed, so that ``assert`` fails for a gate that failed."""
        return self.passed

    @property
    def passed(self) -> bool:
        """No check failed."""
        return not any(check.failed for check in self.checks)

    @property
    def headline(self) -> str:
        """Whether the gate passed, how many checks fail, and when one does."""
        equal, failed = sum(c.note == IDENTICAL for c in self.checks), sum(c.failed for c in self.checks)
        same = f"; {equal} identical, by the baseline's score on every topic" if equal else ""
        same += f"; {self.uncategorised} topics have no category, and count in all alone" if self.uncategorised else ""
        same += "".join(
            f"; {name} has no ranking for {number} topic{'s' * (number > 1)}"
            for name, number in [*self.unranked.items()][:3]
        )
        same += f"; {len(self.unranked) - 3} more runs lack rankings" if len(self.unranked) > 3 else ""
        word = f"gate {'failed' if failed else 'passed'}{f' for {self.release}' if self.release else ''}"
        return f"{word}: {failed} of {len(self.checks)} checks fail; a check fails if {self.rule}{same}"

    @property
    def table(self) -> Table:
        """All checks, with the gate's word for each."""
        words = ("passed", "failed")
        rows = [(words[c.failed], *c[:5], Marked(c.improvement, "+.4f"), c.p, c.note or None) for c in self.checks]
        header = ("gate", "topics", "run", "against", "measure", "mean", "better by", "corrected p", "reason")
        return Table(self.headline, header, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the checks as a dictionary that JSON can represent."""
        content = {"passed": self.passed, "rule": self.rule, "checks": [check._asdict() for check in self.checks]}
        content |= {"topics_without_category": self.uncategorised} if self.uncategorised else {}
        return content | ({"topics_without_ranking": dict(self.unranked)} if self.unranked else {})

    def junit(self) -> str:
        """Write the checks as JUnit's XML, a test case for each."""
        lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
        failures = sum(check.failed for check in self.checks)
        counts = f'tests="{len(self.checks)}" failures="{failures}" errors="0" skipped="0"'
        lines.append(f"<testsuite name={_attribute(f'greylag {self.release}'.strip())} {counts}>")
        unranked = {f"topics without a ranking in {name}": str(number) for name, number in self.unranked.items()}
        told = {"greylag": __version__, "rule": self.rule, **unranked}.items()
        properties = "".join(f"<property name={_attribute(name)} value={_attribute(text)}/>" for name, text in told)
        lines.append(f"<properties>{properties}</properties>")
        for c in self.checks:
            name = f"{c.run} against {c.baseline} by {c.measure}"
            figures = f"mean {c.mean:.4f}, better by {c.improvement:+.4f}"
            figures += f", corrected p {c.p:.4f}" if c.p is not None else ""
            case = f"<testcase classname={_attribute(c.topics)} name={_attribute(name)}"
            message = _attribute(f"{figures}{f'; {c.note}' if c.note else ''}")
            lines.append(f"{case}><failure message={message}/></testcase>" if c.failed else f"{case}/>")
        return "\n".join([*lines, "</testsuite>", "</testsuites>\n"])

    def __str__(self) -> str:
        failed = sum(check.failed for check in self.checks)
        if not failed:
            return self.headline
        worst = replace(self, checks=self.checks[: min(failed, MOST_CHECKS)]).table
        shown = slice(1, None if any(row[-1] for row in worst.rows) else -1)
        table = Table("", worst.header[shown], [row[shown] for row in worst.rows])
        more = [f"and {failed - MOST_CHECKS} more"] if failed > MOST_CHECKS else []
        return "\n".join([self.headline, *as_text(table).splitlines(), *more])


def _attribute(text: str) -> str:
    from xml.sax.saxutils import quoteattr  # with Python's client of HTTP, and for JUnit alone

    return quoteattr(visible(text))


def check_gate(
    parts: Mapping[str, Mapping[str, Scores]],
    tests: Significance | Corrections | None,
    rules: Sequence[GateRule],
    floors: Floors | None = None,
) -> Gate:
    """Check runs against baselines on each part of the topics, and by floors on all, as `Evaluation.gated` says."""
    compared = next((rule for rule in rules if rule.kind != "missing"), None)
    correction: Correction = "holm" if tests is None else tests.correction  # type: ignore[assignment]
    correction = "holm" if correction == "tukey" else correction  # which is of all pairs of runs, and not of floors
    held, means = list[_Held](), list[str]()
    if tests is not None and compared is not None:
        if isinstance(tests, Corrections):
            name, held = "t-test of corrected differences", _held_estimates(tests, compared)
        else:
            name, held = TEST_NAMES["t" if compared.margin else tests.test], _held(parts, tests, compared)
        means.append(compared.describe(name, CORRECTION_NAMES[correction]))
    if floors is not None:
        held += _floored(parts[ALL], tests, floors)
        means.append(floors.describe(CORRECTION_NAMES[correction]))
    reasons = [f"a mean is {', or '.join(means)}"] if means else []
    if len(rules) > (compared is not None):
        held += _ranked(parts[ALL], tests.baselines if tests is not None else ())
        reasons.append("a topic has no ranking")
    return Gate(", or ".join(reasons), _decided(held, correction))


def _ranked(scores: Mapping[str, Scores], baselines: Sequence[str]) -> list[_Held]:
    """Count the topics that runs, but for baselines, have a ranking for."""
    held = list[_Held]()
    for name, run in ((name, run) for name, run in scores.items() if name not in baselines):
        share, lacking = float(run.ranked.mean()), [*dict.fromkeys((*run.missing, *run.empty))]
        note = f"no ranking for {few_names(lacking)}" if lacking else ""
        check = Check(ALL, name, "all topics", "topics ranked", share, share - 1, None, bool(lacking), note)
        held.append(_Held(check))
    return held


def _held(parts: Mapping[str, Mapping[str, Scores]], tests: Significance, rule: GateRule) -> list[_Held]:
    """Hold each run against each baseline of the tests, on each part of the topics."""
    compared = [c for c in tests.comparisons if c.run not in tests.baselines]
    held = list[_Held]()
    for topics, scores in parts.items():
        for c in compared:
            run, baseline = scores[c.run], scores[c.baseline]
            column, sign = run.measures.index(c.measure), -1 if c.measure.family.lower_is_better else 1
            gains = np.round(sign * (run.values[:, column] - baseline.values[:, column]), DIFFERENCE_DECIMALS)
            # Rounded again, as gains and losses that are equal on paper would add up to less than 0.
            gain, p, reason = round(float(gains.mean()), DIFFERENCE_DECIMALS), None, c.not_run
            if baseline.ranked.any() and not run.ranked.any():
                reason = reason or f"{c.run} did not run, as it ranks no topic"
            if not np.isfinite(gains).all():
                reason = "a score is no number"
            same = not (reason or gains.any())
            if topics == ALL and not (reason or (same and rule.margin)):
                _check_room(c, float(baseline.means[column]), rule)
            if rule.kind != "lower" and not (reason or same):
                _check_topics(topics, len(gains), rule)
                p = rule.p(gains, tests.test)
            failed, mean = bool(reason) or not gain >= 0, float(run.values[:, column].mean())  # also if that is nan
            note = IDENTICAL if same else reason
            check = Check(topics, c.run, c.baseline, str(c.measure), mean, gain, p, failed, note)
            held.append(_Held(check, len(gains), rule.kind == "worse"))
    if rule.kind == "worse" and tests.test != "t":
        _check_reach([each for each in held if each.check.p is not None], tests)
    return held


def _held_estimates(corrections: Corrections, rule: GateRule) -> list[_Held]:
    """Hold runs against the baseline by means and differences that people's judgements correct."""
    means = {(row.run, row.measure): row.estimate.corrected for row in corrections.means}
    held = list[_Held]()
    for row in corrections.differences:
        difference, sign = row.estimate, -1 if row.measure.family.lower_is_better else 1
        gain = round(sign * difference.corrected, DIFFERENCE_DECIMALS)
        same = not (difference.error or gain or difference.predicted)
        _check_room(row, means[str(row.baseline), row.measure], rule)
        p = None if same or rule.kind == "lower" else rule.p_of_estimate(difference, sign)
        mean, note = means[row.run, row.measure], IDENTICAL if same else ""
        check = Check(ALL, row.run, str(row.baseline), str(row.measure), mean, gain, p, not gain >= 0, note)
        held.append(_Held(check, worse=rule.kind == "worse"))
    return held


def _floored(scores: Mapping[str, Scores], tests: Significance | Corrections | None, floors: Floors) -> list[_Held]:
    """Hold the means of all runs but baselines against floors."""
    baselines = tests.baselines if tests is not None else ()
    estimates = {(c.run, c.measure): c.estimate for c in tests.means} if isinstance(tests, Corrections) else {}
    held = list[_Held]()
    for name in (name for name in scores if name not in baselines):
        run = scores[name]
        for measure, floor in floors.least.items():
            values, estimate = run.values[:, run.measures.index(measure)], estimates.get((name, measure))
            mean = estimate.corrected if estimate else float(values.mean())
            above = round(mean - floor, DIFFERENCE_DECIMALS)
            gaps = np.round(values - floor, DIFFERENCE_DECIMALS)
            note = "" if run.ranked.any() else f"{name} did not run, as it ranks no topic"
            note, p = note if np.isfinite(gaps).all() else "a score is no number", None
            if measure in floors.low and not note:
                if len(values) < MIN_MARGIN_TOPICS:
                    raise ParameterError(
                        f"a floor of the low end needs at least {MIN_MARGIN_TOPICS} topics, not {len(values)}: give "
                        f"more topics, or write {measure} without low:"
                    )
                worst = round(measure.range[0] - floor, DIFFERENCE_DECIMALS)
                # Without an error, all scores by people are equal.
                p = estimate.p_above(floor) if estimate and estimate.error else _p_above(gaps, worst)
            label = f"{'low ' if measure in floors.low else ''}floor {floor:g}"
            check = Check(ALL, name, label, str(measure), mean, above, p, bool(note) or not above >= 0, note)
            held.append(_Held(check))
    return held


def _p_above(gaps: FloatArray, worst: float) -> float:
    """Test that the mean of scores less a floor is above 0, one-sided: by t, or exactly if all are one or the worst.

    Then their number is binomial, with at most the probability that makes the mean 0. Five of five successes do not
    show a floor of 0.9, as a mean of 0.9 has them in 0.9^5 = 59 % of cases.
    """
    from scipy import stats

    others = np.unique(gaps[gaps > worst])
    if len(others) > 1:
        return paired_test(gaps, "t", "greater")[1]
    share = worst / (worst - float(others[0])) if len(others) and math.isfinite(worst) else 1.0
    return float(stats.binom.sf(np.sum(gaps > worst) - 1, len(gaps), min(share, 1.0)))


def _decided(held: Sequence[_Held], correction: Correction) -> tuple[Check, ...]:
    """Decide tested checks by corrected p, and put those that failed first."""
    decided = [
        c if c.p is None or 0 <= c.p <= 1 else c._replace(p=None, failed=True, note="its p is no number")
        for c, *_ in held
    ]
    tested = [place for place, check in enumerate(decided) if check.p is not None]
    corrected = correct([decided[place].p or 0.0 for place in tested], correction).tolist()
    for place, p in zip(tested, corrected, strict=True):
        failed = p < SIGNIFICANCE_LEVEL if held[place].worse else p >= SIGNIFICANCE_LEVEL
        decided[place] = decided[place]._replace(p=p, failed=failed)
    return tuple(sorted(decided, key=lambda check: (not check.failed, check.improvement)))


def _where_and_remedy(topics: str) -> tuple[str, str]:
    """Return what comes before the fault of a part of the topics, and what to do."""
    if topics == ALL:
        return "", "give more topics"
    return f"category {topics}: ", "put its topics into another category"


def _check_topics(topics: str, number: int, rule: GateRule) -> None:
    """Raise `ParameterError` for fewer topics than a test needs."""
    least = 2 if rule.margin is None else MIN_MARGIN_TOPICS
    if number < least:
        (where, remedy), others = _where_and_remedy(topics), "lower" if rule.margin is None else "worse or lower"
        why = "" if least == 2 else ", as on fewer no exact test has p below 0.05"
        raise ParameterError(
            f"{where}fail_if {rule} needs at least {least} topics, not {number}{why}: {remedy}, or use {others}"
        )


def _check_room(c: Comparison | Corrected, baseline: float, rule: GateRule) -> None:
    """Raise `ParameterError` for a rule that no run can break, as the baseline's mean is too near to the worst."""
    low, high = c.measure.range
    room, margin = high - baseline if c.measure.family.lower_is_better else baseline - low, rule.margin or 0.0
    if round(room, DIFFERENCE_DECIMALS) <= margin:
        raise ParameterError(
            f"fail_if of {margin:g} is not below {room:.4g}, by which a run's {c.measure} can be worse than that of "
            f"{c.baseline} at most, so that none could fail: give a smaller margin"
            if rule.margin
            else f"no run could fail, as {c.baseline} has the worst {c.measure} that there is: name another baseline"
        )


def _check_reach(tested: Sequence[_Held], tests: Significance) -> None:
    """Raise `ParameterError` for an exact test that would find no run worse, whatever its scores."""
    sizes = [each.topics for each in tested]

    def reaches(least: int) -> bool:
        """Whether all checks could fail at once, had they this many topics or more."""
        attainable = correct([0.5 ** max(size, least) for size in sizes], tests.correction)  # type: ignore[arg-type]
        return bool((attainable < SIGNIFICANCE_LEVEL).all())

    if reaches(0):
        return
    needed = next(number for number in range(1, 1000) if reaches(number))
    fewest = min(range(len(sizes)), key=sizes.__getitem__)
    where, remedy = _where_and_remedy(tested[fewest].check.topics)
    raise ParameterError(
        f"{where}no run can be shown to be worse on {sizes[fewest]} topics by the {TEST_NAMES[tests.test]} in "
        f"{len(sizes)} checks, which needs at least {needed}: {remedy}, or use lower"
    )
