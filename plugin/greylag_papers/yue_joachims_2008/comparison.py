"""SVM-div compared with its baselines (Yue & Joachims 2008, section 7): losses by method, k, C and query, and times."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from greylag import ParameterError
from greylag.base import TIE_TOLERANCE, FloatArray, Gain, IntArray, ModularGain, greedy_picks, parallel_map
from greylag.diversity import (
    MMR,
    Candidates,
    CoverageModel,
    EssentialPagesGain,
    MarginalRelevance,
    subtopic_gain,
    unweighted_coverage,
)
from greylag.evaluation import Scores, Significance, Subtopics, compare_scores, parse_measure
from greylag.learning import CuttingPlane, task_losses
from greylag.recipes import C_GRID
from greylag_papers.yue_joachims_2008.queries import Split, StudyQuery

LOSS = "weighted subtopic loss"
ORACLE = "known-subtopics"
RANDOM_SEEDS = 20
LEARNER = CuttingPlane()
BASELINES: Mapping[str, Callable[[StudyQuery], Gain]] = {
    "first-stage": lambda query: ModularGain(np.zeros(len(query.relevance))),
    "coverage": lambda query: unweighted_coverage(query.frequencies),
    "essential-pages": lambda query: EssentialPagesGain(query.frequencies),
    "mmr": lambda query: MarginalRelevance(query.relevance, query.vectors, MMR.relevance_weight),
    ORACLE: lambda query: subtopic_gain(query.truth),
}
METHODS = ("random", *BASELINES)
"""The methods that learn nothing and need no query."""
OKAPI = "okapi"
"""The documents in the order of BM25, for queries with BM25 scores (Robertson et al. 1994)."""


class Swapping(CoverageModel):
    """SVM-div whose loss-augmented inference goes on from the greedy set by the best swap, as long as one helps.

    Section 7.1 asks whether greedy constraints limit the fit; these are at least as violated.
    """

    def infer_augmented(self, x: Candidates, truth: Subtopics, weights: FloatArray) -> IntArray:
        """Return a set that no swap of one document improves in w' Psi + Delta."""

        def value(y: IntArray) -> float:
            return float(weights @ self.joint_feature(x, y)) + truth.loss(y)

        best = super().infer_augmented(x, truth, weights)
        reached = value(best)
        while True:
            others = np.setdiff1d(np.arange(len(x)), best)
            swapped = [np.append(np.delete(best, out), other) for out in range(len(best)) for other in others]
            values = [value(y) for y in swapped]
            if not values or max(values) <= reached + TIE_TOLERANCE * max(1.0, abs(reached)):
                return best
            reached, best = max(values), swapped[int(np.argmax(values))]


@dataclass(frozen=True)
class Listing(CoverageModel):
    """SVM-div that lists the sets which loss-augmented inference returns."""

    returned: list[tuple[Candidates, Subtopics, IntArray]] = field(default_factory=list)

    def infer_augmented(self, x: Candidates, truth: Subtopics, weights: FloatArray) -> IntArray:
        """Return the greedy choice."""
        y = super().infer_augmented(x, truth, weights)
        self.returned.append((x, truth, y))
        return y


class Loss(NamedTuple):
    """The loss of a method that picks k documents for a query.

    C is None for the baselines, and for SVM-div with the C that was chosen on the validation queries.
    """

    method: str
    k: int
    C: float | None
    qid: str
    loss: float


class Fit(NamedTuple):
    """A training of SVM-div on the training queries of a split."""

    method: str  # method, k, C: as in `Loss`
    k: int
    C: float
    # loss, greedy: mean losses on the training queries: of SVM-div, and of greedy selection by the true subtopics
    loss: float
    greedy: float
    iterations: int  # iterations of the cutting plane


@dataclass(frozen=True)
class LossTable:
    """Losses by method, k, C and query, and the trainings behind them."""

    rows: tuple[Loss, ...]
    fits: tuple[Fit, ...] = ()

    def losses(self, method: str, k: int, C: float | None = None) -> dict[str, float]:
        """Return the losses of a method by query, in the order of the rows."""
        losses = {row.qid: row.loss for row in self.rows if (row.method, row.k, row.C) == (method, k, C)}
        if not losses:
            raise ParameterError(f"the table has no losses of {method!r} at k = {k} and C = {C}")
        return losses

    def mean(self, method: str, k: int, C: float | None = None) -> float:
        """Return the mean of `losses`."""
        return float(np.mean(list(self.losses(method, k, C).values())))

    def fitted(self, method: str, k: int, C: float) -> dict[str, float]:
        """Return the means over the splits of the numbers of `Fit`."""
        fits = [fit[3:] for fit in self.fits if fit[:3] == (method, k, C)]
        return dict(zip(Fit._fields[3:], np.mean(fits, axis=0).tolist(), strict=True))

    def scores(self, methods: Sequence[str], k: int) -> dict[str, Scores]:
        """Return the losses of several methods as scores by ``subtopic-loss@k``."""
        measure = parse_measure(f"subtopic-loss@{k}")
        return {method: Scores.single(measure, self.losses(method, k)) for method in methods}

    def compare(self, learned: str, methods: Sequence[str], k: int) -> Significance:
        """Compare each method except the oracle with `learned`, by Wilcoxon's signed-rank test."""
        others = [method for method in methods if method not in (learned, ORACLE)]
        return compare_scores(self.scores([learned, *others], k), learned, test="wilcoxon")


def measure_losses(
    splits: Sequence[Split],
    ks: Sequence[int],
    *,
    spaces: Sequence[str],
    grid: Collection[float] = C_GRID,
    n_jobs: int | None = None,
) -> LossTable:
    """Measure the losses of all methods on the test queries of the splits, for each k."""
    tested = [query for split in splits for query in split.test]
    rows = [row for k in ks for query in tested for row in baseline_losses(query, k)]
    tasks = [(split, space, k) for k in ks for space in spaces for split in splits]
    learned = parallel_map(
        lambda task: svmdiv_losses(task[0], task[1], task[2], grid),
        tasks,
        what="SVM-div",
        n_jobs=n_jobs,
        prefer="processes",
    )
    losses, fits = zip(*learned, strict=True)
    return LossTable((*rows, *chain.from_iterable(losses)), tuple(chain.from_iterable(fits)))


def training_losses(
    queries: Sequence[StudyQuery], k: int, C: float, spaces: Sequence[str], n_jobs: int | None = None
) -> dict[str, dict[str, float]]:
    """Return the mean loss on the training queries, with greedy constraints and with those of `Swapping`."""
    models = {"greedy": CoverageModel(k), "swaps": Swapping(k)}
    work = [(space, name) for space in spaces for name in models]

    def fit(item: tuple[str, str]) -> float:
        space, name = item
        examples = [(query.candidates[space], query.truth) for query in queries]
        solution = CuttingPlane(C).fit(models[name], examples)
        return float(task_losses(models[name], examples, solution.weights[None]).mean())

    losses = parallel_map(fit, work, what="training losses", n_jobs=n_jobs, prefer="processes")
    by_item = dict(zip(work, losses, strict=True))
    return {space: {name: by_item[space, name] for name in models} for space in spaces}


def constraint_bound(queries: Sequence[StudyQuery], k: int, C: float, space: str) -> dict[str, float]:
    """Count the constraints that training meets, and Theorem 1's bound, as powers of ten.

    The bound is max(2 n Delta / epsilon, 8 C Delta R² / epsilon²), with the largest loss Delta and the largest distance
    R from the features of a target. They are taken over the sets that training meets, so that the theorem's may be
    larger. Epsilon, a slack, is the tolerated share of the objective, divided by C.
    """
    model, learner = Listing(k), replace(LEARNER, C=C)
    solution = learner.fit(model, [(query.candidates[space], query.truth) for query in queries])
    # A set of documents is one constraint, however often and in whatever order inference returns it.
    sets = {(id(x), *sorted(y.tolist())): (x, truth, y) for x, truth, y in model.returned}
    features = {id(x): model.joint_feature(x, model.target(x, truth)) for x, truth, _ in sets.values()}
    R = max(float(np.linalg.norm(features[id(x)] - model.joint_feature(x, y))) for x, _, y in sets.values())
    largest = max(truth.loss(y) for _, truth, y in sets.values())
    epsilon = learner.epsilon * solution.objective / C
    bound = max(2 * len(queries) * largest / epsilon, 8 * C * largest * R**2 / epsilon**2)
    return {"constraints": float(np.log10(len(sets))), "bound": float(np.log10(bound))}


def baseline_losses(query: StudyQuery, k: int) -> list[Loss]:
    """Return the losses of `METHODS` and `OKAPI`; that of "random" is the mean over `RANDOM_SEEDS` orders."""
    n = len(query.relevance)
    orders = (ModularGain(np.random.default_rng(seed).random(n)) for seed in range(RANDOM_SEEDS))
    # The mean over orders stands for the expectation, so that one lucky order decides nothing.
    expected = float(np.mean([query.truth.loss(greedy_picks(order, k)) for order in orders]))
    greedy = {name: query.truth.loss(greedy_picks(gain(query), k)) for name, gain in BASELINES.items()}
    if query.okapi is not None:
        greedy[OKAPI] = query.truth.loss(greedy_picks(ModularGain(query.okapi), k))
    return [Loss(method, k, None, query.qid, loss) for method, loss in {"random": expected, **greedy}.items()]


def svmdiv_losses(split: Split, space: str, k: int, grid: Collection[float]) -> tuple[list[Loss], list[Fit]]:
    """Train SVM-div on a split with each C of `grid`, ascending."""
    model = CoverageModel(k)
    training, validation, test = ([(query.candidates[space], query.truth) for query in queries] for queries in split)
    greedy = float(np.mean([truth.loss(model.target(x, truth)) for x, truth in training]))
    solutions, rows, fits = {}, [], []
    for C, solution in LEARNER.fit_path(model, training, grid):
        solutions[C], fitted = solution, task_losses(model, training, solution.weights[None])
        fits.append(Fit(space, k, C, float(fitted.mean()), greedy, solution.iterations))
        for query, (x, truth) in zip(split.test, test, strict=True):
            rows.append(Loss(space, k, C, query.qid, truth.loss(model.infer(x, solution.weights))))
    # The rows of the chosen C again, without it: the method as it would be used.
    chosen = min(solutions, key=lambda C: task_losses(model, validation, solutions[C].weights[None]).mean())
    return rows + [row._replace(C=None) for row in rows if chosen == row.C], fits
