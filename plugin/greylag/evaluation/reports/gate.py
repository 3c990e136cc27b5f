"""A gate: whether runs hold what a baseline reached, as a build server asks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from greylag.base import FloatArray, Marked, ParameterError, Table, as_text
from greylag.evaluation.scoring.margins import check_margin, parse_margin
from greylag.evaluation.scoring.measures import Measure
from greylag.evaluation.scoring.power import SIGNIFICANCE_LEVEL
from greylag.evaluation.scoring.scores import DIFFERENCE_DECIMALS, Scores
from greylag.evaluation.scoring.significance import (
    CORRECTION_NAMES,
    TEST_NAMES,
    Comparison,
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
    """When a check fails: a mean is lower, is shown to be worse, or is not shown to be within a margin."""

    kind: Literal["lower", "worse", "margin"]
    margin: float | None = None

    @classmethod
    def parse(cls, fail_if: str | float) -> GateRule:
        """Parse "lower", "worse", or a margin, a number or its text; `ParameterError` for any other."""
        if isinstance(fail_if, str) and fail_if in ("lower", "worse"):
            return cls(fail_if)  # type: ignore[arg-type]
        return cls("margin", parse_margin("fail_if", fail_if, "lower, worse or "))

    def check(self, runs: Iterable[str], baselines: Sequence[str], measures: Iterable[Measure]) -> None:
        """Raise `ParameterError` if none of these runs could fail by these measures."""
        if not baselines:
            raise ParameterError("fail_if needs a baseline: name the run that others are held against")
        if {*runs} <= {*baselines}:
            raise ParameterError("fail_if holds runs against baselines, and all runs are baselines: give another run")
        if self.margin is not None:
            check_margin("fail_if", self.margin, measures)

    def describe(self, tests: Significance) -> str:
        """Write what a mean is if a check fails."""
        if self.kind == "lower":
            return "lower"
        rule = "shown to be worse" if self.margin is None else f"not shown to be at most {self.margin:g} worse"
        test = f"one-sided {TEST_NAMES[tests.test if self.margin is None else 't']}"
        return f"{rule} ({test}, {CORRECTION_NAMES[tests.correction]} correction, p below {SIGNIFICANCE_LEVEL})"

    def p(self, gains: FloatArray, test: Test) -> float:
        """Test the gains of a run, one-sided."""
        if self.margin is None:
            return paired_test(-gains, test, "greater")[1]
        return equivalence_test(gains, self.margin, "greater")

    def fails(self, p: float) -> bool:
        """Return whether a check with this corrected p fails, as it does with one that is no number."""
        return not p >= SIGNIFICANCE_LEVEL if self.margin is None else not p < SIGNIFICANCE_LEVEL

    def __str__(self) -> str:
        return self.kind if self.margin is None else str(self.margin)


class Check(NamedTuple):
    """A run against a baseline by a measure, on all topics or on those of a category."""

    topics: str
    run: str
    baseline: str
    measure: str
    mean: float
    improvement: float  # of the mean, below 0 if the run is worse
    p: float | None  # corrected over all checks; None for the rule "lower", and where nothing was tested
    failed: bool
    note: str = ""  # "identical" if each topic's score is the baseline's; why there is no test


@dataclass(frozen=True, slots=True)
class Gate:
    """The checks of a gate, those that failed first; ``str`` has at most nine lines."""

    rule: str  # what a mean is if a check fails
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """No check failed."""
        return not any(check.failed for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return the checks as a dictionary that JSON can represent."""
        return {"passed": self.passed, "rule": self.rule, "checks": [check._asdict() for check in self.checks]}

    def __str__(self) -> str:
        failed = [check for check in self.checks if check.failed]
        word, more = "failed" if failed else "passed", len(failed) - MOST_CHECKS
        rows = [(*check[:5], Marked(check.improvement, "+.4f"), check.p, check.note) for check in failed[:MOST_CHECKS]]
        header = ("topics", "run", "against", "measure", "mean", "better by", "corrected p", "reason")
        shown = len(header) - (not any(check.note for check in failed[:MOST_CHECKS]))
        table = Table("", header[:shown], [row[:shown] for row in rows])
        equal = sum(check.note == IDENTICAL for check in self.checks)
        same = f"; {equal} identical, by the baseline's score on every topic" if equal else ""
        counts = f"gate {word}: {len(failed)} of {len(self.checks)} checks fail"
        lines = [f"{counts}; a check fails if a mean is {self.rule}{same}"]
        lines += as_text(table).splitlines() if rows else []
        return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def check_gate(parts: Mapping[str, Mapping[str, Scores]], tests: Significance, rule: GateRule) -> Gate:
    """Check each run against each baseline of the tests, on each part of the topics, as `Evaluation.gated` says."""
    compared = [c for c in tests.comparisons if c.run not in tests.baselines]
    checks, sizes = list[Check](), list[int]()
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
            if rule.kind != "lower" and not (reason or same):
                _check_topics(topics, len(gains), rule)
                if rule.margin is not None and topics == ALL:
                    _check_room(c, float(baseline.means[column]), rule.margin)
                p = rule.p(gains, tests.test)
                p, reason = (p, "") if 0 <= p <= 1 else (None, "its p is no number")
            failed, mean = bool(reason) or not gain >= 0, float(run.values[:, column].mean())  # also if that is nan
            note = IDENTICAL if same else reason
            checks.append(Check(topics, c.run, c.baseline, str(c.measure), mean, gain, p, failed, note))
            sizes.append(len(gains))
    return Gate(rule.describe(tests), _decided(checks, sizes, tests, rule))


def _decided(checks: Sequence[Check], sizes: Sequence[int], tests: Significance, rule: GateRule) -> tuple[Check, ...]:
    """Decide tested checks by corrected p, and put those that failed first."""
    places = [place for place, check in enumerate(checks) if check.p is not None]
    if rule.kind == "worse" and tests.test != "t":
        _check_reach([checks[place].topics for place in places], [sizes[place] for place in places], tests)
    corrected = correct([checks[place].p or 0.0 for place in places], tests.correction).tolist()  # type: ignore[arg-type]
    decided = list(checks)
    for place, p in zip(places, corrected, strict=True):
        decided[place] = checks[place]._replace(p=p, failed=rule.fails(p))
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


def _check_room(c: Comparison, baseline: float, margin: float) -> None:
    """Raise `ParameterError` for a margin that no run can leave, as the baseline's mean is too near to the worst."""
    low, high = c.measure.range
    room = high - baseline if c.measure.family.lower_is_better else baseline - low
    if round(room, DIFFERENCE_DECIMALS) <= margin:
        raise ParameterError(
            f"fail_if of {margin:g} is not below {room:.4g}, by which a run's {c.measure} can be worse than that of "
            f"{c.baseline} at most, so that none could fail: give a smaller margin"
        )


def _check_reach(parts: Sequence[str], sizes: Sequence[int], tests: Significance) -> None:
    """Raise `ParameterError` for an exact test that would find no run worse, whatever its scores."""

    def reaches(least: int) -> bool:
        """Whether all checks could fail at once, had they this many topics or more."""
        attainable = correct([0.5 ** max(size, least) for size in sizes], tests.correction)  # type: ignore[arg-type]
        return bool((attainable < SIGNIFICANCE_LEVEL).all())

    if reaches(0):
        return
    needed = next(number for number in range(1, 1000) if reaches(number))
    fewest = min(range(len(sizes)), key=sizes.__getitem__)
    where, remedy = _where_and_remedy(parts[fewest])
    raise ParameterError(
        f"{where}no run can be shown to be worse on {sizes[fewest]} topics by the {TEST_NAMES[tests.test]} in "
        f"{len(sizes)} checks, which needs at least {needed}: {remedy}, or use lower"
    )
