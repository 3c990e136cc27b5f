"""Tukey's honestly significant difference: all pairs of runs at once, by a two-way analysis of variance."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from greylag.base import FloatArray
from greylag.evaluation.scoring.power import SIGNIFICANCE_LEVEL

MOST_EXACT = 256
"""The most p values that SciPy computes one by one; more would take minutes, and its function is interpolated."""
DEGREE = 64
LEAST_P = 1e-9
"""The least p that SciPy's integral is right for."""


def residual_variance(values: FloatArray) -> tuple[float, int]:
    """Return the variance beside the means of runs and topics, and its degrees of freedom; `values` are runs by topics.

    That of the two-way analysis of variance without replication: sum of (x_ij - x_i. - x_.j + x..)^2 / (m - 1)(n - 1).
    """
    rest = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    freedom = (values.shape[0] - 1) * (values.shape[1] - 1)
    return float((np.round(rest, 12) ** 2).sum()) / freedom, freedom


def tukey_p(t: FloatArray, runs: int, freedom: int) -> FloatArray:
    """Return P(Q > sqrt(2) t) for the studentized range Q of `runs` means and t >= 0, shape (pairs,)."""
    from scipy import special, stats

    q, single, pairs = math.sqrt(2) * t, 2 * special.stdtr(freedom, -t), math.comb(runs, 2)
    survival: Callable[[FloatArray], FloatArray] = partial(stats.studentized_range.sf, k=runs, df=freedom)
    if q.size > MOST_EXACT:
        top = min(float(q.max()), -math.sqrt(2) * float(special.stdtrit(freedom, LEAST_P / 2 / pairs)))
        survival = np.polynomial.Chebyshev.interpolate(survival, DEGREE, [0, top])
        q = np.minimum(q, top)
    # By Bonferroni's bounds, which meet the exact value where it is too small for the integral.
    p = np.where(single * pairs > LEAST_P, survival(q), 1.0)
    return np.clip(p, single, np.minimum(1.0, single * pairs))


def tukey_critical(runs: int, freedom: int, families: int) -> float:
    """Return the t from which on a pair differs at level 0.05 / `families`."""
    from scipy import stats

    return float(stats.studentized_range.isf(SIGNIFICANCE_LEVEL / families, runs, freedom)) / math.sqrt(2)
