"""The choice among systems: candidates, cross-validated on training queries, and the best of their averages.

All systems weight the same features, so that their average is a system, too. With few queries, the best of many is
often not the best on other queries. So a system may be named beforehand that others replace only by a clear lead.
To add a learner, give `learners` a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from greylag.base import FloatArray, IntArray, Marked, ParameterError, Printed, Row, Table, each, parallel_map
from greylag.evaluation import (
    DIFFERENCE_DECIMALS,
    BestOfMany,
    Comparison,
    Scores,
    best_of_many,
    parse_measure,
    without,
)
from greylag.learning import (
    MAX_SEARCHED_QUERIES,
    GreedySelection,
    Learner,
    ListwiseRegression,
    Objective,
    RankingData,
    Selection,
    linear_scores,
    measure_spreads,
    spaced,
    useful_features,
)

# In descending order, as each regression begins with the weights of the one before.
LISTWISE_PENALTIES = (1000.0, 100.0, 10.0, 1.0)
"""Penalties of listwise regression to choose from."""
LEAD_IN_ERRORS = 2.0
"""Standard errors by which a system has to be better than the one that is named beforehand."""


class System(NamedTuple):
    """A ranker to compare, one of a family; the best of a family takes part in averages."""

    family: str  # such as "listwise"
    label: str = ""  # its difference from others of the family, such as "penalty 10"

    def __str__(self) -> str:
        return ", ".join(filter(None, self))


Fold = tuple[RankingData, RankingData]
"""The data to learn from, and data of queries that are held out."""
Members = tuple[System, ...]
"""The systems of an average with equal weights; a system by itself has one."""


@dataclass(frozen=True)
class Candidate:
    """Systems to try: features with fixed weights, or a learner of some features, or of all if none are named."""

    # Listwise regression has a system for each penalty.
    system: System
    features: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    learner: Learner | None = None
    penalties: tuple[float, ...] = ()  # of listwise regression
    most: int | None = None  # queries that it learns from, at equal distances

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> dict[System, FloatArray]:
        """Fit the weights of the columns, shape (f,), for scores with a standard deviation of 1 around query means."""
        selected = data.select_features(data.columns_of(self.features)) if self.features else data
        if self.learner is None:
            columns, learned = selected.names, {self.system: np.array(self.weights)}
        else:
            seen = selected if self.most is None else selected.select_queries(spaced(selected.qids, self.most))
            # Each feature has its weight at the centre, whether or not it differs from others on these queries.
            centred = isinstance(self.learner, ListwiseRegression) and self.learner.centre
            useful = seen if centred else useful_features(seen)[0]
            columns, learned = useful.names, self._learn(self.learner, useful, n_jobs)
        numbers, scaled = data.columns_of(columns), {}
        for system, column_weights in learned.items():
            weights = np.zeros(len(data.specs))
            weights[numbers] = column_weights
            # Learners give scores of any scale. With one of 1, each member has as much of a say in an average.
            scores = linear_scores(data, range(len(weights)), weights)
            scaled[system] = weights / (measure_spreads(scores[:, None], data.offsets)[0] or 1.0)
        return scaled

    def _learn(self, learner: Learner, data: RankingData, n_jobs: int | None) -> dict[System, FloatArray]:
        """Learn the weights of all columns of the data."""
        family = self.system.family
        if isinstance(learner, ListwiseRegression) and self.penalties:
            systems = [System(family, f"penalty {penalty:g}") for penalty in self.penalties]
            return {
                system: selection.over(data)
                for system, selection in zip(systems, learner.path(data, self.penalties), strict=True)
            }
        return {self.system: learner.fit(data, n_jobs=n_jobs).over(data)}


def listwise(objective: Objective) -> Candidate:
    """Make listwise regressions of all features."""
    return Candidate(System("listwise"), learner=ListwiseRegression(objective), penalties=LISTWISE_PENALTIES)


def learners(objective: Objective) -> list[Candidate]:
    """List the learners that are tried on features about which nothing is known beforehand."""
    greedy = GreedySelection(objective)
    return [listwise(objective), Candidate(System("greedy"), learner=greedy, most=MAX_SEARCHED_QUERIES)]


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Printed):
    """Systems and their averages with the scores of held-out training queries, and the choice among them.

    Printed, it is a table: each system beside the best tuned baseline, with intervals that hold for all at once, and
    the choice once more, corrected for having been made on the same queries (`best_of_many`).
    """

    objective: Objective
    # That chose: training queries, each held out, or others for validation
    qids: tuple[str, ...]
    # The measure of each query when it was held out, shape (q,): first of single systems, then of averages
    values: Mapping[Members, FloatArray]
    # The reasons of candidates that could not be tried
    left_out: Mapping[System, str]
    chosen: Members
    # The one with the best mean
    baseline: System
    best: BestOfMany
    # How these queries chose, for the caption
    by: str = "Cross-validated on {} training topics"
    most = 60  # rows of the table

    @property
    def families(self) -> list[System]:
        """The best system of each family, in the order of the candidates."""
        best: dict[str, Members] = {}
        for members, values in self.values.items():
            family = members[0].family
            if len(members) == 1 and (
                family not in best or rounded_mean(values) > rounded_mean(self.values[best[family]])
            ):
                best[family] = members
        return [system for (system,) in best.values()]

    @property
    def shown(self) -> list[Members]:
        """The best system of each family, the members of the choice, and the choice."""
        return [*dict.fromkeys([*((system,) for system in (*self.families, *self.chosen)), self.chosen])]

    def compared(self, members: Members) -> Comparison | None:
        """Compare a system with the baseline; None for that."""
        comparisons = self.best.all.comparisons if self.best.all else ()
        return next((comparison for comparison in comparisons if comparison.run == title(members)), None)

    def table(self) -> Table:
        """Make the printed table: the best system of each family, the choice, and its members."""
        chosen, baseline = self.chosen, self.values[(self.baseline,)]
        rows: list[Row] = []
        for members in self.shown:
            mark = ">" if members == chosen else "+" if members[0] in chosen else " "
            name = "average of +" if len(members) > 1 else title(members)
            cells = _cells(self.compared(members))
            if len(members) > 1:  # it was made by the scores, so that no interval of its own would hold
                cells = (Marked(float((self.values[members] - baseline).mean()), "+.4f"), None, None)
            rows.append((f"{mark} {name}", float(self.values[members].mean()), *cells))
        if self.best.comparison is not None:
            rows.append(("  the choice, corrected", self.best.mean, *_cells(self.best.comparison)))
        caption = (
            f"{self.by.format(len(self.qids))} (>: the choice; low, high: 95 % intervals, "
            "simultaneous for all systems; corrected: for the choice on the same topics)"
        )
        return Table(caption, ("", str(self.objective), f"minus {self.baseline}", "low", "high"), rows)

    _table = table

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the table as JSON can represent them, for a model's provenance."""

        def figures(mean: float, comparison: Comparison | None) -> dict[str, Any]:
            if comparison is None:
                return {"mean": mean}
            interval = [end if np.isfinite(end) else None for end in comparison.interval or (np.nan, np.nan)]
            return {
                "mean": mean, "difference": comparison.difference, "interval": interval, "p": comparison.corrected_p
            }  # fmt: skip

        return {
            "queries": len(self.qids),
            "baseline": str(self.baseline),
            "tried": {
                title(members): figures(float(self.values[members].mean()), self.compared(members))
                for members in self.shown
            },
            "left_out": {str(system): reason for system, reason in self.left_out.items()},
            "chosen": [str(system) for system in self.chosen],
            "corrected": figures(self.best.mean, self.best.comparison),
        }


def title(members: Members) -> str:
    """Name a system or an average."""
    return " + ".join(map(str, members))


def _cells(comparison: Comparison | None) -> Row:
    if comparison is None:
        return (None, None, None)
    interval = comparison.interval or (None, None)
    return tuple(None if x is None else Marked(x, "+.4f") for x in (comparison.difference, *interval))


def choose(
    folds: Iterable[Fold],
    qids: Sequence[str],
    candidates: Sequence[Candidate],
    objective: Objective,
    *,
    baselines: Sequence[System] = (),
    incumbent: Members = (),
    averages: bool = True,
    n_jobs: int | None = None,
) -> Choice:
    """Score all candidates, and averages of the best, on queries not learned from, and choose the best."""
    # Of each family of candidates, the best takes part, and averages of the best two, three, ... families by their
    # held-out mean, with equal weights. The best is chosen, of equally good ones the smallest; but if there is an
    # incumbent, only if its mean is higher by more than `LEAD_IN_ERRORS` standard errors of their differences. `folds`
    # hold out each of `qids` once. Others are compared with the best of `baselines`, or the first candidate. Without
    # `averages`, none is tried.
    left_out = dict[System, str]()
    weights, held_out = list[dict[System, FloatArray]](), list[RankingData]()
    for training, held in folds:
        # What fails in one fold has no values for its queries, and need not be learned in others.
        waiting = [candidate for candidate in candidates if candidate.system not in left_out]
        results = parallel_map(_fit, waiting, training, n_jobs, what="systems", n_jobs=n_jobs, coarse=True)
        learned = dict[System, FloatArray]()
        for candidate, result in zip(waiting, results, strict=True):
            if isinstance(result, str):
                left_out[candidate.system] = result
            else:
                learned |= result
        weights.append(learned)
        held_out.append(held)
    singles = [system for system in weights[0] if all(system in learned for learned in weights)]
    if not singles:
        raise ParameterError(f"nothing could be learned: {'; '.join(dict.fromkeys(left_out.values()))}")
    # An average that lacks a member is not the one that was named beforehand.
    known = incumbent if set(incumbent) <= set(singles) else ()
    qids = tuple(qids)
    held_out_scores = _HeldOutScores(
        objective, qids, list(zip(held_out, weights, strict=True)), singles, known, averages
    )
    every = np.arange(len(qids))
    order = held_out_scores.order(every)
    tried = [order[:size] for size in range(2, len(order) + 1 if averages else 2)]
    named = [known] if len(known) > 1 else []
    values = {
        members: held_out_scores.values(members) for members in [*((system,) for system in singles), *tried, *named]
    }
    measure = parse_measure(str(objective))
    scores = {str(system): Scores((measure,), qids, values[(system,)][:, None], (), ()) for system in singles}
    compared = [system for system in baselines if system in singles] or singles[:1]
    baseline = max(compared, key=lambda system: rounded_mean(values[(system,)]))
    best = best_of_many(scores, str(baseline), rule=held_out_scores.rule)
    return Choice(objective, qids, values, left_out, held_out_scores.choose(every), baseline, best)


def rounded_mean(values: FloatArray) -> float:
    """Return the mean to choose by, of which the first of equals wins: without the errors of its rounding."""
    return round(float(values.mean()), DIFFERENCE_DECIMALS)


def cross_folds(data: RankingData, parts: Sequence[Sequence[str]]) -> Iterator[Fold]:
    """Yield the folds of a cross-validation; each holds out some queries of the data."""
    for part in each(parts, "inner folds"):
        yield data.select_queries(without(data.qids, part)), data.select_queries(part)


@dataclass(frozen=True, eq=False)
class _HeldOutScores:
    """The scores of systems on the queries that each was learned without, and of averages, each computed once."""

    objective: Objective
    qids: tuple[str, ...]
    folds: Sequence[tuple[RankingData, Mapping[System, FloatArray]]]  # held-out data, and weights
    singles: Sequence[System]
    incumbent: Members
    averages: bool
    _kept: dict[frozenset[System], FloatArray] = field(init=False, repr=False, default_factory=dict)

    def values(self, members: Members) -> FloatArray:
        """Evaluate each query by the average of the members, shape (q,)."""
        key = frozenset(members)  # equal weights: the order does not matter
        if key not in self._kept:
            by_qid = dict[str, float]()
            for data, learned in self.folds:
                total = np.sum([learned[member] for member in members], axis=0)
                scores = linear_scores(data, range(len(total)), total)
                by_qid |= zip(data.qids, self.objective.evaluate(data, scores).tolist(), strict=True)
            self._kept[key] = np.array([by_qid[qid] for qid in self.qids])
        return self._kept[key]

    def order(self, queries: IntArray) -> Members:
        """Order the best system of each family by these queries, in descending order."""
        means = {system: rounded_mean(self.values((system,))[queries]) for system in self.singles}
        best: dict[str, System] = {}
        for system in sorted(self.singles, key=lambda system: -means[system]):
            best.setdefault(system.family, system)
        return tuple(best.values())

    def choose(self, queries: IntArray) -> Members:
        """Choose a system by these queries."""
        order = self.order(queries)
        sizes = range(1, len(order) + 1 if self.averages else 2)
        best = max((order[:size] for size in sizes), key=lambda members: rounded_mean(self.values(members)[queries]))
        if not self.incumbent:
            return best
        # The best of many is favoured by having been picked: a lead within the noise would not last on other queries.
        leads = (self.values(best) - self.values(self.incumbent))[queries]
        error = leads.std(ddof=1) / np.sqrt(len(leads)) if len(leads) > 1 else np.inf
        return best if leads.mean() > LEAD_IN_ERRORS * error else self.incumbent

    def rule(self, queries: IntArray) -> tuple[str, FloatArray]:
        """Choose by these queries, for `best_of_many`."""
        members = self.choose(queries)
        return title(members), self.values(members)


def _fit(candidate: Candidate, data: RankingData, n_jobs: int | None) -> dict[System, FloatArray] | str:
    """Fit the weights of a candidate's systems, or return the reason why there are none."""
    try:
        return candidate.fit(data, n_jobs=n_jobs)
    except ParameterError as error:
        return str(error)


def average(
    chosen: Members, candidates: Sequence[Candidate], rows: RankingData, objective: Objective, n_jobs: int | None
) -> Selection:
    """Average the chosen systems, learned on all training queries; the largest spread of scores comes first."""
    # The path of a family's penalties is learned whole, as its start decides the last digits.
    families = {system.family for system in chosen}
    fitted = [candidate.fit(rows, n_jobs=n_jobs) for candidate in candidates if candidate.system.family in families]
    members = [weights for systems in fitted for system, weights in systems.items() if system in chosen]
    weights = np.sum(members, axis=0) / len(members)
    effects = np.abs(weights) * measure_spreads(rows.features, rows.offsets)
    columns = [int(column) for column in np.argsort(-effects, kind="stable") if weights[column]]
    return Selection.of(weights[columns], rows, objective, columns)
