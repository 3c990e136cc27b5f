"""Splits of queries into training, validation and test queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from greylag import ParameterError
from greylag_papers.yue_joachims_2008.queries import StudyQuery


class Split(NamedTuple):
    """Queries to train on, to choose parameters on, and to test on."""

    training: tuple[StudyQuery, ...]
    validation: tuple[StudyQuery, ...]
    test: tuple[StudyQuery, ...]


def first_split(queries: Sequence[StudyQuery], n_training: int, n_validation: int) -> Split:
    """The first queries for training, the next ones for validation, and the rest for testing.

    Raises
    ------
    ParameterError
        If there are too few queries.
    """
    end = _held_out(queries, n_training, n_validation)
    return Split(tuple(queries[:n_training]), tuple(queries[n_training:end]), tuple(queries[end:]))


def rotations(queries: Sequence[StudyQuery], n_training: int = 12, n_validation: int = 4) -> list[Split]:
    """One split per query: test on the query, validate on the next ones, and train on those after them.

    Raises
    ------
    ParameterError
        If there are too few queries.
    """
    end = _held_out(queries, n_training, n_validation)
    splits = []
    for first in range(len(queries)):
        test, *rest = _rotate(queries, first)
        splits.append(Split(tuple(rest[n_validation:end]), tuple(rest[:n_validation]), (test,)))
    return splits


def folds(queries: Sequence[StudyQuery], n_training: int, n_validation: int) -> list[Split]:
    """As few splits as possible that together test each query once.

    Each split tests a block of consecutive queries, trains on the queries after the block and validates on those after
    the training queries. The first query follows the last.

    Raises
    ------
    ParameterError
        If there are too few queries.
    """
    end = _held_out(queries, n_training, n_validation)
    n_folds = -(-len(queries) // (len(queries) - end))
    splits = []
    for block in np.array_split(np.arange(len(queries)), n_folds):
        order = _rotate(queries, block[0])
        test, rest = order[: len(block)], order[len(block) :]
        splits.append(Split(rest[:n_training], rest[n_training:end], test))
    return splits


def _rotate(queries: Sequence[StudyQuery], first: int) -> tuple[StudyQuery, ...]:
    return (*queries[first:], *queries[:first])


def _held_out(queries: Sequence[StudyQuery], n_training: int, n_validation: int) -> int:
    """The number of training and validation queries; at least one of each, and one to test, must exist."""
    if min(n_training, n_validation) < 1 or len(queries) <= n_training + n_validation:
        raise ParameterError(
            f"{len(queries)} queries are too few for {n_training} to train on, {n_validation} to validate on "
            "and at least 1 to test"
        )
    return n_training + n_validation
