"""The stack: RM3 tuned on training queries, and a linear model of it and of all evidence that is cheap.

That is features of the MRF model and of manifold ranking, where the query's words stand, how they are written, and what
words the collection uses alike.

Everything is chosen on the training queries, so that `greylag.cross_validate` of a `StackRecipe` is nested. The model
is an ordinary `RankingModel`: one file, for `ModelRanker` and ``greylag rerank``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, TypeVar, cast

import numpy as np

from greylag.checks import check_counts
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature
from greylag.features.spec import EXPANSION, Pool, candidate_pool
from greylag.features.spelling import parse_feature
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.learning.extraction import CountedRankings, training_data
from greylag.learning.greedy import GreedyCommittee
from greylag.linesearch.data import SEARCHED, Qrels, RankingData, concatenated, spaced
from greylag.linesearch.objectives import Objective
from greylag.models import baselines
from greylag.models.baselines import Baseline, BaselineRecipe, Grid, PreparedBaseline, parameter_grid
from greylag.models.model import RankingModel
from greylag.models.rankers import RM3_PARTS, RM3Stage
from greylag.models.recipes import Recipe, train_on_data
from greylag.ranking import FloatArray, Ranking, Run
from greylag.runtime.parallel import rebuilt
from greylag.runtime.progress import each
from greylag.trec import at_level

T = TypeVar("T")
_log = logging.getLogger("greylag")

GRID: Grid = {**baselines.GRID, "original_weight": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)}
"""The values to try for BM25, RM3, and query likelihood."""
MANIFOLD = ("alpha=0.6", "alpha=0.9", "alpha=0.6,graph=full", "alpha=0.6,confidence=query")
"""The options of the manifold features."""
POSITION = tuple(map(parse_feature, ("FI/term/early", "FI/term/BM25-F-10")))
"""How early the query's words come first, and BM25 of the first ten words."""
LATENT = (parse_feature("latent"),)
"""The similarity by latent semantic analysis."""
WRITTEN = tuple(map(parse_feature, ("written:words", "written:characters")))
"""What a document covers of the query's words as they are written, and of their n-grams of characters."""
MANY = 500
"""With more training queries, only rows that are trained on are kept, and the folds of the choice share parameters."""


@dataclass(frozen=True)
class TunedRM3:
    """RM3 after BM25 with parameters tuned on training queries; RM3 itself estimates with the default mu."""

    parameters: FeatureParameters
    original_weight: float

    @property
    def bm25(self) -> str:
        """The stage of BM25, as features spell it."""
        return f"rm3(b={float(self.parameters.b)},k1={float(self.parameters.k1)},original_weight=1.0)"

    @property
    def rm3(self) -> str:
        """The stages of BM25 and RM3, as features spell them."""
        p = self.parameters
        return (
            f"{self.bm25}>>rm3(b={float(p.b)},fb_docs={p.fb_docs},fb_terms={p.fb_terms},k1={float(p.k1)},"
            f"original_weight={float(self.original_weight)})"
        )


@dataclass(frozen=True)
class StackRecipe(Recipe):
    """How a stack is made from the candidates of a union, such as that of BM25 and query likelihood.

    Features of words as they are written are left out if the index does not store its texts.

    Parameters
    ----------
    objective : Objective or str, default "AP"
        The measure to maximise, and to choose parameters and the number of features by.
    pool : "sd", "fd" or "full", default "sd"
        The MRF features among the candidates.
    more : tuple of Feature, default ()
        Other candidates, such as priors and runs.
    grid : mapping, default `GRID`
        The values to try, on at most 2,000 queries.
    depth : int >= 1, default 200
        Training uses this number of documents of each query, the top ones by RM3 and by the incoming ranking in turn.
        All documents are ranked.
    max_features : int >= 1, default 5
        The maximum number of features of each member of the `GreedyCommittee` that learns.
    inner_folds : int >= 2, default 5
        The number of its members, and folds.
    seed : int >= 0, default 0
        The seed of the assignment of queries to folds.
    """

    objective: Objective | str = "AP"
    _: KW_ONLY
    pool: Pool = "sd"
    more: tuple[Feature, ...] = ()
    grid: Grid = None  # type: ignore[assignment]
    depth: int = 200
    max_features: int = 5
    inner_folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        object.__setattr__(self, "grid", dict(self.grid or GRID))
        check_counts(depth=self.depth)
        self.learner("")  # checks its parameters

    def prepare(
        self, rankings: Run, qrels: Qrels, index: PositionalIndex, *, n_jobs: int | None = None
    ) -> StackCandidates:
        """The judged rankings; features are computed when the first fold has chosen their parameters."""
        if index.words is None:
            left_out = ", ".join(map(str, WRITTEN))
            _log.info(
                "the index does not store its texts, so %s are left out: build it again by greylag index", left_out
            )
        qrels = at_level(qrels, self.measure.rel)
        judged = [
            ranking for ranking in rankings.rankings if any(grade > 0 for grade in qrels.get(ranking.qid, {}).values())
        ]
        return StackCandidates(self, judged, qrels, index, n_jobs)

    def learner(self, prior: str) -> GreedyCommittee:
        """The learner of the stack, for candidates with this feature as its prior."""
        return GreedyCommittee(
            self.measure, max_features=self.max_features, folds=self.inner_folds, seed=self.seed, prior=prior
        )

    def features(self, tuned: TunedRM3, *, texts: bool) -> dict[str, tuple[Feature, ...]]:
        """The candidates by where they come from. RM3, which is the stack's prior, is the first.

        Those that need texts, as an index may store them, are among them with `texts`.
        """
        spreading = [f"stage:{tuned.rm3}>>manifold({options})@minmax" for options in MANIFOLD]
        return {
            "expansion": (*map(parse_feature, (f"stage:{tuned.rm3}", f"stage:{tuned.rm3}@minmax")), *EXPANSION),
            "first stage": tuple(map(parse_feature, ("score@minmax", "reciprocal-rank", f"stage:{tuned.bm25}"))),
            "MRF": candidate_pool(self.pool),
            "manifold": tuple(map(parse_feature, (*spreading, f"stage:{tuned.bm25}>>manifold@minmax"))),
            "position": POSITION,
            "latent": LATENT,
            **({"written form": WRITTEN} if texts else {}),
            **({"more": self.more} if self.more else {}),
        }


@dataclass(frozen=True, eq=False)
class StackCandidates:
    """A `StackRecipe` and its candidates; what does not depend on the training queries is computed once for all folds.

    All rankings are of queries with a relevant document.
    """

    recipe: StackRecipe
    rankings: Sequence[Ranking]
    qrels: Qrels
    index: PositionalIndex
    n_jobs: int | None = None
    _kept: dict[object, Any] = field(init=False, repr=False, default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def fit(self, qids: Sequence[str], *, n_jobs: int | None = None) -> RankingModel:
        """The stack for these training queries."""
        tuned = self.tune(qids)
        return self.fit_tuned(tuned, self.training(tuned, qids), n_jobs=n_jobs)

    def fit_tuned(self, tuned: TunedRM3, training: RankingData, *, n_jobs: int | None = None) -> RankingModel:
        """The model that the recipe's committee makes of `training`."""
        learner = self.recipe.learner(f"stage:{tuned.rm3}")
        return train_on_data(training, learner, n_jobs=n_jobs, provenance={"preset": "stack"})

    def tune(self, qids: Sequence[str]) -> TunedRM3:
        """Tune BM25's k1 and b, then RM3 on the rankings by that BM25, and LM's mu; the first of the best wins.

        Of more than `SEARCHED` queries, only that many are used, at equal distances.
        """
        if len(qids) > SEARCHED:
            some = dict.fromkeys(spaced(qids, SEARCHED))
            return replace(self, rankings=[one for one in self.rankings if one.qid in some]).tune(list(some))
        grid = self.recipe.grid
        bm25, smoothed = (self._baseline(one).fit(qids, n_jobs=1).parameters for one in (baselines.BM25, baselines.LM))
        best, tuned = -np.inf, TunedRM3(bm25, 1.0)
        for parameters in each(parameter_grid(grid, ("fb_docs", "fb_terms"), bm25), "feedback"):
            data = self._feedback(parameters).select_queries(qids)
            for weight in grid["original_weight"]:
                scores = weight * data.features[:, 0] + (1 - weight) * data.features[:, 1]
                value = float(self.recipe.measure.evaluate(data, scores).mean())
                if value > best:
                    best, tuned = value, TunedRM3(replace(parameters, mu=smoothed.mu), weight)
        return tuned

    def data(self, tuned: TunedRM3) -> RankingData:
        """All candidate features of all documents; with more than `MANY` queries, only of those that are trained on."""
        return self._once(("data", tuned), lambda: self._data(tuned))

    def training(self, tuned: TunedRM3, qids: Sequence[str]) -> RankingData:
        """What a stack is trained on: each query's top documents by RM3 and by the incoming ranking in turn."""
        data = self.data(tuned).select_queries(qids)
        return top_rows(data, data.features[:, data.names.index(f"stage:{tuned.rm3}")], self.recipe.depth)

    def _data(self, tuned: TunedRM3) -> RankingData:
        if len(self.rankings) > MANY:
            parts = [self.rankings[first : first + MANY] for first in range(0, len(self.rankings), MANY)]
            rows = (replace(self, rankings=part).training(tuned, [one.qid for one in part]) for part in parts)
            return concatenated(list(rows))
        counted = self._once("pool", lambda: self._counted(self.rankings, candidate_pool(self.recipe.pool)))
        pool = counted.data(tuned.parameters)
        groups = self.recipe.features(tuned, texts=self.index.words is not None)
        features = tuple(dict.fromkeys(chain.from_iterable(groups.values())))
        others = tuple(feature for feature in features if feature not in pool.specs)
        extractor = FeatureExtractor(self.index, others, tuned.parameters)
        data = training_data(self.rankings, self.qrels, extractor, n_jobs=self.n_jobs)
        values = np.concatenate([pool.features, data.features], axis=1)
        joined = replace(data, specs=(*pool.specs, *others), features=values)
        return joined.select_features([joined.specs.index(feature) for feature in features])

    def _baseline(self, baseline: Baseline) -> PreparedBaseline:
        recipe = BaselineRecipe(baseline, objective=self.recipe.objective, grid=self.recipe.grid)
        return self._once(
            baseline.name, lambda: PreparedBaseline(recipe, [self._counted(self.rankings, baseline.features)])
        )

    def _feedback(self, parameters: FeatureParameters) -> RankingData:
        """The two parts of RM3, the first divided by the query's length, for rankings by BM25."""
        k1, b = parameters.k1, parameters.b

        def counted() -> CountedRankings:
            first = RM3Stage(self.index, original_weight=1.0, k1=k1, b=b).run(self.rankings, n_jobs=self.n_jobs)
            return self._counted(first.rankings, RM3_PARTS)

        def shares() -> RankingData:
            data = self._once(("BM25", k1, b), counted).data(parameters)
            texts = {ranking.qid: ranking.query for ranking in self.rankings}
            lengths = [max(1, len(self.index.query_terms(texts[qid]))) for qid in data.qids]
            divisors = np.stack([np.repeat(lengths, np.diff(data.offsets)), np.ones(len(data.docids))], axis=1)
            return replace(data, features=data.features / divisors)

        return self._once(("RM3", parameters), shares)

    def _counted(self, rankings: Sequence[Ranking], features: tuple[Feature, ...]) -> CountedRankings:
        return CountedRankings(tuple(rankings), self.qrels, self.index, features)

    def _once(self, key: object, make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        return cast(T, self._kept[key])


def top_rows(data: RankingData, scores: FloatArray, depth: int) -> RankingData:
    """Each query's documents of the best ranks, by scores or in `data`, whichever is better; in their order in `data`.

    Of two documents with the same best rank, that of `data` comes first.
    """
    if np.diff(data.offsets).max(initial=0) <= depth:
        return data
    kept, offsets = [], [0]
    for first, end in pairwise(data.offsets.tolist()):
        order = np.argsort(-scores[first:end], kind="stable")
        ranks = np.empty(end - first, dtype=np.int64)
        ranks[order] = np.arange(end - first)
        best = np.minimum(2 * np.arange(end - first), 2 * ranks + 1)
        kept.append(first + np.sort(np.argsort(best, kind="stable")[:depth]))
        offsets.append(offsets[-1] + len(kept[-1]))
    rows = np.concatenate(kept)
    return replace(
        data,
        offsets=np.array(offsets),
        docids=tuple(data.docids[row] for row in rows),
        features=data.features[rows],
        grades=data.grades[rows],
    )
