"""Paired significance tests between runs over queries, corrected for multiple comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from greylag.base import (
    BoolArray,
    Cell,
    FloatArray,
    Library,
    Marked,
    ParameterError,
    Printed,
    Table,
    check_choice,
    check_positive,
    check_sequences,
    guided,
    shown,
    table_frame,
)
from greylag.evaluation.scoring.margins import check_margin, parse_margin
from greylag.evaluation.scoring.measures import Measure
from greylag.evaluation.scoring.power import POWER, SIGNIFICANCE_LEVEL, critical_t, detectable_difference
from greylag.evaluation.scoring.scores import DIFFERENCE_DECIMALS, Scores, mean_difference
from greylag.evaluation.scoring.sign_flips import MOST_FLIPPED, Alternative, are_equal, sign_flip_p
from greylag.evaluation.scoring.tukey import residual_variance, tukey_critical, tukey_p

Test = Literal["t", "wilcoxon", "randomization"]
Correction = Literal["holm", "bh", "tukey"]  # of `compare_scores`

MIN_TOPICS_OF_T = 20
"""Below this number of topics, the exact p stands beside that of a t-test, which misses its level there."""
RESAMPLES = 2**16
SMALLEST_SHOWN = 5e-5  # of differences, with four decimals

TEST_NAMES = {"t": "paired t-test", "wilcoxon": "Wilcoxon signed-rank test", "randomization": "randomisation test"}
CORRECTION_NAMES = {
    "holm": "Holm's",
    "bh": "Benjamini & Hochberg's",
    "tukey": "Tukey's HSD",
    "max-t": "Westfall & Young's max-t",
}
FINDINGS = {1: "better than", -1: "worse than", 0: "not shown to be better or worse than"}
"""What a comparison shows, by the direction of a significant difference."""
EXACT_NOTE = "exact p: by the randomisation test, which holds its level on few topics, corrected as p is"
COLUMNS_NOTE = (
    "low, high: two-sided 95 % t interval of diff, not corrected; d: diff / SD over queries; detectable: the smallest "
    "true diff that a t-test on this many queries detects with 80 % power, corrected as p is"
)
TUKEY_NOTE = (
    "low, high: 95 % intervals of all pairs' diffs at once; d: diff / residual SD; detectable: the smallest true diff "
    "that this test detects with 80 % power"
)
MOST_SENTENCES = 3  # comparisons that are written out; a table stands for more
MAX_TERMINAL_COLUMNS = 9  # columns of `comparison_table` that fit a terminal


@dataclass(frozen=True, slots=True)
class DifferenceWithHoles:
    """The difference of two runs' means under several views of documents without judgements."""

    not_relevant: float
    relevant: float
    left_out: float

    def sentence(self, run: str, baseline: str, measure: str) -> str:
        """Write that the order of the two depends on documents without judgements; "" if it does not."""
        views = (self.not_relevant, self.relevant, self.left_out)
        if len({int(np.sign(round(difference, DIFFERENCE_DECIMALS))) for difference in views}) == 1:
            return ""
        return (
            f"The order of {run} and {baseline} by {measure} depends on documents without judgements: the difference "
            f"is {self.not_relevant:+.4f} if they count as not relevant, {self.relevant:+.4f} as relevant, and "
            f"{self.left_out:+.4f} if they are left out."
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a run with a baseline by one measure."""

    run: str  # its name
    baseline: str  # its name
    measure: Measure
    mean: float  # of the run
    difference: float  # the mean of the run minus the mean of the baseline
    # of the difference, 95 %; by `compare_scores`, Student's t, not corrected; None if all differences are equal, not 0
    interval: tuple[float, float] | None
    # the difference in standard deviations of the differences over queries; None if all are equal
    effect_size: float | None
    # the true differences that these queries show with a probability of 0.8 and of 0.5, corrected; None likewise
    detectable: float | None
    even_odds: float | None
    statistic: float  # t, SciPy's rank sum of Wilcoxon's test, or the mean improvement for the randomisation test
    p: float
    corrected_p: float  # as the `Significance` says
    direction: int  # 1 if the run is better, -1 if worse; 0 if equal, or if Wilcoxon's ranks contradict the means
    wins: int  # queries on which the run is better than the baseline
    ties: int
    losses: int
    margin: float | None = None  # of equivalence, if it was tested
    equivalence_p: float | None = None  # that the difference is below the margin: `equivalence_test`, corrected
    holes: DifferenceWithHoles | None = None  # under other views of unjudged documents, if they were asked for
    exact_p: float | None = None  # beside a t-test on few topics: of the randomisation test, corrected as `corrected_p`
    not_run: str = ""  # why there is no verdict, and all p are nan: one ranks no topic, or none that the other ranks

    @property
    def significant(self) -> bool:
        """The run is shown to be better or worse than the baseline."""
        return self.corrected_p < SIGNIFICANCE_LEVEL and self.direction != 0

    @property
    def verdict(self) -> str:
        """The finding in a sentence; in others the differences that would have been shown, equivalence, and holes."""
        if self.not_run:
            return f"{self.run} is not compared with {self.baseline}: {self.not_run}."
        sentences = [self._difference_verdict]
        if self.margin is not None and self.equivalence_p is not None:
            relation = "the same" if self.equivalence_p < SIGNIFICANCE_LEVEL else "not shown to be the same"
            test = f"(two one-sided t-tests, corrected p {p_text(self.equivalence_p)})"
            sentences.append(f"The two are {relation} within {self.margin:g} {test}.")
        if self.holes and (sentence := self.holes.sentence(self.run, self.baseline, str(self.measure))):
            sentences.append(sentence)
        return " ".join(sentences)

    @property
    def _difference_verdict(self) -> str:
        """The finding in a sentence; if nothing was shown, the differences that would have been in another."""
        if self.effect_size is None and not self.difference:
            return f"{self.run} has the same {self.measure} as {self.baseline} on every query."
        relation = FINDINGS[self.significant * self.direction]
        size = f"{abs(self.difference):.4f}" if abs(self.difference) >= SMALLEST_SHOWN else "less than 0.0001"
        gap = f"{size} {'higher' if self.difference > 0 else 'lower'}" if self.difference else "the same"
        wish = ", where lower is better," if self.measure.family.lower_is_better else ""
        interval = "95 % interval {:+.4f} to {:+.4f}, ".format(*self.interval) if self.interval else ""
        finding = (
            f"{self.run} is {relation} {self.baseline}: its mean {self.measure}{wish} of {self.mean:.4f} is "
            f"{gap} ({interval}corrected p {p_text(self.corrected_p)}), better on "
            f"{self.wins} of {self.wins + self.ties + self.losses} queries and worse on {self.losses}."
        )
        if self.significant or self.detectable is None:
            return finding
        return (
            f"{finding} This many queries usually (80 %) reveal a difference of {self.detectable:.4f}; one of "
            f"{self.even_odds:.4f} they miss half the time."
        )


def p_text(p: float) -> str:
    """Format a p value with four decimals."""
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


@dataclass(frozen=True, slots=True, repr=False)
class Significance(Printed):
    """Comparisons with one baseline, or of all pairs of runs, by one test."""

    baseline: str | None  # its name; None for several
    test: Test
    alternative: Alternative
    comparisons: tuple[Comparison, ...]  # by baseline, run and measure
    correction: Correction | Literal["max-t"] = "holm"  # the last by `best_of_many`, with simultaneous intervals
    most: ClassVar[int] = 60  # rows of the table
    together: int | None = None  # the comparisons of all collections, if p is corrected over several
    all_pairs: bool = False  # each run is compared with every other, and not some with some

    @property
    def baselines(self) -> list[str]:
        """The runs that others are compared with, in order; none if all pairs are compared."""
        return [] if self.all_pairs else list(dict.fromkeys(c.baseline for c in self.comparisons))

    @property
    def method(self) -> str:
        """The test and the correction, in a sentence."""
        sides = "two-sided" if self.alternative == "two-sided" else "one-sided, better than the baseline"
        number = sum(not c.not_run for c in self.comparisons) if self.together is None else self.together
        over = f"{number} comparison{'s' if number != 1 else ''}"
        if self.correction == "tukey":
            return (
                "Corrected p: Tukey's HSD of all pairs (two-way analysis of variance without replication, topics as "
                f"blocks), times the number of measures, over {over}; * below {SIGNIFICANCE_LEVEL}."
            )
        return (
            f"Corrected p: {TEST_NAMES[self.test]}, {sides}, {CORRECTION_NAMES[self.correction]} correction over "
            f"{over}; * below {SIGNIFICANCE_LEVEL}."
        )

    @property
    def columns_note(self) -> str:
        """The meaning of the table's columns."""
        note = TUKEY_NOTE if self.correction == "tukey" else COLUMNS_NOTE
        return "; ".join([note, *[EXACT_NOTE] * any(c.exact_p is not None for c in self.comparisons)])

    def _table(self) -> Table:
        against = " and ".join(self.baselines) or "each other"
        return replace(narrow_table(self), caption=f"comparisons with {against}. {self.method}")

    def to_frame(self, library: Library = "pandas") -> Any:
        """Make a data frame of pandas or polars with the table's columns, unrounded, and the test's statistic."""
        whole = comparison_table("", self)
        rows = [(*row, c.statistic) for row, c in zip(whole.rows, self.comparisons, strict=True)]
        return table_frame(replace(whole, header=("run", *whole.header[1:], "statistic"), rows=rows), library)

    def find(self, run: str, measure: Measure) -> Comparison | None:
        """Find the comparison of a run with the baseline by a measure; None for the baseline itself."""
        wanted = (run, self.baseline, measure)
        return next((c for c in self.comparisons if (c.run, c.baseline, c.measure) == wanted), None)


def comparison_table(caption: str, *significances: Significance) -> Table:
    """Return the differences from one or more baselines: a row for each baseline, run and measure.

    A star marks a corrected p below `SIGNIFICANCE_LEVEL`; `Comparison` has the other figures. Counts are of queries.
    """
    # What a terminal shows comes first; see `narrow_table`.
    header = ["", "against", "measure", "diff", "low", "high", "d", "detectable", "corrected p"]
    every = [c for test in significances for c in test.comparisons]
    exact, equivalence = any(c.exact_p is not None for c in every), any(c.margin is not None for c in every)
    header += ["exact p"] * exact + ["same p"] * equivalence
    header += ["p", "better", "equal", "worse"]
    rows = [
        (c.run, c.baseline, str(c.measure), Marked(c.difference, "+.4f"), *[None] * (len(header) - 4))
        if c.not_run
        else (
            c.run,
            c.baseline,
            str(c.measure),
            Marked(c.difference, "+.4f", "*" if c.corrected_p < SIGNIFICANCE_LEVEL else ""),
            *((Marked(end, "+.4f") for end in c.interval) if c.interval else (None, None)),
            None if c.effect_size is None else Marked(c.effect_size, "+.2f"),
            c.detectable,
            c.corrected_p,
            *([c.exact_p] if exact else []),
            *([marked_p(c.equivalence_p)] if equivalence else []),
            c.p,
            c.wins,
            c.ties,
            c.losses,
        )
        for c in every
    ]
    measures = dict.fromkeys(c.measure for c in every)
    losses = [str(measure) for measure in measures if measure.family.lower_is_better]
    less = f"; lower is better: {', '.join(losses)}" if losses else ""
    columns = "; ".join([COLUMNS_NOTE, *[EXACT_NOTE] * exact])
    note = f" (* corrected p < {SIGNIFICANCE_LEVEL}; {columns}{less})" if caption else ""
    return Table(caption + note, header, rows)


def narrow_table(significance: Significance) -> Table:
    """Return the columns of `comparison_table` that fit a terminal."""
    whole = comparison_table("", significance)
    shown = MAX_TERMINAL_COLUMNS + len({"exact p", "same p"}.intersection(whole.header))
    return replace(whole, header=("run", *whole.header[1:shown]), rows=[row[:shown] for row in whole.rows])


def marked_p(p: float | None) -> Cell:
    """Mark a p value with a star if it is below `SIGNIFICANCE_LEVEL`; None if there is none."""
    return None if p is None else Marked(p, mark="*" if p < SIGNIFICANCE_LEVEL else "")


@dataclass(frozen=True)
class Design:
    """The test and correction of comparisons; see `compare_scores`."""

    test: Test = "t"
    alternative: Alternative = "two-sided"
    correction: Correction = "holm"
    seed: int = 0
    margin: float | None = None
    all_pairs: bool = False

    def __post_init__(self) -> None:
        check_choice("test", self.test, get_args(Test))
        check_choice("alternative", self.alternative, get_args(Alternative))
        check_choice("correction", self.correction, get_args(Correction))
        if self.correction == "tukey" and not self.all_pairs:
            raise ParameterError("correction 'tukey' is of all pairs of runs: compare all pairs, without a baseline")
        if self.correction == "tukey" and (self.test, self.alternative, self.margin) != ("t", "two-sided", None):
            raise ParameterError("correction 'tukey' is a test of its own: leave test, alternative and margin out")
        if self.margin is not None:
            object.__setattr__(self, "margin", parse_margin("margin", self.margin))


DEFAULT_DESIGN = Design()
WITHOUT_VERDICT: Mapping[str, Any] = {
    **dict.fromkeys(("interval", "effect_size", "detectable", "even_odds", "equivalence_p", "exact_p")),
    **dict.fromkeys(("statistic", "p", "corrected_p"), math.nan),
    "direction": 0,
}
"""The figures of a comparison with a run that did not run."""


@guided
def compare_scores(
    scores: Mapping[str, Scores],
    baseline: str | Sequence[str] | None = None,
    *,
    test: Test = "t",
    alternative: Alternative = "two-sided",
    correction: Correction = "holm",
    seed: int = 0,
    margin: float | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Significance:
    """Test every run against the baselines, or against every run before it, by every measure.

    One rule holds for every table and verdict of greylag: p is corrected over all comparisons that are made together.

    A run that ranks no topic, or none that the other ranks, did not run: it gets no verdict (`Comparison.not_run`), and
    its p, which are nan, do not count for the correction.

    The tests are on the improvements x_q, the run's score minus the baseline's on query q (negated for a
    loss), rounded to 12 decimals so that equal improvements tie. If all improvements are 0, p is 1.

    - "t": Student's paired t-test, which is SciPy's. If all x_q are equal and not 0, their variance says nothing, and p
      is that of the randomisation test, 2 / 2^n. On fewer than 20 queries, that test's p stands beside it (`exact_p`).
    - "wilcoxon": Wilcoxon's signed-rank test without zeros. Exact for up to 20 non-zero x_q, also with ties; else exact
      or by the normal approximation, as `scipy.stats.wilcoxon` chooses.
    - "randomization": Fisher's randomisation test, which flips the signs of the x_q. Exact for up to 20 non-zero x_q,
      else (1 + b) / (1 + 2^16), with b the number of random flips whose mean is at least as extreme; doubled if
      two-sided.

    With every test come figures on the scale of the difference D of the means, from the standard deviation s (n - 1
    degrees of freedom) of the differences over the n queries:

    - the 95 % interval of Student's t, D +- t(0.975, n - 1) s / sqrt(n), which is two-sided and not corrected; there is
      none if all differences are equal and not 0;
    - the effect size D / s (Sakai 2018);
    - the detectable difference, which the t-test shows with a probability of at least 0.8 after the correction, and
      that of even odds, with 0.5: `detectable_difference` with the error s / sqrt(n). That a smaller difference is
      not significant says little.

    Parameters
    ----------
    scores : mapping
        Scores by name of run, in the order of the result.
    baseline : str or sequence of str, optional
        One of the names, or several, each pair compared once; by default, all pairs of runs are compared.
    test : {"t", "wilcoxon", "randomization"}, default "t"
        The test.
    alternative : {"two-sided", "greater"}, default "two-sided"
        "greater" tests whether the run is better than the baseline.
    correction : {"holm", "bh", "tukey"}, default "holm"
        "holm" controls the probability of any false finding (`holm`), "bh" the expected share of false ones among the
        findings (Benjamini & Hochberg 1995, `scipy.stats.false_discovery_control`). "tukey" is Tukey's HSD of all
        pairs of m runs on n queries, as NTCIR has it (Sakai 2018): with the residual variance V of the two-way analysis
        of variance without replication, p = P(Q > |D| / sqrt(V / n)) for the studentized range Q of m means with
        (m - 1)(n - 1) degrees of freedom, d is D / sqrt(V), and intervals hold for all pairs at once. If V is 0, p is
        the randomisation test's 2 / 2^n times the number of pairs, and there is no interval. The corrected p is p times
        the number of measures.
    seed : int >= 0, default 0
        Seeds the random flips anew for each comparison, so that comparisons do not affect each other.
    margin : float > 0, optional
        Tests equivalence, too: whether the means differ by less than this, in units of the measure
        (`equivalence_test`). It is below the range of the measures' scores. These p-values are corrected among
        themselves, by the same correction.
    pairs : sequence of pair of str, optional
        Baseline and run of each comparison, instead of all with one baseline.

    References
    ----------
    Smucker, Allan and Carterette, CIKM 2007. Sakai, Laboratory Experiments in Information Retrieval, Springer 2018.
    Benjamini and Hochberg, Controlling the false discovery rate, Journal of the Royal Statistical Society B, 1995.
    """
    design = Design(test, alternative, correction, seed, margin, all_pairs=baseline is None and pairs is None)
    return compare_collections({"": scores}, pairs, baseline, design)[""]


def compare_collections(
    collections: Mapping[str, Mapping[str, Scores]],
    pairs: Sequence[tuple[str, str]] | None,
    baseline: str | Sequence[str] | None = None,
    design: Design = DEFAULT_DESIGN,
) -> dict[str, Significance]:
    """Compare the runs of each collection as `compare_scores` does; p is corrected over all collections together."""
    if pairs is not None:
        check_sequences(pairs=pairs)
    baselines = as_baselines(baseline)
    # All together, since p is corrected for their number.
    planned: list[tuple[str, str, str, int]] = []  # collection, baseline, run, column
    for collection, scores in collections.items():
        _check_arguments(scores, [pair[0] for pair in pairs] if pairs else baselines, design)
        compared = [*combinations(scores, 2)]
        if baselines:
            before = {name: baselines[: place + 1] for place, name in enumerate(baselines)}
            compared = [(name, run) for name in baselines for run in scores if run not in before[name]]
        columns = range(len(next(iter(scores.values())).measures))
        planned += [
            (collection, *pair, column) for pair in (compared if pairs is None else pairs) for column in columns
        ]
    ranked = {name: {run: each.ranked for run, each in scores.items()} for name, scores in collections.items()}
    absent = [not_run(run, against, ranked[collection]) for collection, against, run, _ in planned]
    number = absent.count("")
    comparisons = [
        replace(_compare(collections[collection], run, against, column, design, max(1, number)), not_run=reason)
        for (collection, against, run, column), reason in zip(planned, absent, strict=True)
    ]
    if design.correction == "tukey":
        comparisons = _tukey(collections, planned, comparisons)
    else:
        tested = [c for c in comparisons if not c.not_run]
        corrected = correct([c.p for c in tested], design.correction).tolist()
        # Of several collections, some may have too many topics for an exact p.
        exact = correct([c.p if c.exact_p is None else c.exact_p for c in tested], design.correction).tolist()
        # Among themselves: equivalence is another family of hypotheses.
        same = correct([c.equivalence_p or 0.0 for c in tested], design.correction).tolist()
        results = iter(
            replace(
                c,
                corrected_p=p,
                exact_p=None if c.exact_p is None else other,
                equivalence_p=None if c.equivalence_p is None else equal,
            )
            for c, p, other, equal in zip(tested, corrected, exact, same, strict=True)
        )
        comparisons = [c if c.not_run else next(results) for c in comparisons]
    comparisons = [replace(c, **WITHOUT_VERDICT) if c.not_run else c for c in comparisons]
    return {
        name: Significance(
            baselines[0] if len(baselines) == 1 else None,
            design.test,
            design.alternative,
            tuple(c for (collection, *_), c in zip(planned, comparisons, strict=True) if collection == name),
            design.correction,
            number if len(collections) > 1 else None,
            pairs is None and not baselines,
        )
        for name in collections
    }


def compare_again(collections: Mapping[str, Mapping[str, Scores]], tests: Significance) -> dict[str, Significance]:
    """Compare runs of collections as earlier tests of them, or of more runs, did; random flips are of seed 0."""
    margin = tests.comparisons[0].margin
    correction: Any = tests.correction  # that of `best_of_many` is refused
    design = Design(tests.test, tests.alternative, correction, margin=margin, all_pairs=tests.all_pairs)
    compared = compare_collections(collections, None, tests.baselines, design)
    made = {frozenset((c.run, c.baseline)) for c in tests.comparisons}
    for again in compared.values():
        if any(frozenset((c.run, c.baseline)) not in made for c in again.comparisons):
            raise ParameterError("some pairs of runs alone were compared: compare all that are left with baselines")
    return compared


def not_run(run: str, baseline: str, ranked: Mapping[str, BoolArray]) -> str:
    """Write why two runs cannot be compared, by the topics that each one ranks; "" if they can."""
    for name in (run, baseline):
        if not ranked[name].any():
            return f"{name} did not run, as it ranks no topic"
    return "" if (ranked[run] & ranked[baseline]).any() else f"{run} and {baseline} rank no topic in common"


def _tukey(
    collections: Mapping[str, Mapping[str, Scores]],
    planned: Sequence[tuple[str, str, str, int]],
    comparisons: Sequence[Comparison],
) -> list[Comparison]:
    """Replace the t-tests of all pairs by Tukey's HSD of each measure, corrected over the families of pairs."""
    results, by_family = list(comparisons), dict[tuple[str, int], list[int]]()
    for place, (collection, *_, column) in enumerate(planned):
        if not results[place].not_run:
            by_family.setdefault((collection, column), []).append(place)
    families = len(by_family)
    for (collection, column), places in by_family.items():
        compared = (run for run in collections[collection].values() if run.ranked.any())
        values = np.array([run.values[:, column] for run in compared])
        variance, freedom = residual_variance(values)
        error = math.sqrt(2 * variance / values.shape[1])
        critical = tukey_critical(len(values), freedom, families)
        differences = np.round([results[place].difference for place in places], DIFFERENCE_DECIMALS)
        t = differences / error if error else np.where(differences, np.copysign(np.inf, differences), 0.0)
        if error:
            p_values = tukey_p(np.abs(t), len(values), freedom)
        else:  # differences are equal on all topics: the exact p of each, by Bonferroni's correction
            equal = (np.full(values.shape[1], difference) for difference in differences)
            p_values = np.minimum([len(places) * sign_flip_p(values, "two-sided") for values in equal], 1.0)
        powers = figures(0.0, error, freedom + 1, critical, critical)
        for place, statistic, p in zip(places, t.tolist(), p_values.tolist(), strict=True):
            difference = results[place].difference
            shown = {**powers, "interval": interval_of(difference, error, critical)}
            effect, corrected = difference / math.sqrt(variance) if variance else None, min(1.0, families * p)
            changed = {**shown, "effect_size": effect, "statistic": statistic, "p": p, "corrected_p": corrected}
            results[place] = replace(results[place], **changed)
    return results


def as_baselines(baseline: str | Sequence[str] | None) -> list[str]:
    """List the baselines of an argument, each once."""
    if baseline is None or isinstance(baseline, str):
        return [] if baseline is None else [baseline]
    check_sequences(baseline=baseline)
    return list(dict.fromkeys(baseline))


def _check_arguments(scores: Mapping[str, Scores], baselines: Sequence[str], design: Design) -> None:
    """Raise `ParameterError` for scores that cannot be compared."""
    check_comparable(scores, baselines)
    if not baselines and design.alternative != "two-sided":
        raise ParameterError("all pairs are compared two-sided; name a baseline for another alternative")
    if len(scores) < 2:
        raise ParameterError(f"no run to compare with {next(iter(scores))!r}; give another run")
    if len(next(iter(scores.values())).qids) < 2:
        raise ParameterError("a significance test needs at least two queries; omit the baseline to score the runs")
    for measure in next(iter(scores.values())).measures:
        if measure.family.summary != "mean":
            raise ParameterError(
                f"{measure} is a {measure.family.summary} over queries, and means are compared: omit it"
            )
    if design.margin is not None:
        check_margin("margin", design.margin, next(iter(scores.values())).measures)


def _compare(
    scores: Mapping[str, Scores], name: str, baseline: str, column: int, design: Design, size: int
) -> Comparison:
    """Compare two runs by the measure of a column; p is not yet corrected over `size` comparisons."""
    run, other = scores[name], scores[baseline]
    measure = run.measures[column]
    # Rounding errors would break ties, which the tests by ranks and signs count.
    differences = np.round(run.values[:, column] - other.values[:, column], DIFFERENCE_DECIMALS)
    improvements = -differences if measure.family.lower_is_better else differences
    statistic, p = paired_test(improvements, design.test, design.alternative, design.seed)
    difference = mean_difference(run.means[column], other.means[column])
    # Not by the deviation, which is a rounding error then and would be divided by.
    n, deviation = len(differences), 0.0 if are_equal(differences) else float(differences.std(ddof=1))
    # What is detected is corrected as p is; the interval is of this difference alone.
    critical = critical_t(n, comparisons=size, sides=1 if design.alternative == "greater" else 2)
    wins, ties, losses = (int((np.sign(improvements) == sign).sum()) for sign in (1, 0, -1))
    exact = design.test == "t" and design.correction != "tukey" and n < MIN_TOPICS_OF_T
    return Comparison(
        name,
        baseline,
        measure,
        float(run.means[column]),
        difference,
        effect_size=difference / deviation if deviation else None,
        **figures(difference, deviation / math.sqrt(n), n, critical_t(n), critical),
        statistic=statistic,
        p=p,
        corrected_p=p,
        direction=_direction(improvements, design.test),
        wins=wins,
        ties=ties,
        losses=losses,
        margin=design.margin,
        equivalence_p=None if design.margin is None else equivalence_test(differences, design.margin),
        exact_p=paired_test(improvements, "randomization", design.alternative)[1] if exact else None,
    )


def figures(difference: float, error: float, n: int, width: float, critical: float) -> dict[str, Any]:
    """Compute the interval of `width` standard errors, and the differences that are detected from `critical` on."""
    powers = {"detectable": POWER, "even_odds": 0.5}
    return {"interval": interval_of(difference, error, width)} | {
        name: detectable_difference(error, n, critical=critical, power=power) if error else None
        for name, power in powers.items()
    }


def interval_of(difference: float, error: float, width: float) -> tuple[float, float] | None:
    """Return the interval of `width` standard errors; None of a difference whose variance is 0, which shows nothing."""
    return (difference - width * error, difference + width * error) if error or not difference else None


def _direction(improvements: FloatArray, test: Test) -> int:
    """Return 1 if the run is better, -1 if worse; 0 if equal, or if Wilcoxon's ranks favour the lower mean."""
    mean = np.sign(improvements.sum())
    if test == "wilcoxon":
        from scipy import stats

        changed = improvements[improvements != 0]
        mean *= np.sign(np.sign(changed) @ stats.rankdata(np.abs(changed))) == mean
    return int(mean)


def paired_test(
    improvements: FloatArray, test: Test = "t", alternative: Alternative = "two-sided", seed: int = 0
) -> tuple[float, float]:
    """Return the statistic and p-value of a test that improvements are centred on 0; as `compare_scores` has them.

    Parameters
    ----------
    improvements : array, shape (n,)
        At least two paired differences, positive if the run is better.
    test, alternative, seed
        See `compare_scores`.
    """
    check_choice("test", test, get_args(Test))
    check_choice("alternative", alternative, get_args(Alternative))
    improvements = as_array(improvements=improvements)
    if not improvements.any():
        return 0.0, 1.0
    if test == "t":
        mean, error = _mean_and_error(improvements)
        # SciPy's p would be 0, from two queries on, where half of all flips of signs are as extreme.
        if are_equal(improvements):
            return math.copysign(math.inf, mean), sign_flip_p(improvements, alternative)
        t, n = mean / error, len(improvements)
        return t, _upper_tail(t, n) if alternative == "greater" else 2 * _upper_tail(abs(t), n)
    from scipy import stats

    # Zeros are 0 with either sign: without them, more tests are exact.
    changed = improvements[improvements != 0]
    flipped, statistic = changed, float(improvements.mean())
    if test == "wilcoxon":
        flipped = np.sign(changed) * stats.rankdata(np.abs(changed))
        better, worse = (float(flipped[flipped * sign > 0].sum()) * sign for sign in (1, -1))
        statistic = better if alternative == "greater" else min(better, worse)
    if len(changed) <= MOST_FLIPPED or are_equal(flipped):
        p = sign_flip_p(flipped, alternative)
    elif test == "wilcoxon":
        p = stats.wilcoxon(improvements, alternative=alternative).pvalue
    else:
        p = stats.permutation_test(
            (changed,),
            np.sum,
            permutation_type="samples",
            vectorized=True,
            n_resamples=RESAMPLES,
            batch=RESAMPLES // 16,
            alternative=alternative,
            rng=np.random.default_rng(seed),
        ).pvalue
    return statistic, float(p)


def equivalence_test(
    improvements: FloatArray, margin: float, alternative: Literal["two-sided", "greater"] = "two-sided"
) -> float:
    """Return the p-value of a test that the mean of improvements is within a margin of 0.

    Two one-sided t-tests: with the mean m, the standard error e and n - 1 degrees of freedom, p is the larger of
    P(T > (m + margin) / e) and P(T > (margin - m) / e). It is below 0.05 if and only if the 90 % interval of m by
    Student's t is within (-margin, margin). If all improvements are equal, e is 0, and p is exact: of the one-sided
    randomisation tests of improvement + margin and margin - improvement, 1 / 2^n within the margin.

    Parameters
    ----------
    improvements : array, shape (n,)
        At least two paired differences, positive if the run is better.
    margin : float > 0
        The largest difference that does not matter, in units of the improvements.
    alternative : {"two-sided", "greater"}, default "two-sided"
        "greater" tests only that the mean is above -margin: that the run is at least as good, within the margin.

    References
    ----------
    Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987.
    """
    check_positive(margin=margin)
    check_choice("alternative", alternative, get_args(Alternative))
    improvements = as_array(improvements=improvements)
    n = len(improvements)
    if n < 2:
        raise ParameterError("a test of equivalence needs at least two queries")
    sides = (1,) if alternative == "greater" else (1, -1)
    if are_equal(improvements):
        # In units of the margin and rounded, so that the margin itself is not within it.
        return max(
            sign_flip_p(np.round(side * improvements / margin + 1, DIFFERENCE_DECIMALS), "greater") for side in sides
        )
    mean, error = _mean_and_error(improvements)
    return _upper_tail(min(side * mean + margin for side in sides) / error, n)


def _mean_and_error(values: FloatArray) -> tuple[float, float]:
    """Compute the mean of n values and its standard error s / sqrt(n), to the bit as SciPy does for its t-test."""
    n, mean = len(values), values.mean()
    variance = ((values - mean) ** 2).mean() * (n / (n - 1))
    return float(mean), float(np.sqrt(variance / n))


def _upper_tail(t: float, n: int) -> float:
    """Compute the probability that Student's t with n - 1 degrees of freedom is above t."""
    from scipy import special  # scipy.stats takes twice the time to import

    return float(special.stdtr(n - 1, -t))


def holm(p_values: ArrayLike) -> FloatArray:
    """Apply Holm's correction: the k-th smallest of m p-values becomes max over j <= k of min(1, (m - j + 1) p_j)."""
    p = as_array(p_values=p_values)
    order = np.argsort(p)
    corrected = np.empty_like(p)
    # The running maximum keeps the order: a larger p is never corrected to a smaller one.
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected


def correct(p_values: ArrayLike, correction: Correction) -> FloatArray:
    """Correct p-values for their number."""
    if correction == "holm" or not len(p_values):  # type: ignore[arg-type]
        return holm(p_values)
    from scipy import stats

    return np.asarray(stats.false_discovery_control(p_values))


def as_array(**values: ArrayLike) -> FloatArray:
    """Convert the numbers of an argument, by its name, to an array; refuse what has no order of its own."""
    check_sequences(**values)
    ((name, given),) = values.items()
    array = np.asarray(given, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} has {array[~np.isfinite(array)][0]}, which is no number to compute with")
    return array


def check_run_names(names: Iterable[Any]) -> None:
    """Raise `ParameterError` unless each run's name is text of one line, which rows of tables can have."""
    for name in names:
        if not isinstance(name, str) or name.splitlines() != [name]:
            raise ParameterError(f"{shown(name)} is no name of a run: give text of one line")


def check_comparable(scores: Mapping[str, Scores], baselines: Sequence[str] = ()) -> None:
    """Raise `ParameterError` for anything but scores by name, on the same queries and by the same measures."""
    if not isinstance(scores, Mapping) or not all(isinstance(run, Scores) for run in scores.values()):
        raise ParameterError("scores are by name: pass {'bm25': evaluate(...), 'mine': evaluate(...)}")
    if not scores:
        raise ParameterError("no scores: give at least one run's")
    check_run_names(scores)
    name, first = next(iter(scores.items()))
    for other, run in scores.items():
        if (run.qids, run.measures) != (first.qids, first.measures):
            raise ParameterError(
                f"runs {name!r} and {other!r} are scored on different queries or by different measures"
            )
        for column, measure in enumerate(run.measures):
            if (wrong := ~np.isfinite(run.values[:, column])).any():
                row = int(wrong.argmax())
                value = run.values[row, column]
                raise ParameterError(f"{measure} of {other!r} on query {run.qids[row]!r} is {value}, which is no score")
    check_baselines(baselines, scores)


def check_baselines(baselines: Sequence[str], runs: Iterable[str]) -> None:
    """Raise `ParameterError` unless all baselines are among the runs."""
    names = list(runs)
    for baseline in baselines:
        if baseline not in names:
            raise ParameterError(f"baseline {baseline!r} is not among the runs {', '.join(names)}")
