"""Models without an index: over runs and what else needs no texts, and over the columns of a feature file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from greylag.core.checks import check_ids
from greylag.errors import FormatError, ParameterError
from greylag.evaluation import Scores, parse_measure
from greylag.features.evidence import ReciprocalRank, RunScore, Score
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature, Normalised, unique_features
from greylag.learning.data import Judgements, RankingData, linear_scores
from greylag.learning.extraction import judged_topics, training_data
from greylag.learning.learner import Learner
from greylag.learning.letor import bound_columns, listed_run
from greylag.learning.linesearch.objectives import Objective
from greylag.learning.preselect import MMRPreselection
from greylag.rankers.model import RankingModel, span
from greylag.rankers.stages import ModelRanker
from greylag.ranking import Run
from greylag.recipes.automatic import Automatic
from greylag.recipes.choice import Candidate, System, cross_folds, title
from greylag.recipes.fitted import Fitted, alone
from greylag.recipes.lambdamart import LambdaMART, fit_trees
from greylag.recipes.recipe import Fit, Recipe, selected_model, train_on_data
from greylag.recipes.source_gains import source_gains
from greylag.trec import at_level, read_run

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
    """A model that a learner makes of features that need no index, or of the columns of a feature file.

    Parameters
    ----------
    features : tuple of Feature
        The candidates, such as those of `with_runs`.
    learner : Learner or LambdaMART
        `Automatic` compares what it learns with each run alone and the sum of the runs' scores, scaled to [0, 1], or
        with the best column alone.
    preselection : MMRPreselection, optional
        Narrows the candidates on the training queries.
    validation : RankingData, optional
        Other queries with the same columns, by which `Automatic` chooses instead of cross-validation. Of what is
        learned in rounds or trees, as many are kept as are best for them.
    data : RankingData, optional
        The candidates' values, if they are columns of a file. See `of_data`.
    """

    needs_index: ClassVar[bool] = False

    features: tuple[Feature, ...]
    learner: Learner | LambdaMART
    _: KW_ONLY
    preselection: MMRPreselection | None = None
    validation: RankingData | None = field(default=None, repr=False)
    data: RankingData | None = field(default=None, repr=False)

    @classmethod
    def of_data(
        cls,
        data: RankingData,
        learner: Learner | LambdaMART,
        *,
        columns: Sequence[str] = (),
        validation: RankingData | None = None,
        **options: Any,
    ) -> IndexFreeRecipe:
        """Make the recipe of named columns of the data, by default all, for the rankings of `letor.listed_run`."""
        check_ids(columns=columns)
        every, given = unique_features([replace(column, values=None) for column in bound_columns(data)]), validation
        if given is not None:
            if given.names != data.names:
                raise ParameterError(f"the columns are {span(given.names)}, but those to learn from {span(data.names)}")
            given = replace(given, specs=every)
        named = data.columns_of(columns) or range(len(every))
        features = tuple(every[column] for column in named)
        return cls(features, learner, data=replace(data, specs=every), validation=given, **options)

    @property
    def has_first_stage(self) -> bool:
        """Whether features are not columns of a file, in which the order of lines means nothing."""
        return self.data is None

    @property
    def proposes_measure(self) -> bool:
        """Whether the learner is chosen."""
        return isinstance(self.learner, Automatic)

    @property
    def measure(self) -> Objective:
        """The learner's objective."""
        return Objective.parse(self.learner.objective)

    def bound(self, fitted: Fitted) -> Fitted:
        """Give the models the values of the file's columns."""
        if self.data is None:
            return fitted
        baselines = {name: model.with_columns(self.data) for name, model in fitted.baselines.items()}
        return replace(fitted, model=fitted.model.with_columns(self.data), baselines=baselines)

    def prepare(self, rankings: Run, qrels: Judgements, index: Any = None, *, n_jobs: int | None = None) -> Fit:
        """Compute the values of the candidates for all queries with a relevant document."""
        if self.data is not None:
            named = self.data.select_features([self.data.specs.index(feature) for feature in self.features])
            return partial(self._learn, with_relevant(named, self.measure.rel))
        extractor = FeatureExtractor(None, self.features)
        data = training_data(rankings, at_level(qrels, self.measure.rel), extractor, n_jobs=n_jobs)
        return partial(self._learn, checked_runs(data))

    def _learn(self, every: RankingData, qids: Sequence[str], *, n_jobs: int | None = None) -> Fitted:
        """Learn from these training queries; the result does not depend on `n_jobs`."""
        whole, learner, provenance = every.select_queries(qids), self.learner, dict[str, Any]()
        data = whole
        check_number(data.qids)
        single = self._alone(data)  # before preselection, which may drop a baseline's column
        if self.preselection is not None:
            provenance = {"pool": len(data.specs), "preselect": str(self.preselection)}
            data = self.preselection.select(data)
        validation = self.validation
        if validation is not None:
            validation = validation.select_features(validation.columns_of(data.names))
        if self.data is not None:
            provenance["columns"] = [name.removeprefix("column:") for name in self.data.names]
        if isinstance(learner, LambdaMART):
            fitted = fit_trees(learner, data, validation)
        elif isinstance(learner, Automatic):
            selection, choice = learner.choose(data, baselines=single, validation=validation, n_jobs=n_jobs)
            model = selected_model(selection, data, learner, {"set_aside": []})
            folds = cross_folds(data, learner.parts(data.qids)) if self.data is None else ()
            gains = source_gains(folds, self.measure)
            fitted = Fitted.of(model, data.qids, (title(choice.chosen),), choice=choice, gains=gains)
        else:
            fitted = Fitted.of(train_on_data(data, learner, validation=validation, n_jobs=n_jobs), data.qids)
        fitted = fitted.noted(provenance)
        # Those that `train` ranks for comparison: single columns, without a sum, which is no tuned baseline.
        baselines = {
            BEST_COLUMN if self.data is not None else str(candidate.system): alone(candidate, whole, fitted.model)
            for candidate in single
            if len(candidate.features) == 1 and candidate.system != FIRST
        }
        return replace(
            fitted,
            baselines=baselines,
            validation=None if validation is None else self._validate(fitted.model, validation),
        )

    def _validate(self, model: RankingModel, validation: RankingData) -> Scores:
        """Score the queries for validation."""
        ranker = ModelRanker(model.with_columns(validation))  # as it will rank files
        scores = np.concatenate([ranker.scores(ranking) for ranking in listed_run(validation, "").rankings])
        values = self.measure.evaluate(validation, scores).tolist()
        measure = parse_measure(str(self.measure))
        return Scores.single(measure, dict(zip(validation.qids, values, strict=True)))

    def _alone(self, data: RankingData) -> list[Candidate]:
        """List the systems that need no learning, best first: each run and the sum of all, or the best column."""
        measure = self.measure

        def mean(candidate: Candidate) -> float:
            columns = data.columns_of(candidate.features)
            return float(measure.evaluate(data, linear_scores(data, columns, np.array(candidate.weights))).mean())

        if self.data is not None:
            every = [Candidate(System(f"{name} alone"), (name,), (1.0,)) for name in data.names]
            return [max(every, key=mean)]
        runs = [feature for feature in data.specs if isinstance(feature, RunScore | Score)]
        every = [Candidate(FIRST if isinstance(run, Score) else System(str(run)), (str(run),), (1.0,)) for run in runs]
        scaled = tuple(name for run in runs if (name := f"{run}@minmax") in data.names)
        if len(scaled) > 1:
            every.append(Candidate(System("sum of scaled runs"), scaled, (1.0,) * len(scaled)))
        return sorted(every, key=mean, reverse=True)


def check_number(qids: Sequence[str]) -> None:
    """Refuse to learn from fewer topics than `MIN_TOPICS`."""
    if len(qids) < MIN_TOPICS:
        raise ParameterError(
            f"{len(qids)} topics with a relevant document are too few to learn from, since what they prefer may be "
            f"chance: judge at least {MIN_TOPICS}, of which folds leave some out"
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


def checked_runs(data: RankingData) -> RankingData:
    """Check that runs differ and rank by something; a first stage that ranks by nothing is left out."""
    # Other reasons are those of twins, of which runs are told below by name.
    constant = {column for column, reason in data.distinct[1].items() if reason.endswith("constant within every query")}
    seen: dict[bytes, str] = {}
    for column, spec in enumerate(data.specs):
        if not isinstance(spec, RunScore | Score):
            continue
        name = spec.file if isinstance(spec, RunScore) else "the run that is reranked"
        if column in constant and isinstance(spec, RunScore):
            topics = read_run(spec.file)
            if not any(qid in topics for qid in data.qids):
                theirs = f"its first is {next(iter(topics), None)!r}, theirs {data.qids[0]!r}"
                raise FormatError(spec.file, None, f"no topic in common with the topics to learn from ({theirs})")
            raise FormatError(
                spec.file, None, "gives all documents of a topic one score, or has none of them: leave it out"
            )
        # Under another name, a run twice has twice the weight in sums, and its weights are arbitrary.
        twin = seen.setdefault(data.features[:, column].tobytes(), name)
        if twin != name:
            raise FormatError(name, None, f"has the scores of {twin}: give each run once")
    if not any(data.specs[column] == Score() for column in constant):
        return data
    _log.warning("the run that is reranked gives all documents of a topic one score: its scores and ranks are left out")
    left = [column for column, spec in enumerate(data.specs) if spec not in FIRST_STAGE]
    return data.select_features(left)
