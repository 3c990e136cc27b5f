"""The recipe of learned fusion: weights of runs, whose union takes the place of a first stage."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, cast

from greylag.base import Query, Ranking, Run
from greylag.evaluation import GivenRun, JoinedRuns, PooledSources, RunFile, at_level
from greylag.learning import Judgements, RankingData, judged_topics
from greylag.rankers import FusionRanker
from greylag.recipes.fitted import Fitted
from greylag.recipes.index_free import check_number
from greylag.recipes.recipe import Fit, Recipe
from greylag.recipes.union import FusionWeights, check_runs, union_data

_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class FusionRecipe(Recipe):
    """Weights of two or more runs, by name; their union is ranked in place of a first stage."""

    needs_index: ClassVar[bool] = False

    runs: Mapping[str, Run | RunFile] = field(repr=False, hash=False)
    learner: FusionWeights
    _: KW_ONLY
    k: int | None = None  # documents to keep of what is fused; all by default

    def stage(self, fitted: Fitted, index: Any) -> Callable[[Ranking], Ranking]:
        """Return the fusion of the runs by the model, in place of a ranking."""
        sources = tuple(GivenRun(cast(Run, run)) for run in self.runs.values())
        fuse = PooledSources(sources, method=FusionRanker(fitted.model), k=self.k)
        return lambda ranking: fuse(Query(ranking.qid, ranking.query))

    def prepare(self, rankings: Run, qrels: Judgements, index: Any = None, *, n_jobs: int | None = None) -> Fit:
        """Make the columns of the runs."""
        recipe, _, data = self.read_runs(qrels)
        return partial(recipe.learn, data)

    def learn(self, every: RankingData, qids: Sequence[str], *, n_jobs: int | None = None) -> Fitted:
        """Learn from these training queries."""
        data = every.select_queries(qids)
        check_number(data.qids)
        return self.learner.weigh(data, tuple(self.runs))

    def read_runs(self, qrels: Judgements) -> tuple[FusionRecipe, Judgements, RankingData]:
        """Read the runs a query at a time: the recipe with the scale of the grades, the judged topics, and the data."""
        joined, measure = JoinedRuns(tuple(self.runs.values())), self.measure
        measure = measure.on_scale_of(grade for qid in joined for grade in qrels.get(qid, {}).values())
        levelled, topics = at_level(qrels, measure.rel), judged_topics(joined, qrels, measure.rel)
        judged = {qid: levelled[qid] for qid in topics}
        data = union_data(self.runs, judged, measure.rel)
        topics_of = {name: dict.fromkeys(run) for name, run in self.runs.items()}
        check_number(data.qids)
        columns = {name: (2 * number, 2 * number + 1) for number, name in enumerate(self.runs)}
        check_runs(data, columns, topics_of.__getitem__)
        for name, known in topics_of.items():
            if lacking := [qid for qid in joined if qid not in known]:
                what = f"{name} lacks {len(lacking)} of {len(joined)} topics, such as {lacking[0]!r}"
                _log.warning("%s: they are fused from the other runs", what)
        return replace(self, learner=replace(self.learner, objective=measure)), judged, data
