"""Greedy feature selection by the measure itself (Metzler 2007, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from greylag.base import FloatArray, ParameterError, check_counts, check_non_negative, reached, threads
from greylag.learning.coordinate_ascent import ascend
from greylag.learning.data import RankingData, linear_scores
from greylag.learning.learner import Selection
from greylag.learning.linesearch.kernels import MEAN_TOLERANCE
from greylag.learning.linesearch.line_search import Optimum, Problem, line_search, mean, prepare, survey
from greylag.learning.linesearch.objectives import Objective


@dataclass(frozen=True)
class GreedySelection:
    """Selects features greedily (Metzler 2007, section 4, Algorithm 1).

    Each round adds the feature whose best weight, with all other weights fixed, raises the training mean of the
    objective most. The weight is found by exact line search. The lower column wins ties.

    Parameters
    ----------
    objective : Objective or str
        The measure to maximise, such as ``"nDCG@10"``. Stored as an `Objective`.
    max_features : int >= 1, default 5
        The maximum number of features.
    epsilon : float >= 0, default 0
        Selection stops when a round raises the mean by no more than this. Gains below 1e-12 are rounding errors and
        always stop it.
    retrain : bool, default False
        Whether to improve all selected weights after each round by `ascend` (Algorithm 1, line 10).
    """

    objective: Objective | str
    _: KW_ONLY
    max_features: int = 5
    epsilon: float = 0.0
    retrain: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        check_counts(max_features=self.max_features)
        check_non_negative(epsilon=self.epsilon)

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> Selection:
        """Select features on `data`, one per round; the result does not depend on `n_jobs`."""
        objective = Objective.parse(self.objective)
        problem = prepare(data, objective)
        columns: list[int] = []
        weights = np.empty(0)
        history: list[tuple[float, ...]] = []
        training_scores: list[float] = []
        value = 0.0
        # One pool of threads for all rounds, as a line search takes about a millisecond.
        with threads(n_jobs) as in_threads:
            while len(columns) < self.max_features:
                scores = linear_scores(data, columns, weights)
                candidates = [column for column in range(len(data.specs)) if column not in columns]
                directions = [data.columns[column] for column in candidates]
                if columns:
                    optima = best_steps(problem, scores, directions, in_threads)
                else:
                    optima = [*in_threads(partial(_better_sign, problem), directions)]
                # Of equal optima, the first: the result does not depend on which thread was done earlier.
                best = max(range(len(candidates)), key=lambda i: optima[i].value, default=None)
                if best is None or optima[best].value - value <= max(self.epsilon, MEAN_TOLERANCE):
                    break
                columns.append(candidates[best])
                weights = np.append(weights, optima[best].step)
                if self.retrain:
                    weights = ascend(weights, data, objective, columns)
                value = mean(problem, linear_scores(data, columns, weights))
                history.append(tuple(weights.tolist()))
                training_scores.append(value)
                reached("features selected", len(columns), self.max_features)
        if not columns:
            raise ParameterError(
                f"no feature raises {objective} above 0 on the training data: is a relevant document ranked?"
            )
        return Selection(tuple(columns), tuple(history), tuple(training_scores))


def best_steps(
    problem: Problem, scores: FloatArray, directions: Sequence[FloatArray], in_threads: Callable[..., Iterator[Any]]
) -> list[Optimum]:
    """Call `line_search` along each direction; those that cannot hold the best of all optima may have -infinity."""

    def search(floor: float, i: int) -> Optimum:
        return line_search(problem, scores, directions[i], first=surveys[i], floor=floor)

    # All directions are surveyed first. The optimum of the one that reaches the highest value then rules out others, as
    # a whole or in intervals.
    surveys = [*in_threads(partial(survey, problem, scores), directions)]
    floor = max((surveyed.reached for surveyed in surveys), default=-np.inf)
    order = sorted(range(len(surveys)), key=lambda i: -surveys[i].reached)
    while True:
        optima: dict[int, Optimum] = {}
        # The most promising line alone: its optimum is the floor that rules out most of the others.
        for some in (order[:1], order[1:]):
            limit = max([floor, *(optimum.value for optimum in optima.values())])
            optima |= zip(some, in_threads(partial(search, limit), some), strict=True)
        best = max((optimum.value for optimum in optima.values()), default=-np.inf)
        if best >= floor - MEAN_TOLERANCE:
            return [optima[i] for i in range(len(directions))]
        floor = best  # what was reached was reached on an interval that is too narrow for a step


def _better_sign(problem: Problem, column: FloatArray) -> Optimum:
    """Search along a feature from scores of 0, where all crossings are at 0 and only the sign of the weight matters."""
    down, up = Optimum(-1.0, mean(problem, -column)), Optimum(1.0, mean(problem, column))
    return up if up.value > down.value + MEAN_TOLERANCE else down
