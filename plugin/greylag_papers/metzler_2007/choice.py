"""The number of features and the objective of greedy selection, chosen by cross-validation on the training queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from greylag.base import FloatArray
from greylag.evaluation import fit_by_fold, split_folds
from greylag.learning import GreedySelection, Objective, RankingData, Selection, after_each_round

HeldOut = tuple[tuple[float, ...], ...]
"""For each learner, the mean of the measure over the held-out queries after 1, 2, ... features."""


def choose_learner(
    data: RankingData,
    learners: Sequence[GreedySelection],
    measure: Objective,
    *,
    folds: int,
    seed: int,
    n_jobs: int | None = None,
) -> tuple[GreedySelection, HeldOut]:
    """Choose a learner and its number of features by cross-validation; ties go to the first and to fewer features."""
    means = [held_out_means(data, learner, measure, folds=folds, seed=seed, n_jobs=n_jobs) for learner in learners]
    best = max(range(len(learners)), key=lambda i: max(means[i]))
    chosen = replace(learners[best], max_features=1 + int(np.argmax(means[best])))
    return chosen, tuple(tuple(curve.tolist()) for curve in means)


def held_out_means(
    data: RankingData, learner: GreedySelection, measure: Objective, *, folds: int, seed: int, n_jobs: int | None = None
) -> FloatArray:
    """Cross-validate the mean of the measure after 1, ..., `max_features` features, shape (max_features,)."""

    def fit(qids: Sequence[str], data: RankingData) -> Selection:
        return learner.fit(data.select_queries(qids), n_jobs=n_jobs)

    parts, totals = split_folds(data.qids, folds, seed), np.zeros(learner.max_features)
    selections = fit_by_fold(fit, data.qids, parts, data, what="inner folds", n_jobs=n_jobs)
    for part, selection in zip(parts, selections, strict=True):
        # A selection that stops early ranks on with what it has: its last score stands for the rounds that follow.
        sums = after_each_round(selection, data.select_queries(part), measure).sum(axis=1)
        totals += np.append(sums, np.full(learner.max_features - len(sums), sums[-1]))
    return totals / len(data.qids)
