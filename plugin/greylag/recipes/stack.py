"""The stack: a linear model of tuned RM3 and of the features that a committee of greedy selections adds to it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from greylag.index.positional import PositionalIndex
from greylag.learning.data import Qrels, RankingData
from greylag.learning.greedy import GreedyCommittee
from greylag.learning.linesearch.objectives import Objective
from greylag.rankers.model import RankingModel
from greylag.ranking import Run
from greylag.recipes.recipe import Recipe, train_on_data
from greylag.recipes.sources import FeatureSources, PreparedLearner, TunedRM3


@dataclass(frozen=True)
class StackRecipe(Recipe):
    """RM3 tuned on training queries, and features that are selected beside it.

    Everything is chosen on the training queries, so that `greylag.recipes.cross_validate` is nested.

    Parameters
    ----------
    objective : Objective or str, default "AP"
        The measure to maximise, and to choose parameters and the number of features by.
    sources : FeatureSources, default ``FeatureSources()``
        The candidates.
    max_features : int >= 1, default 5
        The maximum number of features of each member of the `GreedyCommittee` that learns.
    inner_folds : int >= 2, default 5
        The number of its members, and folds.
    seed : int >= 0, default 0
        The seed of the assignment of queries to folds.
    """

    objective: Objective | str = "AP"
    _: KW_ONLY
    sources: FeatureSources = FeatureSources()
    max_features: int = 5
    inner_folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        self.learner("")  # checks its parameters

    def prepare(
        self, rankings: Run, qrels: Qrels, index: PositionalIndex, *, n_jobs: int | None = None
    ) -> PreparedLearner:
        """The judged rankings; features are computed when the first fold has chosen their parameters."""
        return PreparedLearner(self.learn, self.sources.prepare(rankings, qrels, index, self.measure, n_jobs=n_jobs))

    def learn(self, tuned: TunedRM3, rows: RankingData, n_jobs: int | None) -> RankingModel:
        """The stack for training rows with the features of `tuned`."""
        return train_on_data(rows, self.learner(f"stage:{tuned.rm3}"), n_jobs=n_jobs, provenance={"preset": "stack"})

    def learner(self, prior: str) -> GreedyCommittee:
        """The learner, for candidates with this feature as its prior."""
        return GreedyCommittee(
            self.measure, max_features=self.max_features, folds=self.inner_folds, seed=self.seed, prior=prior
        )
