"""Documents whose scores tie.

Scores alone state no order of such documents, in files, mappings and frames without ranks: they are ordered as by
trec_eval. Lists, ranks in frames, rankings and the stages between them state one, which they keep.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from greylag.base.errors import ParameterError

FLOAT32_LIMIT = (2 - 2**-24) * 2.0**127  # the first number that float32 rounds to infinity
_log = logging.getLogger("greylag")


def check_float32(scores: NDArray[np.float64]) -> None:
    """Raise `ParameterError` for scores that float32 rounds to infinity."""
    if (np.abs(scores) >= FLOAT32_LIMIT).any():
        beyond = scores[np.abs(scores) >= FLOAT32_LIMIT][0]
        raise ParameterError(
            f"score {beyond} exceeds float32 (3.4e38), in which trec_eval compares scores; rescale the scores"
        )


def trec_order(docids: Sequence[str], scores: NDArray[np.float64]) -> list[int] | None:
    """Return the places of documents in trec_eval's order; None if they are in that order.

    Documents whose scores state no order are ranked so: by score, rounded to float32, then by docid, both descending.
    """
    with np.errstate(over="ignore"):
        values = scores.astype(np.float32)
    # Most scores are in order, and sorting names is slow.
    if not (values[1:] >= values[:-1]).any():
        return None
    order = sorted(range(len(docids)), key=lambda i: (values[i], docids[i]), reverse=True)
    return None if order == [*range(len(order))] else order


@dataclass
class Ties:
    """Counts of queries whose ranks or scores do not tell the order of their documents, for warnings about a run."""

    queries: int = 0
    several: int = 0  # that have several documents
    equal: int = 0  # that have one score for all of several
    turned: int = 0  # that have ranks in another order than that of the ranking

    def count(self, scores: NDArray[np.float64], *, turned: bool = False) -> None:
        """Count a query."""
        self.queries += 1
        self.several += len(scores) > 1
        self.equal += len(scores) > 1 and bool(np.float32(scores.min()) == np.float32(scores.max()))
        self.turned += turned

    def warn(self, where: str | Path, ties: str = "docid, descending") -> None:
        """Log the warnings about the run in a file or with a name, whose `ties` are broken by this."""
        if 2 * self.equal > self.several:
            what = f"{self.equal} of {self.several} queries have one score for all of their documents"
            _log.warning("%s: %s, which are ranked by docid, descending, as by trec_eval", where, what)
        if self.turned:
            what = f"{self.turned} of {self.queries} queries have ranks in another order than their scores"
            _log.warning("%s: %s, which count, as for trec_eval; ties are broken by %s", where, what, ties)
