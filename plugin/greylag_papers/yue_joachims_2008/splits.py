"""Splits of queries into training, validation and test queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from greylag import IntArray, ParameterError
from greylag_papers.yue_joachims_2008.queries import StudyQuery


class Split(NamedTuple):
    """Queries to train on, to choose parameters on, and to test on."""

    training: tuple[StudyQuery, ...]
    validation: tuple[StudyQuery, ...]
    test: tuple[StudyQuery, ...]


def first_split(queries: Sequence[StudyQuery], n_training: int, n_validation: int) -> Split:
    """The first queries for training, the next ones for validation, and the rest for testing."""
    end = _held_out(queries, n_training, n_validation)
    return Split(tuple(queries[:n_training]), tuple(queries[n_training:end]), tuple(queries[end:]))


def rotations(
    queries: Sequence[StudyQuery], n_training: int = 12, n_validation: int = 4, n_splits: int | None = None
) -> list[Split]:
    """Splits that together test each query once (Yue & Joachims 2008, section 6).

    Each split tests a block of consecutive queries, trains on the queries after the block and validates on those after
    the training queries. The first query follows the last.
    """
    end, splits = _held_out(queries, n_training, n_validation), []
    for block in np.array_split(np.arange(len(queries)), n_splits or len(queries)):
        test, *rest = _rotate(queries, block)
        if len(rest) < end:
            raise ParameterError(f"{n_splits} splits of {len(queries)} queries leave {len(rest)}, fewer than {end}")
        splits.append(Split(tuple(rest[:n_training]), tuple(rest[n_training:end]), test))
    return splits


def folds(queries: Sequence[StudyQuery], n_training: int, n_validation: int) -> list[Split]:
    """The smallest number of `rotations`."""
    end = _held_out(queries, n_training, n_validation)
    return rotations(queries, n_training, n_validation, -(-len(queries) // (len(queries) - end)))


def _rotate(queries: Sequence[StudyQuery], block: IntArray) -> tuple[Any, ...]:
    """A block of queries, then each of the queries after it, and then before it."""
    first, end = int(block[0]), int(block[-1]) + 1
    return (tuple(queries[first:end]), *queries[end:], *queries[:first])


def _held_out(queries: Sequence[StudyQuery], n_training: int, n_validation: int) -> int:
    """The number of training and validation queries; at least one of each, and one to test, must exist."""
    if min(n_training, n_validation) < 1 or len(queries) <= n_training + n_validation:
        raise ParameterError(
            f"{len(queries)} queries are too few for {n_training} to train on, {n_validation} to validate on "
            "and at least 1 to test"
        )
    return n_training + n_validation
