"""Prediction-powered inference: judgements by people of some topics, and predicted ones, such as a model's, of all.

The predicted judgements alone give a biased mean. The topics that people judged, too, show the bias, and it is taken
out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from greylag.base import Cell, FloatArray, Marked, ParameterError, Printed, Run, Table
from greylag.evaluation.scoring.measures import Measure
from greylag.evaluation.scoring.power import SIGNIFICANCE_LEVEL
from greylag.evaluation.scoring.scores import DIFFERENCE_DECIMALS, Scores, score_documents
from greylag.evaluation.scoring.sign_flips import are_equal, sign_flip_p
from greylag.evaluation.scoring.significance import (
    MOST_SENTENCES,
    Correction,
    Design,
    as_array,
    check_comparable,
    correct,
    marked_p,
    not_run,
)
from greylag.evaluation.trec.qrels import Qrels

MIN_TOPICS = 8  # with judgements by people: of fewer, 95 % intervals of skewed scores hold 82 to 89 %
MAX_JUDGED_DIFFERENCE = 0.1  # by which the shares of judged documents may differ, of the top 10 one document
COLUMNS_NOTE = """\
people: by their topics alone.
predicted: by predicted judgements alone, of all topics; there: of the topics that people judged.
corrected: people, plus a part of what predicted is above there, so that it may be outside of people and predicted.
low, high: 95 % interval of corrected.
weight: lambda of prediction-powered inference, 0 where predictions do not follow people's scores.
worth: how many topics people would have to judge to get an interval this narrow, at most all."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over topics, or a difference of means, by people's and predicted judgements."""

    people: float  # over the topics that people judged
    people_interval: tuple[float, float] | None  # 95 %, by Student's t; None if all scores are equal and not 0
    predicted: float  # by predicted judgements of all topics
    predicted_there: float  # by predicted judgements of the topics that people judged
    corrected: float
    interval: tuple[float, float] | None  # of `corrected`, 95 %; None likewise, if predictions weigh 0
    weight: float  # lambda
    worth: float  # how many topics people would have to judge to get an interval this narrow, at most all
    p: float  # two-sided, that the corrected figure is 0
    error: float  # standard error of `corrected`; 0 if all scores by people are equal
    freedom: float  # degrees of freedom of that
    topics: int  # that people judged

    def p_above(self, limit: float, sign: int = 1) -> float:
        """Return the one-sided p of a test that `corrected`, or with sign -1 its negative, is above a limit."""
        from scipy import special

        gap = sign * self.corrected - limit
        if not self.error:  # that of the randomisation test, as `p`
            return 2.0**-self.topics if round(gap, DIFFERENCE_DECIMALS) > 0 else 1.0
        return float(special.stdtr(self.freedom, -gap / self.error))


@dataclass(frozen=True, slots=True)
class Corrected:
    """The estimate for a run, or for its difference from a baseline, by one measure."""

    run: str
    baseline: str | None
    measure: Measure
    estimate: Estimate
    corrected_p: float | None = None  # of a difference, for the number of differences


@dataclass(frozen=True, slots=True, repr=False)
class Corrections(Printed):
    """Means and differences by people's judgements of some topics and predicted ones of all."""

    topics: int  # judged by people
    others: int  # with predicted judgements alone
    means: tuple[Corrected, ...]
    differences: tuple[Corrected, ...]
    correction: Correction = "holm"  # of the p of differences

    @property
    def baselines(self) -> list[str]:
        """The run that others are compared with, if there is one."""
        return list(dict.fromkeys(str(row.baseline) for row in self.differences))

    @property
    def sentences(self) -> list[str]:
        """A sentence for each difference by the first measure, or for each mean if there are none; none if many."""
        every, sentences = self.differences or self.means, list[str]()
        for row in every:
            if row.measure == every[0].measure:
                estimated, form = row.estimate, "+.4f" if row.baseline else ".4f"
                low, high = (format(end, form) for end in estimated.interval or (0.0, 0.0))
                interval = f" (95 % interval {low} to {high})" if estimated.interval else ""
                sentences.append(
                    f"{row.run}{f' minus {row.baseline}' if row.baseline else ''}: {row.measure} is "
                    f"{estimated.corrected:{form}}{interval}. {self.topics} judged and "
                    f"{self.others} predicted topics are worth {estimated.worth:.0f} judged ones."
                )
        return sentences if len(sentences) <= MOST_SENTENCES else []

    @property
    def tables(self) -> list[Table]:
        """The means, and the differences if there are any."""
        counts = f"{self.topics} topics judged by people, {self.others} more with predicted judgements.\n{COLUMNS_NOTE}"
        header = ("run", "measure", "people", "there", "predicted", "corrected", "low", "high", "weight", "worth")
        rows = [(row.run, str(row.measure), *_cells(row.estimate, ".4f")) for row in self.means]
        tables = [Table("\n".join([*self.sentences, counts]), header, rows)]
        if self.differences:
            changes = [
                (row.run, row.baseline, str(row.measure), *_cells(row.estimate, "+.4f"), marked_p(row.corrected_p))
                for row in self.differences
            ]
            tables.append(Table("", ("run", "against", *header[1:], "corrected p"), changes))
        return tables

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, unrounded."""
        tables = {"means": self.means, "differences": self.differences}
        return {"topics": self.topics, "others": self.others} | {
            name: [{**asdict(row), "measure": str(row.measure)} for row in rows] for name, rows in tables.items()
        }

    def _table(self) -> Table:
        return self.tables[-1]


def correct_by_people(people: FloatArray, predicted: FloatArray, others: FloatArray) -> Estimate:
    """Return the mean of a population of topics, from scores of two kinds on n of them and of one kind on N more.

    With Y by people and f by predictions on the n topics, and f' on the N others, prediction-powered inference has

        theta = mean(Y) + lambda (mean(f') - mean(f))

    which has no bias for a fixed lambda, whatever the predictions are like. The weight that makes its variance least is
    lambda = b N / (n + N), with b the slope of Y on f (Angelopoulos et al. 2023; this is the regression
    estimator of double sampling). In small samples:

    - b is shrunk by the factor max(0, 1 - 1/F), with F = b^2 S / s^2 from the sum of squares S of f about its mean and
      the residual variance s^2 with n - 2 degrees of freedom, and is 0 below 0, so that useless predictions weigh 0;
    - the variance is sum_i (w_i r_i / (1 - h_i))^2 + b^2 var(all f) / (n + N), with the residuals r_i of Y - b f, the
      weights w_i = 1/n + (mean of all f - mean(f)) (f_i - mean(f)) / S and the leverages h_i = 1/n + (f_i - mean(f))^2
      / S (HC3 of MacKinnon and White 1985, which holds for skewed scores, too). With weight 0, and if the slope rests
      on a single topic, it is Student's of Y;
    - the interval is by Student's t with n - 2 degrees of freedom, with Satterthwaite's for the two parts. If all Y are
      equal and not 0, there is none, and p is that of the randomisation test, 2 / 2^n.

    `worth` is the m, at most n + N, for which Student's interval of m topics with the standard deviation of Y is as
    wide: it is above n exactly if the interval is narrower than that by people alone. The page on intervals by
    predicted judgements says how often intervals hold in simulations.

    Parameters
    ----------
    people : array, shape (n,)
        Scores, or differences of scores, by people's judgements; n is at least 8.
    predicted : array, shape (n,)
        Those by predicted judgements of the same topics.
    others : array, shape (N,)
        Those by predicted judgements of other topics; N is at least 1.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, PPI++, arXiv 2311.01453, 2023. Oosterhuis et al., arXiv 2407.02464, 2024. Cochran,
    Sampling Techniques, 1977, chapter 12. MacKinnon and White, Journal of Econometrics 29, 1985.
    """
    people, predicted, others = as_array(people=people), as_array(predicted=predicted), as_array(others=others)
    n, every = len(people), np.concatenate([predicted, others])
    if n < MIN_TOPICS or len(predicted) != n or len(others) < 1:
        raise ParameterError(
            f"scores of {n} topics by people, {len(predicted)} and {len(others)} by predictions: at least "
            f"{MIN_TOPICS} topics with both, and one more, are needed"
        )
    same = are_equal(people)
    y, f = (0.0 if same else 1.0) * (people - people.mean()), predicted - predicted.mean()
    slope, spread = _shrunk_slope(y, f), float(f @ f)
    leverages = 1 / n + (f**2 / spread if spread else 0.0 * f)
    if leverages.max() > 1 - 1e-9:  # all other predictions are equal
        slope = 0.0
    distance = float(every.mean() - predicted.mean())
    # The line has two parameters; without it, the mean alone is estimated.
    freedom = n - 2 if slope else n - 1
    alone = float(y @ y) / (n - 1) / n
    # The error of the line at the mean of all predictions, which is off the mean of the judged topics; then of the
    # predictions' own mean.
    weights = 1 / n + (distance * f / spread if slope else 0.0)
    near = float(np.sum((weights * (y - slope * f) / (1 - leverages)) ** 2)) if slope else alone
    far = slope**2 * float(every.var(ddof=1)) / len(every)
    mean = float(people.mean()) + slope * distance
    interval, p, whole = _student(mean, near, freedom, far, len(every) - 1)
    p = sign_flip_p(people, "two-sided") if same else p
    return Estimate(
        people=float(people.mean()),
        people_interval=_student(float(people.mean()), alone, n - 1)[0],
        predicted=float(every.mean()),
        predicted_there=float(predicted.mean()),
        corrected=mean,
        interval=interval,
        weight=slope * len(others) / len(every),
        worth=_worth(interval, n * alone, len(every)) if interval and near + far else float(n),
        p=p,
        error=math.sqrt(near + far),
        freedom=whole,
        topics=n,
    )


def _shrunk_slope(y: FloatArray, f: FloatArray) -> float:
    """Return the slope of y on f, both centred, less its value by chance; 0 if it is not above that."""
    spread, product = float(f @ f), float(f @ y)
    if product <= 0:
        return 0.0
    slope = product / spread
    explained = slope * product
    residual = max(float(y @ y) - explained, 0.0) / (len(y) - 2)
    return slope * max(0.0, 1 - residual / explained)


def _student(
    mean: float, near: float, freedom: int, far: float = 0.0, freedom_far: int = 1
) -> tuple[tuple[float, float] | None, float, float]:
    """Return the 95 % interval, p and degrees of freedom of a mean whose variance has one term, or two of their own."""
    from scipy import special

    variance = near + far
    if not variance:
        return None if mean else (0.0, 0.0), 1.0, freedom
    # Satterthwaite's degrees of freedom.
    whole = variance**2 / (near**2 / freedom + far**2 / freedom_far)
    error = math.sqrt(variance)
    half = float(special.stdtrit(whole, 1 - SIGNIFICANCE_LEVEL / 2)) * error
    return (mean - half, mean + half), 2 * float(special.stdtr(whole, -abs(mean) / error)), whole


def _worth(interval: tuple[float, float], variance: float, most: int) -> float:
    """Return how many topics, up to `most`, whose scores have this variance give a Student's interval as wide."""
    from scipy import special

    number = np.arange(2, most + 1)
    halves = special.stdtrit(number - 1, 1 - SIGNIFICANCE_LEVEL / 2) * np.sqrt(variance / number)
    # Between two numbers the width is linear to within a thousandth of a topic; beyond the ends, it is the end.
    return float(np.interp((interval[1] - interval[0]) / 2, halves[::-1], number[::-1]))


def evaluate_with_predictions(
    people: Mapping[str, Scores],
    predicted: Mapping[str, Scores],
    baseline: str | None = None,
    *,
    correction: Correction = "holm",
) -> Corrections:
    """Correct the means of runs, and their differences from a baseline, by `correct_by_people`.

    Parameters
    ----------
    people : mapping
        Scores by name of run, by people's judgements of some topics.
    predicted : mapping
        Those by predicted judgements of the same topics and others.
    baseline : str, optional
        One of the names; differences from it are estimated, too.
    correction : {"holm", "bh"}, default "holm"
        Of the p-values of the differences.
    """
    Design(correction=correction)  # refuses a correction of all pairs
    check_comparable(people, [] if baseline is None else [baseline])
    check_comparable(predicted)
    first, names = next(iter(people.values())), list(people)
    if baseline is not None and names == [baseline]:
        raise ParameterError(f"no run to compare with {baseline!r}; give another run")
    rows = {qid: row for row, qid in enumerate(next(iter(predicted.values())).qids)}
    known = [rows[qid] for qid in first.qids]
    rest = [row for qid, row in rows.items() if qid not in set(first.qids)]

    ranked = {name: scores.ranked for name, scores in people.items()}
    if reasons := [reason for name in names if baseline is not None and (reason := not_run(name, baseline, ranked))]:
        raise ParameterError(f"{reasons[0]} that people judged: leave it out")

    def estimate(values: FloatArray, guesses: FloatArray) -> Estimate:
        return correct_by_people(values, guesses[known], guesses[rest])

    means, differences = [], []
    for column, measure in enumerate(first.measures):
        if measure.family.summary != "mean":
            raise ParameterError(
                f"{measure} is a {measure.family.summary} over queries, and means are corrected: omit it"
            )
        values = {name: (people[name].values[:, column], predicted[name].values[:, column]) for name in names}
        means += [Corrected(name, None, measure, estimate(*values[name])) for name in names]
        for name in names if baseline is not None else ():
            if name != baseline:
                pair = (own - against for own, against in zip(values[name], values[str(baseline)], strict=True))
                differences.append(Corrected(name, baseline, measure, estimate(*pair)))
    corrected = correct([row.estimate.p for row in differences], correction).tolist() if differences else []
    return Corrections(
        len(known),
        len(rest),
        tuple(means),
        tuple(replace(row, corrected_p=p) for row, p in zip(differences, corrected, strict=True)),
        correction,
    )


def check_predictions(people: Qrels, predicted: Qrels) -> list[str]:
    """Check that predicted judgements can be corrected by people's; return warnings, raise if they cannot."""
    lacking = [qid for qid in people if qid not in predicted]
    apart = [qid for qid, judged in people.items() if qid in predicted and not judged.keys() & predicted[qid].keys()]
    # The first that applies is raised, so the most basic come first.
    faults = {
        f"predicted judgements lack {len(lacking)} of the {len(people)} topics that people judged, such as "
        f"{', '.join(lacking[:3])}: predict them in the same way as the others": lacking,
        "predicted judgements are people's where both judged: there is nothing to correct by": all(
            people[qid] == predicted.get(qid) for qid in people
        ),
        "predicted judgements have no topic that people did not judge: they add nothing": len(people) == len(predicted),
        f"people judged {len(people)} topics; at least {MIN_TOPICS} are needed, better more": len(people) < MIN_TOPICS,
        f"predicted judgements of topic {next(iter(apart), '')} have none of the documents that people judged: are "
        "they of the same collection?": apart,
    }
    if fault := next((fault for fault, wrong in faults.items() if wrong), None):
        raise ParameterError(fault)
    highest, guessed = (max(g for j in qrels.values() for g in j.values()) for qrels in (people, predicted))
    told = f"people's grades go up to {highest}, predicted ones to {guessed}"
    if (highest > 1) != (guessed > 1):
        raise ParameterError(f"{told}: give both on one scale")
    return [] if highest == guessed else [f"{told}: are the scales the same?"]


def check_coverage(name: str, run: Run, people: Qrels, predicted: Qrels) -> list[str]:
    """Return a warning if predictions cover the run otherwise where people judged: then their bias there is another."""
    shares = score_documents(run, predicted, ["Judged@10"])
    judged = np.array([qid in people for qid in shares.qids])
    known, rest = (float(shares.values[where, 0].mean()) for where in (judged, ~judged))
    if abs(known - rest) <= MAX_JUDGED_DIFFERENCE:
        return []
    return [
        f"{known:.0%} of the top 10 documents of {name} have predicted judgements on topics that people judged, and "
        f"{rest:.0%} on others: the correction supposes that both were predicted in the same way"
    ]


def _cells(estimated: Estimate, form: str) -> list[Cell]:
    names = ("people", "predicted_there", "predicted", "corrected")
    figures = (*(getattr(estimated, name) for name in names), *(estimated.interval or (None, None)))
    cells = [None if figure is None else Marked(figure, form) for figure in figures]
    return [*cells, Marked(estimated.weight, ".2f"), Marked(estimated.worth, ".0f")]
