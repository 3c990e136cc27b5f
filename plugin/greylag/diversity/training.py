"""Training of SVM-div and its ensembles, from rankings and judgements by subtopic to a `DiversityModel`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Protocol, cast

import numpy as np

from greylag import __version__
from greylag.base import FloatArray, ParameterError, Ranking, Run, parallel_map
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage_model import Candidates, CoverageModel
from greylag.diversity.model import DiversityModel
from greylag.evaluation import SubtopicQrels, Subtopics

C_GRID = tuple(10.0**exponent for exponent in range(-5, 4))
"""1e-5, 1e-4, ..., 1e3: the values of C in the experiments of Yue & Joachims (2008), section 6."""

VALIDATE_EVERY = 4  # Yue & Joachims train on 12 queries and validate on 4
Example = tuple[Candidates, Subtopics]
_log = logging.getLogger("greylag")


class DiversityLearner(Protocol):
    """Learns weights of a `CoverageModel`; a frozen dataclass, whose fields are options and provenance.

    A learner that has a method ``fit_path(model, examples, grid)``, as `CuttingPlane` has, is fitted to a grid of C by
    that.
    """

    @property
    def C(self) -> float:  # noqa: N802 - the paper's symbol
        """The cost of the loss, which validation chooses."""

    def fit(self, model: CoverageModel, examples: Sequence[Example]) -> Any:
        """Learn from candidates and their subtopics; the result has `weights`, shape (d,), or (M, d) of an ensemble."""


def training_examples(
    rankings: Run | Iterable[Ranking],
    qrels: SubtopicQrels,
    make: CandidateMaker,
    *,
    relevant_only: bool = False,
    weighted: bool = True,
    n_jobs: int | None = None,
) -> dict[str, Example]:
    """Return the candidates and subtopics of each query; queries without a covered subtopic are dropped with a warning.

    Subtopics are weighted by the number of candidates that cover them (Yue & Joachims 2008, section 6). Documents
    outside the index are no candidates.

    Parameters
    ----------
    make : CandidateMaker
        Makes the candidates from the top documents, as many as its depth.
    relevant_only : bool, default False
        Whether only documents that cover a subtopic are candidates, as in the paper.
    weighted : bool, default True
        Whether the loss weighs a subtopic by its candidates, or all alike. Other weights, such as clicks, can be given
        as the `Subtopics` of an example.
    """
    used = tuple(rankings.rankings if isinstance(rankings, Run) else rankings)
    pairs = [(ranking, qrels.get(ranking.qid, {})) for ranking in used]
    work = partial(_example, make=make, relevant_only=relevant_only, weighted=weighted)
    of_rankings = parallel_map(work, pairs, what="candidates", n_jobs=n_jobs)
    by_qid = {ranking.qid: example for ranking, example in zip(used, of_rankings, strict=True)}
    examples = {qid: example for qid, example in by_qid.items() if example is not None}
    # Told apart, since the judgements are to blame for the one and the run for the other.
    without = [qid for qid, example in by_qid.items() if example is None and qrels.get(qid)]
    unjudged = [qid for qid in by_qid if not qrels.get(qid)]
    if not examples:
        raise ParameterError(
            "nothing to learn from: no query has a candidate that covers a subtopic; check that the judgements are by "
            "subtopic and for the documents of this run"
        )
    if unjudged:
        _log.warning("dropped %d queries without judgements: %s", len(unjudged), ", ".join(unjudged))
    if without:
        _log.warning("dropped %d queries in which no candidate covers a subtopic: %s", len(without), ", ".join(without))
    return examples


def _example(
    item: tuple[Ranking, Mapping[str, Mapping[str, int]]], *, make: CandidateMaker, relevant_only: bool, weighted: bool
) -> Example | None:
    """Return the example of a query with its judgements; None if no candidate covers a subtopic."""
    ranking, judged = item
    # Known documents first and then the depth, as the stage does.
    candidates = ranking.select(make.index.knows(ranking.docids)).head(make.depth)
    truth = Subtopics.from_qrels(candidates.docids, judged, candidates_only=True)
    if relevant_only:
        covering = np.diff(truth.coverage.indptr) > 0
        candidates, truth = candidates.select(covering), replace(truth, coverage=truth.coverage[covering])
    if not weighted and len(truth.weights):
        truth = replace(truth, weights=np.full(len(truth.weights), 1.0 / len(truth.weights)))
    return (make(candidates), truth) if truth.coverage.nnz else None


def mean_loss(model: CoverageModel, examples: Collection[Example], weights: FloatArray) -> float:
    """Compute the mean loss of the predictions for some examples, by weights of shape (d,) or (M, d)."""
    members = np.atleast_2d(weights)  # one vector is an ensemble of one, whose best prediction counts
    losses = [[model.loss(subtopics, model.infer(x, member)) for member in members] for x, subtopics in examples]
    return float(np.min(losses, axis=1).mean())


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


@dataclass(frozen=True)
class FittedDiversity:
    """A model that diversifies, and how it was fitted; ``str`` is a line about that."""

    model: DiversityModel
    learner: DiversityLearner  # with the C that was used
    solution: Any  # the learner's result, such as `Solution` or `Ensemble`
    queries: tuple[str, ...]  # that were trained on
    validation: tuple[str, ...]  # that chose C

    def __str__(self) -> str:
        where = "of them" if set(self.validation) <= set(self.queries) else "more"
        validated = f", C chosen on {len(self.validation)} {where}" if self.validation else ""
        members = [f"{len(self.model.weights)} models"] if len(self.model.weights) > 1 else []
        found = {name: value for name, value in _outcome(self.solution).items() if name != "converged"}
        outcome = [f"{name.replace('_', ' ')} {value:.6g}" for name, value in found.items()]
        trained = f"{len(self.queries)} queries{validated}: C {self.learner.C:g}"
        return ", ".join([trained, *members, *outcome])


def train(
    training: Mapping[str, Example],
    make: CandidateMaker,
    learner: DiversityLearner,
    *,
    k: int = 5,
    validation: Mapping[str, Example] | None = None,
    retrain: bool = False,
    n_jobs: int | None = None,
) -> FittedDiversity:
    """Train SVM-div, or an ensemble of it, to pick sets of k documents.

    Parameters
    ----------
    training : mapping
        Examples by qid, made by `make` (see `training_examples`).
    learner : DiversityLearner
        `CuttingPlane` finds one weight vector, `Coulomb` M of them.
    validation : mapping, optional
        Examples by qid that choose C from `C_GRID`, instead of the C of the learner.
    retrain : bool, default False
        Whether to train on the validation examples, too, once C is chosen.
    """
    model = CoverageModel(k)
    solutions = _fit_grid(model, list(training.values()), learner, C_GRID if validation else [learner.C], n_jobs=n_jobs)
    C = learner.C
    if validation:  # the lowest mean loss, pick-best for ensembles; ties go to the first
        C = min(solutions, key=lambda C: mean_loss(model, validation.values(), solutions[C].weights))
    solution = solutions[C]
    if retrain and validation:
        training = {**training, **validation}
        solution = _fit_grid(model, list(training.values()), learner, [C])[C]
    learner, queries, chosen_on = replace(cast(Any, learner), C=C), tuple(training), tuple(validation or ())
    vectors = np.atleast_2d(solution.weights).tolist()
    fitted = DiversityModel(
        features=make.features,
        weights=tuple(map(tuple, vectors)),
        k=k,
        depth=make.depth,
        titles=make.titles is not None,
        parameters=make.parameters,
        fingerprint=make.index.fingerprint,
        provenance={
            "greylag": __version__,
            "queries": [*queries],
            "validation": [*chosen_on],
            **asdict(cast(Any, learner)),
            **_outcome(solution),
            "method": "svmdiv" if len(vectors) == 1 else "cssvm",
        },
    )
    return FittedDiversity(fitted, learner, solution, queries, chosen_on)


def split_validation(examples: Mapping[str, Example]) -> tuple[dict[str, Example], dict[str, Example]]:
    """Split off every fourth example, to choose C on; the others are trained on."""
    held_out = {qid: examples[qid] for qid in list(examples)[VALIDATE_EVERY - 1 :: VALIDATE_EVERY]}
    return {qid: example for qid, example in examples.items() if qid not in held_out}, held_out


def _outcome(solution: Any) -> dict[str, Any]:
    """Return the attributes of a learner's result that models and messages show, where it has them."""
    names = ("mean_angle", "objective", "gap", "converged")
    return {name: getattr(solution, name) for name in names if hasattr(solution, name)}
