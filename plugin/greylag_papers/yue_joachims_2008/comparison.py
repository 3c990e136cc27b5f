"""SVM-div against its baselines (Yue & Joachims 2008, section 7): from candidates to tables of losses.

Pure functions; reading collections and reporting are others' business. A study's queries come from `index_queries` or
`synthetic_queries`, their splits from `first_split` or `rotations`; `study` makes the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from greylag.diversity import (
    C_GRID,
    MMR,
    PRESETS,
    CandidateMaker,
    Candidates,
    CoverageModel,
    EssentialPagesGain,
    MarginalRelevance,
    candidates_from_counts,
    choose_cost,
    fit_grid,
    random_gain,
    subtopic_gain,
    unweighted_coverage,
)
from greylag.errors import ParameterError
from greylag.evaluation import Subtopics
from greylag.greedy import Gain, ModularGain, greedy
from greylag.index import PositionalIndex
from greylag.ranking import FloatArray, Ranking, unit_range
from greylag.structured import CuttingPlane
from greylag.trec import SubtopicQrels
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics

RANDOM_SEEDS = 20
LEARNER = CuttingPlane()


@dataclass(frozen=True, eq=False)
class StudyQuery:
    """A query's candidates, best first, as each method sees them.

    Parameters
    ----------
    qid : the query.
    truth : its subtopics.
    frequencies, vectors : tf, and the vectors that MMR compares, both of shape (n, V).
    relevance : for MMR, in [0, 1], shape (n,).
    candidates : for SVM-div, by the name of the feature space.
    """

    qid: str
    truth: Subtopics
    frequencies: csr_matrix
    vectors: csr_matrix
    relevance: FloatArray
    candidates: Mapping[str, Candidates]


class Loss(NamedTuple):
    """What a method lost on a query, picking k; SVM-div at one C, or (C None) at the one that validation chose."""

    method: str
    k: int
    C: float | None
    qid: str
    loss: float


@dataclass(frozen=True)
class LossTable:
    """Losses by method, k, C and query."""

    rows: tuple[Loss, ...]

    def losses(self, method: str, k: int, C: float | None = None) -> dict[str, float]:
        """A method's loss by query, in the table's order.

        Raises
        ------
        ParameterError
            Where the table has none.
        """
        found = {row.qid: row.loss for row in self.rows if (row.method, row.k, row.C) == (method, k, C)}
        if not found:
            raise ParameterError(f"the table has no losses of {method!r} at k = {k} and C = {C}")
        return found

    def mean(self, method: str, k: int, C: float | None = None) -> float:
        """The mean of `losses`."""
        return float(np.mean(list(self.losses(method, k, C).values())))


class Split(NamedTuple):
    """Queries to train on, to choose C by, and to test."""

    training: tuple[StudyQuery, ...]
    validation: tuple[StudyQuery, ...]
    test: tuple[StudyQuery, ...]


BASELINES: Mapping[str, Callable[[StudyQuery], Gain]] = {
    "first-stage": lambda query: ModularGain(np.zeros(len(query.relevance))),
    "coverage": lambda query: unweighted_coverage(query.frequencies),
    "essential-pages": lambda query: EssentialPagesGain(query.frequencies),
    "mmr": lambda query: MarginalRelevance(query.relevance, query.vectors, MMR.relevance_weight),
    "known-subtopics": lambda query: subtopic_gain(query.truth),
}
"""The methods that learn nothing, by name; beside them, "random"."""


def index_queries(
    index: PositionalIndex,
    rankings: Iterable[Ranking],
    qrels: SubtopicQrels,
    *,
    titles: Mapping[str, str] | None = None,
    relevant_only: bool = True,
) -> list[StudyQuery]:
    """The rankings' queries; one without a candidate that covers a subtopic is left out.

    Parameters
    ----------
    relevant_only : whether only documents that cover a subtopic are candidates, as in the paper, or all of the ranking.
    """
    makers = {name: CandidateMaker(index, features, titles=titles) for name, features in PRESETS.items()}
    queries = []
    for ranking in rankings:
        truth = Subtopics.from_qrels(ranking.docids, qrels.get(ranking.qid, {}))
        covering = np.flatnonzero(np.diff(truth.coverage.indptr))
        if relevant_only:
            docids = tuple(ranking.docids[place] for place in covering)
            ranking = Ranking(ranking.qid, ranking.query, docids, ranking.scores[covering])  # noqa: PLW2901
            truth = Subtopics(truth.coverage[covering], truth.weights)
        if len(covering):
            documents = index.documents(ranking.docids)
            queries.append(
                StudyQuery(
                    ranking.qid,
                    truth,
                    frequencies=index.term_frequencies(documents),
                    vectors=index.tfidf(documents),
                    relevance=unit_range(ranking.scores),
                    candidates={name: make(ranking) for name, make in makers.items()},
                )
            )
    return queries


def synthetic_queries(data: SyntheticSubtopics) -> list[StudyQuery]:
    """The synthetic sets, without titles and in an order that means nothing; idf is over a set."""
    queries = []
    for number, (frequencies, truth) in enumerate(data.draw()):
        n = frequencies.shape[0]
        idf = np.log(n / np.maximum(np.bincount(frequencies.indices, minlength=frequencies.shape[1]), 1))
        weights = frequencies.multiply(idf).tocsr()
        lengths = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)))
        empty = csr_matrix(frequencies.shape)
        queries.append(
            StudyQuery(
                str(number),
                truth,
                frequencies=frequencies,
                vectors=weights.multiply(1.0 / np.maximum(lengths, 1e-300)).tocsr(),
                relevance=np.zeros(n),
                candidates={
                    name: candidates_from_counts(features, frequencies, idf, empty, np.zeros((n, 0)))
                    for name, features in PRESETS.items()
                },
            )
        )
    return queries


def first_split(queries: Sequence[StudyQuery], n_training: int, n_validation: int) -> Split:
    """The first queries to train on, the next to validate, and the others to test.

    Raises
    ------
    ParameterError
        Where none is left to test.
    """
    end = n_training + n_validation
    if end >= len(queries):
        raise ParameterError(f"{len(queries)} sets leave none to test after {end} to train on and validate")
    return Split(tuple(queries[:n_training]), tuple(queries[n_training:end]), tuple(queries[end:]))


def rotations(queries: Sequence[StudyQuery], n_training: int = 12, n_validation: int = 4) -> list[Split]:
    """As many splits as queries, each testing another one, validating on the next few and training on those after.

    Raises
    ------
    ParameterError
        Where there are too few queries.
    """
    if min(n_training, n_validation) < 1 or len(queries) < n_training + n_validation + 1:
        raise ParameterError(
            f"{len(queries)} queries cannot be split into {n_training} to train on, {n_validation} to validate, and 1"
        )
    turned = [(*queries[first:], *queries[:first]) for first in range(len(queries))]
    start = 1 + n_validation
    return [Split(order[start : start + n_training], order[1:start], order[:1]) for order in turned]


def study(
    splits: Sequence[Split],
    ks: Sequence[int],
    *,
    spaces: Sequence[str] = ("svmdiv", "svmdiv2"),
    grid: Collection[float] = C_GRID,
    learner: CuttingPlane = LEARNER,
    n_jobs: int = 1,
) -> LossTable:
    """Every method's losses on the splits' test queries, for each k.

    Parameters
    ----------
    spaces : names of SVM-div's feature spaces, which name the methods.
    grid : values of C to train with; validation's choice is the least of the best.
    learner : trains; its own C is not used.
    n_jobs : processes. The table does not depend on it.
    """
    from joblib import Parallel, delayed

    tested = [query for split in splits for query in split.test]
    rows = [row for k in ks for query in tested for row in baseline_losses(query, k)]
    tasks = [(split, space, k) for k in ks for space in spaces for split in splits]
    learned = Parallel(n_jobs=n_jobs)(delayed(svmdiv_losses)(*task, grid, learner) for task in tasks)
    return LossTable((*rows, *(row for part in learned for row in part)))


def baseline_losses(query: StudyQuery, k: int) -> list[Loss]:
    """The losses of `BASELINES` and of "random", its mean over `RANDOM_SEEDS` orders."""
    n = len(query.relevance)
    rows = [
        Loss(name, k, None, query.qid, query.truth.loss(greedy(make(query), k))) for name, make in BASELINES.items()
    ]
    orders = (random_gain(n, np.random.default_rng(seed)) for seed in range(RANDOM_SEEDS))
    expected = float(np.mean([query.truth.loss(greedy(order, k)) for order in orders]))
    return [Loss("random", k, None, query.qid, expected), *rows]


def svmdiv_losses(split: Split, space: str, k: int, grid: Collection[float], learner: CuttingPlane) -> list[Loss]:
    """SVM-div's losses on a split's test queries at each C of `grid`, and at the one that validation chooses."""
    model = CoverageModel(k)
    examples = [(query.candidates[space], query.truth) for query in split.training]
    validation = [(query.candidates[space], query.truth) for query in split.validation]
    solutions = fit_grid(model, examples, learner, grid)
    rows = []
    for C, solution in solutions.items():
        for query in split.test:
            picked = model.infer(query.candidates[space], solution.weights)
            rows.append(Loss(space, k, C, query.qid, query.truth.loss(picked)))
    chosen = choose_cost(model, solutions, validation)
    return rows + [row._replace(C=None) for row in rows if chosen == row.C]
