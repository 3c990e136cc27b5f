"""The folds of cross-validation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from greylag.errors import ParameterError


def split_folds(qids: Sequence[str], n_folds: int, seed: int) -> list[list[str]]:
    """Split queries at random into `n_folds` folds whose sizes differ by at most one, each in the original order."""
    if not 2 <= n_folds <= len(qids):
        raise ParameterError(f"{len(qids)} queries cannot be split into {n_folds} folds")
    fold_of = np.random.default_rng(seed).permutation(len(qids)) % n_folds
    return [[qid for qid, number in zip(qids, fold_of, strict=True) if number == fold] for fold in range(n_folds)]


def without(qids: Sequence[str], part: Sequence[str]) -> tuple[str, ...]:
    """Return the queries outside a fold, in their order: those to train on while it is held out."""
    held_out = frozenset(part)
    return tuple(qid for qid in qids if qid not in held_out)
