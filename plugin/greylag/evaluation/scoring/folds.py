"""Cross-validation: its folds, what is fitted to the others of each, and the rankings of the queries held out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from greylag.base import (
    FormatError,
    ParameterError,
    Ranking,
    Run,
    RunLike,
    as_run,
    check_ids,
    check_non_negative,
    check_sequences,
    parallel_map,
    read_pairs,
    run_step,
)

T = TypeVar("T")
_log = logging.getLogger("greylag")


def _check_folds(folds: Sequence[Collection[str]]) -> None:
    """Refuse a mapping of folds and a fold that is a string: names or letters would be taken for qids."""
    check_sequences(folds=folds)
    if text := next((fold for fold in folds if isinstance(fold, str)), None):
        raise ParameterError(f"the fold {text!r} is a string: pass its qids in a list")


def split_folds(qids: Sequence[str], n_folds: int, seed: int) -> list[list[str]]:
    """Split queries at random into `n_folds` folds whose sizes differ by at most one, each in the original order."""
    check_ids(qids=qids)
    check_non_negative(seed=seed)
    if not 2 <= n_folds <= len(qids):
        raise ParameterError(f"{len(qids)} queries cannot be split into {n_folds} folds")
    # The remainder of a permutation deals queries out, so that sizes differ by one at most.
    fold_of = np.random.default_rng(seed).permutation(len(qids)) % n_folds
    return [[qid for qid, number in zip(qids, fold_of, strict=True) if number == fold] for fold in range(n_folds)]


def read_folds(path: str | Path, qids: Iterable[str]) -> list[list[str]]:
    """Read the folds of these queries: a line has a qid and the name of its fold, in the order of the folds' names.

    `FormatError` if one of the queries has no fold or two, or all are in one. Other qids in the file are logged: they
    may be misspelt.
    """
    fold_of = read_pairs(path, "qid fold")
    folds: dict[str, list[str]] = {name: [] for name in fold_of.values()}
    for qid in (asked := dict.fromkeys(qids)):
        if qid not in fold_of:
            raise FormatError(path, None, f"query {qid!r} has no fold: add a line {qid} FOLD")
        folds[fold_of[qid]].append(qid)
    filled = [fold for fold in folds.values() if fold]
    if len(filled) < 2:
        raise FormatError(
            path, None, "all queries are in one fold, and no other is left to learn from: name two at least"
        )
    if others := [qid for qid in fold_of if qid not in asked]:
        _log.warning(
            "%s: %d of %d qids are not among the queries, such as %r", path, len(others), len(fold_of), others[0]
        )
    return filled


def without(qids: Sequence[str], fold: Sequence[str]) -> tuple[str, ...]:
    """Return the queries outside a fold, in their order: those to train on while it is held out."""
    held_out = frozenset(fold)
    return tuple(qid for qid in qids if qid not in held_out)


def fit_by_fold(
    fit: Callable[..., T],
    qids: Sequence[str],
    folds: Sequence[Sequence[str]],
    *shared: Any,
    what: str = "folds",
    n_jobs: int | None = None,
) -> Iterator[T]:
    """Hold out each fold in turn, and yield what is fitted to the other queries.

    Parameters
    ----------
    fit : callable
        Called with the training queries and `shared`. All that it learns, tunes or chooses is theirs.
    folds : sequence of sequences of str
        The queries that each fold holds out, such as `split_folds` gives, or a split's: ``[test]``.
    *shared
        What is prepared once from all queries, such as features. Other processes receive it once.
    what : str, default "folds"
        The name of the folds, for the progress bar.
    """

    def work(held_out: Sequence[str], *shared: Any) -> T:
        return fit(without(qids, held_out), *shared)

    check_ids(qids=qids)
    _check_folds(folds)
    # Coarse: a fold uses threads itself.
    return parallel_map(work, folds, *shared, what=what, n_jobs=n_jobs, coarse=True)


def rerank_by_fold(
    stages: Sequence[Callable[[Ranking], Ranking]],
    folds: Sequence[Collection[str]],
    first: RunLike,
    *,
    n_jobs: int | None = None,
    tag: str = "greylag",
) -> Run:
    """Rerank the queries of each fold by the stage of that fold.

    Parameters
    ----------
    stages : sequence of stages
        One for each fold, such as ``[ModelRanker(model, index) for model in models]``.
    folds : sequence of collections of str
        The test queries of each fold. Queries in no fold are left out.
    first : RunLike
        The first stage; its order of queries is kept.
    """
    check_sequences(stages=stages)
    _check_folds(folds)
    # One run over all folds, so that workers are not idle at the end of each.
    stage_of = {qid: stage for stage, test in zip(stages, folds, strict=True) for qid in test}
    tested = as_run(first).select_queries(stage_of)
    return run_step(lambda ranking: stage_of[ranking.qid](ranking), tested, n_jobs=n_jobs, tag=tag)
