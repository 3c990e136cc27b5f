"""RM3 after BM25, tuned on training queries as among the baselines of the automatic choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

from greylag.base import ParameterError, Run, check_fractions
from greylag.features import FeatureParameters, parse_feature
from greylag.index import PositionalIndex
from greylag.learning import Judgements, Objective
from greylag.rankers import RankingModel
from greylag.recipes.baselines import BM25, GRID, Grid, parameter_grid, tuned_fit
from greylag.recipes.fitted import Fitted
from greylag.recipes.recipe import Fit, Recipe
from greylag.recipes.sources import FEEDBACK, FeatureSources, PreparedSources


@dataclass(frozen=True)
class RM3Recipe(Recipe):
    """RM3 of tuned BM25 with the values of a grid that are best on training queries.

    The model has one feature, the score of the stage `greylag.rankers.RM3Stage` after BM25.

    Parameters
    ----------
    objective : Objective or str, default "AP"
        The measure to maximise.
    grid : mapping of str to sequence, default `greylag.recipes.baselines.GRID`
        The values to try for k1, b, fb_docs, fb_terms and original_weight, on at most 2,000 queries.
    """

    objective: Objective | str = "AP"
    _: KW_ONLY
    grid: Grid = field(default_factory=lambda: GRID)

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        parameter_grid(self.grid, self.tuned[:-1], FeatureParameters())  # checks the values
        if "original_weight" not in self.grid:
            raise ParameterError(f"the grid has no values for original_weight: it has {', '.join(self.grid)}")
        for weight in self.grid["original_weight"]:
            check_fractions(original_weight=weight)

    @property
    def tuned(self) -> tuple[str, ...]:
        """The parameters that are tuned."""
        return (*BM25.tuned, *FEEDBACK, "original_weight")

    def prepare(self, rankings: Run, qrels: Judgements, index: PositionalIndex, *, n_jobs: int | None = None) -> Fit:
        """Keep the judged rankings; each value of the grid is tried once for all folds."""
        sources = FeatureSources(grid=self.grid)
        return partial(self._tune, sources.prepare(rankings, qrels, index, self.measure, n_jobs=n_jobs))

    def _tune(self, sources: PreparedSources, qids: Sequence[str], *, n_jobs: int | None = None) -> Fitted:
        """Tune on these training queries; of equally good values, the first are chosen."""
        tuned = sources.tune_rm3(qids)
        known = {**tuned.parameters.as_dict(), "original_weight": tuned.original_weight}
        values = {name: known[name] for name in self.tuned}
        feature, noted = parse_feature(f"stage:{tuned.rm3}"), {"baseline": "RM3", "tuned": [*values]}
        model = RankingModel((feature,), (1.0,), tuned.parameters, str(self.measure), provenance=noted)
        model = model.for_collection(sources.index)
        return tuned_fit(model, values, self.grid, tuned.training_score, sources.rankings, qids)
