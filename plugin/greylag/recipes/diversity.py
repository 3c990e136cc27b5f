"""Recipes of models that diversify: SVM-div or an ensemble, from rankings and judgements by subtopic."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, cast

import numpy as np

from greylag import __version__
from greylag.base import (
    FloatArray,
    ParameterError,
    PassagesLike,
    Ranking,
    Run,
    RunLike,
    SubtopicQrelsLike,
    as_subtopic_qrels,
    check_choice,
    parallel_map,
)
from greylag.diversity import (
    CSSVM,
    MMR,
    PRESETS,
    CandidateMaker,
    CoverageFeatures,
    CoverageModel,
    Criterion,
    DiversityLearner,
    DiversityModel,
    Example,
    RandomOrder,
    SVMDiv,
)
from greylag.evaluation import Scores, SubtopicQrels, Subtopics, score_subtopics
from greylag.index import PositionalIndex
from greylag.learning import CuttingPlane, task_losses
from greylag.recipes.fitted import Fitted
from greylag.recipes.recipe import FIRST, Fit, Recipe

C_GRID = tuple(10.0**exponent for exponent in range(-5, 4))
"""1e-5, 1e-4, ..., 1e3: the values of C in the experiments of Yue & Joachims (2008), section 6."""
VALIDATE_EVERY = 4  # Yue & Joachims train on 12 queries and validate on 4
RANDOM_ORDERS = 20
"""The number of random orders whose mean scores stand for chance."""
_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class DiversityRecipe(Recipe[DiversityModel]):
    """A way to learn a model that diversifies from rankings and judgements by subtopic.

    Subtopics are weighted by the number of candidates that cover them (Yue & Joachims 2008, section 6). Documents
    outside the index are no candidates.

    Parameters
    ----------
    learner : DiversityLearner
        `CuttingPlane` learns SVM-div; others may learn an ensemble.
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
    picks : int >= 1, optional
        The number of documents that held-out rankings pick; k by default.
    titles : mapping, optional
        See `CandidateMaker`.
    """

    diversifies: ClassVar[bool] = True

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
    picks: int | None = None
    titles: Mapping[str, str | Mapping[str, Any]] | None = field(default=None, repr=False, hash=False)

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

    def judgements(self, qrels: Any) -> SubtopicQrels:
        """Return the grades by qid, subtopic and docid."""
        return as_subtopic_qrels(qrels)

    def topics(self, rankings: Run, qrels: SubtopicQrels, index: PositionalIndex | None) -> list[str]:
        """List the queries with a candidate that covers a subtopic."""
        covered = list(self._covered(rankings, qrels, cast(PositionalIndex, index)))
        if self.validate and len(covered) < VALIDATE_EVERY:
            raise ParameterError(f"validate needs {VALIDATE_EVERY} queries with subtopics, not {len(covered)}")
        return covered

    def prepare(
        self, rankings: Run, qrels: SubtopicQrels, index: PositionalIndex, *, n_jobs: int | None = None
    ) -> Fit[DiversityModel]:
        """Make the candidates of each query that can be learned from; log the others."""
        make = CandidateMaker(index, self.features, titles=self.titles, depth=self.depth)
        covered = self._covered(rankings, qrels, index)
        made = parallel_map(make, [candidates for candidates, _ in covered.values()], what="candidates", n_jobs=n_jobs)
        examples = {qid: (x, truth) for x, (qid, (_, truth)) in zip(made, covered.items(), strict=True)}
        return partial(self.learn, make, examples)

    def _covered(
        self, rankings: Run, qrels: SubtopicQrels, index: PositionalIndex
    ) -> dict[str, tuple[Ranking, Subtopics]]:
        """Find the candidates and subtopics of each query in which a candidate covers one; log the others."""
        judged = {
            ranking.qid: self._judged(ranking, qrels.get(ranking.qid, {}), index) for ranking in rankings.rankings
        }
        covered = {qid: known for qid, known in judged.items() if known[1].coverage.nnz}
        if not covered:
            raise ParameterError(
                "nothing to learn from: no query has a candidate that covers a subtopic; check that the judgements are "
                "by subtopic and for the documents of this run"
            )
        # Told apart, since the judgements are to blame for the one and the run for the other.
        unjudged = [qid for qid in judged if not qrels.get(qid)]
        others = [qid for qid in judged if qid not in covered and qrels.get(qid)]
        if unjudged:
            _log.warning("dropped %d queries without judgements: %s", len(unjudged), ", ".join(unjudged))
        if others:
            listed = ", ".join(others)
            _log.warning("dropped %d queries in which no candidate covers a subtopic: %s", len(others), listed)
        return covered

    def _judged(
        self, ranking: Ranking, grades: Mapping[str, Mapping[str, int]], index: PositionalIndex
    ) -> tuple[Ranking, Subtopics]:
        """Find the candidates of a query and the subtopics that they cover."""
        # Known documents first and then the depth, as the stage does.
        candidates = ranking.select(index.knows(ranking.docids)).head(self.depth)
        truth = Subtopics.from_qrels(candidates.docids, grades, candidates_only=True)
        if self.candidates == "relevant":
            covering = np.diff(truth.coverage.indptr) > 0
            candidates, truth = candidates.select(covering), replace(truth, coverage=truth.coverage[covering])
        if self.loss == "unweighted" and len(truth.weights):
            truth = replace(truth, weights=np.full(len(truth.weights), 1.0 / len(truth.weights)))
        return candidates, truth

    def learn(
        self, make: CandidateMaker, examples: Mapping[str, Example], qids: Sequence[str], *, n_jobs: int | None = None
    ) -> Fitted[DiversityModel]:
        """Learn from the examples of these queries; `validate` needs four of them, and with fewer keeps the C."""
        own = {qid: examples[qid] for qid in qids if qid in examples}
        if not own:
            raise ParameterError("nothing to learn from in a fold: no query has a candidate that covers a subtopic")
        held_out = [*own][VALIDATE_EVERY - 1 :: VALIDATE_EVERY] if self.validate else []
        return self.weigh(make, own, held_out, n_jobs=n_jobs)

    def weigh(
        self,
        make: CandidateMaker,
        examples: Mapping[str, Example],
        held_out: Sequence[str] = (),
        *,
        n_jobs: int | None = None,
    ) -> Fitted[DiversityModel]:
        """Learn from examples that `make` made; those of the held-out queries choose C from `C_GRID`."""
        model, validation = CoverageModel(self.k), [examples[qid] for qid in held_out]
        queries = tuple(qid for qid in examples if qid not in held_out)
        training, C = [examples[qid] for qid in queries], self.learner.C
        solutions = _fit_grid(model, training, self.learner, C_GRID if validation else [C], n_jobs=n_jobs)
        if validation:  # the lowest mean loss, pick-best for ensembles; ties go to the first
            C = min(solutions, key=lambda C: mean_loss(model, validation, solutions[C].weights))
        solution, where = solutions[C], "more"
        if self.retrain and validation:
            queries, where = (*queries, *held_out), "of them"
            solution = _fit_grid(model, [*training, *validation], self.learner, [C])[C]
        vectors, outcome = np.atleast_2d(solution.weights).tolist(), _outcome(solution)
        weighted = DiversityModel(
            features=make.features,
            weights=tuple(map(tuple, vectors)),
            k=self.k,
            depth=make.depth,
            titles=make.titles is not None,
            parameters=make.parameters,
            fingerprint=make.index.fingerprint,
            provenance={
                "greylag": __version__,
                "queries": [*queries],
                "validation": [*held_out],
                **asdict(replace(cast(Any, self.learner), C=C)),
                **outcome,
                "method": "svmdiv" if len(vectors) == 1 else "cssvm",
            },
        )
        chosen = [f"C {C:g}", *([f"{len(vectors)} models"] if len(vectors) > 1 else [])]
        chosen += [f"{name.replace('_', ' ')} {value:.6g}" for name, value in outcome.items() if name != "converged"]
        validated = f", C chosen on {len(held_out)} {where}" if held_out else ""
        return Fitted(
            weighted,
            queries,
            np.nan,
            tuple(chosen),
            chosen_on=() if self.retrain else tuple(held_out),
            outcome=f"{self.preset} on {len(queries)} queries{validated}: {', '.join(chosen)}",
        )

    def stage(self, fitted: Fitted[DiversityModel], index: PositionalIndex | None) -> SVMDiv | CSSVM:
        """Return the stage that picks by the model, by default as many documents as it was trained to pick."""
        kind, picks = SVMDiv if len(fitted.model.weights) == 1 else CSSVM, self.k if self.picks is None else self.picks
        return kind(fitted.model, cast(PositionalIndex, index), titles=self.titles, k=picks)

    def score(self, runs: Mapping[str, Run], qrels: SubtopicQrels, index: PositionalIndex | None) -> dict[str, Scores]:
        """Score rankings by loss and alpha-nDCG at k, beside MMR and the mean of random orders of the first stage."""
        first, options = runs[FIRST], dict[str, Any](depth=self.depth, k=self.k)
        measures = [f"subtopic-loss@{self.k}", f"alpha-nDCG@{self.k}"]
        score = partial(score_subtopics, qrels={qid: qrels[qid] for qid in first}, measures=measures)
        # Their mean stands for the expectation; one order could be lucky.
        orders = [score(RandomOrder(seed=seed, **options).run(first)) for seed in range(RANDOM_ORDERS)]
        others = {
            "chance": replace(orders[0], values=np.mean([order.values for order in orders], axis=0)),
            "MMR": score(MMR(index, **options).run(first)),
        }
        return {FIRST: score(first), **others, **{name: score(run) for name, run in runs.items() if name != FIRST}}


def mean_loss(model: CoverageModel, examples: Collection[Example], weights: FloatArray) -> float:
    """Compute the mean loss of the predictions for some examples, by weights of shape (d,) or (M, d)."""
    # One vector is an ensemble of one; the best prediction of an ensemble counts.
    return float(task_losses(model, [*examples], np.atleast_2d(weights)).min(axis=0).mean())


def _fit_grid(
    model: CoverageModel,
    training: Sequence[Example],
    learner: Any,
    grid: Collection[float],
    *,
    n_jobs: int | None = None,
) -> dict[float, Any]:
    """Fit a learner's result for each C of `grid`, in ascending order."""

    def fit(costs: Sequence[float], training: Sequence[Example]) -> dict[float, Any]:
        if hasattr(learner, "fit_path"):
            return dict(learner.fit_path(model, training, costs))
        return {C: replace(learner, C=C).fit(model, training) for C in costs}

    ascending = sorted(grid)
    # A path is one item of work: the constraints for one C are the start for the next.
    items = [ascending] if hasattr(learner, "fit_path") else [[C] for C in ascending]
    solutions = parallel_map(fit, items, training, what="values of C", n_jobs=n_jobs)
    return {C: solution for by_cost in solutions for C, solution in by_cost.items()}


def _outcome(solution: Any) -> dict[str, Any]:
    """Return the attributes of a learner's result that models and messages show, where it has them."""
    names = ("mean_angle", "objective", "gap", "converged")
    return {name: getattr(solution, name) for name in names if hasattr(solution, name)}


def fit_svmdiv(
    rankings: RunLike,
    qrels: SubtopicQrelsLike,
    documents: PositionalIndex | PassagesLike,
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
    qrels : SubtopicQrelsLike
        Judgements by subtopic or nugget.
    documents : PositionalIndex or PassagesLike
        The collection: an index, or texts by docid.
    preset : str, default "svmdiv2"
        One of `greylag.diversity.PRESETS`.
    document_features : sequence of str, default ("score",)
        See `CandidateMaker`. The score lets it weigh relevance against words.
    set_size : int >= 1, default 5
        The size of the sets that it learns to pick.
    depth, picks : int >= 1
        The candidates are the top `depth` documents; the stage picks `picks` of them.
    C : float > 0, optional
        By default the value of `C_GRID` with the lowest mean loss on every fourth query, which is held out; with fewer
        than four queries, 1.
    """
    index = documents if isinstance(documents, PositionalIndex) else PositionalIndex.from_texts(documents)
    learner, given = CuttingPlane(C=1.0 if C is None else C), tuple(document_features)
    recipe = DiversityRecipe(
        learner, k=set_size, depth=depth, preset=cast(Any, preset), document_features=given, validate=C is None
    )
    return SVMDiv(recipe.fit(rankings, qrels, index, n_jobs=n_jobs).model, index, k=picks)
