"""Paired significance tests between runs over queries, corrected for multiple comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from greylag.errors import ParameterError
from greylag.evaluation.measures import Measure
from greylag.evaluation.scores import Scores
from greylag.ranking import FloatArray

Test = Literal["t", "wilcoxon", "randomization"]
Alternative = Literal["two-sided", "greater"]

SIGNIFICANCE_LEVEL = 0.05
RESAMPLES = 2**16
DECIMALS = 12


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a run with the baseline by one measure."""

    run: str  # its name
    measure: Measure
    difference: float  # the mean of the run minus the mean of the baseline
    statistic: float  # t, SciPy's rank sum of Wilcoxon's test, or the mean improvement for the randomisation test
    p: float
    corrected_p: float  # by Holm's correction over all comparisons of a `Significance`
    wins: int  # queries on which the run is better than the baseline
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class Significance:
    """Comparisons with one baseline by one test, corrected together."""

    baseline: str  # its name
    test: Test
    alternative: Alternative
    comparisons: tuple[Comparison, ...]  # by run and measure

    def find(self, run: str, measure: Measure) -> Comparison | None:
        """The comparison of a run by a measure; None for the baseline itself."""
        return next((c for c in self.comparisons if (c.run, c.measure) == (run, measure)), None)


def compare(
    scores: Mapping[str, Scores],
    baseline: str,
    *,
    test: Test = "t",
    alternative: Alternative = "two-sided",
    seed: int = 0,
) -> Significance:
    """Test every run against the baseline by every measure, with Holm's correction over all comparisons.

    The tests are on the improvements x_q, the score of the run minus that of the baseline on query q (negated for a
    loss), rounded to 12 decimals so that equal improvements tie. If all improvements are 0, p is 1.

    - "t": Student's paired t-test.
    - "wilcoxon": Wilcoxon's signed-rank test without zeros; exact for few queries, else by the normal approximation, as
      `scipy.stats.wilcoxon` chooses.
    - "randomization": Fisher's randomisation test, which flips the signs of the x_q. Exact for up to 16 non-zero x_q,
      else (1 + b) / (1 + 2^16), with b the number of random flips whose mean is at least as extreme; doubled if
      two-sided.

    Parameters
    ----------
    scores : mapping
        Scores by name of run, in the order of the result.
    baseline : str
        One of the names.
    test : {"t", "wilcoxon", "randomization"}, default "t"
        The test.
    alternative : {"two-sided", "greater"}, default "two-sided"
        "greater" tests whether the run is better than the baseline.
    seed : int >= 0, default 0
        Seeds the random flips anew for each comparison, so that comparisons do not affect each other.

    References
    ----------
    Smucker, Allan and Carterette, A comparison of statistical significance tests for information retrieval evaluation,
    CIKM 2007.
    """
    check_comparable(scores)
    if baseline not in scores:
        raise ParameterError(f"baseline {baseline!r} is not among the runs {', '.join(scores)}")
    if len(scores) < 2:
        raise ParameterError(f"no run to compare with the baseline {baseline!r}; give another run")
    if len(scores[baseline].qids) < 2:
        raise ParameterError("a significance test needs at least two queries; omit the baseline to score the runs")
    comparisons = []
    for name, run in scores.items():
        if name == baseline:
            continue
        for column, measure in enumerate(run.measures):
            differences = np.round(run.values[:, column] - scores[baseline].values[:, column], DECIMALS)
            improvements = -differences if measure.family.lower_is_better else differences
            statistic, p = paired_test(improvements, test, alternative, seed)
            wins, ties, losses = (int((np.sign(improvements) == sign).sum()) for sign in (1, 0, -1))
            difference = float(run.means[column] - scores[baseline].means[column])
            comparisons.append(Comparison(name, measure, difference, statistic, p, p, wins, ties, losses))
    pairs = zip(comparisons, holm([comparison.p for comparison in comparisons]).tolist(), strict=True)
    return Significance(baseline, test, alternative, tuple(replace(c, corrected_p=p) for c, p in pairs))


def paired_test(
    improvements: FloatArray, test: Test = "t", alternative: Alternative = "two-sided", seed: int = 0
) -> tuple[float, float]:
    """The statistic and p-value of a test that improvements are centred on 0; see `compare` for the tests.

    Parameters
    ----------
    improvements : array, shape (n,)
        At least two paired differences, positive if the run is better.
    test : {"t", "wilcoxon", "randomization"}, default "t"
        The test.
    alternative : {"two-sided", "greater"}, default "two-sided"
        The alternative hypothesis.
    seed : int >= 0, default 0
        Seeds the random flips of the randomisation test.
    """
    for what, given, known in (("test", test, get_args(Test)), ("alternative", alternative, get_args(Alternative))):
        if given not in known:
            raise ParameterError(f"unknown {what} {given!r}; choose from {', '.join(known)}")
    if not improvements.any():
        return 0.0, 1.0
    from scipy import stats

    if test == "t":
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # t is infinite if all are equal
            result = stats.ttest_1samp(improvements, 0.0, alternative=alternative)
    elif test == "wilcoxon":
        result = stats.wilcoxon(improvements, alternative=alternative)
    else:
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
    statistic = improvements.mean() if test == "randomization" else result.statistic
    return float(statistic), float(result.pvalue)


def holm(p_values: ArrayLike) -> FloatArray:
    """Holm's correction: the k-th smallest of m p-values becomes the maximum over j <= k of min(1, (m - j + 1) p_j).

    Parameters
    ----------
    p_values : array-like, shape (m,)

    References
    ----------
    Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics, 1979.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected


def check_comparable(scores: Mapping[str, Scores]) -> None:
    """Raise `ParameterError` if there are no scores, or if queries or measures differ between runs."""
    if not scores:
        raise ParameterError("no scores; give those of at least one run")
    name, first = next(iter(scores.items()))
    for other, run in scores.items():
        if (run.qids, run.measures) != (first.qids, first.measures):
            raise ParameterError(
                f"runs {name!r} and {other!r} are scored on different queries or by different measures"
            )
