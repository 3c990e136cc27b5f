"""Agreement of two sets of judgements, and of two rankings of systems."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from greylag.base import FloatArray, IntArray, ParameterError, Table
from greylag.evaluation.scoring.scores import Scores
from greylag.evaluation.trec.qrels import Qrels

Judges = tuple[str, str]
"""Who made the first judgements and the second."""


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """The correlation of two rankings of runs."""

    first: str
    second: str
    tau: float | None  # Kendall's tau-b; as the other, None if one ranking ties all runs
    tau_ap: float | None  # of the second ranking, whose top counts most


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two sets of judgements agree about documents, and about the order of runs if there are several."""

    judges: Judges
    topics: tuple[int, int, int]  # that both judged, and each of them
    documents: int  # that both judged
    alone: tuple[int, ...]  # that one of them judged, on the topics of both
    kappa: float | None  # Cohen's, of relevant or not; None if both give all documents the same
    weighted_kappa: float | None  # of grades, by squared distances
    scores: tuple[Mapping[str, Scores], Mapping[str, Scores]] = ({}, {})  # of runs by each, on the topics of both

    @property
    def rankings(self) -> tuple[RankCorrelation, ...]:
        """The correlations of the runs' order by each measure; none of a single run."""
        if len(self.scores[0]) < 2:
            return ()
        (first, second), (ours, theirs) = self.judges, map(_means, self.scores)
        return tuple(correlate(f"{m}, {first}", f"{m}, {second}", ours[m], theirs[m]) for m in ours)

    def of_runs(self, names: Iterable[str]) -> Agreement:
        """Keep some of the runs."""
        kept = [*names]
        first, second = ({name: by_run[name] for name in kept} for by_run in self.scores)
        return replace(self, scores=(first, second))

    @property
    def tables(self) -> list[Table]:
        """The agreement about documents, and about the order of runs."""
        note = "kappa: Cohen's, of relevant (from grade 1) or not; weighted: of grades, by squared distances."
        if any(number > self.topics[0] for number in self.topics[1:]):
            by_judge = zip(self.judges, self.topics[1:], strict=True)
            counts = ", ".join(f"{number} of {judge}" for judge, number in by_judge)
            note = f"Both judged {self.topics[0]} topics, which alone count here ({counts}).\n{note}"
        if self.kappa is None or self.weighted_kappa is None:
            same = "grade" if self.weighted_kappa is None else "verdict, relevant or not"
            what = f"all {self.documents} documents have one {same}" if self.documents else "both judged no document"
            note = f"{note}\nNo kappa: {what}."
        header = ("judges", "topics", "documents", *(f"only {judge}" for judge in self.judges), "kappa", "weighted")
        shown = (self.topics[0], self.documents, *self.alone, self.kappa, self.weighted_kappa)
        tables = [Table(note, header, [(" and ".join(self.judges), *shown)])]
        return [*tables, rankings_table(self.rankings)] if self.rankings else tables

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as a dictionary that JSON can represent."""
        names = ("judges", "topics", "documents", "alone", "kappa", "weighted_kappa")
        return {name: getattr(self, name) for name in names} | {"rankings": [*map(asdict, self.rankings)]}


def compare_judgements(
    judges: Judges, qrels: tuple[Qrels, Qrels], scores: tuple[Mapping[str, Scores], Mapping[str, Scores]] = ({}, {})
) -> Agreement:
    """Compare two sets of judgements, and the orders of runs by them, on the topics of both."""
    first, second = qrels
    common = common_topics(first, second)
    pairs = [(grade, second[qid][d]) for qid in common for d, grade in first[qid].items() if d in second[qid]]
    mine, other = np.array(pairs, np.int64).reshape(-1, 2).T
    alone = [sum(len(judged[qid]) for qid in common) - len(pairs) for judged in qrels]
    topics = len(common), len(first), len(second)
    kappas = cohen_kappa((mine > 0).astype(int), (other > 0).astype(int)), cohen_kappa(mine, other)
    ours, theirs = ({name: _on(run, {*common}) for name, run in by_run.items()} for by_run in scores)
    return Agreement(judges, topics, len(pairs), tuple(alone), *kappas, (ours, theirs))


def common_topics(first: Qrels, second: Qrels) -> list[str]:
    """Return the topics of two sets of judgements; `ParameterError` if they have none in common."""
    if common := [qid for qid in first if qid in second]:
        return common
    raise ParameterError("the two sets of judgements have no topic in common")


def _on(run: Scores, qids: set[str]) -> Scores:
    """Return the scores on some topics."""
    rows = [row for row, qid in enumerate(run.qids) if qid in qids]
    return replace(run, qids=tuple(run.qids[row] for row in rows), values=run.values[rows])


def compare_measures(scores: Mapping[str, Scores]) -> tuple[RankCorrelation, ...]:
    """Correlate the rankings of runs by each pair of measures."""
    means = _means(scores)
    return tuple(correlate(*pair, *map(means.__getitem__, pair)) for pair in combinations(means, 2))


def _means(scores: Mapping[str, Scores]) -> dict[str, FloatArray]:
    """Return the means of runs by measure, the better the higher, shape (runs,)."""
    first = next(iter(scores.values()))
    columns = np.array([run.rounded_means for run in scores.values()]).T
    better = [-means if m.family.lower_is_better else means for m, means in zip(first.measures, columns, strict=True)]
    return dict(zip(map(str, first.measures), better, strict=True))


def rankings_table(correlations: Sequence[RankCorrelation]) -> Table:
    """Report rank correlations."""
    note = (
        "tau: Kendall's tau-b of two rankings of the runs; tau-AP: of the second ranking, whose top counts most, "
        "the mean over all orders of runs that tie, so that equal rankings with ties have less than 1."
    )
    return Table(note, ("first", "second", "tau", "tau-AP"), list(map(astuple, correlations)))


def correlate(first: str, second: str, truth: FloatArray, estimate: FloatArray) -> RankCorrelation:
    """Correlate two rankings of the same runs."""
    from scipy import stats

    tau = float(stats.kendalltau(truth, estimate).statistic)
    pair = (None, None) if np.isnan(tau) else (tau, tau_ap(truth, estimate))
    return RankCorrelation(first, second, *pair)


def cohen_kappa(first: IntArray, second: IntArray) -> float | None:
    """Return Cohen's kappa by squared distances of grades (Cohen 1968), which of 0 and 1 is the unweighted one."""
    # Of whole numbers, so that agreement by chance is exactly 0.
    n, differ = len(first), int(((first - second) ** 2).sum())
    chance = n * int((first**2).sum() + (second**2).sum()) - 2 * int(first.sum()) * int(second.sum())
    return 1 - n * differ / chance if chance else None


def tau_ap(truth: FloatArray, estimate: FloatArray) -> float:
    """Return tau-AP (Yilmaz, Aslam and Robertson 2008) of n items, n at least 2, that two arrays of scores rank.

    2 / (n - 1) times the sum over ranks i > 1 by `estimate` of C(i) / (i - 1), less 1, where C(i) of the items above
    rank i are above its item in `truth`, too. Of ties, the expectation over all orders of them, as tau_AP,a of Urbano
    and Marrero (2017) for an estimate with ties; so a ranking with ties has less than 1 with itself.
    """
    terms = list[float]()
    for place, value in enumerate(estimate):
        right = (np.sign(truth - truth[place]) + 1) / 2
        above, tied = estimate > value, (estimate == value) & (np.arange(len(estimate)) != place)
        before = np.arange(tied.sum() + 1)  # of the tied items, those that come first
        correct = right[above].sum() + before * (right[tied].mean() if tied.any() else 0.0)
        terms.append(float((correct / np.maximum(above.sum() + before, 1)).mean()))
    return 2 * math.fsum(terms) / (len(estimate) - 1) - 1  # the same in any order of the items
