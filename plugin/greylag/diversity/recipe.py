"""Recipes of models that diversify: how SVM-div or an ensemble is learned, cross-validated and spelt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, is_dataclass, replace
from functools import partial
from inspect import cleandoc
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from greylag.base import (
    Parameter,
    ParameterError,
    Ranking,
    Run,
    Value,
    as_run,
    check_choice,
    entry_files,
    load_entry,
    nearest,
    parameters,
    read_call,
    read_options,
    registered,
    shown,
)
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage_model import PRESETS, CoverageFeatures, CoverageModel, Criterion
from greylag.diversity.mmr import MMR
from greylag.diversity.model import DiversityModel
from greylag.diversity.random_order import RandomOrder
from greylag.diversity.svmdiv import CSSVM, SVMDiv
from greylag.diversity.training import (
    VALIDATE_EVERY,
    DiversityLearner,
    Example,
    FittedDiversity,
    split_validation,
    train,
    training_examples,
)
from greylag.evaluation import Scores, SubtopicQrels, fit_by_fold, rerank_by_fold, score_subtopics, split_folds
from greylag.index import PositionalIndex
from greylag.learning import CuttingPlane

RANDOM_ORDERS = 20
"""The number of random orders whose mean scores stand for chance."""


@dataclass(frozen=True)
class DiversityRecipe:
    """A way to learn a model that diversifies from rankings and judgements by subtopic.

    Parameters
    ----------
    learner : DiversityLearner
        `CuttingPlane` learns SVM-div, `Coulomb` an ensemble.
    k : int >= 1, default 5
        The size of the sets that it learns to pick.
    depth : int >= 1, default 100
        The candidates are this number of top documents.
    preset : "svmdiv", "svmdiv2" or "svmdiv-all-levels", default "svmdiv"
        The words that count: those that are frequent or in titles; "svmdiv2" by TF-IDF, too; "svmdiv-all-levels" with
        features of all criteria at once.
    criteria : tuple of str, default ()
        Criteria instead of the preset's, such as "count>=1" and "anchor>=1", where anchor is a field of the
        documents.
    thresholds : tuple of float, default ()
        Thresholds instead of the preset's, such as 0.1 and 0.5.
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

    learner: DiversityLearner
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
        check_choice("preset", self.preset, PRESETS)
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

    def prepare(
        self,
        rankings: Run,
        qrels: SubtopicQrels,
        index: PositionalIndex,
        *,
        titles: Mapping[str, str | Mapping[str, Any]] | None = None,
        n_jobs: int | None = None,
    ) -> tuple[CandidateMaker, dict[str, Example]]:
        """Return the maker of candidates, and the examples by qid, which are the same for all folds."""
        make = CandidateMaker(index, self.features, titles=titles, depth=self.depth)
        relevant, weighted = self.candidates == "relevant", self.loss == "weighted"
        return make, training_examples(rankings, qrels, make, relevant_only=relevant, weighted=weighted, n_jobs=n_jobs)

    def fit(
        self, examples: Mapping[str, Example], make: CandidateMaker, *, n_jobs: int | None = None
    ) -> FittedDiversity:
        """Learn from examples of `prepare`; `validate` needs four of them, and with fewer, the learner's C is used."""
        if not examples:
            raise ParameterError("nothing to learn from in a fold: no query has a candidate that covers a subtopic")
        training, held_out = split_validation(examples) if self.validate else (examples, {})
        return train(training, make, self.learner, k=self.k, validation=held_out, retrain=self.retrain, n_jobs=n_jobs)

    def stage(self, fitted: FittedDiversity, make: CandidateMaker, k: int | None = None) -> SVMDiv | CSSVM:
        """Return the stage that picks k documents by the model, by default as many as it was trained to pick."""
        kind = SVMDiv if len(fitted.model.weights) == 1 else CSSVM
        return kind(fitted.model, make.index, titles=make.titles, k=self.k if k is None else k)


@dataclass(frozen=True)
class Titles:
    """Document titles, whose words also count.

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
    # folds, the rankings of the queries that chose C, "validation (chose C)"
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
    rankings : Run
        The first stage, whose top documents are diversified.
    qrels : mapping
        Grades by qid, subtopic and docid. Queries in which no candidate covers a subtopic are left out with a warning.
    index, titles
        See `CandidateMaker`.
    tag : str, default "held-out"
        Of the held-out run.
    """
    make, examples = recipe.prepare(rankings, qrels, index, titles=titles, n_jobs=n_jobs)
    if recipe.validate and len(examples) < VALIDATE_EVERY:
        raise ParameterError(f"validate needs {VALIDATE_EVERY} queries with subtopics, not {len(examples)}")
    qids, held_out = list(examples), None
    if folds is not None:
        # One seed for all models, so that their held-out rankings can be compared.
        parts = split_folds(qids, folds, 0)
        held_out = diversify_by_fold(recipe, make, examples, qids, parts, rankings, n_jobs=n_jobs, tag=tag)
    fitted, scored = recipe.fit(examples, make, n_jobs=n_jobs), held_out
    # Without folds, the queries that C was chosen on are the nearest to held-out ones, if they were not trained on.
    if scored is None and fitted.validation and not recipe.retrain:
        scored = recipe.stage(fitted, make).run(rankings.select_queries(fitted.validation), n_jobs=n_jobs)
    scores = {} if scored is None else beside_others(recipe, scored, rankings, qrels, index)
    if held_out is None and scores:
        scores["validation (chose C)"] = scores.pop("held out")
    return DiversityTraining(fitted, held_out, scores)


def diversify_by_fold(
    recipe: DiversityRecipe,
    make: CandidateMaker,
    examples: Mapping[str, Example],
    qids: Sequence[str],
    folds: Sequence[Sequence[str]],
    first: Run,
    *,
    k: int | None = None,
    tag: str,
    n_jobs: int | None,
) -> Run:
    """Diversify the queries of each fold by a model of the others."""

    def fit(training: Sequence[str]) -> SVMDiv | CSSVM:
        of_others = {qid: examples[qid] for qid in training if qid in examples}
        return recipe.stage(recipe.fit(of_others, make, n_jobs=n_jobs), make, k)

    # Examples are made once: what a query contributes does not depend on the others.
    stages = [*fit_by_fold(fit, qids, folds, n_jobs=n_jobs)]
    return rerank_by_fold(stages, folds, first, n_jobs=n_jobs, tag=tag)


def fit_svmdiv(
    rankings: Run | Iterable[Ranking],
    qrels: SubtopicQrels,
    documents: PositionalIndex | Mapping[str, str],
    *,
    preset: str = "svmdiv2",
    document_features: Sequence[str] = ("score",),
    set_size: int = 5,
    depth: int = 100,
    picks: int = 20,
    C: float | None = None,
    n_jobs: int | None = None,
) -> SVMDiv:
    """Train SVM-div on judged rankings, from texts or an index to the stage that diversifies.

    Parameters
    ----------
    qrels : mapping
        Grades by qid, subtopic or nugget, and docid.
    documents : PositionalIndex or mapping of str to str
        The collection: an index, or texts by docid.
    preset : str, default "svmdiv2"
        One of `greylag.diversity.PRESETS`.
    document_features : sequence of str, default ("score",)
        See `CandidateMaker`. The score lets it weigh relevance against words.
    set_size : int >= 1, default 5
        The size of the sets that it learns to pick.
    depth, picks : int >= 1
        The candidates are the top `depth` documents, of which the stage picks `picks`.
    C : float > 0, optional
        By default the value of `C_GRID` with the lowest mean loss on every fourth query, which is held out; with fewer
        than four queries, 1.
    """
    index = documents if isinstance(documents, PositionalIndex) else PositionalIndex.from_texts(documents)
    learner, given = CuttingPlane(C=1.0 if C is None else C), tuple(document_features)
    recipe = DiversityRecipe(
        learner, k=set_size, depth=depth, preset=cast(Any, preset), document_features=given, validate=C is None
    )
    make, examples = recipe.prepare(as_run(rankings), qrels, index, n_jobs=n_jobs)
    return SVMDiv(recipe.fit(examples, make, n_jobs=n_jobs).model, index, k=picks)


def beside_others(
    recipe: DiversityRecipe, held_out: Run, first: Run, qrels: SubtopicQrels, index: PositionalIndex
) -> dict[str, Scores]:
    """Score held-out rankings by qid beside the first stage, MMR, and the mean of random orders."""
    before = first.select_queries(held_out)
    options: dict[str, Any] = {"depth": recipe.depth, "k": recipe.k}
    measures = [f"subtopic-loss@{recipe.k}", f"alpha-nDCG@{recipe.k}"]
    score = partial(score_subtopics, qrels={qid: qrels[qid] for qid in held_out}, measures=measures)
    # Their mean stands for the expectation; one order could be lucky.
    orders = [score(RandomOrder(seed=seed, **options).run(before)) for seed in range(RANDOM_ORDERS)]
    return {
        "first stage": score(before),
        "chance": replace(orders[0], values=np.mean([order.values for order in orders], axis=0)),
        "MMR": score(MMR(index, **options).run(before)),
        "held out": score(held_out),
    }


def find_diversity_learner(name: str) -> Any:
    """Find the class of a registered learner of diversity; `ParameterError` if it cannot be imported or is none."""
    kind = load_entry("diversity learner", name)
    learns = isinstance(kind, type) and callable(getattr(kind, "fit", None)) and is_dataclass(kind)
    if not (learns and "C" in parameters(kind)):
        raise ParameterError(f"diversity learner {name} is {shown(kind)}, not a dataclass with a C and a method fit")
    if both := sorted(parameters(kind).keys() & _OTHERS.keys()):
        raise ParameterError(f"diversity learner {name} has the parameter {both[0]}, which recipes have: rename it")
    return kind


_OTHERS = {**parameters(DiversityRecipe, "document_features"), **parameters(Titles)}


@dataclass(frozen=True)
class DiversityModelKind:
    """A model that can be spelt, by the name of its learner, which is imported when it is first asked for."""

    name: str

    @property
    def summary(self) -> str:
        """The first line of the learner's docstring."""
        return cleandoc(find_diversity_learner(self.name).__doc__).partition("\n")[0].rstrip(".")

    @property
    def options(self) -> Mapping[str, Parameter]:
        """The options by name: the learner's and `DiversityRecipe`'s."""
        return {**parameters(find_diversity_learner(self.name)), **_OTHERS}


DIVERSITY_MODELS = {name: DiversityModelKind(name) for name in registered("diversity learner")}
"""The models that diversify, by name: one for each learner of the group ``greylag.diversity_learners``."""


def parse_diversity(text: str, document_features: tuple[str, ...] = ()) -> DiversityRecipe:
    """Parse the recipe of a spelling, such as ``svmdiv(C=1,k=5)``; `diversity_files` has its file of titles."""
    return spelt_diversity(*read_call(text), document_features)


def spelt_diversity(
    name: str, options: Mapping[str, Value], document_features: tuple[str, ...] = ()
) -> DiversityRecipe:
    """Make the recipe of a model's name and options; see `parse_diversity`."""
    if name not in DIVERSITY_MODELS:
        raise ParameterError(f"unknown model {name!r:.60}: {nearest(name, DIVERSITY_MODELS)}")
    values = read_options(name, options, DIVERSITY_MODELS[name].options)
    if values.get("validate") and "C" in values:
        raise ParameterError("C and validate=true cannot be combined: validate chooses C")
    values.pop("titles", None)
    kind = find_diversity_learner(name)
    of_learner = {key: values.pop(key) for key in parameters(kind) if key in values}
    return DiversityRecipe(kind(**of_learner), document_features=document_features, **values)


def diversity_files(text: str) -> list[str]:
    """List the file of titles that the spelling of a model names, and the code of a learner of another package."""
    name, options = read_call(text)
    if name not in DIVERSITY_MODELS:
        return []
    return [*([str(options["titles"])] if "titles" in options else []), *entry_files("diversity learner", name)]
