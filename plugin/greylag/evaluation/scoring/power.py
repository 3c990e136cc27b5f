"""The power of paired tests: the true differences that a number of units shows, and how probably."""

from __future__ import annotations

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
