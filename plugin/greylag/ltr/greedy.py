"""Learning a linear ranker: greedy feature selection by the measure itself, and coordinate ascent (Metzler 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from greylag.errors import ParameterError
from greylag.ltr.data import RankingData, centred
from greylag.ltr.objectives import Objective
from greylag.ranking import FloatArray

if TYPE_CHECKING:
    from greylag.ltr.line_search import Optimum, Problem


@dataclass(frozen=True)
class Selection:
    """Features and weights that a learner found.

    Parameters
    ----------
    columns : the features' columns, in the order of selection.
    history : the weights of the features so far after each round, the last of them shape (len(columns),).
    training_scores : the mean of the objective on the training data after each round.
    """

    columns: tuple[int, ...]
    history: tuple[tuple[float, ...], ...]
    training_scores: tuple[float, ...]

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights at the end, shape (len(columns),)."""
        return self.history[-1]

    def head(self, rounds: int) -> Selection:
        """What the first rounds found (all of it, where there were fewer)."""
        return Selection(self.columns[:rounds], self.history[:rounds], self.training_scores[:rounds])


@dataclass(frozen=True)
class GreedySelection:
    """Greedy feature selection (Metzler 2007, Algorithm 1).

    Starting from no feature, each round adds the feature whose best single weight, all others fixed, raises the
    objective's training mean most; that weight is found by exact line search. Of equally good features the one of the
    lower column is taken.

    Parameters
    ----------
    objective : what to maximise.
    max_features : stop after so many, >= 1.
    epsilon : stop when a round raises the mean by no more than this, >= 0; a rise within 1e-12 is rounding, and none.
    retrain : after each round, search along each selected weight in turn (`coordinate_ascent`).
    """

    objective: Objective
    max_features: int = 5
    epsilon: float = 0.0
    retrain: bool = False

    def __post_init__(self) -> None:
        if self.max_features < 1:
            raise ParameterError(f"max_features has to be at least 1, not {self.max_features}")
        if not 0 <= self.epsilon < np.inf:
            raise ParameterError(f"epsilon has to be a number >= 0, not {self.epsilon}")

    def fit(self, data: RankingData, *, n_jobs: int = 1) -> Selection:
        """Select features on `data`; `n_jobs` threads search candidates side by side, with the same result."""
        from joblib import Parallel, delayed

        from greylag.ltr.line_search import EQUAL, line_search, mean, prepare

        problem = prepare(data, self.objective)
        columns: list[int] = []
        weights = np.empty(0)
        history: list[tuple[float, ...]] = []
        training_scores: list[float] = []
        value = 0.0
        with Parallel(n_jobs=n_jobs, backend="threading") as parallel:
            while len(columns) < self.max_features:
                scores = linear_scores(data, columns, weights)
                candidates = [column for column in range(len(data.names)) if column not in columns]
                search = partial(line_search, problem, scores) if columns else partial(_better_sign, problem)
                optima = parallel(delayed(search)(data.columns[column]) for column in candidates)
                best = max(range(len(candidates)), key=lambda i: optima[i].value, default=None)
                if best is None or optima[best].value - value <= max(self.epsilon, EQUAL):
                    break
                columns.append(candidates[best])
                weights = np.append(weights, optima[best].step)
                if self.retrain:
                    weights = coordinate_ascent(data, self.objective, columns, weights)
                value = mean(problem, linear_scores(data, columns, weights))
                history.append(tuple(weights.tolist()))
                training_scores.append(value)
        if not columns:
            raise ParameterError(
                f"no feature raises {self.objective} above 0 on the training data: is a relevant document ranked?"
            )
        return Selection(tuple(columns), tuple(history), tuple(training_scores))


def _better_sign(problem: Problem, column: FloatArray) -> Optimum:
    """`line_search` from scores of 0, where all documents cross at 0 and nothing but the weight's sign matters."""
    from greylag.ltr.line_search import EQUAL, Optimum, mean

    down, up = Optimum(-1.0, mean(problem, -column)), Optimum(1.0, mean(problem, column))
    return up if up.value > down.value + EQUAL else down


@dataclass(frozen=True)
class CoordinateAscent:
    """Weights for all features at once, by coordinate ascent from several starts (Metzler & Croft 2007, section 4).

    Each start is `coordinate_ascent` from other weights: the first from 1 for every feature, the others from draws of a
    standard normal distribution, both divided by the feature's root mean square around its queries' means, so that
    scales do not matter. The start that ends highest is kept; of equally high ones the earliest.

    Parameters
    ----------
    objective : what to maximise.
    restarts : how often to start, >= 1.
    seed : of the draws.
    tolerance : a start ends when a cycle through all features raises the mean by no more than this, >= 0.

    References
    ----------
    Metzler & Croft, Linear feature-based models for information retrieval, Information Retrieval 10(3), 2007.
    """

    objective: Objective
    restarts: int = 3
    seed: int = 0
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        if self.restarts < 1:
            raise ParameterError(f"restarts has to be at least 1, not {self.restarts}")
        if not 0 <= self.tolerance < np.inf:
            raise ParameterError(f"tolerance has to be a number >= 0, not {self.tolerance}")

    def fit(self, data: RankingData, *, n_jobs: int = 1) -> Selection:
        """Learn a weight for every feature of `data`; `n_jobs` threads start side by side, with the same result."""
        from joblib import Parallel, delayed

        columns = list(range(len(data.names)))
        scales = np.sqrt(np.mean(centred(data) ** 2, axis=1))
        draws = np.random.default_rng(self.seed).standard_normal((self.restarts, len(columns)))
        draws[0] = 1.0
        ends = Parallel(n_jobs=n_jobs, backend="threading")(
            delayed(coordinate_ascent)(data, self.objective, columns, start, tolerance=self.tolerance)
            for start in draws / np.where(scales > 0, scales, 1.0)
        )
        values = [float(np.mean(self.objective.evaluate(data, linear_scores(data, columns, end)))) for end in ends]
        best = int(np.argmax(values))
        weights = tuple(ends[best].tolist())
        return Selection(tuple(columns), (weights,) * len(columns), (values[best],) * len(columns))


Learner = GreedySelection | CoordinateAscent


def coordinate_ascent(
    data: RankingData, objective: Objective, columns: list[int], weights: FloatArray, *, tolerance: float = 1e-4
) -> FloatArray:
    """Improve weights by exact line searches along each in turn until a cycle gains no more than `tolerance`.

    The measure never falls. A cycle leaves a weight as it is where no other value is better. As only the ratios of
    weights matter, they are scaled to keep the sum of their magnitudes.
    """
    from greylag.ltr.line_search import EQUAL, line_search, mean, prepare

    problem = prepare(data, objective)
    total = np.abs(weights).sum() or 1.0
    best, scores = weights.copy(), linear_scores(data, columns, weights)
    value = mean(problem, scores)
    while True:
        trial, reached = best.copy(), value
        for place, column in enumerate(columns):
            optimum = line_search(problem, scores, data.columns[column])
            if optimum.value > reached + EQUAL:
                trial[place] += optimum.step
                scores += optimum.step * data.columns[column]
                scale = total / (np.abs(trial).sum() or 1.0)
                trial, scores, reached = trial * scale, scores * scale, optimum.value
        scores = linear_scores(data, columns, trial)  # afresh, since steps added one by one collect rounding
        before, reached = value, mean(problem, scores)
        if reached > before:
            best, value = trial, reached
        if reached - before <= tolerance:
            return best


def linear_scores(data: RankingData, columns: list[int], weights: FloatArray) -> FloatArray:
    """Weighted sums of the columns, shape (n,), added in their order so that the result is the same everywhere."""
    return weighted_sum(data.features[:, columns], weights)


def weighted_sum(features: FloatArray, weights: FloatArray) -> FloatArray:
    """``features @ weights``, shape (n,), but added column by column: BLAS sums in an order that depends on threads."""
    scores = np.zeros(len(features))
    for column, weight in zip(features.T, weights, strict=True):
        scores += weight * column
    return scores
