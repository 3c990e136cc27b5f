"""The interface of learners, and their result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from greylag.base import FloatArray, ParameterError, check_counts
from greylag.learning.data import RankingData, linear_scores, weighted_sum
from greylag.learning.linesearch.objectives import Objective


@dataclass(frozen=True)
class Selection:
    """The features and weights that a learner found, round by round."""

    columns: tuple[int, ...]  # of the features, in the order of selection
    history: tuple[tuple[float, ...], ...]  # the weights after each round; n weights are of the first n columns
    training_scores: tuple[float, ...]  # the mean of the objective on the training data after each round

    @classmethod
    def of(
        cls, weights: ArrayLike, data: RankingData, objective: Objective | str, columns: Sequence[int] | None = None
    ) -> Selection:
        """Make the result of a learner of all weights at once, one round over all or some columns of the data."""
        chosen, values = tuple(range(len(data.specs)) if columns is None else columns), np.asarray(weights, np.float64)
        score = Objective.parse(objective).evaluate(data, linear_scores(data, chosen, values)).mean()
        return cls(chosen, (tuple(values.tolist()),), (float(score),))

    @property
    def weights(self) -> tuple[float, ...]:
        """The final weights, one for each of `columns`."""
        return self.history[-1]

    @property
    def entry_scores(self) -> tuple[float, ...]:
        """The training score after the round that added each of `columns`."""
        # A round may add several columns, as a learner of all weights at once does.
        sizes = [0, *map(len, self.history)]
        added = [after - before for before, after in pairwise(sizes)]
        return tuple(score for score, n in zip(self.training_scores, added, strict=True) for _ in range(n))

    def over(self, data: RankingData) -> FloatArray:
        """Return the final weights of all columns of `data`, shape (f,), 0 for those that are not selected."""
        weights = np.zeros(len(data.specs))
        weights[list(self.columns)] = self.weights
        return weights

    def predict(self, data: RankingData | ArrayLike) -> FloatArray:
        """Score documents, shape (n,), by the final weights, of data, or of an array (n, f) with all columns."""
        features = data.complete if isinstance(data, RankingData) else np.asarray(data, dtype=np.float64)
        if features.ndim != 2 or features.shape[1] <= max(self.columns, default=-1):
            raise ParameterError(
                f"features of shape {features.shape}, but the selection has column {max(self.columns, default=0)}: "
                "give (n, f), with the columns that it was learned from"
            )
        return weighted_sum(features[:, list(self.columns)], np.array(self.weights))

    def head(self, rounds: int) -> Selection:
        """Return the result of the first rounds (of all rounds if there were fewer)."""
        check_counts(rounds=rounds)
        history = self.history[:rounds]  # a learner of all weights at once has one round
        return Selection(self.columns[: len(history[-1])], history, self.training_scores[:rounds])


class Learner(Protocol):
    """Learns a linear ranker; a frozen dataclass, whose fields become the provenance of models."""

    @property
    def objective(self) -> Objective | str:
        """The measure to maximise."""

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> Selection:
        """Learn from `data`; the result must not depend on the number of threads `n_jobs`."""


def after_each_round(selection: Selection, data: RankingData, measure: Objective) -> FloatArray:
    """Evaluate each query of `data` after each round of a selection, shape (rounds, queries)."""
    scores = (linear_scores(data, selection.columns[: len(w)], np.array(w)) for w in selection.history)
    return np.stack([*map(measure.scorer(data), scores)])
