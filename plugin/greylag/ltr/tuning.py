"""What training queries decide beside weights: mu, k1, b and feedback, the measure's cut-off, the number of features.

Everything here sees training queries only, so that a study that calls it once for each training fold is nested
cross-validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from greylag.features.weighting import FeatureParameters
from greylag.ltr.baselines import HandPicked
from greylag.ltr.data import RankingData
from greylag.ltr.greedy import GreedySelection, Selection, linear_scores
from greylag.ltr.objectives import Objective
from greylag.ltr.training import split_folds
from greylag.ranking import FloatArray

Grid = Mapping[str, Sequence[Any]]
"""The values to try of each feature parameter, by its name."""


def combinations(grid: Grid, names: Sequence[str], base: FeatureParameters) -> list[FeatureParameters]:
    """Every combination of the grid's values of `names`, the last varying fastest; the rest as in `base`."""
    values = product(*(grid[name] for name in names))
    return [replace(base, **dict(zip(names, chosen, strict=True))) for chosen in values]


@dataclass(frozen=True)
class Tuned:
    """A hand-picked model's parameters and weights for some training queries, and the objective's mean on these."""

    parameters: FeatureParameters
    weights: tuple[float, ...]
    training_score: float


def tune(
    model: HandPicked,
    settings: Sequence[FeatureParameters],
    extract: Callable[[FeatureParameters], RankingData],
    qids: Sequence[str],
    objective: Objective,
    *,
    n_jobs: int = 1,
) -> Tuned:
    """The model at the parameters, and the weights where they are trained, of the highest mean on training queries.

    Parameters
    ----------
    settings : the parameters to try; of equally good ones the first is taken.
    extract : parameters to the data of the model's features, for these queries and maybe more.
    qids : the training queries.
    n_jobs : threads, each trying other parameters.
    """
    from joblib import Parallel, delayed

    def attempt(parameters: FeatureParameters) -> Tuned:
        return Tuned(parameters, *model.fit(extract(parameters).select_queries(qids), objective))

    tried = Parallel(n_jobs=n_jobs, backend="threading")(delayed(attempt)(parameters) for parameters in settings)
    best: Tuned = max(tried, key=lambda tuned: tuned.training_score)
    return best


def after_each_round(selection: Selection, data: RankingData, measure: Objective) -> FloatArray:
    """The measure of each query of `data` with the features of the first 1, 2, ... rounds; shape (rounds, queries)."""
    columns = list(selection.columns)
    rounds = enumerate(selection.history, 1)
    return np.stack(
        [measure.evaluate(data, linear_scores(data, columns[:n], np.array(weights))) for n, weights in rounds]
    )


@dataclass(frozen=True)
class Choice:
    """The learner that did best on held-out training queries.

    Parameters
    ----------
    learner : with `max_features` set to the number of features that was best.
    held_out : for each learner, the measure's mean over the queries after 1, 2, ... features.
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
    n_jobs: int = 1,
) -> Choice:
    """Cross-validate learners on training data, and choose one and its number of features.

    In each fold, selection on the other folds' queries goes on for the learner's `max_features` rounds, and the fold's
    queries are scored after each; selection that stops earlier keeps its last score. The learner and number of features
    of the highest mean over all queries are chosen: of equal ones the first learner, and the fewest features.

    Parameters
    ----------
    learners : what to choose from, such as the same with objectives of other cut-offs.
    measure : what held-out queries are scored by.
    folds, seed : as in `split_folds`.
    """
    means = [held_out_means(data, learner, measure, folds=folds, seed=seed, n_jobs=n_jobs) for learner in learners]
    best = max(range(len(learners)), key=lambda i: max(means[i]))
    chosen = replace(learners[best], max_features=1 + int(np.argmax(means[best])))
    return Choice(chosen, tuple(tuple(curve.tolist()) for curve in means))


def held_out_means(
    data: RankingData, learner: GreedySelection, measure: Objective, *, folds: int, seed: int, n_jobs: int = 1
) -> FloatArray:
    """The cross-validated mean of the measure after 1, ..., `max_features` features, shape (max_features,)."""
    totals = np.zeros(learner.max_features)
    for held_out in split_folds(data.qids, folds, seed):
        training = data.select_queries([qid for qid in data.qids if qid not in held_out])
        values = after_each_round(learner.fit(training, n_jobs=n_jobs), data.select_queries(held_out), measure)
        sums = values.sum(axis=1)
        totals += np.append(sums, np.full(learner.max_features - len(sums), sums[-1]))
    return totals / len(data.qids)
