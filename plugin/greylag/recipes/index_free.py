"""Models without an index: over runs and what else needs no texts, and over the columns of a feature file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

from greylag.base import ParameterError, Run, check_ids, step
from greylag.evaluation import at_level, read_run, score_documents
from greylag.features import Feature, FeatureExtractor, Normalised, ReciprocalRank, RunScore, Score, unique_features
from greylag.learning import (
    Judgements,
    Learner,
    MMRPreselection,
    Objective,
    RankingData,
    bound_columns,
    judged_topics,
    linear_scores,
    listed_grades,
    listed_run,
    training_data,
)
from greylag.rankers import ModelRanker, span
from greylag.recipes.choice import Candidate, System, cross_folds, rounded_mean
from greylag.recipes.fitted import Fitted, alone
from greylag.recipes.lambdamart import LambdaMART
from greylag.recipes.recipe import Fit, Recipe, preselected, train_on_data
from greylag.recipes.source_gains import source_gains
from greylag.recipes.union import check_runs, constant_columns

MIN_TOPICS = 3
"""The fewest topics to learn from: one is learned from, another tried, and two differ by chance."""
FIRST_STAGE: tuple[Feature, ...] = (Score(), Normalised(Score(), "minmax"), ReciprocalRank())
"""The features of the run that is reranked."""
FIRST, BEST_COLUMN = System("first stage"), "best column"
"""The run that is reranked, and the best column of a file, as baselines."""
_log = logging.getLogger("greylag")


def with_runs(features: Sequence[Feature]) -> tuple[Feature, ...]:
    """List the features of the first stage, and these; each run's score is normalised in two ways, too."""
    every: list[Feature] = [*FIRST_STAGE]
    for feature in features:
        every.append(feature)
        if isinstance(feature, RunScore):
            every += [Normalised(feature, "minmax"), Normalised(feature, "rank")]
    return unique_features(list(dict.fromkeys(every)))


@dataclass(frozen=True)
class IndexFreeRecipe(Recipe):
    """A model of features that need no index, such as the scores of other runs.

    `Automatic` compares what it learns with each run alone and the sum of the runs' scores, scaled to [0, 1].
    """

    needs_index: ClassVar[bool] = False

    features: tuple[Feature, ...]  # the candidates, such as those of `with_runs`
    learner: Learner | LambdaMART
    _: KW_ONLY
    preselection: MMRPreselection | None = None

    def prepare(self, rankings: Run, qrels: Judgements, index: Any = None, *, n_jobs: int | None = None) -> Fit:
        """Compute the values of the candidates for all queries with a relevant document."""
        extractor = FeatureExtractor(None, self.features)
        data = training_data(rankings, at_level(qrels, self.measure.rel), extractor, n_jobs=n_jobs)
        return partial(self.learn, _without_constant(data))

    def learn(self, every: RankingData, qids: Sequence[str], *, n_jobs: int | None = None) -> Fitted:
        """Learn from these training queries; the result does not depend on `n_jobs`."""
        whole = every.select_queries(qids)
        check_number(whole.qids)
        systems = self._systems(whole)  # before preselection, which may drop a baseline's column
        data, provenance = preselected(whole, self.preselection)
        parts = getattr(self.learner, "parts", None)  # of the learner's own cross-validation
        folds = () if parts is None else cross_folds(data, parts(data.qids))
        gains = source_gains(folds, self.measure, {"first stage": FIRST_STAGE})
        fitted = replace(_fitted(self.learner, data, systems, n_jobs=n_jobs), gains=gains).noted(provenance)
        # Those that `train` ranks for comparison: single columns, without a sum, which is no tuned baseline.
        runs = [candidate for candidate in systems if len(candidate.features) == 1 and candidate.system != FIRST]
        return replace(fitted, baselines={str(run.system): alone(run, whole, fitted.model) for run in runs})

    def _systems(self, data: RankingData) -> list[Candidate]:
        """List the systems that need no learning, best first: each run and the sum of all."""
        runs = [feature for feature in data.specs if isinstance(feature, RunScore | Score)]
        every = [Candidate(FIRST if isinstance(run, Score) else System(str(run)), (str(run),), (1.0,)) for run in runs]
        scaled = tuple(name for run in runs if (name := f"{run}@minmax") in data.names)
        if len(scaled) > 1:
            every.append(Candidate(System("sum of scaled runs"), scaled, (1.0,) * len(scaled)))
        return _best_first(every, data, self.measure)


@dataclass(frozen=True)
class ColumnRecipe(Recipe):
    """A model of the columns of a feature file; `of` makes the recipe of data.

    `Automatic` compares what it learns with the best column alone.
    """

    needs_index: ClassVar[bool] = False
    has_first_stage: ClassVar[bool] = False  # the order of a file's lines means nothing

    data: RankingData = field(repr=False)  # the columns' values
    features: tuple[Feature, ...]  # the columns that are candidates
    learner: Learner | LambdaMART
    _: KW_ONLY
    preselection: MMRPreselection | None = None
    # Other queries with the same columns, which choose in `Automatic`, and the number of rounds or trees
    validation: RankingData | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        data: RankingData,
        learner: Learner | LambdaMART,
        *,
        columns: Sequence[str] = (),
        validation: RankingData | None = None,
        preselection: MMRPreselection | None = None,
    ) -> ColumnRecipe:
        """Make the recipe of named columns of the data, by default all, for the rankings of `letor.listed_run`."""
        check_ids(columns=columns)
        every, held = unique_features([replace(column, values=None) for column in bound_columns(data)]), validation
        if held is not None:
            if held.names != data.names:
                raise ParameterError(f"the columns are {span(held.names)}, but those to learn from {span(data.names)}")
            held = replace(held, specs=every)
        numbers = data.columns_of(columns) or range(len(every))
        features = tuple(every[column] for column in numbers)
        return cls(replace(data, specs=every), features, learner, preselection=preselection, validation=held)

    def bound(self, fitted: Fitted) -> Fitted:
        """Give the models the values of the file's columns; a column with missing values is no baseline."""
        baselines = {
            name: model.with_columns(self.data)
            for name, model in fitted.baselines.items()
            if not {*self.data.lacking}.intersection(map(str, model.features))
        }
        return replace(fitted, model=fitted.model.with_columns(self.data), baselines=baselines)

    def prepare(self, rankings: Run, qrels: Judgements, index: Any = None, *, n_jobs: int | None = None) -> Fit:
        """Select the candidates, and the queries with a relevant document."""
        named = self.data.select_features(self.data.columns_of(map(str, self.features)))
        if not isinstance(self.learner, LambdaMART):
            named.complete  # noqa: B018 - refuses missing values
        return partial(self.learn, with_relevant(named, self.measure.rel))

    def learn(self, every: RankingData, qids: Sequence[str], *, n_jobs: int | None = None) -> Fitted:
        """Learn from these training queries; the result does not depend on `n_jobs`."""
        whole = every.select_queries(qids)
        check_number(whole.qids)
        able = [name for name in whole.names if name not in self.data.lacking]
        ranking = whole.select_features(whole.columns_of(able)) if self.data.lacking else whole
        systems = [Candidate(System(f"{name} alone"), (name,), (1.0,)) for name in able]
        best = _best_first(systems, ranking, self.measure)[:1]
        data, provenance = preselected(whole, self.preselection)
        provenance["columns"] = [name.removeprefix("column:") for name in self.data.names]
        validation = self.validation and self.validation.select_features(self.validation.columns_of(data.names))
        fitted = _fitted(self.learner, data, best, validation=validation, n_jobs=n_jobs).noted(provenance)
        validated = None
        if validation is not None:  # ranked as the model will rank files
            run = ModelRanker(fitted.model.with_columns(validation)).run(listed_run(validation, ""))
            validated = score_documents(run, listed_grades(validation), [str(self.measure)])
        baselines = {BEST_COLUMN: alone(best[0], whole, fitted.model)} if best else {}
        return replace(fitted, baselines=baselines, validation=validated)


def _fitted(
    learner: Learner | LambdaMART,
    data: RankingData,
    systems: Sequence[Candidate],
    *,
    validation: RankingData | None = None,
    n_jobs: int | None = None,
) -> Fitted:
    """Fit a learner, by its own `fit_model` if it has one: of trees, or of the best of these systems and others."""
    if (fit := getattr(learner, "fit_model", None)) is not None:
        return cast(Fitted, fit(data, systems, validation=validation, n_jobs=n_jobs))
    learner = cast(Learner, learner)
    with step("learning") as learning, learning.inside():
        return Fitted.of(train_on_data(data, learner, validation=validation, n_jobs=n_jobs), data.qids)


def _best_first(systems: Sequence[Candidate], data: RankingData, measure: Objective) -> list[Candidate]:
    """Sort systems by their mean; equal ones keep their order."""
    score = measure.scorer(data)

    def mean(candidate: Candidate) -> float:
        columns = data.columns_of(candidate.features)
        return rounded_mean(score(linear_scores(data, columns, np.array(candidate.weights))))

    return sorted(systems, key=mean, reverse=True)


def _without_constant(data: RankingData) -> RankingData:
    """Check the runs; a first stage that ranks by nothing is left out."""
    files = {spec.file: (column,) for column, spec in enumerate(data.specs) if isinstance(spec, RunScore)}
    first = {"the run that is reranked": (data.specs.index(Score()),)} if Score() in data.specs else {}
    # Judged documents in arbitrary order, as some pools come, can still be ranked by the other runs.
    if not constant_columns(data).intersection(*first.values()):
        check_runs(data, {**first, **files}, read_run)
        return data
    check_runs(data, files, read_run)
    _log.warning("the run that is reranked gives all documents of a topic one score: its scores and ranks are left out")
    return data.select_features([column for column, spec in enumerate(data.specs) if spec not in FIRST_STAGE])


def check_number(qids: Sequence[str]) -> None:
    """Refuse to learn from fewer topics than `MIN_TOPICS`."""
    if len(qids) < MIN_TOPICS:
        raise ParameterError(
            f"{len(qids)} topics with a relevant document are too few to learn from: judge at least {MIN_TOPICS} "
            "(more with --folds)"
        )


def with_relevant(data: RankingData, rel: int, name: str = "training") -> RankingData:
    """Keep queries with a document of at least this grade; log how many others there are."""
    relevant = {
        qid: {str(number): int(grade) for number, grade in enumerate(grades)}  # of documents that need no name here
        for qid, grades in zip(data.qids, data.relevant_grades, strict=True)
    }
    judged = judged_topics(data.qids, relevant, rel)
    if others := len(data.qids) - len(judged):
        _log.info("%s: left out are %d of %d topics, which have no relevant document", name, others, len(data.qids))
        return data.select_queries(judged)
    return data
