"""Settings and systems of the study, learned in each fold from its training queries alone.

The hand-picked models are tuned first. The learned systems then use the mu of LM, the k1 and b of BM25, and the
feedback of RM3, because a grid around every selection would multiply its time by the size of the grid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from greylag.evaluation import at_level
from greylag.features import (
    EXPANSION,
    Feature,
    FeatureParameters,
    FeatureSpec,
    FeatureText,
    Prior,
    Profile,
    candidate_pool,
    unique_features,
)
from greylag.learning import (
    CoordinateAscent,
    CountedRankings,
    GreedySelection,
    Learner,
    Objective,
    RankingData,
    Selection,
    after_each_round,
    useful_features,
)
from greylag.rankers import RankingModel
from greylag.recipes import BaselineRecipe, Fitted, baselines, selected_model
from greylag.studies import (
    CollectionSettings,
    Folds,
    MeasureName,
    ObjectiveName,
    OpenCollection,
    Positive,
    Progress,
    Seed,
    readable_by,
)
from greylag.studies import Settings as Part
from greylag_papers.metzler_2007.choice import HeldOut, choose_learner

Values = Annotated[tuple[float, ...], Field(min_length=1)]
Counts = Annotated[tuple[int, ...], Field(min_length=1)]


class Features(Part):
    """The candidate features, and the parameters that are not tuned."""

    pool: Literal["sd", "fd", "full"] = "full"
    """The dependence models of the pool."""
    priors: tuple[Annotated[FeatureText, readable_by(Prior.parse)], ...] = ()
    """Document priors that are added to the pool, ``prior:FILE[:log][:DEFAULT]``; paths below the data folder."""
    idf: Literal["lucene", "robertson"] = "lucene"
    """The inverse document frequency of BM25: ln(1 + (N - df + 0.5) / (df + 0.5)), or the same without the 1."""
    profile: Profile = "indri"
    """How windows are counted: without overlaps, every match, or within N tokens in all, as the paper has it."""
    max_clique: int = 3
    """The largest clique, in query terms."""


class Grid(Part):
    """The values of parameters that training queries choose from."""

    mu: Values = (10, 25, 50, 100, 250, 500, 1000, 2500, 5000)
    """Dirichlet prior of LM."""
    k1: Values = (0.6, 0.9, 1.2, 1.6, 2.2)
    """Saturation of term frequency by BM25."""
    b: Values = (0.1, 0.25, 0.4, 0.6, 0.8)
    """Length normalisation of BM25."""
    fb_docs: Counts = (5, 10, 20)
    """Numbers of feedback documents."""
    fb_terms: Counts = (10, 30, 100)
    """Numbers of expansion terms."""


class Training(Part):
    """Settings of learning."""

    objective: ObjectiveName = "AP"
    """The measure that is maximised and that choices within training queries are based on."""
    cutoffs: tuple[Positive, ...] = ()
    """Cut-offs of the objective that inner cross-validation chooses from. Without any, selection maximises the
    objective itself, as the paper's rule always does.
    """
    max_features: Positive = 7
    """Curves end, and inner cross-validation chooses, at this number of features. The paper's rule adds up to five."""
    restarts: Positive = 3
    """Starts of coordinate ascent."""
    folds: Folds = 5
    """Folds of cross-validation."""
    inner_folds: Folds = 3
    """Folds of the cross-validation within training queries."""
    seed: Seed = 0
    """Seed of folds and restarts."""


Topic = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) in (int, float) else value)]


class Split(Part):
    """A fixed split of the topics."""

    train: tuple[Topic, ...]
    """Topics, or ranges FIRST..LAST in the order of the topics file."""
    test: tuple[Topic, ...]
    """Topics, or ranges FIRST..LAST in the order of the topics file."""


class Settings(CollectionSettings):
    """A collection, a first stage, and how the systems that rerank it are learned."""

    features: Features = Features()
    grid: Grid = Grid()
    training: Training = Training()
    split: Split | None = None
    """Train on some topics and test on others, instead of cross-validation."""
    measures: tuple[MeasureName, ...] = ("P@10", "nDCG@10")
    """Measures that runs are scored by, in addition to the objective."""

    @property
    def priors(self) -> list[Prior]:
        """The priors, with the full paths of their files."""
        priors = map(Prior.parse, self.features.priors)
        return [replace(prior, file=str(self.path(prior.file))) for prior in priors]


LM, BM25, SDM = baselines.LM, baselines.BM25, baselines.SDM
RM3 = baselines.Baseline(
    "RM3", (*BM25.features, FeatureSpec.parse("FI/expansion/BM25")), (1.0, 1.0), ("fb_docs", "fb_terms"),
    trained=True,
)  # fmt: skip
"""BM25 interpolated with BM25 of a relevance model, with learned weights as the models of features have."""
BASELINES = (LM, BM25, SDM, baselines.MRF_LM, baselines.MRF_BM25, RM3)
SELECTED, RETRAINED, CHOSEN = "MRF-FS", "MRF-FS retrained", "MRF-FS inner CV"
EXPANDED, ASCENT = "MRF-FS expansion", "coordinate ascent"
LEARNED = (SELECTED, RETRAINED, CHOSEN, EXPANDED, ASCENT)
CLAIMED = (
    (SELECTED, LM.name), (SELECTED, BM25.name), (SELECTED, "MRF-LM"), (SELECTED, "MRF-BM25"),
    ("MRF-LM", LM.name), ("MRF-BM25", BM25.name),
)  # fmt: skip
"""The comparisons that the paper makes claims about."""
FIVE = 5  # features; the paper's rule stops there, or when no feature raises the training mean


@dataclass(frozen=True)
class Fold:
    """The queries to learn from and the queries to rank, by qid."""

    number: int
    training: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    """The data and settings that the folds share."""

    settings: Settings
    collection: OpenCollection
    n_jobs: int | None = None  # number of workers

    @cached_property
    def measure(self) -> Objective:
        """The measure of tuning, choices and curves."""
        return Objective.parse(self.settings.training.objective)

    @cached_property
    def greedy(self) -> tuple[GreedySelection, ...]:
        """The selections that inner cross-validation chooses from, which differ in the cut-off of their objective."""
        training = self.settings.training
        objectives = [replace(self.measure, cutoff=cutoff) for cutoff in training.cutoffs] or [self.measure]
        return tuple(GreedySelection(objective, max_features=training.max_features) for objective in objectives)

    @cached_property
    def pool(self) -> tuple[Feature, ...]:
        """The candidates without `EXPANSION`."""
        features = self.settings.features
        return unique_features([*candidate_pool(features.pool, features.profile), *self.settings.priors])

    @cached_property
    def base(self) -> FeatureParameters:
        """The feature parameters that are not tuned."""
        features = self.settings.features
        return FeatureParameters(idf=features.idf, profile=features.profile, max_clique=features.max_clique)

    def counted(self, features: Sequence[Feature]) -> CountedRankings:
        """Return all rankings whose query has a relevant document, to be weighed with any parameters."""
        first, qrels = self.collection.first, at_level(self.collection.qrels, self.measure.rel)
        return CountedRankings(first.rankings, qrels, self.collection.index, tuple(features))

    @cached_property
    def candidates(self) -> CountedRankings:
        """The rankings with the pool and `EXPANSION`."""
        return self.counted([*self.pool, *EXPANSION])

    @property
    def limited(self) -> int:
        """The number of queries with more terms than the largest clique, which lack some cliques of FD."""
        texts = self.collection.topics.values()
        return sum(len(self.collection.index.query_terms(text)) > self.base.max_clique for text in texts)


@dataclass(frozen=True)
class Curve:
    """The measure after each round of a selection."""

    training: tuple[float, ...]  # means over the training queries
    test: NDArray[np.float64]  # shape (rounds, queries): scores of the judged test queries
    held_out: HeldOut  # cross-validated means within the training queries, for each learner to choose from


@dataclass(frozen=True)
class Learned:
    """The models learned from the training queries of one fold."""

    models: Mapping[str, RankingModel]
    curves: Mapping[str, Curve]  # for the systems that select features
    # the measure of each training query, for the systems that follow the paper's rule
    training: Mapping[str, Mapping[str, float]]
    set_aside: tuple[str, ...]  # features that are trivial or duplicates by value, with the reasons


def tune_baselines(experiment: Experiment, folds: Sequence[Fold], progress: Progress) -> dict[str, list[Fitted]]:
    """Tune every hand-picked model in each fold; RM3 uses the k1 and b of BM25 and the mu of LM."""
    opened, grid = experiment.collection, experiment.settings.grid.model_dump()
    by_name: dict[str, list[Fitted]] = {}
    for baseline in BASELINES:
        recipe = BaselineRecipe(
            baseline, objective=experiment.measure, grid=grid, base=experiment.base,
            before=(LM, BM25) if baseline is RM3 else (),
        )  # fmt: skip
        fit = recipe.prepare(opened.first, opened.qrels, opened.index, n_jobs=experiment.n_jobs)
        tuned = [fit(fold.training, n_jobs=experiment.n_jobs) for fold in folds]
        by_name[baseline.name] = [
            fitted.noted({"system": baseline.name, "fold": fold.number})
            for fitted, fold in zip(tuned, folds, strict=True)
        ]
        mean = np.mean([fitted.score for fitted in tuned])
        progress(f"{baseline.name}: {experiment.measure} {mean:.4f} on training queries")
    return by_name


def learn(experiment: Experiment, fold: Fold, parameters: FeatureParameters) -> Learned:
    """Learn the systems of one fold.

    `SELECTED` and `RETRAINED` follow the paper's rule (section 5): they add features until none raises the training
    mean, or until there are five. `CHOSEN` chooses its objective and number of features by cross-validation within the
    training queries, and so does `EXPANDED`, with `EXPANSION` in the pool.
    """
    options, n_jobs = experiment.settings.training, experiment.n_jobs
    data = experiment.candidates.data(parameters)
    useful, set_aside = useful_features(data.select_queries(fold.training))
    held = data.select_queries(fold.test)
    selections: dict[str, tuple[RankingData, Learner, Selection]] = {}
    curves: dict[str, Curve] = {}
    paths: dict[tuple[GreedySelection, tuple[str, ...]], Selection] = {}  # without cut-offs, CHOSEN's is SELECTED's

    def select(system: str, training: RankingData, learner: GreedySelection, held_out: HeldOut) -> None:
        key = replace(learner, max_features=options.max_features), training.names
        path = paths[key] if key in paths else paths.setdefault(key, key[0].fit(training, n_jobs=n_jobs))
        selections[system] = training, learner, path.head(learner.max_features)
        on_test = after_each_round(path, held.select_features(held.columns_of(training.names)), experiment.measure)
        curves[system] = Curve(path.training_scores, on_test, held_out)

    expansion = {str(feature) for feature in EXPANSION}
    textual = useful.select_features(useful.columns_of(name for name in useful.names if name not in expansion))
    rule = GreedySelection(experiment.measure, max_features=min(FIVE, options.max_features))
    for system, learner in ((SELECTED, rule), (RETRAINED, replace(rule, retrain=True))):
        select(system, textual, learner, ())
    by_query = {}
    for system in (SELECTED, RETRAINED):
        reached = after_each_round(selections[system][2], textual, experiment.measure)[-1].tolist()
        by_query[system] = dict(zip(textual.qids, reached, strict=True))
    for system, training in ((CHOSEN, textual), (EXPANDED, useful)):
        chosen, held_out = choose_learner(
            training, experiment.greedy, experiment.measure, folds=options.inner_folds, seed=options.seed, n_jobs=n_jobs
        )
        select(system, training, chosen, held_out)
    ascent = CoordinateAscent(experiment.measure, restarts=options.restarts, seed=options.seed)
    selections[ASCENT] = textual, ascent, ascent.fit(textual, n_jobs=n_jobs)
    models = {
        system: selected_model(
            selection, training, learner, {"system": system, "fold": fold.number, "set_aside": set_aside}
        )
        for system, (training, learner, selection) in selections.items()
    }
    return Learned(models, curves, by_query, tuple(set_aside))
