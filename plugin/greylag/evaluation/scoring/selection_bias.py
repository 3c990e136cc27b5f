"""The best of many systems on the queries that chose it: its mean, interval and p, corrected for the choice.

The highest of many means is too high, and its uncorrected p too small: of systems that are all alike, one is ahead by
chance. So the choice is made once more without a fold of the queries, and scored on that fold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from greylag.base import FloatArray, IntArray, ParameterError
from greylag.evaluation.scoring.power import SIGNIFICANCE_LEVEL, critical_t
from greylag.evaluation.scoring.scores import DIFFERENCE_DECIMALS, Scores
from greylag.evaluation.scoring.sign_flips import are_equal
from greylag.evaluation.scoring.significance import (
    Comparison,
    Significance,
    check_comparable,
    compare_scores,
    figures,
)

FOLDS, REPEATS = 5, 5
"""Folds of the queries that the choice is repeated without, and divisions into such folds."""
FLIPS = 9_999
"""Random sign flips of the max-t test."""
NULL_CHOICES = 999
"""Random sign flips for which the whole choice is made again."""
_BATCH = 1_000  # flips at once, which bounds memory
_T_DECIMALS = 9  # of t, so that results do not depend on the order of sums in matrix products

Rule = Callable[[IntArray], tuple[str, FloatArray]]
"""A choice by the queries of these numbers: the name of a system, and its scores on all queries, shape (n,)."""


class BestOfMany(NamedTuple):
    """The chosen system beside a baseline."""

    chosen: str  # its name
    mean: float  # its mean, corrected for the choice
    comparison: Comparison | None  # with the baseline, all figures corrected; None if that is chosen
    # Each system with the baseline: mean and difference uncorrected, intervals and p of all at once; None of one
    all: Significance | None


def best_of_many(scores: Mapping[str, Scores], baseline: str, *, rule: Rule | None = None, seed: int = 0) -> BestOfMany:
    """Choose a system, and compare it with a baseline as if it had been chosen on other queries.

    - The choice: the queries are divided at random into five folds, five times. For each fold the rule chooses by the
      other queries, and the scores of its choice on the fold are taken: x_q is the mean of the five for query q. The
      corrected mean is that of x, the difference D is that of x and the baseline. The interval is D -+ t(0.975, n - 1)
      w e and p is that of t = D / (w e), with e the larger of the standard errors of x and of the choice by all
      queries, each less the baseline. D varies more than e says, as the x_q share the queries that they were chosen by.
      So w is such that p < 0.05 in 5 % of 999 draws of random signs s_q, in which the best mean is chosen in the same
      way by s_q c_jq (below) and is not the baseline. Systems that are worse than the baseline by sqrt(2 log log n)
      standard errors stay so in the draws (Hansen 2005), and w is at least 1.
      In simulations with 5, 20 and 60 systems and 200 queries, .028 to .062 of 1,000 trials were significant; with
      exponential scores .036 to .040, so that it is a little conservative there.
    - All systems (max-t, Westfall & Young 1993): with c_jq the difference of system j from the baseline on query q less
      its mean, the null distribution is that of max_j |t_j| over s_q c_jq, for 9,999 draws of random signs s_q that are
      the same for all systems. p_j is (1 + the number of draws that reach |t_j|) / 10,000; the interval is the mean -+
      the critical value of p < 0.05 x the standard error.

    Parameters
    ----------
    scores : mapping
        Scores by one measure, by name of system.
    baseline : str
        One of the names.
    rule : callable, optional
        By default, the first system with the best mean is chosen. A rule may make systems that are not in `scores`,
        such as averages, by the scores of the given queries alone.
    seed : int >= 0, default 0
        Of the folds and the signs.

    References
    ----------
    Hansen, A test for superior predictive ability, Journal of Business & Economic Statistics 23, 2005. Westfall and
    Young, Resampling-Based Multiple Testing, Wiley 1993, section 2.3. Tsamardinos et al., Machine Learning 107, 2018.
    """
    check_comparable(scores)
    names, first = list(scores), next(iter(scores.values()))
    n = len(first.qids)
    if len(first.measures) != 1 or n < 2:
        raise ParameterError("give scores by one measure, of at least two queries")
    if baseline not in scores:
        raise ParameterError(f"baseline {baseline!r} is not among the systems {', '.join(names)}")
    values = np.array([scores[name].values[:, 0] for name in names])
    sign = -1.0 if first.measures[0].family.lower_is_better else 1.0

    def best(queries: IntArray) -> tuple[str, FloatArray]:
        number = first_best(sign * values[:, queries].mean(axis=1))
        return names[number], values[number]

    rule = best if rule is None else rule
    chosen, by_all = rule(np.arange(n))
    unseen = unseen_scores(rule, n, seed)
    comparison = None
    if chosen != baseline:
        gains = np.round(sign * (values - values[names.index(baseline)]), DIFFERENCE_DECIMALS)
        comparison = _corrected(scores[baseline], baseline, chosen, by_all, unseen, widening(gains, seed))
    every = simultaneous(scores, baseline, seed=seed) if len(names) > 1 else None
    return BestOfMany(chosen, float(unseen.mean()), comparison, every)


def first_best(means: FloatArray) -> int:
    """Return the number of the highest mean, the first one if several are."""
    return int(np.argmax(np.round(means, DIFFERENCE_DECIMALS)))


def unseen_scores(rule: Rule, n: int, seed: int) -> FloatArray:
    """Return the scores of the queries by choices made without them, shape (n,)."""
    total = np.zeros(n)
    for part in _parts(n, seed):
        remaining = np.setdiff1d(np.arange(n), part)
        total[part] += rule(remaining)[1][part]
    return total / REPEATS


def _parts(n: int, seed: int) -> list[IntArray]:
    rng = np.random.default_rng(seed)
    return [part for _ in range(REPEATS) for part in np.array_split(rng.permutation(n), min(FOLDS, n))]


def widening(gains: FloatArray, seed: int) -> float:
    """Return the factor of standard errors by which the best of systems with these gains, (m, n), is at level .05."""
    n, rng = gains.shape[1], np.random.default_rng(seed)
    statistics = list[FloatArray]()
    means, errors = gains.mean(axis=1), gains.std(axis=1, ddof=1) / np.sqrt(n)
    # Under the null all means are 0, but those of clearly worse systems, which chance would not choose (Hansen 2005).
    worse = np.where(means < -errors * np.sqrt(2 * np.log(np.log(max(n, 3)))), means, 0.0)
    order = np.argsort(gains.any(axis=1), kind="stable")  # of equal sums, the baseline's is the first
    centred, worse = (gains - means[:, None])[order], worse[order]
    for start in range(0, NULL_CHOICES, _BATCH):
        signs = 2.0 * rng.integers(0, 2, (min(_BATCH, NULL_CHOICES - start), n)) - 1.0
        sums, unseen = signs @ centred.T + n * worse, np.zeros(signs.shape)
        for part in _parts(n, seed):
            choices = (sums - signs[:, part] @ centred[:, part].T - len(part) * worse).argmax(axis=1)
            unseen[:, part] += (centred[choices][:, part] * signs[:, part] + worse[choices, None]) / REPEATS
        choices = sums.argmax(axis=1)
        spread = np.maximum((centred[choices] * signs).std(axis=1, ddof=1), unseen.std(axis=1, ddof=1))
        other = (choices > 0) & (spread > 10.0**-DIFFERENCE_DECIMALS)
        statistics.append(np.abs(unseen[other].mean(axis=1)) / spread[other] * np.sqrt(n))
    # Rounded, since matrix products sum in another order on another processor.
    peaks = -np.sort(-np.round(np.concatenate(statistics), _T_DECIMALS))
    return max(1.0, float(peaks[int(SIGNIFICANCE_LEVEL * len(peaks))]) / critical_t(n)) if len(peaks) else 1.0


def _corrected(
    other: Scores, baseline: str, chosen: str, by_all: FloatArray, unseen: FloatArray, wider: float
) -> Comparison:
    """Compare the chosen system with the baseline, with the mean of unseen queries."""
    from scipy import special

    named = {baseline: other, chosen: replace(other, values=by_all[:, None], missing=(), empty=())}
    (plain,) = compare_scores(named, baseline).comparisons
    n, gains = len(unseen), [np.round(values - other.values[:, 0], DIFFERENCE_DECIMALS) for values in (by_all, unseen)]
    # The scores of unseen queries share the queries that they were chosen by, and so vary too little.
    error = wider * max(0.0 if are_equal(gain) else float(gain.std(ddof=1)) for gain in gains) / np.sqrt(n)
    difference = float(gains[1].mean())
    plain = replace(plain, mean=float(unseen.mean()), difference=difference, exact_p=None)
    if not error or plain.not_run:  # the exact p of the choice, and no interval
        return plain
    p = float(2 * special.stdtr(n - 1, -abs(difference) / error))
    return replace(
        plain,
        **figures(difference, error, n, critical_t(n), critical_t(n)),
        statistic=difference / error,
        p=p,
        corrected_p=p,
        direction=int(np.sign(difference)) * (-1 if plain.measure.family.lower_is_better else 1),
    )


def simultaneous(scores: Mapping[str, Scores], baseline: str, *, seed: int = 0) -> Significance:
    """Compare all systems with the baseline, with intervals and p that hold for all of them at once (max-t)."""
    plain = compare_scores(scores, baseline)
    plain = replace(plain, comparisons=tuple(replace(comparison, exact_p=None) for comparison in plain.comparisons))
    runs = [comparison.run for comparison in plain.comparisons]
    values = np.array([scores[name].values[:, 0] for name in runs])
    errors, peaks = max_t(np.round(values - scores[baseline].values[:, 0], DIFFERENCE_DECIMALS), seed)
    critical = float(peaks[int(SIGNIFICANCE_LEVEL * (FLIPS + 1)) - 2])  # p < 0.05 if fewer draws than these reach t
    corrected = []
    for comparison, error in zip(plain.comparisons, errors.tolist(), strict=True):
        # No flip of signs changes a constant difference around its mean.
        if error == 0 or comparison.not_run:
            corrected.append(comparison)
            continue
        t = round(abs(comparison.difference) / error, _T_DECIMALS)
        p = (1 + int((peaks >= t).sum())) / (FLIPS + 1)
        shown = figures(comparison.difference, error, values.shape[1], critical, critical)
        corrected.append(replace(comparison, corrected_p=p, **shown))
    return replace(plain, comparisons=tuple(corrected), correction="max-t")


def max_t(differences: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the standard errors of mean differences, shape (m,), and the draws of the largest |t|, descending."""
    n = differences.shape[1]
    centred = differences - differences.mean(axis=1, keepdims=True)
    squares = (centred**2).sum(axis=1)  # which flips do not change
    errors = np.sqrt(squares / (n - 1) / n)
    varies = squares > (10.0**-DIFFERENCE_DECIMALS) ** 2 * n  # more than rounding does
    errors[~varies] = 0.0
    centred, squares = centred[varies], squares[varies]
    rng, peaks = np.random.default_rng(seed), np.zeros(FLIPS)
    for start in range(0, FLIPS if len(centred) else 0, _BATCH):
        # The same signs for all systems keep the correlation of their differences, by which max-t is less strict than
        # Bonferroni.
        signs = 2.0 * rng.integers(0, 2, (min(_BATCH, FLIPS - start), n)) - 1.0
        means = signs @ centred.T / n
        rest = squares - n * means**2  # the sum of squares around the mean
        rest[rest < 1e-12 * squares] = 0.0
        with np.errstate(divide="ignore"):
            t = np.abs(means) / np.sqrt(rest / (n - 1) / n)
        peaks[start : start + len(t)] = t.max(axis=1)
    return errors, -np.sort(-np.round(peaks, _T_DECIMALS))
