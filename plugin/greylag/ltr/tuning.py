"""Hyperparameters chosen on training queries: feature parameters, the cut-off of the objective, the number of features.

Every function sees training queries only, so that calling it within each fold gives nested cross-validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from greylag.errors import ParameterError
from greylag.features.weighting import FeatureParameters
from greylag.ltr.baselines import Baseline
from greylag.ltr.cross_validation import split_folds
from greylag.ltr.data import RankingData, linear_scores
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.learner import Selection
from greylag.ltr.objectives import Objective
from greylag.ranking import FloatArray
from greylag.runtime.parallel import parallel_map
from greylag.runtime.progress import Steps

Grid = Mapping[str, Sequence[Any]]
"""The values to try for each feature parameter, by its name in `FeatureParameters`."""


def parameter_grid(grid: Grid, names: Sequence[str], base: FeatureParameters) -> list[FeatureParameters]:
    """Every combination of the grid's values of `names`, the last varying fastest; other parameters are as in `base`.

    Raises
    ------
    ParameterError
        If the grid lacks one of `names`, or a value is outside its domain.
    """
    for name in names:
        if name not in grid:
            raise ParameterError(f"the grid has no values for {name}: it has {', '.join(grid) or 'none'}")
    values = product(*(grid[name] for name in names))
    return [replace(base, **dict(zip(names, chosen, strict=True))) for chosen in values]


@dataclass(frozen=True)
class Tuned:
    """The parameters and weights of a tuned baseline, and the mean of the objective on the training queries."""

    parameters: FeatureParameters
    weights: tuple[float, ...]
    training_score: float


def tune_on_data(
    baseline: Baseline,
    settings: Sequence[FeatureParameters],
    extract: Callable[[FeatureParameters], RankingData],
    qids: Sequence[str],
    objective: Objective,
    *,
    n_jobs: int | None = None,
) -> Tuned:
    """Tune a baseline on data that is extracted elsewhere, for instance cached across folds.

    Parameters
    ----------
    baseline : Baseline
    settings : sequence of FeatureParameters
        The parameters to try; the first of the best ones is chosen.
    extract : callable
        Maps parameters to the data of the baseline's features, for the training queries and possibly others.
    qids : sequence of str
        The training queries.
    objective : Objective
    n_jobs : int, optional
        Number of workers, each trying other parameters; the result does not depend on it.
    """
    attempt = partial(_attempt, baseline=baseline, extract=extract, qids=tuple(qids), objective=objective)
    tried = parallel_map(attempt, settings, what=f"grid of {baseline.name}", n_jobs=n_jobs)
    return max(tried, key=lambda tuned: tuned.training_score)


def _attempt(
    parameters: FeatureParameters,
    *,
    baseline: Baseline,
    extract: Callable[[FeatureParameters], RankingData],
    qids: Sequence[str],
    objective: Objective,
) -> Tuned:
    return Tuned(parameters, *baseline.fit(extract(parameters).select_queries(qids), objective))


def after_each_round(selection: Selection, data: RankingData, measure: Objective) -> FloatArray:
    """The measure of each query of `data` after each round of a selection, shape (rounds, queries)."""
    return np.stack(
        [
            measure.evaluate(data, linear_scores(data, selection.columns[: len(weights)], np.array(weights)))
            for weights in selection.history
        ]
    )


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
    means = [
        held_out_means(data, learner, measure, folds=folds, seed=seed, n_jobs=n_jobs)
        for learner in Steps.each(learners, "learners")
    ]
    best = max(range(len(learners)), key=lambda i: max(means[i]))
    chosen = replace(learners[best], max_features=1 + int(np.argmax(means[best])))
    return Choice(chosen, tuple(tuple(curve.tolist()) for curve in means))


def held_out_means(
    data: RankingData, learner: GreedySelection, measure: Objective, *, folds: int, seed: int, n_jobs: int | None = None
) -> FloatArray:
    """The cross-validated mean of the measure after 1, ..., `max_features` features, shape (max_features,)."""
    work = partial(_held_out_sums, learner=learner, measure=measure, n_jobs=n_jobs)
    parts = split_folds(data.qids, folds, seed)
    totals = np.zeros(learner.max_features)
    for sums in parallel_map(work, parts, data, what="inner folds", n_jobs=n_jobs, coarse=True):
        totals += np.append(sums, np.full(learner.max_features - len(sums), sums[-1]))
    return totals / len(data.qids)


def _held_out_sums(
    held_out: Sequence[str], data: RankingData, *, learner: GreedySelection, measure: Objective, n_jobs: int | None
) -> FloatArray:
    """The sum of the measure over held-out queries after each round, shape (rounds,)."""
    training = data.select_queries([qid for qid in data.qids if qid not in held_out])
    values = after_each_round(learner.fit(training, n_jobs=n_jobs), data.select_queries(held_out), measure)
    sums: FloatArray = values.sum(axis=1)
    return sums
