"""Whether runs differ from a baseline by more than chance: paired tests over queries, corrected for their number."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np

from greylag.errors import ParameterError
from greylag.evaluation.measures import Measure, Scores
from greylag.ranking import FloatArray

Test = Literal["t", "wilcoxon", "randomization"]
Alternative = Literal["two-sided", "greater"]

RESAMPLES = 2**16
DECIMALS = 12


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run against the baseline by one measure.

    Parameters
    ----------
    run, measure : what is compared.
    difference : the run's mean minus the baseline's.
    statistic : t, or Wilcoxon's rank sum as scipy gives it, or the mean improvement in the randomisation test.
    p, corrected_p : before and after Holm's correction over all comparisons made together.
    wins, ties, losses : queries on which the run is better, equal and worse.
    """

    run: str
    measure: Measure
    difference: float
    statistic: float
    p: float
    corrected_p: float
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class Significance:
    """All comparisons with one baseline, by one test, that were corrected together."""

    baseline: str
    test: Test
    alternative: Alternative
    comparisons: tuple[Comparison, ...]


def compare(
    scores: Mapping[str, Scores],
    baseline: str,
    *,
    test: Test = "t",
    alternative: Alternative = "two-sided",
    seed: int = 0,
) -> Significance:
    """Test every run against the baseline by every measure, with Holm's correction over all these comparisons.

    Tests are on the improvements x_q, the run's score minus the baseline's on query q (the reverse for a loss), rounded
    to 12 decimals so that equal ones are equal. Where all are 0, p is 1.

    - "t": Student's paired test.
    - "wilcoxon": Wilcoxon's signed-rank test; zeros are left out. Exact for few queries, else the normal approximation,
      as `scipy.stats.wilcoxon` chooses.
    - "randomization": Fisher's test; the signs of the x_q are flipped. Exact for up to 16 non-zero x_q, else
      (1 + b) / (1 + 2^16), where b counts the random flips whose mean is as far out, doubled for two sides.

    Parameters
    ----------
    scores : by the runs' names, in the order of the result.
    baseline : one of the names.
    alternative : "two-sided", or "greater": the run is better than the baseline.
    seed : of the random flips; each comparison starts from it, so that none depends on the others.

    Raises
    ------
    ParameterError
        An unknown baseline, test or alternative; no other run; scores of different queries or measures; fewer than two
        queries.

    References
    ----------
    Smucker, Allan and Carterette, A comparison of statistical significance tests for information retrieval evaluation,
    CIKM 2007. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics, 1979.
    """
    from statsmodels.stats.multitest import multipletests

    check_comparable(scores)
    if baseline not in scores:
        raise ParameterError(f"baseline {baseline!r} is not among the runs {', '.join(scores)}")
    if len(scores) < 2:
        raise ParameterError(f"nothing to compare with the baseline {baseline!r}; give another run")
    if len(scores[baseline].qids) < 2:
        raise ParameterError("a test needs at least two queries; score the runs without a baseline")
    test_pairs = partial(paired_test, test=test, alternative=alternative, seed=seed)
    comparisons = [
        _comparison(name, column, run, scores[baseline], test_pairs)
        for name, run in scores.items()
        for column in range(len(run.measures))
        if name != baseline
    ]
    corrected = multipletests([comparison.p for comparison in comparisons], method="holm")[1].tolist()
    pairs = zip(comparisons, corrected, strict=True)
    return Significance(baseline, test, alternative, tuple(replace(c, corrected_p=p) for c, p in pairs))


def paired_test(
    improvements: FloatArray, test: Test = "t", alternative: Alternative = "two-sided", seed: int = 0
) -> tuple[float, float]:
    """The statistic and p of one of `compare`'s tests that improvements, shape (n,), n >= 2, are centred on 0.

    Raises
    ------
    ParameterError
        An unknown test or alternative.
    """
    if test not in _TESTS:
        raise ParameterError(f"test {test!r} is unknown; there are {', '.join(_TESTS)}")
    if alternative not in get_args(Alternative):
        raise ParameterError(f"alternative {alternative!r} is unknown; there are {', '.join(get_args(Alternative))}")
    if not improvements.any():
        return 0.0, 1.0
    statistic, p = _TESTS[test](improvements, alternative, seed)
    return float(statistic), float(p)


def check_comparable(scores: Mapping[str, Scores]) -> None:
    """Raise `ParameterError` where there are no scores, or scores of different queries or measures."""
    if not scores:
        raise ParameterError("no scores; give at least one run's")
    name, first = next(iter(scores.items()))
    for other, run in scores.items():
        if (run.qids, run.measures) != (first.qids, first.measures):
            reason = "have scores of different queries or measures; score them alike"
            raise ParameterError(f"runs {name!r} and {other!r} {reason}")


def _comparison(
    name: str, column: int, run: Scores, reference: Scores, test: Callable[[FloatArray], tuple[float, float]]
) -> Comparison:
    measure = run.measures[column]
    differences = np.round(run.values[:, column] - reference.values[:, column], DECIMALS)
    improvements = -differences if measure.family.lower_is_better else differences
    statistic, p = test(improvements)
    wins, ties, losses = (int((np.sign(improvements) == sign).sum()) for sign in (1, 0, -1))
    difference = float(run.means[column] - reference.means[column])
    return Comparison(name, measure, difference, statistic, p, p, wins, ties, losses)


def _t(improvements: FloatArray, alternative: Alternative, _: int) -> tuple[float, float]:
    from scipy import stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all improvements equal: t is infinite, and rightly so
        result = stats.ttest_1samp(improvements, 0.0, alternative=alternative)
    return result.statistic, result.pvalue


def _wilcoxon(improvements: FloatArray, alternative: Alternative, _: int) -> tuple[float, float]:
    from scipy import stats

    result = stats.wilcoxon(improvements, alternative=alternative)
    return result.statistic, result.pvalue


def _randomization(improvements: FloatArray, alternative: Alternative, seed: int) -> tuple[float, float]:
    from scipy import stats

    result = stats.permutation_test(
        (improvements[improvements != 0],),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=RESAMPLES // 16,
        alternative=alternative,
        rng=np.random.default_rng(seed),
    )
    return improvements.mean(), result.pvalue


_TESTS: dict[str, Callable[[FloatArray, Alternative, int], tuple[float, float]]] = {
    "t": _t,
    "wilcoxon": _wilcoxon,
    "randomization": _randomization,
}
