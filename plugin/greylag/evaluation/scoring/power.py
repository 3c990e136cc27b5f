"""The power of paired tests: the true differences that a number of units shows, and how probably."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from greylag.base import FloatArray

SIGNIFICANCE_LEVEL = 0.05
POWER = 0.8


def critical_t(n: int, *, comparisons: int = 1, sides: int = 2) -> float:
    """Return the t from which on a difference is significant at level 0.05 / comparisons.

    That is the first step of Holm's correction and of Benjamini and Hochberg's. Later steps are easier, so that both
    show a difference at least as often as a test with this critical value.

    Parameters
    ----------
    n : int >= 2
        The number of units, such as queries.
    comparisons : int >= 1, default 1
        The number of comparisons that p is corrected over.
    sides : 1 or 2, default 2
    """
    from scipy import special  # slow to import

    return float(special.stdtrit(n - 1, 1 - SIGNIFICANCE_LEVEL / sides / comparisons))


def detectable_difference(error: float, n: int, *, critical: float | None = None, power: float = POWER) -> float:
    """Return the true difference that a paired t-test shows with a given probability.

    It is error * delta, with delta the noncentrality at which P(t > critical) = power for n - 1 degrees of freedom.

    Parameters
    ----------
    error : float
        The standard error of the mean difference, such as s / sqrt(n); for the corrected resampled t-test
        s sqrt(1 / n + test / training) (Nadeau & Bengio 2003).
    n : int >= 2
        The number of units, such as queries.
    critical : float, optional
        The t from which on a difference is significant; by default, of one two-sided test at level 0.05. See
        `critical_t` for corrected tests.
    power : float, default 0.8
        The probability, above 0.05. The two-sided test's chance to show the contrary is left out; it is below 10^-6 for
        0.8.

    References
    ----------
    Sakai, Laboratory Experiments in Information Retrieval, Springer 2018, chapter 6.
    """
    from scipy import special

    return error * float(special.nctdtrinc(n - 1, 1 - power, critical_t(n) if critical is None else critical))


DRAWS = 2000
MOST_TOPICS = 4096
"""The most topics that are simulated; more are not named."""


@dataclass(frozen=True, slots=True)
class LossPower:
    """How probably a gate finds a run that loses some of its mean, by simulation on the run's own scores."""

    run: str
    measure: str
    loss: float  # of the mean
    found: float  # the share of such losses that these topics show
    topics: int | None  # that show 80 % of them; None if more than `MOST_TOPICS` would be needed
    least: float | None  # the least loss of which these topics show 80 %; None if not even the loss of all


def loss_power(gaps: FloatArray, loss: float, topics: int, *, comparisons: int = 1) -> float:
    """Return the share of simulated losses that a one-sided paired t-test at level 0.05 / `comparisons` shows.

    In each of 2,000 draws, `topics` topics are drawn from those of `gaps` with replacement, and a topic's score falls
    to the worst of the measure with probability ``loss / mean(gaps)``, so that the true mean is `loss` lower. A loss of
    single topics is the hardest to show: the same loss, spread over all topics, is shown on a handful.

    Parameters
    ----------
    gaps : array, shape (n,)
        By how much each topic's score is better than the worst of the measure, at least 0.
    loss : float > 0
        At most the mean of `gaps`.
    topics : int >= 2
    """
    rng = np.random.default_rng([0, topics])
    drawn = gaps[rng.integers(0, len(gaps), (DRAWS, topics))]
    lost = drawn * (rng.random((DRAWS, topics)) < loss / gaps.mean())
    deviation = lost.std(axis=1, ddof=1)
    # Equal losses of all topics have no deviation, and are shown by the exact test alone.
    with np.errstate(divide="ignore", invalid="ignore"):
        t = lost.mean(axis=1) / (deviation / np.sqrt(topics))
    shown = np.where(deviation > 0, t > critical_t(topics, comparisons=comparisons, sides=1), False)
    shown |= (deviation == 0) & (lost[:, 0] > 0) & (0.5**topics < SIGNIFICANCE_LEVEL / comparisons)
    return float(shown.mean())


def topics_for_loss(gaps: FloatArray, loss: float, *, comparisons: int = 1) -> int | None:
    """Return the least number of topics that show 80 % of losses, as `loss_power` has them; None if it is too large."""
    return _first(lambda n: loss_power(gaps, loss, n, comparisons=comparisons) >= POWER, 2, MOST_TOPICS)


def least_loss(gaps: FloatArray, *, comparisons: int = 1) -> float | None:
    """Return the least loss, in thousandths of the mean of `gaps`, of which as many topics show 80 %."""
    step, n = float(gaps.mean()) / 1000, len(gaps)
    number = _first(lambda k: loss_power(gaps, k * step, n, comparisons=comparisons) >= POWER, 1, 1000)
    return None if number is None else number * step


def _first(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return the first number from `low` to `high` from which on something holds; None if it does not at the end."""
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high
