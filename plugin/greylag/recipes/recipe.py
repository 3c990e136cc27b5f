"""Training: recipes that make linear models from judged rankings, and their cross-validation over queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from functools import partial
from typing import Any, ClassVar, Generic, cast

import numpy as np

from greylag import __version__
from greylag.base import (
    FloatArray,
    ParameterError,
    Printed,
    QrelsLike,
    Ranking,
    Row,
    Run,
    RunLike,
    SubtopicQrelsLike,
    Table,
    as_qrels,
    as_run,
    guided,
    shown,
)
from greylag.evaluation import Scores, at_level, first_best, fit_by_fold, rerank_by_fold, score_documents, split_folds
from greylag.features import Feature, FeatureExtractor, FeatureParameters, as_feature
from greylag.index import PositionalIndex
from greylag.learning import (
    Judgements,
    Learner,
    MMRPreselection,
    Objective,
    RankingData,
    Selection,
    after_each_round,
    judged_topics,
    measure_spreads,
    training_data,
    useful_features,
)
from greylag.rankers import ModelRanker, RankingModel
from greylag.recipes.fitted import Fitted, M

FIRST = "first stage"
"""The name of the rankings that are reranked, where they are compared."""
Fit = Callable[..., Fitted[M]]
"""``fit(qids, n_jobs=None)``: fit to these training queries, whatever the others are, without unjudged ones."""


class Recipe(ABC, Generic[M]):
    """Base class of recipes, which make models from judged rankings: those that rank, by default."""

    # A subclass is a frozen dataclass with an `objective`, or a `measure`, and a method `prepare`. `greylag.train` and
    # `cross_validate` do the rest. `needs_index` is false if it can be prepared without an index.
    # Models of a recipe that `diversifies` learn from judgements by subtopic, and have no measure. `has_first_stage` is
    # false if the rankings that it reranks were ranked by nothing.
    needs_index: ClassVar[bool] = True
    diversifies: ClassVar[bool] = False
    has_first_stage: ClassVar[bool] = True
    objective: Objective | str

    def unjudged(self, index: Any) -> RankingModel | None:
        """Return the model without judgements that the recipe begins with, for this index; None if it has none."""
        return None

    @property
    def depth(self) -> int | None:
        """The number of documents per query that are learned from, by `sources`; None, without sources, for all."""
        sources = getattr(self, "sources", None)
        return None if sources is None else int(sources.depth)

    def bound(self, fitted: Fitted[M]) -> Fitted[M]:
        """Bind what was fitted to the data that it ranks by; by default, it needs none."""
        return fitted

    def stage(self, fitted: Fitted[M], index: PositionalIndex | None) -> Callable[[Ranking], Ranking]:
        """Return the stage that ranks by what was fitted."""
        return ModelRanker(cast(RankingModel, fitted.model), index)

    def judgements(self, qrels: Any) -> Mapping[str, Mapping[str, Any]]:
        """Make the judgements that it learns from: by default, of the forms that `greylag.compare` takes."""
        return as_qrels(qrels)

    def topics(self, rankings: Run, qrels: Any, index: PositionalIndex | None) -> list[str]:
        """List the topics that can be learned from: by default, those with a relevant document."""
        return judged_topics(rankings, qrels, self.measure.rel)

    def score(self, runs: Mapping[str, Run], qrels: Any, index: PositionalIndex | None) -> dict[str, Scores]:
        """Score held-out rankings and those to compare them with."""
        return {name: score_documents(run, qrels, [str(self.measure)]) for name, run in runs.items()}

    @property
    def measure(self) -> Objective:
        """The measure that is maximised, a learner's if there is one."""
        return Objective.parse(getattr(self, "learner", self).objective)

    @abstractmethod
    def prepare(self, rankings: Run, qrels: Any, index: Any, *, n_jobs: int | None = None) -> Fit[M]:
        """Compute what all folds share, such as features, and return the function that fits; `index` may be None."""
        # Workers get the function, so that it has to be picklable: `partial` of a method or a module's function.

    def fit(
        self, rankings: RunLike, qrels: Any, index: PositionalIndex | None, *, n_jobs: int | None = None
    ) -> Fitted[M]:
        """Fit to all queries that can be learned from, as `greylag.train` does without folds."""
        first = as_run(rankings)
        return self.bound(self.prepare(first, self.judgements(qrels), index, n_jobs=n_jobs)(list(first), n_jobs=n_jobs))


@dataclass(frozen=True)
class MRFRecipe(Recipe):
    """A model that a learner makes of some features."""

    features: Sequence[Feature]  # the candidates, such as ``candidate_pool("sd")``
    learner: Learner  # such as `GreedySelection` or `CoordinateAscent`
    _: KW_ONLY
    parameters: FeatureParameters = FeatureParameters()
    preselection: MMRPreselection | None = None  # narrows the candidates on the training queries

    def __post_init__(self) -> None:
        if not (hasattr(self.learner, "objective") and hasattr(self.learner, "fit")):
            raise ParameterError(
                f"the learner is {shown(self.learner)}: write MRFRecipe(features, GreedySelection('AP')), or rank by "
                "an estimator with greylag.rankers.EstimatorRanker"
            )

    def prepare(self, rankings: Run, qrels: Judgements, index: PositionalIndex, *, n_jobs: int | None = None) -> Fit:
        """Extract the features of all queries."""
        extractor = FeatureExtractor(index, tuple(self.features), self.parameters)
        judged = at_level(qrels, self.measure.rel)
        return partial(self.learn, training_data(rankings, judged, extractor, n_jobs=n_jobs))

    def learn(self, data: RankingData, qids: Sequence[str], *, n_jobs: int | None = None) -> Fitted:
        """Learn the model from the extracted features of these queries."""
        selected, provenance = preselected(data.select_queries(qids), self.preselection)
        model = train_on_data(selected, self.learner, n_jobs=n_jobs, provenance=provenance)
        return Fitted.of(model, selected.qids)


def preselected(data: RankingData, preselection: MMRPreselection | None) -> tuple[RankingData, dict[str, Any]]:
    """Narrow the columns, and note by what; all without a preselection."""
    if preselection is None:
        return data, {}
    return preselection.select(data), {"pool": len(data.specs), "preselect": str(preselection)}


def train_on_data(
    data: RankingData,
    learner: Learner,
    *,
    validation: RankingData | None = None,
    n_jobs: int | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> RankingModel:
    """Train a linear model on extracted features, leaving out trivial and duplicate ones.

    Columns of a file become features ``column:NAME``. The learner's rounds end where the mean over the validation
    queries is best, if there are any. `provenance` has entries to add to the model's, as JSON has them.
    """
    # A constant or repeated column has no weight of its own: any would be as good.
    candidates, set_aside = useful_features(data)
    selection = learner.fit(candidates, n_jobs=n_jobs)
    if validation is not None:
        held_out = validation.select_features(validation.columns_of(candidates.names))
        means = after_each_round(selection, held_out, Objective.parse(learner.objective)).mean(axis=1)
        selection = selection.head(first_best(means) + 1)
    return selected_model(selection, candidates, learner, {"set_aside": set_aside, **(provenance or {})})


def selected_model(
    selection: Selection, data: RankingData, learner: Learner, provenance: Mapping[str, Any]
) -> RankingModel:
    """Make the model of a learner's selection from `data`."""
    origin = data.origin  # None without an index
    given = {name: value for name, value in asdict(cast(Any, learner)).items() if name != "objective"}
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}  # as JSON
    return RankingModel(
        features=tuple(as_feature(data.specs[column]) for column in selection.columns),
        weights=selection.weights,
        parameters=FeatureParameters() if origin is None else origin.parameters,
        objective=str(learner.objective),
        training_scores=selection.entry_scores,
        collection={} if origin is None else asdict(origin.collection),
        fingerprint="" if origin is None else origin.fingerprint,
        provenance={
            "greylag": __version__,
            "learner": type(learner).__name__,
            **options,
            "queries": list(data.qids),
            "candidates": len(data.specs),
            "spreads": measure_spreads(data.features[:, list(selection.columns)], data.offsets).tolist(),
            **provenance,
        },
    )


@dataclass(frozen=True, repr=False)
class CrossValidation(Printed, Generic[M]):
    """The result of a cross-validation: every query reranked by the model of the other folds."""

    run: Run
    # One for each fold
    fitted: tuple[Fitted[M], ...]
    # The test queries of each
    folds: tuple[tuple[str, ...], ...]

    @property
    def models(self) -> tuple[M, ...]:
        """The model of each fold."""
        return tuple(fitted.model for fitted in self.fitted)

    def by_fold(self, qrels: QrelsLike, measures: Iterable[Any]) -> FoldMeans:
        """Evaluate the held-out queries of each fold, and average over folds, as papers on LETOR's collections do."""
        scores = score_documents(self.run, as_qrels(qrels), [*dict.fromkeys(map(str, measures))])
        place = {qid: number for number, qid in enumerate(scores.qids)}
        values = [scores.values[[place[qid] for qid in fold if qid in place]].mean(axis=0) for fold in self.folds]
        return FoldMeans(tuple(map(str, scores.measures)), np.array(values), tuple(map(len, self.folds)))

    def _table(self) -> Table:
        parts = enumerate(zip(self.folds, self.fitted, strict=True), 1)
        rows: list[Row] = [(number, len(fold), str(fitted)) for number, (fold, fitted) in parts]
        caption = f"cross-validation of {self.run.tag}, {len(self.run)} queries in {len(self.folds)} folds"
        return Table(caption, ("fold", "queries", "model"), rows)


@dataclass(frozen=True, repr=False, eq=False)
class FoldMeans(Printed):
    """The means of each fold's queries, shape (folds, measures), and the folds' numbers of queries."""

    measures: tuple[str, ...]
    values: FloatArray
    queries: tuple[int, ...]

    @property
    def means(self) -> FloatArray:
        """The mean over folds of each measure, shape (measures,); folds count alike, whatever their queries."""
        return np.asarray(self.values.mean(axis=0))

    def _table(self) -> Table:
        parts = enumerate(zip(self.queries, self.values.tolist(), strict=True), 1)
        rows: list[Row] = [(str(number), size, *values) for number, (size, values) in parts]
        rows.append(("mean of folds", sum(self.queries), *self.means.tolist()))
        return Table("Held-out topics by fold", ("fold", "topics", *self.measures), rows)


@guided
def cross_validate(
    recipe: Recipe[M],
    rankings: RunLike,
    qrels: QrelsLike | SubtopicQrelsLike,
    index: PositionalIndex | None,
    *,
    folds: int | Sequence[Sequence[str]] = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    tag: str = "held-out",
    provenance: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    prepared: Fit[M] | None = None,
) -> CrossValidation[M]:
    """Rerank each query by a model that the recipe makes from the other folds.

    Everything that a recipe learns, tunes or selects depends on the training queries of a fold alone.

    Parameters
    ----------
    recipe : Recipe
    rankings : RunLike
        The first stage. Queries without a relevant document are reranked, but not trained on.
    qrels, index, seed, n_jobs, tag, progress
        As in `train`. All recipes have the same folds for the same queries and seed.
    folds : int >= 2 or sequence of sequences of str, default 5
        The number of folds, or the test queries of each; ``[test]`` for a split.
    provenance : mapping, optional
        Entries to add to the provenance of the models.
    prepared : callable, optional
        The result of ``recipe.prepare`` for these rankings, if it was computed before.
    """
    if not (index is None or isinstance(index, PositionalIndex)):
        kinds = ", ".join(type(value).__name__ for value in (recipe, rankings, qrels, index))
        raise ParameterError(f"cross_validate({kinds}): the call is cross_validate(recipe, rankings, qrels, index)")
    first, qrels = as_run(rankings), recipe.judgements(qrels)
    qids = list(first)
    parts = split_folds(qids, folds, seed) if isinstance(folds, int) else [list(test) for test in folds]
    every: list[Fitted[M]] = []

    # As an argument and not from the closure, so that other processes receive it once and not for each fold.
    def fit(training: Sequence[str], prepared: Fit[M]) -> Fitted[M]:
        return prepared(training, n_jobs=n_jobs)

    if prepared is None:
        prepared = recipe.prepare(first, qrels, index, n_jobs=n_jobs)
    for fitted in fit_by_fold(fit, qids, parts, prepared, n_jobs=n_jobs):
        fold = {"fold": len(every) + 1, "folds": len(parts), "seed": seed}
        every.append(recipe.bound(fitted).noted({**(provenance or {}), **fold}))
        if progress is not None:
            progress(f"fold {len(every)}: {fitted}")
    run = rerank_by_fold([recipe.stage(fitted, index) for fitted in every], parts, first, n_jobs=n_jobs, tag=tag)
    return CrossValidation(run, tuple(every), tuple(map(tuple, parts)))
