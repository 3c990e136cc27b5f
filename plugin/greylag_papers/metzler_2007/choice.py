"""The number of features and the objective of greedy selection, chosen by cross-validation on the training queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from greylag.evaluation import fit_by_fold, split_folds
from greylag.learning import GreedySelection, RankingData, Selection, after_each_round
from greylag.learning.linesearch import Objective
from greylag.ranking import FloatArray


@dataclass(frozen=True)
class Choice:
    """The learner that is best on held-out training queries.

    Parameters
    ----------
    learner : GreedySelection
        With `max_features` set to the best number of features.
    held_out : tuple of tuples of float
        For each learner, the mean of the measure over the held-out queries after 1, 2, ... features.
    """

    learner: GreedySelection
    held_out: tuple[tuple[float, ...], ...]


def choose_learner(
    data: RankingData,
    learners: Sequence[GreedySelection],
    measure: Objective,
    *,
    folds: int,
    seed: int,
    n_jobs: int | None = None,
) -> Choice:
    """Choose a learner and its number of features by cross-validation on training data.

    In each fold, features are selected on the queries of the other folds up to the learner's `max_features`, and the
    queries of the fold are scored after each round. A selection that stops earlier keeps its last score.

    Parameters
    ----------
    data : RankingData
    learners : sequence of GreedySelection
        The learners to choose from, such as the same one with the objective at different cut-offs. The first learner,
        and then the lowest number of features, wins ties.
    measure : Objective
        The measure of held-out queries.
    folds, seed : int
        See `split_folds`.
    n_jobs : int, optional
        Number of workers; the result does not depend on it.
    """
    means = [held_out_means(data, learner, measure, folds=folds, seed=seed, n_jobs=n_jobs) for learner in learners]
    best = max(range(len(learners)), key=lambda i: max(means[i]))
    chosen = replace(learners[best], max_features=1 + int(np.argmax(means[best])))
    return Choice(chosen, tuple(tuple(curve.tolist()) for curve in means))


def held_out_means(
    data: RankingData, learner: GreedySelection, measure: Objective, *, folds: int, seed: int, n_jobs: int | None = None
) -> FloatArray:
    """Cross-validate the mean of the measure after 1, ..., `max_features` features, shape (max_features,)."""

    def fit(qids: Sequence[str], data: RankingData) -> Selection:
        return learner.fit(data.select_queries(qids), n_jobs=n_jobs)

    parts, totals = split_folds(data.qids, folds, seed), np.zeros(learner.max_features)
    selections = fit_by_fold(fit, data.qids, parts, data, what="inner folds", n_jobs=n_jobs)
    for part, selection in zip(parts, selections, strict=True):
        sums = after_each_round(selection, data.select_queries(part), measure).sum(axis=1)
        totals += np.append(sums, np.full(learner.max_features - len(sums), sums[-1]))
    return totals / len(data.qids)
