"""Training SVM-div and ensembles of it: from rankings and judgements by subtopic to a DiversityModel."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, overload

import numpy as np

from greylag import __version__
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage import Candidates, CoverageModel, Subtopics
from greylag.diversity.model import DiversityModel
from greylag.errors import ParameterError
from greylag.ranking import FloatArray, Ranking
from greylag.structured.coulomb import Coulomb
from greylag.structured.cutting_plane import CuttingPlane, Solution
from greylag.structured.ensemble import Ensemble
from greylag.trec import SubtopicQrels

C_GRID = tuple(10.0**exponent for exponent in range(-5, 4))
"""The values of C that Yue & Joachims (2008) choose from."""

Example = tuple[Candidates, Subtopics]
_log = logging.getLogger("greylag")


def training_examples(
    rankings: Iterable[Ranking],
    qrels: SubtopicQrels,
    make: CandidateMaker,
    *,
    depth: int = 100,
) -> dict[str, Example]:
    """By qid, candidates and subtopics; queries where no candidate covers a subtopic are left out, with a warning.

    Parameters
    ----------
    rankings : their first `depth` documents are the candidates.
    qrels : grades by qid, subtopic and docid.

    Raises
    ------
    ParameterError
        Where no query is left.
    """
    examples: dict[str, Example] = {}
    without = []
    for ranking in rankings:
        candidates = ranking.head(depth)
        truth = Subtopics.from_qrels(candidates.docids, qrels.get(ranking.qid, {}))
        if truth.coverage.nnz:
            examples[ranking.qid] = (make(candidates), truth)
        else:
            without.append(ranking.qid)
    if not examples:
        raise ParameterError(
            "no query has a candidate that covers a subtopic, so there is nothing to learn from: are the judgements by "
            "subtopic, and of this run's documents?"
        )
    if without:
        _log.warning("left out, for no candidate covers a subtopic: %d queries (%s)", len(without), ", ".join(without))
    return examples


def mean_loss(model: CoverageModel, examples: Collection[Example], weights: FloatArray) -> float:
    """The mean over the examples of the loss of what the model predicts.

    Parameters
    ----------
    weights : shape (d,), or (M, d) for the loss of the best of M predictions (pick-best).
    """
    members = np.atleast_2d(weights)
    losses = [[model.loss(subtopics, model.infer(x, member)) for member in members] for x, subtopics in examples]
    return float(np.min(losses, axis=1).mean())


@overload
def fit_grid(
    model: CoverageModel, training: Sequence[Example], learner: CuttingPlane, grid: Collection[float] = C_GRID
) -> dict[float, Solution]: ...
@overload
def fit_grid(
    model: CoverageModel, training: Sequence[Example], learner: Coulomb, grid: Collection[float] = C_GRID
) -> dict[float, Ensemble]: ...
def fit_grid(
    model: CoverageModel, training: Sequence[Example], learner: CuttingPlane | Coulomb, grid: Collection[float] = C_GRID
) -> Mapping[float, Solution | Ensemble]:
    """What `learner` finds with each C of `grid`, ascending, instead of its own."""
    return {C: replace(learner, C=C).fit(model, training) for C in sorted(grid)}


def choose_cost(
    model: CoverageModel, solutions: Mapping[float, Solution | Ensemble], validation: Collection[Example]
) -> float:
    """The C of the least mean loss on `validation` (of an ensemble, pick-best); of equal ones the first."""
    return min(solutions, key=lambda C: mean_loss(model, validation, solutions[C].weights))


def train(
    training: Mapping[str, Example],
    make: CandidateMaker,
    learner: CuttingPlane | Coulomb,
    *,
    k: int = 5,
    validation: Mapping[str, Example] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> DiversityModel:
    """SVM-div for sets of k documents, or an ensemble of it.

    Parameters
    ----------
    training, validation : examples by qid, as `training_examples` gives them. With validation, C is the best of
        `C_GRID` by it, and the learner's is not used.
    make : what made them.
    learner : a cutting plane gives one vector of weights, a Coulomb structured SVM M of them.
    provenance : recorded with what is known here: version, queries, the learner's parameters, and how well it did.
    """
    model = CoverageModel(k)
    solutions = fit_grid(model, list(training.values()), learner, C_GRID if validation else [learner.C])
    C = choose_cost(model, solutions, validation.values()) if validation else learner.C
    solution = solutions[C]
    return DiversityModel(
        features=make.features,
        weights=tuple(tuple(vector) for vector in np.atleast_2d(solution.weights).tolist()),
        k=k,
        titles=make.titles is not None,
        parameters=make.parameters,
        fingerprint=make.index.fingerprint,
        provenance={
            "greylag": __version__,
            "queries": list(training),
            "validation": list(validation or ()),
            **asdict(replace(learner, C=C)),
            **_outcome(solution),
            **(provenance or {}),
        },
    )


def _outcome(solution: Solution | Ensemble) -> dict[str, Any]:
    if isinstance(solution, Ensemble):
        return {"mean_angle": solution.mean_angle, "converged": solution.converged}
    return {"objective": solution.objective, "gap": solution.gap, "converged": solution.converged}
