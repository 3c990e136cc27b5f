"""Margins of equivalence and gates: the largest difference that does not matter, in units of a measure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any

from greylag.base import ParameterError, check_positive, parse_number
from greylag.evaluation.scoring.measures import Measure


def as_number(value: Any) -> float:
    """Return a number, or that of a text; NaN for anything else."""
    if isinstance(value, str):
        return parse_number(value.strip().encode())
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan


def parse_margin(name: str, margin: str | float, others: str = "") -> float:
    """Parse a margin, a number or its text; refuse per cent with what to write. `others` may be given in its place."""
    value = as_number(margin)
    if isinstance(margin, str) and "%" in margin and math.isfinite(share := as_number(margin.strip("% ")) / 100):
        raise ParameterError(f"{name} is a difference of scores, not per cent: write {share:g} for {margin!r}")
    if math.isnan(value):
        raise ParameterError(f"{name} must be {others}a margin such as 0.01, not {margin!r:.60}")
    check_positive(**{name: value})
    return value


def check_margin(name: str, margin: float, measures: Iterable[Measure]) -> None:
    """Raise `ParameterError` for a margin that no run can leave, since scores do not differ by so much."""
    for measure in measures:
        low, high = measure.range
        # Scores that are divided by those of a greedy ranking are above 1 by chance alone.
        widest = min(high, 1.0) - low if math.isfinite(high) else math.inf
        if margin >= widest:
            meant = f": perhaps {margin / 100:g} is meant" if 1 <= margin < 100 * widest else ""
            raise ParameterError(
                f"{name} of {margin:g} is not below {widest:g}, the most that scores by {measure} differ by, so that "
                f"every run would be within it{meant}"
            )
