"""A gate: whether runs hold what a baseline reached, as a build server asks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from greylag.core.checks import check_positive
from greylag.core.tables import Marked, Table, as_text
from greylag.errors import ParameterError
from greylag.evaluation.power import SIGNIFICANCE_LEVEL
from greylag.evaluation.scores import Scores
from greylag.evaluation.significance import (
    CORRECTION_NAMES,
    DIFFERENCE_DECIMALS,
    TEST_NAMES,
    Significance,
    correct,
    equivalence_test,
    paired_test,
)
from greylag.runtime.files import parse_number

RULES = "lower", "worse"
MOST_CHECKS = 6  # that are printed, so that a gate with a warning fits ten lines


class Check(NamedTuple):
    """A run against a baseline by a measure, on all topics or on those of a category."""

    topics: str
    run: str
    baseline: str
    measure: str
    mean: float
    improvement: float  # of the mean, below 0 if the run is worse
    p: float | None  # corrected over all checks; None for the rule "lower"
    failed: bool


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
        rows = [(*check[:5], Marked(check.improvement, "+.4f"), check.p) for check in failed[:MOST_CHECKS]]
        header = ("topics", "run", "against", "measure", "mean", "better by", "corrected p")
        lines = [
            f"gate {word}: {len(failed)} of {len(self.checks)} checks fail; a check fails if a mean is {self.rule}"
        ]
        lines += as_text(Table("", header, rows)).splitlines() if rows else []
        return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def parse_fail_if(fail_if: str | float, baselines: Sequence[str]) -> str | float:
    """Return a rule of `check_gate`, or its margin, which may be text."""
    if not baselines:
        raise ParameterError("fail_if needs a baseline: name the run that others are held against")
    if fail_if in RULES:
        return fail_if
    margin = parse_number(fail_if.encode()) if isinstance(fail_if, str) else fail_if
    if isinstance(fail_if, bool) or (isinstance(fail_if, str) and math.isnan(margin)):
        raise ParameterError(f"fail_if must be {', '.join(RULES)} or a margin such as 0.01, not {fail_if!r}")
    check_positive(fail_if=margin)
    return margin


def check_gate(parts: Mapping[str, Mapping[str, Scores]], tests: Significance, fail_if: str | float) -> Gate:
    """Check each run against each baseline of the tests, on each part of the topics; `compare` has the rules."""
    checks, compared = list[Check](), [c for c in tests.comparisons if c.run not in tests.baselines]
    for topics, scores in parts.items():
        for c in compared:
            run, baseline = scores[c.run], scores[c.baseline]
            column, sign = run.measures.index(c.measure), -1 if c.measure.family.lower_is_better else 1
            gains = np.round(sign * (run.values[:, column] - baseline.values[:, column]), DIFFERENCE_DECIMALS)
            # Rounded again, as gains and losses that are equal on paper would add up to less than 0.
            gain, p = round(float(gains.mean()), DIFFERENCE_DECIMALS), None
            if fail_if != "lower" and len(gains) < 2:
                raise ParameterError(f"{topics} is one topic, and a test needs two: put it into another category")
            if fail_if == "worse":
                _, p = paired_test(-gains, tests.test, "greater")
            elif not isinstance(fail_if, str):
                p = equivalence_test(gains, fail_if, "greater")
            mean = float(run.values[:, column].mean())
            checks.append(Check(topics, c.run, c.baseline, str(c.measure), mean, gain, p, gain < 0))
    rule = "lower"
    if fail_if != "lower":
        corrected = correct([check.p for check in checks], tests.correction)  # type: ignore[arg-type]
        for place, (check, p) in enumerate(zip(checks, corrected.tolist(), strict=True)):
            checks[place] = check._replace(p=p, failed=(p < SIGNIFICANCE_LEVEL) == (fail_if == "worse"))
        rule = "shown to be worse" if fail_if == "worse" else f"not shown to be at most {fail_if:g} worse"
        test = TEST_NAMES[tests.test if fail_if == "worse" else "t"]
        rule += f" (one-sided {test}, {CORRECTION_NAMES[tests.correction]} correction, p below {SIGNIFICANCE_LEVEL})"
    return Gate(rule, tuple(sorted(checks, key=lambda check: (not check.failed, check.improvement))))
