"""Training: recipes that make linear models from judged rankings, and their cross-validation over queries."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from greylag import __version__
from greylag.errors import ParameterError
from greylag.evaluation import Scores, evaluate
from greylag.evaluation.folds import split_folds
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.data import Qrels, RankingData
from greylag.ltr.extraction import checked_rankings, training_data
from greylag.ltr.learner import Learner, Selection
from greylag.ltr.linear import LinearModel
from greylag.ltr.objectives import Objective
from greylag.ltr.preselect import MMRPreselection
from greylag.ltr.rankers import MRFRanker
from greylag.pipeline import run_step
from greylag.ranking import Ranking, Run
from greylag.runtime.parallel import parallel_map
from greylag.tables import Printed, Row, Table
from greylag.trec import at_level

Rankings = Run | Iterable[Ranking]


class Prepared(Protocol):
    """A recipe with everything that it computes from all queries alike, such as features."""

    def fit(self, qids: Sequence[str], *, n_jobs: int | None = None) -> LinearModel:
        """The model for these training queries, whatever the others are; those without judgements are left out."""


class Recipe(ABC):
    """How a linear model is made from judged rankings: `MRFRecipe`, `BaselineRecipe` or `StackRecipe`.

    A subclass is a frozen dataclass with an `objective`, or a `measure` of its own, and a method `prepare`. `train` and
    `cross_validate` do the rest.
    """

    objective: Objective | str

    @property
    def measure(self) -> Objective:
        """The measure that is maximised."""
        return Objective.parse(self.objective)

    @abstractmethod
    def prepare(self, rankings: Run, qrels: Qrels, index: PositionalIndex, *, n_jobs: int | None = None) -> Prepared:
        """Compute what does not depend on which queries are trained on, once for all folds."""

    def fit(
        self, rankings: Rankings, qrels: Qrels, index: PositionalIndex, *, n_jobs: int | None = None
    ) -> LinearModel:
        """Make a model from all queries that have a relevant document, as `train` does without folds."""
        return train(self, rankings, qrels, index, n_jobs=n_jobs).model


@dataclass(frozen=True)
class MRFRecipe(Recipe):
    """A model that a learner makes of some features.

    Parameters
    ----------
    features : sequence of Feature
        The candidates, such as ``candidate_pool("sd")``.
    learner : Learner
        Such as `GreedySelection` or `CoordinateAscent`.
    parameters : FeatureParameters, default ``FeatureParameters()``
    preselection : MMRPreselection, optional
        Narrows the candidates on the training queries.

    Examples
    --------
    >>> recipe = MRFRecipe(candidate_pool("sd"), GreedySelection("nDCG@10"))  # doctest: +SKIP
    >>> recipe.fit(bm25_run, qrels, index).save("mrf.json")  # doctest: +SKIP
    """

    features: Sequence[Feature]
    learner: Learner
    _: KW_ONLY
    parameters: FeatureParameters = FeatureParameters()
    preselection: MMRPreselection | None = None

    @property
    def measure(self) -> Objective:
        """The learner's objective."""
        return Objective.parse(self.learner.objective)

    def prepare(
        self, rankings: Run, qrels: Qrels, index: PositionalIndex, *, n_jobs: int | None = None
    ) -> PreparedFeatures:
        """Extract the features of all queries."""
        extractor = FeatureExtractor(index, tuple(self.features), self.parameters)
        judged = at_level(qrels, self.measure.rel)
        return PreparedFeatures(self, training_data(rankings, judged, extractor, n_jobs=n_jobs))


@dataclass(frozen=True)
class PreparedFeatures:
    """An `MRFRecipe` and the extracted features of all queries."""

    recipe: MRFRecipe
    data: RankingData

    def fit(self, qids: Sequence[str], *, n_jobs: int | None = None) -> LinearModel:
        """The model for these training queries."""
        data, made, preselection = self.data.select_queries(qids), {}, self.recipe.preselection
        if preselection is not None:
            made = {"pool": len(data.specs), "preselect": str(preselection)}
            data = preselection.select(data)
        return train_on_data(data, self.recipe.learner, n_jobs=n_jobs, provenance=made)


def train_on_data(
    data: RankingData, learner: Learner, *, n_jobs: int | None = None, provenance: Mapping[str, Any] | None = None
) -> LinearModel:
    """Train a linear model on extracted features, leaving out trivial and duplicate ones.

    Parameters
    ----------
    data : RankingData
        Extracted by `training_data`; a model cannot compute features that come from a file.
    learner : Learner
        Such as `GreedySelection` or `CoordinateAscent`.
    n_jobs : int, optional
        Number of workers; the model does not depend on it.
    provenance : mapping, optional
        Entries to add to the model's provenance. Serialisable as JSON.
    """
    candidates, set_aside = useful_features(data)
    selection = learner.fit(candidates, n_jobs=n_jobs)
    return selected_model(selection, candidates, learner, {"set_aside": set_aside, **(provenance or {})})


def useful_features(data: RankingData) -> tuple[RankingData, list[str]]:
    """The data without features that are trivial or duplicates by value, and the reasons for dropping them."""
    kept, dropped = data.distinct
    if not kept:
        raise ParameterError("every feature is constant within every training query: there is nothing to select")
    return data.select_features(kept), list(dropped.values())


def selected_model(
    selection: Selection, data: RankingData, learner: Learner, provenance: Mapping[str, Any]
) -> LinearModel:
    """The model of a learner's selection from `data`."""
    if data.origin is None:
        raise ParameterError(
            "these features come from a file, so a model could not compute them: train on data from a FeatureExtractor"
        )
    options = {name: value for name, value in asdict(cast(Any, learner)).items() if name != "objective"}
    return LinearModel(
        features=tuple(cast(Feature, data.specs[column]) for column in selection.columns),
        weights=selection.weights,
        parameters=data.origin.parameters,
        objective=str(learner.objective),
        training_scores=selection.entry_scores,
        collection=asdict(data.origin.collection),
        fingerprint=data.origin.fingerprint,
        provenance={
            "greylag": __version__,
            "learner": type(learner).__name__,
            **options,
            "queries": list(data.qids),
            "candidates": len(data.specs),
            "spreads": _spreads(data, selection.columns),
            **provenance,
        },
    )


def _spreads(data: RankingData, columns: Sequence[int]) -> list[float]:
    """The standard deviation of features within a query, over all queries."""
    values = data.features[:, list(columns)]
    parts = [values[first:end] for first, end in pairwise(data.offsets.tolist()) if end > first]
    return [float(spread) for spread in np.sqrt(np.vstack([(part - part.mean(axis=0)) ** 2 for part in parts]).mean(0))]


@dataclass(frozen=True, repr=False)
class CrossValidation(Printed):
    """The result of a cross-validation.

    Parameters
    ----------
    run : Run
        Every query, in the order of the first stage, reranked by the model of its fold.
    models : tuple of LinearModel
        One for each fold, trained on the queries of the other folds.
    folds : tuple of tuples of str
        The test queries of each fold.
    seconds : tuple of float
        The time that training took in each fold. Ignored by comparisons.
    """

    run: Run
    models: tuple[LinearModel, ...]
    folds: tuple[tuple[str, ...], ...]
    seconds: tuple[float, ...] = field(compare=False)

    def _table(self) -> Table:
        parts = enumerate(zip(self.folds, self.models, strict=True), 1)
        rows: list[Row] = [(number, len(fold), training_line(model)) for number, (fold, model) in parts]
        caption = f"cross-validation of {self.run.tag}, {len(self.run)} queries in {len(self.folds)} folds"
        return Table(caption, ("fold", "queries", "model"), rows)


class TrainingResult(NamedTuple):
    """A model, and what cross-validation says of the recipe that made it.

    Parameters
    ----------
    model : LinearModel
        Trained on all queries; with folds, its provenance has the held-out score.
    held_out : CrossValidation or None
        None without folds.
    scores : mapping of str to Scores
        The recipe's measure of the "first stage" and of the "held out" rankings; empty without folds.
    """

    model: LinearModel
    held_out: CrossValidation | None
    scores: Mapping[str, Scores]


def train(
    recipe: Recipe,
    rankings: Rankings,
    qrels: Qrels,
    index: PositionalIndex,
    *,
    folds: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    tag: str = "held-out",
    progress: Callable[[str], None] | None = None,
) -> TrainingResult:
    """Make a model by a recipe and, with `folds`, score the recipe by cross-validation.

    The scores on training queries say nothing about other queries, so with `folds` each query is also ranked by a model
    of the other folds, and these rankings are scored.

    Parameters
    ----------
    recipe : Recipe
    rankings : Run or iterable of Ranking
        The first stage, which the model reranks.
    qrels : mapping of qid to docid to grade
        Only queries with a relevant document, by the objective's level, are trained on.
    index : PositionalIndex
    folds : int >= 2, optional
        The number of folds of cross-validation; none by default.
    seed : int, default 0
        The seed of the split into folds.
    n_jobs : int, optional
        Number of workers; results do not depend on it.
    tag : str, default "held-out"
        The tag of the held-out run.
    progress : callable, optional
        Called with a message after each fold.
    """
    first = _as_run(rankings)
    if folds is not None:
        split_folds(list(first), folds, seed)  # refuses too many folds before features are computed
    prepared = recipe.prepare(first, qrels, index, n_jobs=n_jobs)
    held_out, scores, validated = None, {}, {}
    if folds is not None:
        held_out = cross_validate(
            recipe, first, qrels, index, folds=folds, seed=seed, n_jobs=n_jobs, tag=tag, progress=progress,
            prepared=prepared,
        )  # fmt: skip
        runs, judged = {"first stage": first, "held out": held_out.run}, {q: dict(qrels[q]) for q in qrels}
        scores = {name: evaluate(run, judged, [str(recipe.measure)]) for name, run in runs.items()}
        validated = {"held_out": {"folds": folds, **scores["held out"].by_measure}}
    model = prepared.fit(list(first), n_jobs=n_jobs)
    return TrainingResult(_noted(model, validated), held_out, scores)


def cross_validate(
    recipe: Recipe,
    rankings: Rankings,
    qrels: Qrels,
    index: PositionalIndex,
    *,
    folds: int | Sequence[Sequence[str]] = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    tag: str = "held-out",
    provenance: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    prepared: Prepared | None = None,
) -> CrossValidation:
    """Rerank each query by a model that the recipe makes from the other folds.

    Everything that a recipe learns, tunes or selects depends on the training queries of a fold alone.

    Parameters
    ----------
    recipe : Recipe
    rankings : Run or iterable of Ranking
        The first stage. Queries without a relevant document are reranked, but not trained on.
    qrels, index, seed, n_jobs, tag, progress
        As in `train`. All recipes have the same folds for the same queries and seed.
    folds : int >= 2 or sequence of sequences of str, default 5
        The number of folds, or the test queries of each. Those of a split into training and test queries are a single
        fold: ``[test]``.
    provenance : mapping, optional
        Entries to add to the provenance of the models, before ``fold``, ``folds`` and ``seed``.
    prepared : Prepared, optional
        The result of ``recipe.prepare`` for these rankings, if it was computed before.
    """
    first = _as_run(rankings)
    qids = list(first)
    parts = split_folds(qids, folds, seed) if isinstance(folds, int) else [list(test) for test in folds]
    models: list[LinearModel] = []
    seconds: list[float] = []

    def work(test: Collection[str], prepared: Prepared) -> tuple[LinearModel, float]:
        start = time.perf_counter()
        model = prepared.fit([qid for qid in qids if qid not in test], n_jobs=n_jobs)
        return model, time.perf_counter() - start

    if prepared is None:
        prepared = recipe.prepare(first, qrels, index, n_jobs=n_jobs)
    for model, spent in parallel_map(work, parts, prepared, what="folds", n_jobs=n_jobs, coarse=True):
        fold = {"fold": len(models) + 1, "folds": len(parts), "seed": seed}
        models.append(_noted(model, {**(provenance or {}), **fold}))
        seconds.append(spent)
        if progress is not None:
            progress(f"fold {len(models)}: {training_line(model)}")
    run = rerank_by_fold([MRFRanker(model, index) for model in models], parts, first, n_jobs=n_jobs, tag=tag)
    return CrossValidation(run, tuple(models), tuple(map(tuple, parts)), tuple(seconds))


def training_line(model: LinearModel) -> str:
    """The training score of a model, and what was chosen: features, or the parameters of a baseline."""
    made, chosen = model.provenance, list(map(str, model.features))
    if "baseline" in made:
        chosen = [f"{name} {getattr(model.parameters, name):g}" for name in made["tuned"]]
    if "choice" in made:
        chosen = [made["choice"]["chosen"]]
    score = model.training_scores[-1] if model.training_scores else made["training_score"]
    return f"{model.objective} {score:.4f} on {len(made['queries'])} training queries with {', '.join(chosen)}"


def _as_run(rankings: Rankings) -> Run:
    return rankings if isinstance(rankings, Run) else Run(checked_rankings(rankings))


def _noted(model: LinearModel, more: Mapping[str, Any]) -> LinearModel:
    return replace(model, provenance={**model.provenance, **more})


def rerank_by_fold(
    stages: Sequence[Callable[[Ranking], Ranking]],
    folds: Sequence[Collection[str]],
    first: Run,
    *,
    n_jobs: int | None = None,
    tag: str = "greylag",
) -> Run:
    """Rerank the queries of each fold by the stage of that fold.

    Parameters
    ----------
    stages : sequence of stages
        One for each fold, such as ``[MRFRanker(model, index) for model in models]``.
    folds : sequence of collections of str
        The test queries of each fold. Queries in no fold are left out.
    first : Run
        The first stage; its order of queries is kept.
    n_jobs : int, optional
        Number of workers; the result does not depend on it.
    tag : str, default "greylag"
        The tag of the resulting run.
    """
    stage_of = {qid: stage for stage, test in zip(stages, folds, strict=True) for qid in test}
    tested = Run(tuple(ranking for ranking in first.rankings if ranking.qid in stage_of), first.tag)
    return run_step(lambda ranking: stage_of[ranking.qid](ranking), tested, n_jobs=n_jobs, tag=tag)
