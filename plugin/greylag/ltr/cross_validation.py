"""Cross-validation over queries: each query is reranked by a model trained on the other folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.ltr.data import Qrels, RankingData
from greylag.ltr.learner import Learner
from greylag.ltr.linear import LinearModel
from greylag.ltr.preselect import MMRPreselection
from greylag.ltr.rankers import MRFRanker
from greylag.ltr.training import train, training_data
from greylag.pipeline import run_step
from greylag.ranking import Ranking, Run
from greylag.runtime.parallel import parallel_map
from greylag.runtime.progress import FEATURES, LEARNING, RANKING, Steps

Folds = Sequence[Sequence[str]]
"""The queries of each fold."""


@dataclass(frozen=True)
class CrossValidation:
    """The result of a cross-validation.

    Parameters
    ----------
    run : Run
        Every query, in the order of the first stage, reranked by the model of its fold.
    models : tuple of LinearModel
        One for each fold, trained on the queries of the other folds.
    folds : tuple of tuples of str
        The test queries of each fold.
    selecting, training : tuple of float
        Seconds spent on preselection and training in each fold. Ignored by comparisons.
    """

    run: Run
    models: tuple[LinearModel, ...]
    folds: tuple[tuple[str, ...], ...]
    selecting: tuple[float, ...] = field(compare=False)
    training: tuple[float, ...] = field(compare=False)


def cross_validate(
    rankings: Run | Iterable[Ranking],
    qrels: Qrels,
    extractor: FeatureExtractor,
    learner: Learner,
    *,
    preselection: MMRPreselection | None = None,
    folds: int = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    tag: str = "greylag",
    data: RankingData | None = None,
    provenance: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> CrossValidation:
    """Train and test a learner by cross-validation over queries.

    Parameters
    ----------
    rankings : Run or iterable of Ranking
        The first stage. Queries without a relevant document are reranked, but not trained on.
    qrels : mapping of qid to docid to grade
    extractor : FeatureExtractor
        The candidate features.
    learner : Learner
        Such as ``GreedySelection("nDCG@10")``.
    preselection : MMRPreselection, optional
        Reduces the candidates before the learner, in each fold.
    folds : int >= 2, default 5
        The number of folds, at most the number of queries.
    seed : int >= 0, default 0
        The seed of the assignment of queries to folds.
    n_jobs : int, optional
        Number of workers; results do not depend on it.
    tag : str, default "greylag"
        The tag of the resulting run.
    data : RankingData, optional
        The result of ``training_data(rankings, qrels, extractor)``, if it has been computed before.
    provenance : mapping, optional
        Entries to add to the provenance of the models, before ``fold``, ``folds`` and ``seed``.
    progress : callable, optional
        Called with a message after each fold is trained.

    Raises
    ------
    ParameterError
        If there are fewer queries than folds, no query has a relevant document, or `data` was extracted with other
        features, parameters or a different collection.
    """
    first = rankings if isinstance(rankings, Run) else Run(tuple(rankings))
    parts = split_folds(list(first), folds, seed)
    if data is not None and (data.specs, data.origin) != (extractor.specs, extractor.origin):
        raise ParameterError("data was not extracted by this extractor: omit it, or pass the extractor that made it")
    work = partial(
        _train_fold,
        learner=learner,
        preselection=preselection,
        provenance=provenance or {},
        split={"folds": folds, "seed": seed},
        n_jobs=n_jobs,
    )
    found = []
    with Steps(features=FEATURES * (data is None), folds=LEARNING * (folds - 1), ranking=RANKING) as steps:
        if data is None:
            steps.begin("features")
            data = training_data(first.rankings, qrels, extractor, n_jobs=n_jobs)
        steps.begin("folds")
        for fold in parallel_map(work, [*enumerate(parts, 1)], data, what="folds", n_jobs=n_jobs, coarse=True):
            found.append(fold)
            if progress is not None:
                progress(_summary(len(found), fold.model, fold.queries))
        steps.begin("ranking")
        rankers = [MRFRanker(fold.model, extractor.index) for fold in found]
        ranked = rerank_by_fold(rankers, parts, first, n_jobs=n_jobs, tag=tag)
    return CrossValidation(
        ranked,
        tuple(fold.model for fold in found),
        tuple(map(tuple, parts)),
        tuple(fold.selecting for fold in found),
        tuple(fold.training for fold in found),
    )


class _Fold(NamedTuple):
    """A trained fold: its model, the number of training queries, and the seconds that it took."""

    model: LinearModel
    queries: int
    selecting: float
    training: float


def _train_fold(
    fold: tuple[int, Sequence[str]],
    data: RankingData,
    *,
    learner: Learner,
    preselection: MMRPreselection | None,
    provenance: Mapping[str, Any],
    split: Mapping[str, int],
    n_jobs: int | None,
) -> _Fold:
    number, test = fold
    own = data.select_queries([qid for qid in data.qids if qid not in test])
    start = time.perf_counter()
    candidates = own if preselection is None else preselection.select(own)
    selected = time.perf_counter()
    more = {**provenance, "fold": number, **split}
    if preselection is not None:
        more |= {"pool": len(own.specs), "preselect": str(preselection)}
    model = train(candidates, learner, n_jobs=n_jobs, provenance=more)
    return _Fold(model, len(own.qids), selected - start, time.perf_counter() - selected)


def _summary(number: int, model: LinearModel, n_queries: int) -> str:
    features = ", ".join(map(str, model.features))
    score = f"{model.objective} {model.training_scores[-1]:.4f}"
    return f"fold {number}: {score} on {n_queries} training queries with {features}"


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
    used = Run(tuple(ranking for ranking in first.rankings if ranking.qid in stage_of))
    return run_step(partial(_rerank, stage_of=stage_of), used, n_jobs=n_jobs, tag=tag)


def _rerank(ranking: Ranking, *, stage_of: Mapping[str, Callable[[Ranking], Ranking]]) -> Ranking:
    return stage_of[ranking.qid](ranking)


def split_folds(qids: Sequence[str], n_folds: int, seed: int) -> list[list[str]]:
    """Split queries at random into `n_folds` parts whose sizes differ by at most one, each in the given order.

    Raises
    ------
    ParameterError
        If there are fewer queries than folds, or fewer than two folds.
    """
    if not 2 <= n_folds <= len(qids):
        raise ParameterError(f"{len(qids)} queries cannot be split into {n_folds} folds")
    fold_of = np.random.default_rng(seed).permutation(len(qids)) % n_folds
    return [[qid for qid, own in zip(qids, fold_of, strict=True) if own == fold] for fold in range(n_folds)]
