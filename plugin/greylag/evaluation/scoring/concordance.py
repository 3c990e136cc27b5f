"""Agreement of two sets of judgements, and of two rankings of systems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import combinations

import numpy as np

from greylag.base import FloatArray, IntArray, Table
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
    documents: int  # that both judged
    alone: tuple[int, ...]  # that one of them judged, on the topics of both
    kappa: float | None  # Cohen's, of relevant or not; None if both give all documents the same
    weighted_kappa: float | None  # of grades, by squared distances
    rankings: tuple[RankCorrelation, ...]

    @property
    def tables(self) -> list[Table]:
        """The agreement about documents, and about the order of runs."""
        note = "kappa: Cohen's, of relevant (from grade 1) or not; weighted: of grades, by squared distances."
        header = ("judges", "documents", *(f"only {judge}" for judge in self.judges), "kappa", "weighted")
        shown = (self.documents, *self.alone, self.kappa, self.weighted_kappa)
        tables = [Table(note, header, [(" and ".join(self.judges), *shown)])]
        return [*tables, rankings_table(self.rankings)] if self.rankings else tables


def compare_judgements(
    judges: Judges, qrels: tuple[Qrels, Qrels], scores: tuple[Mapping[str, Scores], Mapping[str, Scores]]
) -> Agreement:
    """Compare two sets of judgements, and the orders of runs by them, on the topics of both."""
    first, second = qrels
    common = [qid for qid in first if qid in second]
    pairs = [(grade, second[qid][d]) for qid in common for d, grade in first[qid].items() if d in second[qid]]
    mine, other = np.array(pairs, np.int64).reshape(-1, 2).T
    alone = [sum(len(judged[qid]) for qid in common) - len(pairs) for judged in qrels]
    ours, theirs = (_means(by_run, {*common}) for by_run in scores)
    several = ours if len(scores[0]) > 1 else ()
    rankings = [correlate(f"{name}, {judges[0]}", f"{name}, {judges[1]}", ours[name], theirs[name]) for name in several]
    kappas = cohen_kappa((mine > 0).astype(int), (other > 0).astype(int)), cohen_kappa(mine, other)
    return Agreement(judges, len(pairs), tuple(alone), *kappas, tuple(rankings))


def compare_measures(scores: Mapping[str, Scores]) -> tuple[RankCorrelation, ...]:
    """Correlate the rankings of runs by each pair of measures."""
    means = _means(scores)
    return tuple(correlate(*pair, *map(means.__getitem__, pair)) for pair in combinations(means, 2))


def _means(scores: Mapping[str, Scores], qids: set[str] | None = None) -> dict[str, FloatArray]:
    """Return the means of runs by measure, the better the higher, shape (runs,); of some queries if they are given."""
    first = next(iter(scores.values()))
    rows = [row for row, qid in enumerate(first.qids) if qids is None or qid in qids]
    columns = np.array([replace(run, values=run.values[rows]).rounded_means for run in scores.values()]).T
    better = [-means if m.family.lower_is_better else means for m, means in zip(first.measures, columns, strict=True)]
    return dict(zip(map(str, first.measures), better, strict=True))


def rankings_table(correlations: Sequence[RankCorrelation]) -> Table:
    """Report rank correlations."""
    note = "tau: Kendall's tau-b of two rankings of the runs; tau-AP: of the second ranking, whose top counts most."
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
    rank i are above its item in `truth`, too. Of ties, the expectation over all orders of them.
    """
    terms = list[float]()
    for place, value in enumerate(estimate):
        right = (np.sign(truth - truth[place]) + 1) / 2
        above, tied = estimate > value, (estimate == value) & (np.arange(len(estimate)) != place)
        before = np.arange(tied.sum() + 1)  # of the tied items, those that come first
        correct = right[above].sum() + before * (right[tied].mean() if tied.any() else 0.0)
        terms.append(float((correct / np.maximum(above.sum() + before, 1)).mean()))
    return 2 * math.fsum(terms) / (len(estimate) - 1) - 1  # the same in any order of the items
