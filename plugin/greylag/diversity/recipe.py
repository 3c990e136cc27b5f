"""Recipes of models that diversify: how SVM-div or an ensemble is learned, cross-validated and spelt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from greylag.core.spelling import Parameter, nearest, parameters, read_call, read_options
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage_model import PRESETS, CoverageFeatures, CoverageModel, Criterion
from greylag.diversity.mmr import MMR
from greylag.diversity.model import DiversityModel
from greylag.diversity.random_order import RandomOrder
from greylag.diversity.svmdiv import CSSVM, SVMDiv
from greylag.diversity.training import (
    VALIDATE_EVERY,
    Example,
    FittedDiversity,
    split_validation,
    train,
    training_examples,
)
from greylag.errors import ParameterError
from greylag.evaluation import Scores
from greylag.evaluation.folds import fit_by_fold, rerank_by_fold, split_folds
from greylag.evaluation.scores import evaluate_by_subtopic
from greylag.index.positional import PositionalIndex
from greylag.learning.structured.coulomb import Coulomb
from greylag.learning.structured.cutting_plane import CuttingPlane
from greylag.ranking import Run
from greylag.trec import SubtopicQrels

VALIDATION = "validation (chose C)"
"""The name of the rankings of queries that C was chosen on."""

RANDOM_ORDERS = 20
"""The random orders whose mean scores are those of chance."""


@dataclass(frozen=True)
class DiversityRecipe:
    """How a model that diversifies is learned from rankings and judgements by subtopic.

    Parameters
    ----------
    learner : CuttingPlane or Coulomb
        `CuttingPlane` learns SVM-div, `Coulomb` an ensemble.
    k : int >= 1, default 5
        The size of the sets that it learns to pick.
    depth : int >= 1, default 100
        The candidates are this number of top documents.
    preset : "svmdiv", "svmdiv2" or "svmdiv-all-levels", default "svmdiv"
        The words that count: those that are frequent or in titles; "svmdiv2" by TF-IDF, too; "svmdiv-all-levels" with
        features of all criteria at once.
    criteria : tuple of str, default ()
        Criteria instead of those of the preset, such as "count>=1" and "anchor>=1", where anchor is a field of the
        documents.
    thresholds : tuple of float, default ()
        Thresholds instead of those of the preset, such as 0.1 and 0.5.
    document_features : tuple of str, default ()
        Features of documents, such as "score"; see `CandidateMaker`.
    candidates : "all" or "relevant", default "all"
        Whether all top documents are candidates, or those alone that cover a subtopic.
    loss : "weighted" or "unweighted", default "weighted"
        Whether a subtopic is weighted by its candidates.
    validate : bool, default False
        Whether C is chosen, from 1e-5 to 1e3, on every fourth query, which is not trained on.
    retrain : bool, default False
        Whether all queries are trained on, once C is chosen.
    """

    learner: CuttingPlane | Coulomb
    _: KW_ONLY
    k: int = 5
    depth: int = 100
    preset: Literal["svmdiv", "svmdiv2", "svmdiv-all-levels"] = "svmdiv"
    criteria: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()
    document_features: tuple[str, ...] = ()
    candidates: Literal["all", "relevant"] = "all"
    loss: Literal["weighted", "unweighted"] = "weighted"
    validate: bool = False
    retrain: bool = False

    def __post_init__(self) -> None:
        if self.retrain and not self.validate:
            raise ParameterError("retrain=true needs validate=true: without it, all queries are trained on")
        CoverageModel(self.k)  # checks it
        self.features  # noqa: B018 - checks them

    @property
    def features(self) -> CoverageFeatures:
        """The features of the preset, with other criteria or thresholds if there are any."""
        changed: dict[str, Any] = {"document_features": self.document_features}
        if self.criteria:
            changed["criteria"] = tuple(map(Criterion.parse, self.criteria))
        if self.thresholds:
            changed["thresholds"] = self.thresholds
        return replace(PRESETS[self.preset], **changed)

    @property
    def method(self) -> str:
        """The stage that applies the model: svmdiv or cssvm."""
        return "svmdiv" if isinstance(self.learner, CuttingPlane) else "cssvm"

    def fit(
        self, examples: Mapping[str, Example], make: CandidateMaker, *, n_jobs: int | None = None
    ) -> FittedDiversity:
        """Learn from examples of `training_examples`, by qid."""
        training, held_out = split_validation(examples) if self.validate else (examples, {})
        if self.validate and not held_out:
            raise ParameterError(
                f"validate needs at least {VALIDATE_EVERY} queries with subtopics, not {len(examples)}"
            )
        return train(
            training, make, self.learner, k=self.k, validation=held_out, retrain=self.retrain,
            provenance={"method": self.method}, n_jobs=n_jobs,
        )  # fmt: skip

    def stage(self, fitted: FittedDiversity, make: CandidateMaker) -> SVMDiv | CSSVM:
        """Return the stage that picks k documents by the model."""
        kind = SVMDiv if self.method == "svmdiv" else CSSVM
        return kind(fitted.model, make.index, titles=make.titles, k=self.k)


@dataclass(frozen=True)
class Titles:
    """The titles of documents, by whose words they are compared, too.

    Parameters
    ----------
    titles : str, optional
        A file of JSON lines with id and title, and with other fields that criteria are on, such as the documents.
    """

    titles: str | None = None


class DiversityTraining(NamedTuple):
    """A model that diversifies, and its scores on queries that it was not trained on."""

    fitted: FittedDiversity
    # With folds, every query with subtopics, diversified by the model of the other folds
    held_out: Run | None
    # Subtopic loss and alpha-nDCG at k of the "first stage", "chance", "MMR" and the "held out" rankings, or, without
    # folds, those of the queries that chose C, "validation (chose C)"
    scores: Mapping[str, Scores]

    @property
    def model(self) -> DiversityModel:
        """The model that was trained on all queries."""
        return self.fitted.model


def train_to_diversify(
    recipe: DiversityRecipe,
    rankings: Run,
    qrels: SubtopicQrels,
    index: PositionalIndex,
    *,
    titles: Mapping[str, str | Mapping[str, Any]] | None = None,
    folds: int | None = None,
    tag: str = "held-out",
    n_jobs: int | None = None,
) -> DiversityTraining:
    """Learn a model by a recipe and, with `folds`, score the recipe by cross-validation over queries.

    Parameters
    ----------
    recipe : DiversityRecipe
    rankings : Run
        The first stage, whose top documents are diversified.
    qrels : mapping
        Grades by qid, subtopic and docid. Queries in which no candidate covers a subtopic are left out with a warning.
    index : PositionalIndex
    titles : mapping, optional
        As in `CandidateMaker`.
    folds : int >= 2, optional
        The number of folds of cross-validation; none by default.
    tag : str, default "held-out"
        The tag of the held-out run.
    n_jobs : int, optional
        Number of workers; results do not depend on it.
    """
    make = CandidateMaker(index, recipe.features, titles=titles, depth=recipe.depth)
    relevant, weighted = recipe.candidates == "relevant", recipe.loss == "weighted"
    examples = training_examples(rankings, qrels, make, relevant_only=relevant, weighted=weighted, n_jobs=n_jobs)
    qids, held_out = list(examples), None

    def fit(training: Sequence[str]) -> FittedDiversity:
        return recipe.fit({qid: examples[qid] for qid in training}, make, n_jobs=n_jobs)

    if folds is not None:
        parts = split_folds(qids, folds, 0)
        stages = [recipe.stage(of_fold, make) for of_fold in fit_by_fold(fit, qids, parts, n_jobs=n_jobs)]
        held_out = rerank_by_fold(stages, parts, rankings, n_jobs=n_jobs, tag=tag)
    fitted, scored = fit(qids), held_out
    # Without folds, the queries that C was chosen on are the nearest to held-out ones, if they were not trained on.
    if scored is None and fitted.validation and not recipe.retrain:
        scored = recipe.stage(fitted, make).run(rankings.select_queries(fitted.validation), n_jobs=n_jobs)
    scores = {} if scored is None else beside_others(recipe, scored, rankings, qrels, index)
    if held_out is None and scores:
        scores[VALIDATION] = scores.pop("held out")
    return DiversityTraining(fitted, held_out, scores)


def beside_others(
    recipe: DiversityRecipe, held_out: Run, first: Run, qrels: SubtopicQrels, index: PositionalIndex
) -> dict[str, Scores]:
    """Score held-out rankings by qid beside those of the first stage, MMR, and the mean of random orders."""
    before = first.select_queries(held_out)
    options: dict[str, Any] = {"depth": recipe.depth, "k": recipe.k}
    measures = [f"subtopic-loss@{recipe.k}", f"alpha-nDCG@{recipe.k}"]
    score = partial(evaluate_by_subtopic, qrels={qid: qrels[qid] for qid in held_out}, measures=measures)
    # Their mean stands for the expectation; one order could be lucky.
    orders = [score(RandomOrder(seed=seed, **options).run(before)) for seed in range(RANDOM_ORDERS)]
    return {
        "first stage": score(before),
        "chance": replace(orders[0], values=np.mean([order.values for order in orders], axis=0)),
        "MMR": score(MMR(index, **options).run(before)),
        "held out": score(held_out),
    }


LEARNERS: Mapping[str, tuple[str, type[CuttingPlane | Coulomb]]] = {
    "svmdiv": ("SVM-div: pick documents that cover subtopics", CuttingPlane),
    "cssvm": ("an ensemble of these that repel each other", Coulomb),
}
"""The models that diversify, by name: a line about each, and its learner."""


def parse_diversity(text: str, document_features: tuple[str, ...] = ()) -> DiversityRecipe:
    """Parse the recipe of a spelling, such as ``svmdiv(C=1,k=5)``; `title_files` has its file of titles."""
    name, options = read_call(text)
    if name not in LEARNERS:
        raise ParameterError(f"unknown model {name!r:.60}: {nearest(name, LEARNERS)}")
    values = read_options(name, options, options_of(name))
    if values.get("validate") and "C" in values:
        raise ParameterError("C and validate=true cannot be combined: validate chooses C")
    kind = LEARNERS[name][1]
    values.pop("titles", None)
    of_learner = {key: values.pop(key) for key in parameters(kind) if key in values}
    return DiversityRecipe(kind(**of_learner), document_features=document_features, **values)


def title_files(text: str) -> list[str]:
    """Return the file of titles that the spelling of a model names, if it does."""
    name, options = read_call(text)
    return [str(options["titles"])] if name in LEARNERS and "titles" in options else []


def options_of(name: str) -> dict[str, Parameter]:
    """Return the options of a model of `LEARNERS`: those of its learner, and of `DiversityRecipe`."""
    return {**parameters(LEARNERS[name][1]), **parameters(DiversityRecipe, "document_features"), **parameters(Titles)}
