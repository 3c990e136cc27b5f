"""A committee of greedy selections, whose mean is one linear ranker."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from greylag.errors import ParameterError
from greylag.ltr.cross_validation import split_folds
from greylag.ltr.data import RankingData, centred, linear_scores, weighted_sum
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.learner import Selection
from greylag.ltr.objectives import Objective
from greylag.runtime.progress import Steps


@dataclass(frozen=True)
class GreedyCommittee:
    """The mean of greedy selections that each leave out one fold of the queries.

    Each member is a `GreedySelection` on the queries of all folds but one. Its weights are divided by the standard
    deviation of its scores within the queries that it was trained on, and the members' weights are added up. So what
    one member selects by chance has a small weight. A feature that is trusted beforehand, such as a tuned ranker's
    score, may have as much weight as all members together.

    Parameters
    ----------
    objective : Objective or str
        The measure to maximise.
    max_features : int >= 1, default 5
        The maximum number of features of a member.
    folds : int >= 2, default 5
        The number of members, at most the number of queries.
    seed : int >= 0, default 0
        The seed of the assignment of queries to folds.
    prior : str, default ""
        The name of the feature that is trusted beforehand; none if empty.

    Raises
    ------
    ParameterError
        If a parameter is outside its domain.

    References
    ----------
    Parmanto, Munro and Doyle, Reducing variance of committee prediction with resampling techniques, Connection Science
    8, 1996 (cross-validated committees).
    """

    objective: Objective | str
    _: KW_ONLY
    max_features: int = 5
    folds: int = 5
    seed: int = 0
    prior: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", self.member.objective)
        if self.folds < 2:
            raise ParameterError(f"folds is {self.folds}; it must be at least 2")

    @property
    def member(self) -> GreedySelection:
        """The learner of a member."""
        return GreedySelection(self.objective, max_features=self.max_features)

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> Selection:
        """Learn the members on `data`, and their mean; the result does not depend on `n_jobs`.

        The features are in the order of the spread that they give the scores, largest first.

        Raises
        ------
        ParameterError
            If there are fewer queries than folds, no feature raises the objective of a member above 0, or the data
            lacks the feature `prior`.
        """
        measure = Objective.parse(self.objective)
        columns, weights = centred(data), np.zeros(len(data.specs))
        for fold in Steps.each(split_folds(data.qids, self.folds, self.seed), "members"):
            own = [qid for qid in data.qids if qid not in fold]
            found = self.member.fit(data.select_queries(own), n_jobs=n_jobs)
            rows = np.repeat(np.isin(data.qids, own), np.diff(data.offsets))
            scores = weighted_sum(columns[list(found.columns)].T[rows], np.array(found.weights))
            weights[list(found.columns)] += np.array(found.weights) / (scores.std() or 1.0)
        if self.prior:
            weights[self._column(data)] += self.folds / (columns[self._column(data)].std() or 1.0)
        ordered = np.argsort(-np.abs(weights) * columns.std(axis=1), kind="stable")
        chosen = [int(column) for column in ordered if weights[column]]
        value = float(measure.evaluate(data, linear_scores(data, chosen, weights[chosen])).mean())
        return Selection(tuple(chosen), (tuple(weights[chosen].tolist()),), (value,))

    def _column(self, data: RankingData) -> int:
        """The column of the prior."""
        if self.prior not in data.names:
            raise ParameterError(f"the data has no feature {self.prior}, which is the committee's prior")
        return data.names.index(self.prior)
