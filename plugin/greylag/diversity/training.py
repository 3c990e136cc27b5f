"""Training of SVM-div and its ensembles, from rankings and judgements by subtopic to a `DiversityModel`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from greylag import __version__
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage_model import PRESETS, Candidates, CoverageModel
from greylag.diversity.model import DiversityModel
from greylag.diversity.svmdiv import SVMDiv
from greylag.errors import ParameterError
from greylag.evaluation.subtopics import Subtopics
from greylag.index.positional import PositionalIndex
from greylag.learning.structured.coulomb import Coulomb
from greylag.learning.structured.cutting_plane import CuttingPlane, Solution
from greylag.learning.structured.ensemble import Ensemble
from greylag.ranking import FloatArray, Ranking, Run
from greylag.runtime.parallel import parallel_map
from greylag.trec import SubtopicQrels

C_GRID = tuple(10.0**exponent for exponent in range(-5, 4))
"""1e-5, 1e-4, ..., 1e3: the values of C in the experiments of Yue & Joachims (2008), section 6."""

VALIDATE_EVERY = 4  # Yue & Joachims train on 12 queries and validate on 4
Example = tuple[Candidates, Subtopics]
_log = logging.getLogger("greylag")


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
    rankings : Run or iterable of Ranking
        The rankings to learn from.
    qrels : mapping
        Grades by qid, subtopic and docid.
    make : CandidateMaker
        Makes the candidates from the top documents, as many as its depth.
    relevant_only : bool, default False
        Whether candidates are the documents that cover a subtopic alone, as in the paper, which leaves relevance to
        the ranking.
    weighted : bool, default True
        Whether the loss weighs a subtopic by its candidates, or all subtopics alike. Any other weights, such as clicks,
        can be given as the `Subtopics` of an example.
    n_jobs : int, optional
        Number of workers; the result does not depend on it.

    Returns
    -------
    dict
        Pairs of `Candidates` and `Subtopics` by qid.
    """
    used = tuple(rankings.rankings if isinstance(rankings, Run) else rankings)
    pairs = [(ranking, qrels.get(ranking.qid, {})) for ranking in used]
    work = partial(_example, make=make, relevant_only=relevant_only, weighted=weighted)
    of_rankings = parallel_map(work, pairs, what="candidates", n_jobs=n_jobs)
    by_qid = {ranking.qid: example for ranking, example in zip(used, of_rankings, strict=True)}
    examples = {qid: example for qid, example in by_qid.items() if example is not None}
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
    """Compute the mean loss of the predictions for some examples.

    Parameters
    ----------
    model : CoverageModel
        The model.
    examples : collection of pairs
        Candidates and their subtopics.
    weights : array, shape (d,) or (M, d)
        With M weight vectors, the loss of an example is that of the best prediction (pick-best).
    """
    members = np.atleast_2d(weights)
    losses = [[model.loss(subtopics, model.infer(x, member)) for member in members] for x, subtopics in examples]
    return float(np.min(losses, axis=1).mean())


def _fit_grid(
    model: CoverageModel,
    training: Sequence[Example],
    learner: CuttingPlane | Coulomb,
    grid: Collection[float],
    *,
    n_jobs: int | None = None,
) -> dict[float, Any]:
    """Fit the `Solution` (`CuttingPlane`) or `Ensemble` (`Coulomb`) for each C of `grid`, in ascending order."""
    # `CuttingPlane.fit_path` goes from one C to the next. Ensembles of different C are independent, and `n_jobs`
    # workers fit them; the result does not depend on their number.
    ascending = sorted(grid)
    # A path is one item of work: the constraints for one C are the start for the next.
    items = [ascending] if isinstance(learner, CuttingPlane) else [[C] for C in ascending]
    work = partial(_fit, model=model, learner=learner)
    solutions = parallel_map(work, items, training, what="values of C", n_jobs=n_jobs)
    return {C: solution for by_cost in solutions for C, solution in by_cost.items()}


def _fit(
    grid: Sequence[float], training: Sequence[Example], *, model: CoverageModel, learner: CuttingPlane | Coulomb
) -> dict[float, Solution | Ensemble]:
    if isinstance(learner, CuttingPlane):
        return dict(learner.fit_path(model, training, grid))
    return {C: replace(learner, C=C).fit(model, training) for C in grid}


def choose_cost(
    model: CoverageModel, solutions: Mapping[float, Solution | Ensemble], validation: Collection[Example]
) -> float:
    """Choose the C with the lowest mean loss on `validation` (pick-best for ensembles); ties go to the first."""
    return min(solutions, key=lambda C: mean_loss(model, validation, solutions[C].weights))


@dataclass(frozen=True)
class FittedDiversity:
    """A model that diversifies, and how it was fitted; ``str`` is a line about that.

    Parameters
    ----------
    model : DiversityModel
    learner : CuttingPlane or Coulomb
        With the C that was used.
    solution : Solution or Ensemble
    queries : tuple of str
        The queries that were trained on.
    validation : tuple of str
        The queries that chose C.
    """

    model: DiversityModel
    learner: CuttingPlane | Coulomb
    solution: Solution | Ensemble
    queries: tuple[str, ...]
    validation: tuple[str, ...]

    def __str__(self) -> str:
        learner, solution = self.learner, self.solution
        where = "of them" if set(self.validation) <= set(self.queries) else "more"
        validated = f", C chosen on {len(self.validation)} {where}" if self.validation else ""
        trained = f"{len(self.queries)} queries{validated}: C {learner.C:g}"
        if isinstance(solution, Ensemble):
            assert isinstance(learner, Coulomb)
            spread = f"{learner.repulsion} with alpha {learner.alpha:g}, mean angle {solution.mean_angle:.1f} degrees"
            return f"{trained}, {len(self.model.weights)} models, {spread}"
        gap = f"{solution.gap:.2g} from the optimum under the constraints that greedy inference found"
        return f"{trained}, objective {solution.objective:.6g}, at most {gap}"


def train(
    training: Mapping[str, Example],
    make: CandidateMaker,
    learner: CuttingPlane | Coulomb,
    *,
    k: int = 5,
    validation: Mapping[str, Example] | None = None,
    retrain: bool = False,
    provenance: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> FittedDiversity:
    """Train SVM-div, or an ensemble of it, to pick sets of k documents.

    Parameters
    ----------
    training : mapping
        Examples by qid (see `training_examples`).
    make : CandidateMaker
        The maker of the examples.
    learner : CuttingPlane or Coulomb
        `CuttingPlane` finds one weight vector, `Coulomb` M of them.
    k : int >= 1, default 5
        The size of the sets.
    validation : mapping, optional
        Examples by qid that choose C from `C_GRID`, instead of the C of the learner.
    retrain : bool, default False
        Whether to train on the validation examples, too, once C is chosen.
    provenance : mapping, optional
        Added to the provenance of the model, which repeats what is returned beside it.
    n_jobs : int, optional
        Number of workers, each with a C of an ensemble; the model does not depend on it.
    """
    model = CoverageModel(k)
    solutions = _fit_grid(model, list(training.values()), learner, C_GRID if validation else [learner.C], n_jobs=n_jobs)
    C = choose_cost(model, solutions, validation.values()) if validation else learner.C
    solution = solutions[C]
    if retrain and validation:
        training = {**training, **validation}
        solution = _fit_grid(model, list(training.values()), learner, [C])[C]
    learner, queries, chosen_on = replace(learner, C=C), tuple(training), tuple(validation or ())
    fitted = DiversityModel(
        features=make.features,
        weights=tuple(tuple(vector) for vector in np.atleast_2d(solution.weights).tolist()),
        k=k,
        depth=make.depth,
        titles=make.titles is not None,
        parameters=make.parameters,
        fingerprint=make.index.fingerprint,
        provenance={
            "greylag": __version__,
            "queries": [*queries],
            "validation": [*chosen_on],
            **asdict(learner),
            **_outcome(solution),
            **(provenance or {}),
        },
    )
    return FittedDiversity(fitted, learner, solution, queries, chosen_on)


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
    rankings : Run or iterable of Ranking
        The rankings to learn from.
    qrels : mapping
        Grades by qid, subtopic or nugget, and docid.
    documents : PositionalIndex or mapping of str to str
        The collection: an index, or texts by docid. The stage diversifies documents of this collection.
    preset : str, default "svmdiv2"
        One of `greylag.diversity.PRESETS`.
    document_features : sequence of str, default ("score",)
        See `CandidateMaker`. The score lets it weigh relevance against words.
    set_size : int >= 1, default 5
        The size of the sets that it learns to pick.
    depth, picks : int >= 1
        The candidates are the top `depth` documents, of which the stage picks `picks`.
    C : float > 0, optional
        By default that of `C_GRID` with the lowest mean loss on every fourth query, which is held out; with fewer than
        four queries, 1.
    n_jobs : int, optional
        Number of workers; the stage does not depend on it.
    """
    if preset not in PRESETS:
        raise ParameterError(f"unknown preset {preset!r}: use {', '.join(PRESETS)}")
    index = documents if isinstance(documents, PositionalIndex) else PositionalIndex.from_texts(documents)
    make = CandidateMaker(index, replace(PRESETS[preset], document_features=tuple(document_features)), depth=depth)
    examples = training_examples(rankings, qrels, make, n_jobs=n_jobs)
    training, held_out = split_validation(examples) if C is None else (examples, {})
    learner = CuttingPlane(C=1.0 if C is None else C)
    fitted = train(training, make, learner, k=set_size, validation=held_out, n_jobs=n_jobs)
    return SVMDiv(fitted.model, index, k=picks)


def split_validation(examples: Mapping[str, Example]) -> tuple[dict[str, Example], dict[str, Example]]:
    """Split off every fourth example, to choose C on; the others are trained on."""
    held_out = set(list(examples)[VALIDATE_EVERY - 1 :: VALIDATE_EVERY])
    return (
        {qid: example for qid, example in examples.items() if qid not in held_out},
        {qid: example for qid, example in examples.items() if qid in held_out},
    )


def _outcome(solution: Solution | Ensemble) -> dict[str, Any]:
    if isinstance(solution, Ensemble):
        return {"mean_angle": solution.mean_angle, "converged": solution.converged}
    return {"objective": solution.objective, "gap": solution.gap, "converged": solution.converged}
