"""The sources of features that models learn from: all cheap evidence, with parameters tuned on training queries.

That is BM25 and RM3, the features of the MRF model, manifold ranking, where the query's words stand, how they are
written, and which words the collection uses alike. To add evidence, give `PreparedSources.groups` a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise
from typing import Any, TypeVar, cast

import numpy as np

from greylag.base import (
    FloatArray,
    IntArray,
    ParameterError,
    Ranking,
    Run,
    check_counts,
    parallel_map,
    rebuilt,
    reserved_path,
)
from greylag.evaluation import at_level, first_best
from greylag.features import (
    EXPANSION,
    Feature,
    FeatureExtractor,
    FeatureParameters,
    Pool,
    candidate_pool,
    parse_feature,
    parse_features,
)
from greylag.index import PositionalIndex
from greylag.learning import (
    MAX_SEARCHED_QUERIES,
    CountedRankings,
    Judgements,
    Objective,
    RankingData,
    concatenated,
    judged_topics,
    spaced,
    training_data,
)
from greylag.rankers import RM3_PARTS, RM3Stage
from greylag.recipes import baselines
from greylag.recipes.baselines import GRID, Baseline, Grid, parameter_grid

T = TypeVar("T")

FEEDBACK = ("fb_docs", "fb_terms")
"""The parameters that RM3 shares with features."""
MANIFOLD_STAGES = ("alpha=0.6", "alpha=0.9", "alpha=0.6,graph=full", "alpha=0.6,confidence=query")
"""The options of the manifold features."""
BLOCK_QUERIES = 500
"""Queries per block of features; only the rows to train on stay in memory."""


@dataclass(frozen=True)
class TunedRM3:
    """RM3 after BM25 with parameters tuned on training queries; RM3 itself estimates with the default mu."""

    parameters: FeatureParameters
    original_weight: float
    training_score: float = field(default=0.0, compare=False, repr=False)  # the same parameters have the same features

    @property
    def bm25(self) -> str:
        """The stage of BM25, as features spell it."""
        # Numbers of the grid may be integers, and 1 and 1.0 would be two features.
        return f"rm3(b={float(self.parameters.b)},k1={float(self.parameters.k1)},original_weight=1.0)"

    @property
    def rm3(self) -> str:
        """The stages of BM25 and RM3, as features spell them."""
        p = self.parameters
        return (
            f"{self.bm25}>>rm3(b={float(p.b)},fb_docs={p.fb_docs},fb_terms={p.fb_terms},k1={float(p.k1)},"
            f"original_weight={float(self.original_weight)})"
        )

    @property
    def features(self) -> tuple[str, str, str]:
        """The features that are baselines by themselves."""
        return f"stage:{self.bm25}", f"stage:{self.rm3}", f"stage:{self.rm3}@minmax"


@dataclass(frozen=True)
class FeatureSources:
    """The features that a model may use, and the parameters of theirs that are tried.

    Features of surface words need an index that stores its texts.

    Parameters
    ----------
    pool : "sd", "fd" or "full", default "sd"
        The features of the MRF model.
    more : tuple of Feature, default ()
        Other features, such as priors and runs.
    grid : mapping, default `GRID`
        The values to try, on at most 2,000 queries.
    depth : int >= 1, default 200
        Models are trained on this number of documents of each query, the top ones by RM3 and by the incoming ranking in
        turn. They rank all documents.
    """

    pool: Pool = "sd"
    more: tuple[Feature, ...] = ()
    grid: Grid = field(default_factory=lambda: GRID)
    depth: int = 200

    def __post_init__(self) -> None:
        check_counts(depth=self.depth)

    def prepare(
        self,
        rankings: Run,
        qrels: Judgements,
        index: PositionalIndex,
        objective: Objective,
        *,
        n_jobs: int | None = None,
    ) -> PreparedSources:
        """Keep the rankings with a relevant document; features are computed once their parameters are tuned."""
        judged = [rankings[qid] for qid in judged_topics(rankings, qrels, objective.rel)]
        qrels = at_level(qrels, objective.rel)
        grades = (grade for ranking in judged for grade in qrels[ranking.qid].values())
        return PreparedSources(self, objective.on_scale_of(grades), judged, qrels, index, n_jobs)


@dataclass(frozen=True, eq=False)
class PreparedSources:
    """Judged rankings and their features; each step that does not depend on the training queries is done once."""

    # All rankings are of queries with a relevant document. `scope` is a path of `reserved_path`, under which an
    # interrupted command keeps these steps.
    sources: FeatureSources
    objective: Objective
    rankings: Sequence[Ranking]
    qrels: Judgements
    index: PositionalIndex
    n_jobs: int | None = None
    scope: str = field(default_factory=reserved_path)
    _kept: dict[object, Any] = field(init=False, repr=False, default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def tune(self, qids: Sequence[str]) -> TunedRM3:
        """Tune RM3, and LM's mu; see `tune_rm3`."""
        tuned, (sources, queries) = self.tune_rm3(qids), self._seen(qids)
        settings, values = sources._tried(baselines.LM)
        (smoothed,), _ = _best(values, queries)
        return replace(tuned, parameters=replace(tuned.parameters, mu=settings[smoothed].mu))

    def tune_rm3(self, qids: Sequence[str]) -> TunedRM3:
        """Tune BM25's k1 and b, then RM3 on the rankings by that BM25; the first of the best wins."""
        sources, queries = self._seen(qids)
        settings, values = sources._tried(baselines.BM25)
        (first,), _ = _best(values, queries)
        settings, values = sources._tried_feedback(settings[first])
        (setting, weight), score = _best(values, queries)
        return TunedRM3(settings[setting], self.sources.grid["original_weight"][weight], score)

    def _seen(self, qids: Sequence[str]) -> tuple[PreparedSources, list[int]]:
        """Select the rankings to tune on, or a sample of them, and the numbers of the training queries among them."""
        # Of more than `MAX_SEARCHED_QUERIES` rankings, all folds use one sample of that size, at equal distances,
        # unless it has too few of the training queries.
        if len(self.rankings) > MAX_SEARCHED_QUERIES:  # one sample for all folds, which then share its values
            some = spaced(self.rankings, MAX_SEARCHED_QUERIES)
            sample = self._once("sample", lambda: replace(self, rankings=some, scope=f"{self.scope}.sample"))
            drawn = {ranking.qid for ranking in sample.rankings}
            shared = [qid for qid in qids if qid in drawn]
            if len(shared) >= min(len(qids), MAX_SEARCHED_QUERIES // 2):
                return sample._seen(shared)
        numbers = {ranking.qid: number for number, ranking in enumerate(self.rankings)}
        queries = [numbers[qid] for qid in qids if qid in numbers]
        if not queries:
            raise ParameterError("none of the training topics has a relevant document: train on more topics")
        return self, queries

    # The measure of a query by one setting does not depend on other queries. So it is computed for all queries at once,
    # and a fold's best setting has the highest mean over its training queries.

    def _tried(self, baseline: Baseline) -> tuple[list[FeatureParameters], FloatArray]:
        """List the settings of a baseline with fixed weights, and the measure of each query by each, shape (s, q)."""
        settings, name = parameter_grid(self.sources.grid, baseline.tuned, FeatureParameters()), baseline.name
        count, measure = partial(self._counted, baseline.features), partial(baseline.evaluate, objective=self.objective)
        return settings, self._values(name, settings, count, measure)

    def _tried_feedback(self, bm25: FeatureParameters) -> tuple[list[FeatureParameters], FloatArray]:
        """List the settings of RM3 after this BM25, and the measure by setting, original weight and query."""
        settings = parameter_grid(self.sources.grid, FEEDBACK, bm25)
        lengths = [max(1, len(self.index.query_terms(ranking.query))) for ranking in self.rankings]

        def count() -> CountedRankings:
            first = RM3Stage(self.index, original_weight=1.0, k1=bm25.k1, b=bm25.b)
            at = f"{self.scope}.BM25 of k1 {bm25.k1} and b {bm25.b}"  # the same for whichever fold comes first
            rankings = parallel_map(first, self.rankings, what="rankings", n_jobs=self.n_jobs, at=at)
            return CountedRankings(tuple(rankings), self.qrels, self.index, RM3_PARTS, tuple(settings))

        def measure(data: RankingData) -> FloatArray:
            # One extraction serves all weights: a score is a weighted sum of the query's and the feedback's part.
            by_query, by_feedback = data.features.T
            by_query = by_query / np.repeat(lengths, data.groups)
            scores = (weight * by_query + (1 - weight) * by_feedback for weight in self.sources.grid["original_weight"])
            return np.stack([*map(self.objective.scorer(data), scores)])

        return settings, self._values(f"RM3 after BM25 of k1 {bm25.k1} and b {bm25.b}", settings, count, measure)

    def _values(
        self,
        name: str,
        settings: Sequence[FeatureParameters],
        count: Callable[[], CountedRankings],
        measure: Callable[[RankingData], FloatArray],
    ) -> FloatArray:
        """Return the results of `measure` for the data by each setting, computed once for all folds."""

        def table() -> FloatArray:
            # Workers get rankings and count for themselves: counts are much larger.
            counted, at = count(), f"{self.scope}.{name}"

            def work(parameters: FeatureParameters) -> FloatArray:
                return measure(counted.data(parameters))

            return np.array([*parallel_map(work, settings, what="parameters", n_jobs=self.n_jobs, coarse=True, at=at)])

        return self._once(name, table)

    def training(self, tuned: TunedRM3, qids: Sequence[str]) -> RankingData:
        """Compute all features of the rows to train on: top documents by RM3 and by the incoming ranking."""
        return self._once(("rows", tuned), lambda: self._rows(tuned)).select_queries(qids)

    def groups(self, tuned: TunedRM3) -> dict[str, tuple[Feature, ...]]:
        """List the features that this index has, but `FeatureSources.more`, by source, RM3 first."""
        spreading = [f"stage:{tuned.rm3}>>manifold({options})@minmax" for options in MANIFOLD_STAGES]
        return {
            "expansion": (*map(parse_feature, tuned.features[1:]), *EXPANSION),
            "first stage": tuple(map(parse_feature, ("score@minmax", "reciprocal-rank", f"stage:{tuned.bm25}"))),
            "MRF": candidate_pool(self.sources.pool),
            "manifold": tuple(map(parse_feature, (*spreading, f"stage:{tuned.bm25}>>manifold@minmax"))),
            "position": parse_features("FI/term/early,FI/term/BM25-F-10"),
            "latent": parse_features("latent"),
            "written form": parse_features("written:words,written:characters") if self.index.words is not None else (),
        }

    def data(self, tuned: TunedRM3) -> RankingData:
        """Compute all features of all documents."""
        # Windows take most of the time to count. Their counts are the same for all parameters, and so for all folds.
        counted = self._once("pool", lambda: self._counted(candidate_pool(self.sources.pool)))
        pool = counted.data(tuned.parameters)
        features = tuple(dict.fromkeys(chain(*self.groups(tuned).values(), self.sources.more)))
        others = tuple(feature for feature in features if feature not in pool.specs)
        extractor = FeatureExtractor(self.index, others, tuned.parameters)
        data = training_data(self.rankings, self.qrels, extractor, n_jobs=self.n_jobs)
        values = np.concatenate([pool.features, data.features], axis=1)
        joined = replace(data, specs=(*pool.specs, *others), features=values)
        return joined.select_features(joined.columns_of(map(str, features)))

    def _rows(self, tuned: TunedRM3) -> RankingData:
        def rows(first: int) -> RankingData:
            block = (
                self
                if len(self.rankings) <= BLOCK_QUERIES
                else replace(self, rankings=self.rankings[first : first + BLOCK_QUERIES])
            )
            data = block.data(tuned)
            by_rm3 = data.features[:, data.names.index(f"stage:{tuned.rm3}")]
            return top_rows(data, by_rm3, self.sources.depth)

        starts, at = range(0, len(self.rankings), BLOCK_QUERIES), f"{self.scope}.{tuned}"
        blocks = parallel_map(rows, starts, what="training data", n_jobs=self.n_jobs, coarse=True, at=at)
        return concatenated(list(blocks))

    def _counted(self, features: tuple[Feature, ...]) -> CountedRankings:
        return CountedRankings(tuple(self.rankings), self.qrels, self.index, features)

    def _once(self, key: object, make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        return cast(T, self._kept[key])


def _best(values: FloatArray, queries: Sequence[int]) -> tuple[tuple[int, ...], float]:
    """Find the first of the best settings, and its mean, from the measure by setting and query."""
    means = np.array([row[queries].mean() for row in values.reshape(-1, values.shape[-1])])
    best = first_best(means)
    return tuple(map(int, np.unravel_index(best, values.shape[:-1]))), float(means[best])


def top_rows(data: RankingData, scores: FloatArray, depth: int) -> RankingData:
    """Keep each query's `depth` documents with the best rank, in `data` or by `scores`."""
    # Of two documents with the same best rank, the one in `data` comes first.
    if np.diff(data.offsets).max(initial=0) <= depth:  # without a copy of a large matrix
        return data
    rows, offsets = list[IntArray](), [0]
    for first, end in pairwise(data.offsets.tolist()):
        order = np.argsort(-scores[first:end], kind="stable")
        ranks = np.empty(end - first, dtype=np.int64)
        ranks[order] = np.arange(end - first)
        # In turn: ranks 0, 2, 4, ... are the data's own, and 1, 3, 5, ... those by scores.
        best = np.minimum(2 * np.arange(end - first), 2 * ranks + 1)
        rows.append(first + np.sort(np.argsort(best, kind="stable")[:depth]))
        offsets.append(offsets[-1] + len(rows[-1]))
    selected = np.concatenate(rows)
    return replace(
        data,
        offsets=np.array(offsets),
        docids=tuple(data.docids[row] for row in selected),
        features=data.features[selected],
        grades=data.grades[selected],
    )
