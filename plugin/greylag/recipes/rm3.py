"""RM3 after BM25, tuned on training queries as among the baselines of the automatic choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

from greylag import __version__
from greylag.core.checks import check_fractions
from greylag.errors import ParameterError
from greylag.features.spelling import parse_feature
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.learning.data import Judgements
from greylag.learning.linesearch.objectives import Objective
from greylag.rankers.model import RankingModel
from greylag.ranking import Run
from greylag.recipes.baselines import BM25, GRID, Grid, parameter_grid, values_at_ends
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

    References
    ----------
    Abdul-Jaleel et al., UMass at TREC 2004: novelty and HARD (RM3).
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
        judged = {ranking.qid for ranking in sources.rankings}
        queries = tuple(qid for qid in qids if qid in judged)
        known = {**tuned.parameters.as_dict(), "original_weight": tuned.original_weight}
        values = {name: known[name] for name in self.tuned}
        provenance = {
            "greylag": __version__,
            "baseline": "RM3",
            "tuned": [*values],
            "training_score": tuned.training_score,
            "queries": [*queries],
        }
        model = RankingModel(
            (parse_feature(f"stage:{tuned.rm3}"),), (1.0,), tuned.parameters, objective=str(self.measure),
            provenance=provenance,
        ).for_collection(sources.index)  # fmt: skip
        chosen = tuple(f"{name} {value:g}" for name, value in values.items())
        return Fitted(model, queries, tuned.training_score, chosen, ends=values_at_ends(self.grid, values))
