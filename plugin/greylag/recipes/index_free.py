"""Models without an index: over runs and what else needs no texts, and over the columns of a feature file."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

from greylag.core.checks import check_ids
from greylag.errors import ParameterError
from greylag.evaluation.scores import score_documents
from greylag.features.evidence import ReciprocalRank, RunScore, Score
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature, Normalised, unique_features
from greylag.fusion import GivenRun, PooledSources
from greylag.learning.data import Judgements, RankingData, linear_scores
from greylag.learning.extraction import judged_topics, training_data
from greylag.learning.learner import Learner
from greylag.learning.letor import bound_columns, listed_grades, listed_run
from greylag.learning.preselect import MMRPreselection
from greylag.rankers.model import span
from greylag.rankers.stages import FusionRanker, ModelRanker
from greylag.ranking import Run
from greylag.recipes.automatic import Automatic
from greylag.recipes.choice import Candidate, System, cross_folds, title
from greylag.recipes.fitted import Fitted, alone
from greylag.recipes.lambdamart import LambdaMART, fit_trees
from greylag.recipes.recipe import Fit, Recipe, selected_model, train_on_data
from greylag.recipes.source_gains import source_gains
from greylag.recipes.union import FusionWeights, check_runs, constant_columns, union_data
from greylag.runtime.progress import step
from greylag.trec import at_level, read_run
from greylag.trec.runs import JoinedRuns, RunFile

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
    """A model of features that need no index, of the columns of a feature file, or of runs to fuse.

    `Automatic` compares what it learns with each run alone and the sum of the runs' scores, scaled to [0, 1], or with
    the best column alone.
    """

    needs_index: ClassVar[bool] = False

    features: tuple[Feature, ...]  # the candidates, such as those of `with_runs`; none to fuse runs
    learner: Learner | LambdaMART | FusionWeights  # the last to fuse runs
    _: KW_ONLY
    preselection: MMRPreselection | None = None
    # Other queries with the same columns, which choose in `Automatic`, and the number of rounds or trees
    validation: RankingData | None = field(default=None, repr=False)
    # The candidates' values, if they are columns of a file; see `of_data`
    data: RankingData | None = field(default=None, repr=False)
    # The runs to fuse, by name. Their union is ranked in place of a first stage
    runs: Mapping[str, Run | RunFile] = field(default_factory=dict, repr=False, hash=False)
    k: int | None = None  # documents to keep of what is fused; all by default

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

    def bound(self, fitted: Fitted) -> Fitted:
        """Give the models the values of the file's columns, or the runs to fuse."""
        if self.runs:
            sources = tuple(GivenRun(cast(Run, run)) for run in self.runs.values())
            return replace(fitted, fuses=PooledSources(sources, method=FusionRanker(fitted.model), k=self.k))
        if self.data is None:
            return fitted
        baselines = {name: model.with_columns(self.data) for name, model in fitted.baselines.items()}
        return replace(fitted, model=fitted.model.with_columns(self.data), baselines=baselines)

    def prepare(self, rankings: Run, qrels: Judgements, index: Any = None, *, n_jobs: int | None = None) -> Fit:
        """Compute the values of the candidates for all queries with a relevant document."""
        if self.runs:
            recipe, _, data = self.read_runs(qrels)
            return partial(recipe.learn, data)
        if self.data is not None:
            named = self.data.select_features(self.data.columns_of(map(str, self.features)))
            return partial(self.learn, with_relevant(named, self.measure.rel))
        extractor = FeatureExtractor(None, self.features)
        data = training_data(rankings, at_level(qrels, self.measure.rel), extractor, n_jobs=n_jobs)
        return partial(self.learn, self._without_constant(data))

    def read_runs(self, qrels: Judgements) -> tuple[IndexFreeRecipe, Judgements, RankingData]:
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
        return replace(self, learner=replace(cast(FusionWeights, self.learner), objective=measure)), judged, data

    def learn(self, every: RankingData, qids: Sequence[str], *, n_jobs: int | None = None) -> Fitted:
        """Learn from these training queries; the result does not depend on `n_jobs`."""
        whole, learner, provenance = every.select_queries(qids), self.learner, dict[str, Any]()
        data = whole
        check_number(data.qids)
        if isinstance(learner, FusionWeights):
            return learner.weigh(data, tuple(self.runs))
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
            # Each column of a file would be a source by itself, and take a regression per fold.
            folds = cross_folds(data, learner.parts(data.qids)) if self.data is None else ()
            gains = source_gains(folds, self.measure, {"first stage": FIRST_STAGE})
            fitted = Fitted.of(model, data.qids, (title(choice.chosen),), choice=choice, gains=gains)
        else:
            with step("learning") as learning, learning.inside():
                fitted = Fitted.of(train_on_data(data, learner, validation=validation, n_jobs=n_jobs), data.qids)
        fitted = fitted.noted(provenance)
        # Those that `train` ranks for comparison: single columns, without a sum, which is no tuned baseline.
        baselines = {
            BEST_COLUMN if self.data is not None else str(candidate.system): alone(candidate, whole, fitted.model)
            for candidate in single
            if len(candidate.features) == 1 and candidate.system != FIRST
        }
        validated = None
        if validation is not None:  # ranked as the model will rank files
            run = ModelRanker(fitted.model.with_columns(validation)).run(listed_run(validation, ""))
            validated = score_documents(run, listed_grades(validation), [str(self.measure)])
        return replace(fitted, baselines=baselines, validation=validated)

    def _without_constant(self, data: RankingData) -> RankingData:
        """Check the runs; a first stage that ranks by nothing is left out."""
        files = {one.file: (column,) for column, one in enumerate(data.specs) if isinstance(one, RunScore)}
        first = {"the run that is reranked": (data.specs.index(Score()),)} if Score() in data.specs else {}
        # Judged documents in arbitrary order, as some pools come, can still be ranked by the other runs.
        if not constant_columns(data).intersection(*first.values()):
            check_runs(data, {**first, **files}, read_run)
            return data
        check_runs(data, files, read_run)
        _log.warning(
            "the run that is reranked gives all documents of a topic one score: its scores and ranks are left out"
        )
        return data.select_features([column for column, spec in enumerate(data.specs) if spec not in FIRST_STAGE])

    def _alone(self, data: RankingData) -> list[Candidate]:
        """List the systems that need no learning, best first: each run and the sum of all, or the best column."""
        score = self.measure.scorer(data)

        def mean(candidate: Candidate) -> float:
            columns = data.columns_of(candidate.features)
            return float(score(linear_scores(data, columns, np.array(candidate.weights))).mean())

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
