"""The stack: RM3 tuned on training queries, and a linear model of it, of MRF features and of manifold ranking after it.

Everything is chosen on the queries that are given, so that `train_stack` within each fold is nested cross-validation.
The model
is an ordinary `LinearModel`: one file, for `MRFRanker` and ``greylag rerank``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature
from greylag.features.spec import EXPANSION, Pool, named_pool, parse_feature
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr import baselines
from greylag.ltr.data import Qrels, RankingData
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.linear import LinearModel
from greylag.ltr.objectives import Objective
from greylag.ltr.rm3 import PARTS, RM3
from greylag.ltr.training import selected_model, useful_features
from greylag.ltr.tuning import Grid, choose_learner, parameter_grid, tune_on_data
from greylag.ranking import FloatArray, Ranking

GRID: Mapping[str, Sequence[Any]] = {
    "k1": (0.6, 0.9, 1.2, 1.6, 2.2, 3.0),
    "b": (0.1, 0.25, 0.4, 0.6, 0.8),
    "fb_docs": (5, 10, 20),
    "fb_terms": (10, 30, 100),
    "original_weight": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
}
"""The values to try for BM25 and RM3."""
MANIFOLD = ("alpha=0.6", "alpha=0.9", "alpha=0.6,graph=full", "alpha=0.6,confidence=query")
"""The options of the manifold features."""


@dataclass(frozen=True)
class Tuned:
    """RM3 after BM25, as tuned on training queries.

    Parameters
    ----------
    parameters : FeatureParameters
        With the k1, b, fb_docs and fb_terms chosen.
    original_weight : float
        As in `RM3`.
    """

    parameters: FeatureParameters
    original_weight: float

    @property
    def bm25(self) -> str:
        """The stage of BM25, as features spell it."""
        return f"rm3(b={float(self.parameters.b)},k1={float(self.parameters.k1)},original_weight=1.0)"

    @property
    def rm3(self) -> str:
        """The stages of BM25 and RM3, as features spell them."""
        own = self.parameters
        return (
            f"{self.bm25}>>rm3(b={float(own.b)},fb_docs={own.fb_docs},fb_terms={own.fb_terms},k1={float(own.k1)},"
            f"original_weight={float(self.original_weight)})"
        )


@dataclass(frozen=True)
class StackRecipe:
    """How a stack is made.

    Parameters
    ----------
    objective : Objective or str, default "AP"
        The measure to maximise, and to choose parameters and the number of features by.
    pool : "sd", "fd" or "full", default "sd"
        The MRF features among the candidates.
    more : tuple of Feature, default ()
        Other candidates, such as priors and runs.
    grid : mapping, default `GRID`
        The values to try.
    depth : int >= 1, default 200
        Training uses each query's top documents by RM3. All documents are ranked.
    max_features : int >= 1, default 10
        The largest number of features; the number is chosen by cross-validation within the training queries.
    inner_folds : int >= 2, default 3
    seed : int, default 0

    Raises
    ------
    ParameterError
        If a number is outside its domain.
    """

    objective: Objective | str = "AP"
    _: KW_ONLY
    pool: Pool = "sd"
    more: tuple[Feature, ...] = ()
    grid: Grid = None  # type: ignore[assignment]
    depth: int = 200
    max_features: int = 10
    inner_folds: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        object.__setattr__(self, "grid", dict(self.grid or GRID))
        if self.depth < 1 or self.inner_folds < 2:
            raise ParameterError(
                f"depth {self.depth} must be at least 1, and inner_folds {self.inner_folds} at least 2"
            )

    @property
    def measure(self) -> Objective:
        """The objective."""
        return Objective.parse(self.objective)

    @property
    def learner(self) -> GreedySelection:
        """The selection with the largest number of features."""
        return GreedySelection(self.measure, max_features=self.max_features)

    def features(self, tuned: Tuned) -> dict[str, tuple[Feature, ...]]:
        """The candidates by where they come from."""
        spreading = [f"stage:{tuned.rm3}>>manifold({options})@minmax" for options in MANIFOLD]
        return {
            "first stage": tuple(map(parse_feature, ("score@minmax", "reciprocal-rank"))),
            "MRF": named_pool(self.pool),
            "expansion": (*EXPANSION, *map(parse_feature, (f"stage:{tuned.rm3}", f"stage:{tuned.rm3}@minmax"))),
            "manifold": tuple(map(parse_feature, (*spreading, f"stage:{tuned.bm25}>>manifold@minmax"))),
            **({"more": self.more} if self.more else {}),
        }


def tune_rm3(
    recipe: StackRecipe, rankings: Sequence[Ranking], qrels: Qrels, index: PositionalIndex, *, n_jobs: int | None = None
) -> Tuned:
    """Tune BM25's k1 and b first, then RM3 on the rankings by that BM25; the first of the best values wins."""
    qids = [ranking.qid for ranking in rankings]

    def extract(features: tuple[Feature, ...], used: Sequence[Ranking]) -> Callable[[FeatureParameters], RankingData]:
        return lambda own: RankingData.from_rankings(used, qrels, FeatureExtractor(index, features, own))

    settings = parameter_grid(recipe.grid, ("k1", "b"), FeatureParameters())
    term = extract(baselines.BM25.features, rankings)
    bm25 = tune_on_data(baselines.BM25, settings, term, qids, recipe.measure, n_jobs=n_jobs).parameters
    stage = RM3(index, original_weight=1.0, k1=bm25.k1, b=bm25.b)
    reranked = list(stage.run(rankings, n_jobs=n_jobs).rankings)
    best, tuned = -np.inf, Tuned(bm25, 1.0)
    lengths = {ranking.qid: max(1, len(index.query_terms(ranking.query))) for ranking in rankings}
    for own in parameter_grid(recipe.grid, ("fb_docs", "fb_terms"), bm25):
        data = extract(PARTS, reranked)(own)
        sizes = np.repeat([lengths[qid] for qid in data.qids], np.diff(data.offsets))
        for weight in recipe.grid["original_weight"]:
            scores = weight * data.features[:, 0] / sizes + (1 - weight) * data.features[:, 1]
            value = float(recipe.measure.evaluate(data, scores).mean())
            if value > best:
                best, tuned = value, Tuned(own, weight)
    return tuned


def top_rows(data: RankingData, scores: FloatArray, depth: int) -> RankingData:
    """Each query's `depth` documents of highest score, in their order in `data`."""
    spans = list(zip(data.offsets[:-1].tolist(), data.offsets[1:].tolist(), strict=True))
    rows = [np.sort(first + np.argsort(-scores[first:end], kind="stable")[:depth]) for first, end in spans]
    kept = np.concatenate(rows)
    return replace(
        data,
        offsets=np.cumsum([0, *map(len, rows)]),
        docids=tuple(data.docids[row] for row in kept),
        features=data.features[kept],
        grades=data.grades[kept],
    )


def stack_data(
    recipe: StackRecipe, tuned: Tuned, rankings: Sequence[Ranking], qrels: Qrels, index: PositionalIndex
) -> RankingData:
    """The candidates of all documents."""
    features = tuple(feature for part in recipe.features(tuned).values() for feature in part)
    return RankingData.from_rankings(rankings, qrels, FeatureExtractor(index, features, tuned.parameters))


def training_rows(recipe: StackRecipe, tuned: Tuned, data: RankingData) -> RankingData:
    """What the stack is trained on: each query's top documents by RM3."""
    return top_rows(data, data.features[:, data.names.index(f"stage:{tuned.rm3}")], recipe.depth)


def select(
    recipe: StackRecipe, training: RankingData, provenance: Mapping[str, Any], *, n_jobs: int | None = None
) -> LinearModel:
    """Select features greedily; their number is chosen by cross-validation within the training queries."""
    useful, set_aside = useful_features(training)
    chosen = choose_learner(
        useful, [recipe.learner], recipe.measure, folds=recipe.inner_folds, seed=recipe.seed, n_jobs=n_jobs
    )
    selection = chosen.learner.fit(useful, n_jobs=n_jobs)
    return selected_model(selection, useful, chosen.learner, {"set_aside": set_aside, **provenance})


def train_stack(
    recipe: StackRecipe, rankings: Sequence[Ranking], qrels: Qrels, index: PositionalIndex, *, n_jobs: int | None = None
) -> LinearModel:
    """Train a stack on all of the rankings' queries.

    Parameters
    ----------
    recipe : StackRecipe
    rankings : sequence of Ranking
        The candidates, such as those of a `greylag.Union` of BM25 and query likelihood.
    qrels : mapping of qid to docid to grade
    index : PositionalIndex
    n_jobs : int, optional
        Number of workers; the model does not depend on it.

    Raises
    ------
    ParameterError
        If no query has a relevant document, or there are fewer queries with one than inner folds.
    """
    judged = [ranking for ranking in rankings if any(grade > 0 for grade in qrels.get(ranking.qid, {}).values())]
    tuned = tune_rm3(recipe, judged, qrels, index, n_jobs=n_jobs)
    data = stack_data(recipe, tuned, judged, qrels, index)
    return select(recipe, training_rows(recipe, tuned, data), {"preset": "stack"}, n_jobs=n_jobs)
