"""The systems of the study `mrf`, learned in each fold from its training queries alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from greylag import __version__
from greylag.experiments.study import Say
from greylag.features.cliques import redundant_features
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import EXPANSION, Feature
from greylag.features.weighting import FeatureParameters
from greylag.index import PositionalIndex
from greylag.ltr.baselines import BM25, LM, MRF_BM25, MRF_LM, RM3, SDM, Baseline
from greylag.ltr.coordinate_ascent import CoordinateAscent
from greylag.ltr.data import RankingData
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.learner import Learner, Selection
from greylag.ltr.linear import LinearModel
from greylag.ltr.objectives import Objective
from greylag.ltr.training import selected_model, useful_features
from greylag.ltr.tuning import Grid, Tuned, after_each_round, choose_learner, parameter_grid, tune_on_data
from greylag.ranking import FloatArray, Ranking
from greylag.trec import Qrels

BASELINES = (LM, BM25, SDM, MRF_LM, MRF_BM25, RM3)
SELECTED, RETRAINED, EXPANDED, ASCENT = "MRF-FS", "MRF-FS retrained", "MRF-FS expansion", "coordinate ascent"
LEARNED = (SELECTED, RETRAINED, EXPANDED, ASCENT)
HeldOut = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Fold:
    """Queries to learn from, and queries to rank, by qid."""

    number: int
    training: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True)
class Learners:
    """What the learned systems are learned by.

    Parameters
    ----------
    greedy : one selection, or several to choose from: the same with objectives of other cut-offs.
    ascent : over the whole pool.
    measure : what tuning, choosing and curves go by.
    inner_folds, seed : of the cross-validation within training queries.
    """

    greedy: tuple[GreedySelection, ...]
    ascent: CoordinateAscent
    measure: Objective
    inner_folds: int
    seed: int


@dataclass(frozen=True)
class Experiment:
    """What all folds share.

    Parameters
    ----------
    index, rankings, qrels : the collection, what is reranked, and the judgements.
    pool : the candidates, without those of `EXPANSION`.
    base : the feature parameters that are not tuned.
    grid : the values that the others are tuned over.
    n_jobs : threads.
    """

    index: PositionalIndex
    rankings: tuple[Ranking, ...]
    qrels: Qrels
    pool: tuple[Feature, ...]
    base: FeatureParameters
    grid: Grid
    learners: Learners
    n_jobs: int

    def data(self, features: Sequence[Feature], parameters: FeatureParameters) -> RankingData:
        """The features of all rankings with a relevant document in the judgements."""
        extractor = FeatureExtractor(self.index, tuple(features), parameters)
        return RankingData.from_rankings(self.rankings, self.qrels, extractor)

    @cached_property
    def redundant(self) -> dict[Feature, str]:
        """The features of the pool that the queries' cliques alone show to be trivial or duplicates, and why."""
        return redundant_features(self.pool, self._lengths, self.base.max_clique)

    @property
    def limited(self) -> int:
        """How many queries have more terms than the largest clique, so that FD's cliques are not all there."""
        return sum(length > self.base.max_clique for length in self._lengths)

    @property
    def _lengths(self) -> list[int]:
        return [len(self.index.query_terms(ranking.query)) for ranking in self.rankings]


@dataclass(frozen=True)
class Curve:
    """The measure after each round of a selection.

    Parameters
    ----------
    training : the mean over the fold's training queries.
    test : of the fold's judged test queries, shape (rounds, queries).
    held_out : for each learner that was to choose from, the cross-validated mean within the training queries.
    """

    training: tuple[float, ...]
    test: FloatArray
    held_out: HeldOut


@dataclass(frozen=True)
class Learned:
    """What one fold's training queries led to.

    Parameters
    ----------
    models : by system.
    curves : by system, of those that select.
    set_aside : the features that are trivial or duplicates by value, and why.
    """

    models: Mapping[str, LinearModel]
    curves: Mapping[str, Curve]
    set_aside: tuple[str, ...]


def tune_baseline(
    experiment: Experiment, model: Baseline, folds: Sequence[Fold], bases: Sequence[FeatureParameters]
) -> list[Tuned]:
    """A hand-picked model tuned in each fold, around the fold's `bases`."""

    @cache
    def extract(parameters: FeatureParameters) -> RankingData:
        return experiment.data(model.features, parameters)

    measure, n_jobs = experiment.learners.measure, experiment.n_jobs
    settings = [parameter_grid(experiment.grid, model.tuned, base) for base in bases]
    return [
        tune_on_data(model, own, extract, fold.training, measure, n_jobs=n_jobs)
        for own, fold in zip(settings, folds, strict=True)
    ]


def tune_baselines(experiment: Experiment, folds: Sequence[Fold], say: Say) -> dict[str, list[Tuned]]:
    """All hand-picked models by name, tuned in each fold; RM3 around the k1 and b of BM25, and the mu of LM."""
    found: dict[str, list[Tuned]] = {}
    bases = [experiment.base] * len(folds)
    for model in BASELINES:
        if model is RM3:
            bases = [
                replace(lm.parameters, k1=bm25.parameters.k1, b=bm25.parameters.b)
                for lm, bm25 in zip(found[LM.name], found[BM25.name], strict=True)
            ]
        found[model.name] = tune_baseline(experiment, model, folds, bases)
        scores = [tuned.training_score for tuned in found[model.name]]
        say(f"{model.name}: {experiment.learners.measure} {np.mean(scores):.4f} on training queries")
    return found


def learn(experiment: Experiment, fold: Fold, parameters: FeatureParameters) -> Learned:
    """The learned systems of one fold, over the pool and, for one of them, over the features of `EXPANSION` too.

    The retrained model has as many features as the one that is not.
    """
    learners, n_jobs = experiment.learners, experiment.n_jobs
    pool = [feature for feature in experiment.pool if feature not in experiment.redundant]
    data = experiment.data([*pool, *EXPANSION], parameters)
    useful, set_aside = useful_features(data.select_queries(fold.training))
    held = data.select_queries(fold.test)
    found: dict[str, tuple[RankingData, Learner, Selection]] = {}
    curves: dict[str, Curve] = {}

    def select(system: str, training: RankingData, learner: GreedySelection, held_out: HeldOut) -> None:
        path = replace(learner, max_features=learners.greedy[0].max_features).fit(training, n_jobs=n_jobs)
        found[system] = training, learner, path.head(learner.max_features)
        test = after_each_round(path, _named(held, training.names), learners.measure)
        curves[system] = Curve(path.training_scores, test, held_out)

    expansion = {str(feature) for feature in EXPANSION}
    textual = _named(useful, [name for name in useful.names if name not in expansion])
    for system, training in ((SELECTED, textual), (EXPANDED, useful)):
        choice = choose_learner(
            training, learners.greedy, learners.measure, folds=learners.inner_folds, seed=learners.seed, n_jobs=n_jobs
        )
        select(system, training, choice.learner, choice.held_out)
        if system == SELECTED:
            select(RETRAINED, training, replace(choice.learner, retrain=True), ())
    found[ASCENT] = textual, learners.ascent, learners.ascent.fit(textual, n_jobs=n_jobs)
    models = {
        system: selected_model(
            selection, training, learner,
            {"system": system, "fold": fold.number, "set_aside": set_aside},
        )
        for system, (training, learner, selection) in found.items()
    }  # fmt: skip
    return Learned(models, curves, tuple(set_aside))


def baseline_model(experiment: Experiment, model: Baseline, tuned: Tuned, fold: Fold) -> LinearModel:
    """A hand-picked model as it was tuned in a fold."""
    return LinearModel(
        model.features,
        tuned.weights,
        tuned.parameters,
        objective=str(experiment.learners.measure),
        provenance={
            "greylag": __version__,
            "system": model.name,
            "fold": fold.number,
            "tuned": list(model.tuned),
            "trained": model.trained,
            "training_score": tuned.training_score,
            "queries": list(fold.training),
        },
    ).for_collection(experiment.index)


def _named(data: RankingData, names: Sequence[str]) -> RankingData:
    """The data with the features of these names."""
    return data.select_features([data.names.index(name) for name in names])
