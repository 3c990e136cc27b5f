"""The choice among systems: candidates, cross-validated on training queries, and the best of their averages.

All systems weight the same features, so that their average is a system, too. To add a learner, give `learners` a line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from greylag.errors import ParameterError
from greylag.evaluation.folds import split_folds
from greylag.ltr.data import SEARCHED, RankingData, linear_scores, spaced
from greylag.ltr.greedy import GreedyCommittee, GreedySelection
from greylag.ltr.learner import Learner, Selection
from greylag.ltr.listwise import ListwiseRegression
from greylag.ltr.objectives import Objective
from greylag.ltr.training import useful_features
from greylag.ranking import FloatArray
from greylag.runtime.parallel import parallel_map

PENALTIES = (1.0, 10.0, 100.0, 1000.0)
"""Of listwise regression, to choose from."""


@dataclass(frozen=True)
class Candidate:
    """A system to try: features with fixed weights, or a learner of some features, or of all if none are named."""

    name: str  # up to a comma, that of its family, of which the best one takes part
    features: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    learner: Learner | None = None
    most: int | None = None  # queries that it learns from, at equal distances

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> dict[str, FloatArray]:
        """The weights of the columns, shape (f,), for scores with a standard deviation of 1 around query means.

        They are under the system's name; those of a committee without its prior, too, under another of its family.
        """
        named = data.select_features([data.names.index(name) for name in self.features]) if self.features else data
        if self.learner is None:
            columns, found = named.names, {self.name: np.array(self.weights)}
        else:
            seen = named if self.most is None else named.select_queries(spaced(named.qids, self.most))
            useful, _ = useful_features(seen)
            columns, found = useful.names, self._learn(self.learner, useful, n_jobs)
        places, scaled = [data.names.index(name) for name in columns], {}
        for name, of_columns in found.items():
            weights = np.zeros(len(data.specs))
            weights[places] = of_columns
            scaled[name] = weights / (_spread(data, weights) or 1.0)
        return scaled

    def _learn(self, learner: Learner, data: RankingData, n_jobs: int | None) -> dict[str, FloatArray]:
        """The weights of all columns of the data."""
        if isinstance(learner, GreedyCommittee) and learner.prior:
            members = learner.members(data, n_jobs=n_jobs)
            return {self.name: learner.trust(data, members), f"{self.name}, without prior": members}
        selection, weights = learner.fit(data, n_jobs=n_jobs), np.zeros(len(data.specs))
        weights[list(selection.columns)] = selection.weights
        return {self.name: weights}

    @property
    def family(self) -> str:
        """The name without what differs within the family."""
        return self.name.partition(",")[0]


def learners(
    objective: Objective, *, folds: int, seed: int, pool: tuple[str, ...] = (), prior: str = ""
) -> list[Candidate]:
    """The learners that are tried, quickest first: of all features, but greedy selection of a pool if one is given."""
    regressions = [
        Candidate(f"listwise, penalty {penalty:g}", learner=ListwiseRegression(objective, penalty=penalty))
        for penalty in PENALTIES
    ]
    committee = GreedyCommittee(objective, folds=folds, seed=seed, prior=prior)
    return [
        *regressions,
        Candidate("greedy", pool, learner=GreedySelection(objective), most=SEARCHED),
        Candidate("stack" if prior else "committee", learner=committee, most=SEARCHED),
    ]


class Tried(NamedTuple):
    """What cross-validation on the training queries found."""

    qids: tuple[str, ...]
    values: Mapping[str, FloatArray]  # the measure of each query when it was held out, by system
    left_out: Mapping[str, str]  # reasons, by system
    chosen: tuple[str, ...]  # the systems whose average is best

    @property
    def best(self) -> str:
        """The name of the choice."""
        return " + ".join(self.chosen)


class View(NamedTuple):
    """What some training queries say: the systems to try, the rows to learn from, and the data of other queries."""

    candidates: Sequence[Candidate]
    rows: RankingData
    test: Callable[[Sequence[str]], RankingData]


def choose(
    qids: Sequence[str],
    view: Callable[[Sequence[str]], View],
    objective: Objective,
    *,
    folds: int,
    seed: int,
    seconds: float | None = None,
    n_jobs: int | None = None,
) -> Tried:
    """Cross-validate all candidates and averages of the best ones over the training queries `qids`.

    Of each family of candidates, the best one takes part. Averages are those of the best two, three, ... families by
    their held-out mean, with equal weights. The best one is chosen, of equally good ones the smallest.

    Parameters
    ----------
    qids : sequence of str
        At least two.
    view : callable
        From the training queries of a fold to what is tried on them.
    objective : Objective
    folds, seed : int
        See `split_folds`.
    seconds : float, optional
        Candidates with a `most` that would be begun later than their fold's share of these are left out, in all folds.
    n_jobs : int, optional
        Number of workers; the result does not depend on it.
    """
    parts = split_folds(qids, min(folds, len(qids)), seed)
    begun, left_out = time.time(), dict[str, str]()

    def learn(number: int) -> dict[str, Any]:
        """The weights of each candidate, and the reasons of those that are left out."""
        training, found, failed = _others(qids, parts[number]), dict[str, Any](), dict[str, str]()
        candidates, rows, _ = view(training)
        for candidate in candidates:
            late = seconds is not None and time.time() - begun > seconds * (number + 1) / (len(parts) + 1)
            if candidate.name in left_out or (late and candidate.most is not None):
                failed[candidate.name] = left_out.get(candidate.name, "the time was over")
                continue
            try:
                found |= candidate.fit(rows, n_jobs=n_jobs)
            except ParameterError as error:
                failed[candidate.name] = str(error)
        left_out.update(failed)
        return {"weights": found, "left out": failed}

    results = list(parallel_map(learn, range(len(parts)), what="inner folds", n_jobs=n_jobs, coarse=True))
    for result in results:
        left_out.update(result["left out"])
    weights = [result["weights"] for result in results]

    def held_out(systems: Mapping[str, Sequence[str]]) -> dict[str, FloatArray]:
        """The measure of each query by averages of candidates."""
        values = {name: np.empty(len(qids)) for name in systems}
        for part, of_fold in zip(parts, weights, strict=True):
            data = view(_others(qids, part)).test(part)
            rows = [list(qids).index(qid) for qid in part]
            for name, members in systems.items():
                total = np.sum([of_fold[member] for member in members], axis=0)
                values[name][rows] = objective.evaluate(data, linear_scores(data, range(len(total)), total))
        return values

    singles = {name: (name,) for name in weights[0] if all(name in of_fold for of_fold in weights)}
    if not singles:
        raise ParameterError(f"nothing could be learned: {'; '.join(dict.fromkeys(left_out.values()))}")
    values = held_out(singles)
    families: dict[str, str] = {}
    for name in sorted(values, key=lambda name: -values[name].mean()):
        families.setdefault(name.partition(",")[0], name)
    order = tuple(families.values())
    averages = {" + ".join(order[:size]): order[:size] for size in range(2, len(order) + 1)}
    values |= held_out(averages)
    best = max([order[:1], *averages.values()], key=lambda members: round(values[" + ".join(members)].mean(), 12))
    return Tried(tuple(qids), values, left_out, best)


def _others(qids: Sequence[str], part: Sequence[str]) -> tuple[str, ...]:
    held = frozenset(part)
    return tuple(qid for qid in qids if qid not in held)


def _spread(data: RankingData, weights: FloatArray) -> float:
    """The standard deviation of scores around their query means."""
    scores = linear_scores(data, range(len(weights)), weights)
    for first, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        if end > first:
            scores[first:end] -= scores[first:end].mean()
    return float(scores.std())


def average(
    tried: Tried, candidates: Sequence[Candidate], rows: RankingData, objective: Objective, n_jobs: int | None
) -> Selection:
    """The average of the chosen candidates, learned on all training queries; largest spread of scores first."""
    families = {name.partition(",")[0] for name in tried.chosen}
    fitted = [candidate.fit(rows, n_jobs=n_jobs) for candidate in candidates if candidate.family in families]
    chosen = [weights for of_one in fitted for name, weights in of_one.items() if name in tried.chosen]
    weights = np.sum(chosen, axis=0) / len(chosen)
    spreads = [_spread(rows.select_features([column]), weights[[column]]) for column in range(len(weights))]
    columns = [int(column) for column in np.argsort(-np.array(spreads), kind="stable") if weights[column]]
    value = float(objective.evaluate(rows, linear_scores(rows, columns, weights[columns])).mean())
    return Selection(tuple(columns), (tuple(weights[columns].tolist()),), (value,))
