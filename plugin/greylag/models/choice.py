"""The choice among systems: candidates, cross-validated on training queries, and the best of their averages.

All systems weight the same features, so that their average is a system, too. To add a learner, give `learners` a line.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from greylag.errors import ParameterError
from greylag.evaluation.measures import parse_measure
from greylag.evaluation.scores import Scores
from greylag.evaluation.selection_bias import BestOfMany, best_of_many
from greylag.evaluation.significance import Comparison
from greylag.learning.greedy import GreedyCommittee, GreedySelection
from greylag.learning.learner import Learner, Selection
from greylag.learning.listwise import ListwiseRegression
from greylag.linesearch.data import SEARCHED, RankingData, linear_scores, spaced
from greylag.linesearch.objectives import Objective
from greylag.models.recipes import useful_features
from greylag.ranking import FloatArray, IntArray
from greylag.runtime.parallel import parallel_map
from greylag.tables import Marked, Printed, Row, Table

PENALTIES = (1.0, 10.0, 100.0, 1000.0)
"""Of listwise regression, to choose from."""


class System(NamedTuple):
    """What is compared: one of a family, of which the best takes part in averages."""

    family: str  # such as "listwise"
    label: str = ""  # its difference from others of the family, such as "penalty 10"

    def __str__(self) -> str:
        return ", ".join(filter(None, self))


Members = tuple[System, ...]
"""The systems of an average with equal weights; a system by itself has one."""


@dataclass(frozen=True)
class Candidate:
    """A system to try: features with fixed weights, or a learner of some features, or of all if none are named."""

    system: System
    features: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    learner: Learner | None = None
    most: int | None = None  # queries that it learns from, at equal distances; set for learners that take long

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> dict[System, FloatArray]:
        """The weights of the columns, shape (f,), for scores with a standard deviation of 1 around query means.

        A committee with a prior gives two systems: with the prior, and without.
        """
        named = data.select_features([data.names.index(name) for name in self.features]) if self.features else data
        if self.learner is None:
            columns, learned = named.names, {self.system: np.array(self.weights)}
        else:
            seen = named if self.most is None else named.select_queries(spaced(named.qids, self.most))
            useful, _ = useful_features(seen)
            columns, learned = useful.names, self._learn(self.learner, useful, n_jobs)
        places, scaled = [data.names.index(name) for name in columns], {}
        for system, of_columns in learned.items():
            weights = np.zeros(len(data.specs))
            weights[places] = of_columns
            scaled[system] = weights / (_spread(data, weights) or 1.0)
        return scaled

    def _learn(self, learner: Learner, data: RankingData, n_jobs: int | None) -> dict[System, FloatArray]:
        """The weights of all columns of the data."""
        if isinstance(learner, GreedyCommittee) and learner.prior:
            members = learner.members(data, n_jobs=n_jobs)
            alone = System(self.system.family, "without prior")
            return {self.system: learner.trust(data, members), alone: members}
        selection, weights = learner.fit(data, n_jobs=n_jobs), np.zeros(len(data.specs))
        weights[list(selection.columns)] = selection.weights
        return {self.system: weights}


def learners(
    objective: Objective, *, folds: int, seed: int, pool: tuple[str, ...] = (), prior: str = ""
) -> list[Candidate]:
    """The learners that are tried, quickest first: of all features, but greedy selection of a pool if one is given."""
    regressions = [
        Candidate(System("listwise", f"penalty {penalty:g}"), learner=ListwiseRegression(objective, penalty=penalty))
        for penalty in PENALTIES
    ]
    committee = GreedyCommittee(objective, folds=folds, seed=seed, prior=prior)
    return [
        *regressions,
        Candidate(System("greedy"), pool, learner=GreedySelection(objective), most=SEARCHED),
        Candidate(System("stack" if prior else "committee"), learner=committee, most=SEARCHED),
    ]


class Fold(NamedTuple):
    """A fold of the cross-validation that chooses."""

    candidates: Sequence[Candidate]  # quickest first
    training: RankingData
    held_out: RankingData


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Printed):
    """Systems and their averages with the scores of held-out training queries, and the best of them.

    Printed, it is a table: each system beside the first one, with intervals that hold for all at once, and the choice
    once more, corrected for having been chosen on the same queries (`best_of_many`).

    Parameters
    ----------
    objective : Objective
    qids : tuple of str
        The queries that chose: training queries, each held out, or others for validation.
    values : mapping
        The measure of each query when it was held out, shape (q,), by the members of a system: first single systems,
        then averages.
    left_out : mapping of System to str
        The reasons of the candidates that could not be tried.
    chosen : tuple of System
        The members of the best system, of equally good ones the smallest.
    best : BestOfMany
        The single systems beside the first, and the choice, corrected for having been made by the same queries.
    by : str
        How these queries chose, for the caption.
    """

    objective: Objective
    qids: tuple[str, ...]
    values: Mapping[Members, FloatArray]
    left_out: Mapping[System, str]
    chosen: Members
    best: BestOfMany
    by: str = "Cross-validated on {} training topics"
    most = 60  # rows of the table

    @property
    def families(self) -> list[System]:
        """The best system of each family, in the order of the candidates."""
        best: dict[str, Members] = {}
        for members, values in self.values.items():
            family = members[0].family
            if len(members) == 1 and (family not in best or values.mean() > self.values[best[family]].mean()):
                best[family] = members
        return [system for (system,) in best.values()]

    @property
    def shown(self) -> list[Members]:
        """The best system of each family, and the choice."""
        return [*dict.fromkeys([*((system,) for system in self.families), self.chosen])]

    def compared(self, members: Members) -> Comparison | None:
        """The comparison of a system with the first one; None for that."""
        found = self.best.all.comparisons if self.best.all else ()
        return next((comparison for comparison in found if comparison.run == title(members)), None)

    def table(self) -> Table:
        """The table that is printed: the best system of each family, and the choice."""
        return self._table()

    def _table(self) -> Table:
        chosen, (first, baseline) = self.chosen, next(iter(self.values.items()))
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
            f"{self.by.format(len(self.qids))} (>: the choice; low, high: 95 % intervals, which "
            "hold for all systems at once; corrected: for being chosen on these topics)"
        )
        return Table(caption, ("", str(self.objective), f"less {title(first)}", "low", "high"), rows)

    def to_dict(self) -> dict[str, Any]:
        """The figures of the table as JSON can represent them, for a model's provenance."""

        def figures(mean: float, comparison: Comparison | None) -> dict[str, Any]:
            if comparison is None:
                return {"mean": mean}
            interval = [end if np.isfinite(end) else None for end in comparison.interval]
            return {
                "mean": mean, "difference": comparison.difference, "interval": interval, "p": comparison.corrected_p
            }  # fmt: skip

        return {
            "queries": len(self.qids),
            "tried": {
                title(members): figures(float(self.values[members].mean()), self.compared(members))
                for members in self.shown
            },
            "left_out": {str(system): reason for system, reason in self.left_out.items()},
            "chosen": [str(system) for system in self.chosen],
            "corrected": figures(self.best.mean, self.best.comparison),
        }


def title(members: Members) -> str:
    """The name of a system or an average."""
    return " + ".join(map(str, members))


def _cells(comparison: Comparison | None) -> Row:
    if comparison is None:
        return (None, None, None)
    return tuple(Marked(x, "+.4f") for x in (comparison.difference, *comparison.interval))


def choose(
    folds: Iterable[Fold],
    qids: Sequence[str],
    objective: Objective,
    *,
    n_folds: int,
    seconds: float | None = None,
    n_jobs: int | None = None,
) -> Choice:
    """Cross-validate all candidates and averages of the best ones over the training queries `qids`.

    Of each family of candidates, the best one takes part. Averages are those of the best two, three, ... families by
    their held-out mean, with equal weights. The best one is chosen, of equally good ones the smallest.

    Parameters
    ----------
    folds : iterable of Fold
        They hold out each of `qids` once. Each is prepared when the one before is done.
    qids : sequence of str
        At least two.
    objective : Objective
    n_folds : int
        The number of folds.
    seconds : float, optional
        Candidates with a `most` that would be begun later than their fold's share of these are left out, in all folds.
    n_jobs : int, optional
        Number of workers; the result does not depend on it.
    """
    begun, left_out = time.monotonic(), dict[System, str]()
    weights, held_out = list[dict[System, FloatArray]](), list[RankingData]()
    for number, fold in enumerate(folds, 1):
        # A share is left for learning the choice on all queries.
        end = np.inf if seconds is None else begun + seconds * number / (n_folds + 1)
        waiting = [candidate for candidate in fold.candidates if candidate.system not in left_out]
        results = parallel_map(_fit, _in_time(waiting, end), fold.training, n_jobs, what="systems", n_jobs=n_jobs,
                               total=len(waiting), coarse=True)  # fmt: skip
        learned, done = dict[System, FloatArray](), 0
        for candidate, result in zip(waiting, results, strict=False):
            done += 1
            if isinstance(result, str):
                left_out[candidate.system] = result
            else:
                learned |= result
        left_out.update((candidate.system, "skipped: time limit") for candidate in waiting[done:])
        weights.append(learned)
        held_out.append(fold.held_out)
    singles = [system for system in weights[0] if all(system in learned for learned in weights)]
    if not singles:
        raise ParameterError(f"nothing could be learned: {'; '.join(dict.fromkeys(left_out.values()))}")
    scored = _Scored(objective, tuple(qids), list(zip(held_out, weights, strict=True)), singles)
    every = np.arange(len(qids))
    order = scored.order(every)
    averages = [order[:size] for size in range(2, len(order) + 1)]
    values = {members: scored.values(members) for members in [*((system,) for system in singles), *averages]}
    measure = parse_measure(str(objective))
    scores = {str(system): Scores((measure,), tuple(qids), values[(system,)][:, None], (), ()) for system in singles}
    best = best_of_many(scores, str(singles[0]), rule=scored.rule)
    return Choice(objective, tuple(qids), values, left_out, scored.choose(every), best)


@dataclass(frozen=True, eq=False)
class _Scored:
    """The scores of systems on the queries that each was learned without, and of averages, each computed once."""

    objective: Objective
    qids: tuple[str, ...]
    folds: Sequence[tuple[RankingData, Mapping[System, FloatArray]]]  # held-out data, and weights
    singles: Sequence[System]
    _kept: dict[frozenset[System], FloatArray] = field(init=False, repr=False, default_factory=dict)

    def values(self, members: Members) -> FloatArray:
        """The measure of each query by the average of the members, shape (q,)."""
        key = frozenset(members)
        if key not in self._kept:
            values = np.empty(len(self.qids))
            for data, learned in self.folds:
                total = np.sum([learned[member] for member in members], axis=0)
                scores = linear_scores(data, range(len(total)), total)
                values[[self._rows[qid] for qid in data.qids]] = self.objective.evaluate(data, scores)
            self._kept[key] = values
        return self._kept[key]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {qid: number for number, qid in enumerate(self.qids)}

    def order(self, queries: IntArray) -> Members:
        """The best system of each family by these queries, in descending order."""
        means = {system: self.values((system,))[queries].mean() for system in self.singles}
        best: dict[str, System] = {}
        for system in sorted(self.singles, key=lambda system: -means[system]):
            best.setdefault(system.family, system)
        return tuple(best.values())

    def choose(self, queries: IntArray) -> Members:
        """The best system or average of the best by these queries, of equally good ones the smallest."""
        order = self.order(queries)
        sizes = range(1, len(order) + 1)
        return max((order[:size] for size in sizes), key=lambda one: round(self.values(one)[queries].mean(), 12))

    def rule(self, queries: IntArray) -> tuple[str, FloatArray]:
        """The choice by these queries, for `best_of_many`."""
        members = self.choose(queries)
        return title(members), self.values(members)


def _in_time(candidates: Sequence[Candidate], end: float) -> Iterator[Candidate]:
    """The candidates, which are taken one by one, up to the first that takes long once the time is over."""
    for candidate in candidates:
        if candidate.most is not None and time.monotonic() > end:
            return
        yield candidate


def _fit(candidate: Candidate, data: RankingData, n_jobs: int | None) -> dict[System, FloatArray] | str:
    """The weights of a candidate's systems, or the reason why there are none."""
    try:
        return candidate.fit(data, n_jobs=n_jobs)
    except ParameterError as error:
        return str(error)


def _spread(data: RankingData, weights: FloatArray) -> float:
    """The standard deviation of scores around their query means."""
    scores = linear_scores(data, range(len(weights)), weights)
    for first, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        if end > first:
            scores[first:end] -= scores[first:end].mean()
    return float(scores.std())


def average(
    chosen: Members, candidates: Sequence[Candidate], rows: RankingData, objective: Objective, n_jobs: int | None
) -> Selection:
    """The average of the chosen systems, learned on all training queries; largest spread of scores first."""
    families = {system.family for system in chosen}
    fitted = [candidate.fit(rows, n_jobs=n_jobs) for candidate in candidates if candidate.system.family in families]
    members = [weights for systems in fitted for system, weights in systems.items() if system in chosen]
    weights = np.sum(members, axis=0) / len(members)
    spreads = [_spread(rows.select_features([column]), weights[[column]]) for column in range(len(weights))]
    columns = [int(column) for column in np.argsort(-np.array(spreads), kind="stable") if weights[column]]
    value = float(objective.evaluate(rows, linear_scores(rows, columns, weights[columns])).mean())
    return Selection(tuple(columns), (tuple(weights[columns].tolist()),), (value,))
