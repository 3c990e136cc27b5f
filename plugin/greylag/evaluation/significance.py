"""Paired significance tests between runs over queries, corrected for multiple comparisons."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from greylag.errors import ParameterError
from greylag.evaluation.measures import Measure
from greylag.evaluation.scores import Scores
from greylag.ranking import FloatArray
from greylag.tables import Library, Marked, Printed, Table, as_frame

Test = Literal["t", "wilcoxon", "randomization"]
Alternative = Literal["two-sided", "greater"]
Correction = Literal["holm", "bh"]
Family = Literal["all", "measure"]

SIGNIFICANCE_LEVEL = 0.05
POWER = 0.8
RESAMPLES = 2**16
DECIMALS = 12

TEST_NAMES = {"t": "paired t-test", "wilcoxon": "Wilcoxon signed-rank test", "randomization": "randomisation test"}
CORRECTION_NAMES = {"holm": "Holm's", "bh": "Benjamini & Hochberg's"}
FIGURES = (
    "low, high: 95 % t interval of diff; d: diff / SD over queries; detectable: the diff that as many queries show in "
    "a t-test with 80 % power; all two-sided, uncorrected"
)
SHOWN = 9  # columns of `comparison_table` that fit a terminal


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a run with a baseline by one measure."""

    run: str  # its name
    baseline: str  # its name
    measure: Measure
    difference: float  # the mean of the run minus the mean of the baseline
    interval: tuple[float, float]  # of the difference, 95 %, by Student's t; not corrected
    effect_size: (
        float | None
    )  # the difference in standard deviations of the differences over queries; None if all equal
    detectable: (
        float | None
    )  # the least difference that these queries show with 80 % power, not corrected; None likewise
    statistic: float  # t, SciPy's rank sum of Wilcoxon's test, or the mean improvement for the randomisation test
    p: float
    corrected_p: float  # as the `Significance` says
    direction: int  # 1 if the run is better, -1 if worse; 0 if equal, or if Wilcoxon's ranks contradict the means
    wins: int  # queries on which the run is better than the baseline
    ties: int
    losses: int

    @property
    def verdict(self) -> str:
        """What was found, in a sentence, and what it could not have shown, in another."""
        if self.detectable is None and not self.difference:
            return f"{self.run} has the same {self.measure} as {self.baseline} on every query."
        shown = self.corrected_p < SIGNIFICANCE_LEVEL and self.direction != 0
        if shown:
            relation = "is better than" if self.direction > 0 else "is worse than"
        else:
            relation = "is not shown to be better than" if self.direction > 0 else "is not better than"
        side = "higher" if self.difference > 0 else "lower"
        wish = " (lower is better)" if self.measure.family.lower_is_better else ""
        p = "<0.0001" if self.corrected_p < 0.0001 else f"{self.corrected_p:.4f}"
        low, high = self.interval
        found = (
            f"{self.run} {relation} {self.baseline}: its mean {self.measure}{wish} is {abs(self.difference):.4f} "
            f"{side} (95 % interval {low:+.4f} to {high:+.4f}, corrected p {p}), better on {self.wins} of "
            f"{self.wins + self.ties + self.losses} queries and worse on {self.losses}."
        )
        if shown or self.detectable is None:
            return found
        return f"{found} So many queries are likely to miss a difference below {self.detectable:.4f}."


@dataclass(frozen=True, slots=True, repr=False)
class Significance(Printed):
    """Comparisons with one baseline, or of all pairs of runs, by one test."""

    baseline: str | None  # its name; None for all pairs
    test: Test
    alternative: Alternative
    comparisons: tuple[Comparison, ...]  # by baseline, run and measure
    correction: Correction = "holm"
    most: ClassVar[int] = 60  # rows of the table
    family: Family = "all"  # what p is corrected over: all comparisons, or those by the same measure

    @property
    def method(self) -> str:
        """The test and the correction, in a sentence."""
        sides = "two-sided" if self.alternative == "two-sided" else "one-sided, better than the baseline"
        number = len(self.comparisons)
        over = f"{number} comparison{'s' if number != 1 else ''}"
        if self.family == "measure":
            over = f"the {number // len({c.measure for c in self.comparisons})} by each measure"
        return (
            f"Corrected p: {TEST_NAMES[self.test]}, {sides}, {CORRECTION_NAMES[self.correction]} correction over "
            f"{over}; * below {SIGNIFICANCE_LEVEL}."
        )

    def _table(self) -> Table:
        return replace(narrow_table(self), caption=f"comparisons with {self.baseline or 'each other'}. {self.method}")

    def to_frame(self, library: Library = "pandas") -> Any:
        """A data frame of pandas or polars with the columns of the table, unrounded, and the statistic of the test."""
        whole = comparison_table("", self)
        kinds = [str] * 3 + [float] * (len(whole.header) - 6) + [int] * 3
        columns = {**dict(zip(("run", *whole.header[1:]), kinds, strict=True)), "statistic": float}
        rows = [[cell.value if isinstance(cell, Marked) else cell for cell in row] for row in whole.rows]
        found = [[*row, c.statistic] for row, c in zip(rows, self.comparisons, strict=True)]
        return as_frame(columns, found, library)

    def find(self, run: str, measure: Measure) -> Comparison | None:
        """The comparison of a run with the baseline by a measure; None for the baseline itself."""
        wanted = (run, self.baseline, measure)
        return next((c for c in self.comparisons if (c.run, c.baseline, c.measure) == wanted), None)


def comparison_table(caption: str, *significances: Significance) -> Table:
    """The differences from one or more baselines: a row for each baseline, run and measure.

    A star marks a corrected p below `SIGNIFICANCE_LEVEL`; `Comparison` has the other figures. Counts are of queries.
    """
    header = ("", "against", "measure", "diff", "low", "high", "d", "detectable", "corrected p")
    rows = [
        (
            c.run,
            c.baseline,
            str(c.measure),
            Marked(c.difference, "+.4f", "*" if c.corrected_p < SIGNIFICANCE_LEVEL else ""),
            *(Marked(end, "+.4f") for end in c.interval),
            None if c.effect_size is None else Marked(c.effect_size, "+.2f"),
            c.detectable,
            c.corrected_p,
            c.p,
            c.wins,
            c.ties,
            c.losses,
        )
        for test in significances
        for c in test.comparisons
    ]
    measures = {c.measure: None for test in significances for c in test.comparisons}
    losses = [str(measure) for measure in measures if measure.family.lower_is_better]
    less = f"; lower is better: {', '.join(losses)}" if losses else ""
    note = f" (* corrected p < {SIGNIFICANCE_LEVEL}; {FIGURES}{less})" if caption else ""
    return Table(caption + note, (*header, "p", "better", "equal", "worse"), rows)


def narrow_table(*significances: Significance) -> Table:
    """The columns of `comparison_table` that fit a terminal."""
    whole = comparison_table("", *significances)
    return replace(whole, header=("run", *whole.header[1:SHOWN]), rows=[row[:SHOWN] for row in whole.rows])


def compare(
    scores: Mapping[str, Scores],
    baseline: str | None = None,
    *,
    test: Test = "t",
    alternative: Alternative = "two-sided",
    correction: Correction = "holm",
    family: Family = "all",
    seed: int = 0,
) -> Significance:
    """Test every run against the baseline, or against every run before it, by every measure.

    The tests are on the improvements x_q, the score of the run minus that of the baseline on query q (negated for a
    loss), rounded to 12 decimals so that equal improvements tie. If all improvements are 0, p is 1.

    - "t": Student's paired t-test.
    - "wilcoxon": Wilcoxon's signed-rank test without zeros; exact for few queries, else by the normal approximation, as
      `scipy.stats.wilcoxon` chooses.
    - "randomization": Fisher's randomisation test, which flips the signs of the x_q. Exact for up to 16 non-zero x_q,
      else (1 + b) / (1 + 2^16), with b the number of random flips whose mean is at least as extreme; doubled if
      two-sided.

    With every test come three figures on the scale of the difference D of the means, from the standard deviation s
    (n - 1 degrees of freedom) of the differences over the n queries. They are two-sided and not corrected:

    - the 95 % interval of Student's t, D +- t(0.975, n - 1) s / sqrt(n);
    - the effect size D / s (Sakai 2018);
    - the detectable difference s delta / sqrt(n), with delta the noncentrality at which the t-test has p < 0.05 with
      probability 0.8. A smaller difference is likely to be missed: that it is not significant says little.

    Parameters
    ----------
    scores : mapping
        Scores by name of run, in the order of the result.
    baseline : str, optional
        One of the names; by default, all pairs of runs are compared.
    test : {"t", "wilcoxon", "randomization"}, default "t"
        The test.
    alternative : {"two-sided", "greater"}, default "two-sided"
        "greater" tests whether the run is better than the baseline.
    correction : {"holm", "bh"}, default "holm"
        "holm" controls the probability of any false finding (`holm`), "bh" the expected share of false ones among the
        findings (Benjamini & Hochberg 1995, `scipy.stats.false_discovery_control`).
    family : {"all", "measure"}, default "all"
        Whether p is corrected over all comparisons, or for each measure over its own, as PyTerrier does.
    seed : int >= 0, default 0
        Seeds the random flips anew for each comparison, so that comparisons do not affect each other.

    References
    ----------
    Smucker, Allan and Carterette, A comparison of statistical significance tests for information retrieval evaluation,
    CIKM 2007. Sakai, Laboratory Experiments in Information Retrieval, Springer 2018. Benjamini and Hochberg,
    Controlling the false discovery rate, Journal of the Royal Statistical Society B, 1995.
    """
    check_comparable(scores)
    if baseline is not None and baseline not in scores:
        raise ParameterError(f"baseline {baseline!r} is not among the runs {', '.join(scores)}")
    if baseline is None and alternative != "two-sided":
        raise ParameterError("all pairs are compared two-sided; name a baseline for another alternative")
    if len(scores) < 2:
        raise ParameterError(f"no run to compare with {next(iter(scores))!r}; give another run")
    if len(next(iter(scores.values())).qids) < 2:
        raise ParameterError("a significance test needs at least two queries; omit the baseline to score the runs")
    _check_choices(correction=(correction, Correction), family=(family, Family))
    names = list(scores)
    pairs = combinations(names, 2) if baseline is None else ((baseline, name) for name in names if name != baseline)
    comparisons = [
        _compare(scores, run, against, column, test, alternative, seed)
        for against, run in pairs
        for column in range(len(scores[run].measures))
    ]
    families: dict[Measure | None, list[int]] = {}
    for number, comparison in enumerate(comparisons):
        families.setdefault(comparison.measure if family == "measure" else None, []).append(number)
    for numbers in families.values():
        corrected = correct([comparisons[number].p for number in numbers], correction).tolist()
        for number, p in zip(numbers, corrected, strict=True):
            comparisons[number] = replace(comparisons[number], corrected_p=p)
    return Significance(baseline, test, alternative, tuple(comparisons), correction, family)


def _compare(
    scores: Mapping[str, Scores],
    name: str,
    baseline: str,
    column: int,
    test: Test,
    alternative: Alternative,
    seed: int,
) -> Comparison:
    """Compare two runs by the measure of a column; p is not yet corrected."""
    run, other = scores[name], scores[baseline]
    measure = run.measures[column]
    differences = np.round(run.values[:, column] - other.values[:, column], DECIMALS)
    improvements = -differences if measure.family.lower_is_better else differences
    statistic, p = paired_test(improvements, test, alternative, seed)
    difference = float(run.means[column] - other.means[column])
    n, same = len(differences), bool((differences == differences[0]).all())
    deviation = 0.0 if same else float(differences.std(ddof=1))
    error = deviation / math.sqrt(n)
    margin = _critical(n) * error
    wins, ties, losses = (int((np.sign(improvements) == sign).sum()) for sign in (1, 0, -1))
    return Comparison(
        name,
        baseline,
        measure,
        difference,
        interval=(difference - margin, difference + margin),
        effect_size=difference / deviation if deviation else None,
        detectable=noncentrality(n) * error if deviation else None,
        statistic=statistic,
        p=p,
        corrected_p=p,
        direction=_direction(improvements, test),
        wins=wins,
        ties=ties,
        losses=losses,
    )


def _critical(n: int) -> float:
    """The t of n differences from which on the two-sided p is below the level."""
    from scipy import special

    return float(special.stdtrit(n - 1, 1 - SIGNIFICANCE_LEVEL / 2))


def noncentrality(n: int) -> float:
    """The noncentrality of t at which the t-test of n differences finds with `POWER` that they are above 0.

    That it finds the contrary, which would count in a two-sided test, has a probability below 10^-6.
    """
    from scipy import special

    return float(special.nctdtrinc(n - 1, 1 - POWER, _critical(n)))


def _direction(improvements: FloatArray, test: Test) -> int:
    from scipy import stats

    mean = np.sign(improvements.sum())
    changed = improvements[improvements != 0]
    if test == "wilcoxon" and np.sign(np.sign(changed) @ stats.rankdata(np.abs(changed))) != mean:
        return 0
    return int(mean)


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
    _check_choices(test=(test, Test), alternative=(alternative, Alternative))
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


def correct(p_values: ArrayLike, correction: Correction) -> FloatArray:
    """The p-values after a correction over all of them."""
    from scipy import stats

    return holm(p_values) if correction == "holm" else np.asarray(stats.false_discovery_control(p_values))


def _check_choices(**choices: tuple[str, Any]) -> None:
    """Raise `ParameterError` for an argument, by name, that is none of a `Literal`'s values."""
    for what, (given, known) in choices.items():
        if given not in get_args(known):
            raise ParameterError(f"unknown {what} {given!r}; choose from {', '.join(get_args(known))}")


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
