"""Coordinate ascent on a rank measure, by exact line searches.

References
----------
Metzler & Croft, Linear feature-based models for information retrieval, Information Retrieval 10(3), 2007, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from greylag.errors import ParameterError
from greylag.ltr.data import RankingData, centred, linear_scores
from greylag.ltr.kernels import EQUAL
from greylag.ltr.learner import Selection
from greylag.ltr.line_search import line_search, mean, prepare
from greylag.ltr.objectives import Objective
from greylag.ranking import FloatArray


@dataclass(frozen=True)
class CoordinateAscent:
    """Learns a weight for every feature by coordinate ascent with restarts (Metzler & Croft 2007, section 4).

    The first start has weight 1 for every feature, and the others are drawn from a standard normal distribution. Both
    are divided by the root mean square of the feature around its query means, so that the scales of features do not
    matter. The start that reaches the highest training mean is kept, and the earliest of equal ones.

    Parameters
    ----------
    objective : Objective or str
        The measure to maximise, such as ``"nDCG@10"``. Stored as an `Objective`.
    restarts : int >= 1, default 3
        The number of starts.
    seed : int >= 0, default 0
        The seed of the random starts.
    tolerance : float >= 0, default 1e-3
        A start ends when a cycle through all features raises the mean by no more than this.

    Raises
    ------
    ParameterError
        If a parameter is outside its domain.
    """

    objective: Objective | str
    _: KW_ONLY
    restarts: int = 3
    seed: int = 0
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        if self.restarts < 1:
            raise ParameterError(f"restarts is {self.restarts}; it must be at least 1")
        if self.seed < 0:
            raise ParameterError(f"seed is {self.seed}; it must be at least 0")
        if not 0 <= self.tolerance < np.inf:
            raise ParameterError(f"tolerance is {self.tolerance}; it must be a finite number >= 0")

    def fit(self, data: RankingData, *, n_jobs: int = 1) -> Selection:
        """Learn a weight for every feature of `data`, in one round; the result does not depend on `n_jobs`."""
        from joblib import Parallel, delayed

        objective, columns = Objective.parse(self.objective), range(len(data.specs))
        scales = np.sqrt(np.mean(centred(data) ** 2, axis=1))
        draws = np.random.default_rng(self.seed).standard_normal((self.restarts, len(columns)))
        draws[0] = 1.0
        ends = Parallel(n_jobs=n_jobs, backend="threading")(
            delayed(coordinate_ascent)(data, objective, columns, start, tolerance=self.tolerance)
            for start in draws / np.where(scales > 0, scales, 1.0)
        )
        values = [float(np.mean(objective.evaluate(data, linear_scores(data, columns, end)))) for end in ends]
        best = int(np.argmax(values))
        return Selection(tuple(columns), (tuple(ends[best].tolist()),), (values[best],))


def coordinate_ascent(
    data: RankingData, objective: Objective, columns: Sequence[int], weights: FloatArray, *, tolerance: float = 1e-4
) -> FloatArray:
    """Improve weights by an exact line search along each in turn, until a cycle gains no more than `tolerance`.

    The measure never falls, and a weight changes only if another value is better. As only the ratios of weights matter,
    they are rescaled to keep the sum of their magnitudes.
    """
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
        scores = linear_scores(data, columns, trial)  # recomputed, as increments accumulate rounding errors
        before, reached = value, mean(problem, scores)
        if reached > before:
            best, value = trial, reached
        if reached - before <= tolerance:
            return best
