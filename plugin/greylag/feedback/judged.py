"""The judged documents of one query, and the placement of documents outside the index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, IntArray, Ranking

Feedback = Mapping[str, Mapping[str, int]]
"""Grades of judged documents by qid and docid; relevant from grade 1."""


class Judged(NamedTuple):
    """The judged documents of one query that are in the index, in ascending order of docids.

    Parameters
    ----------
    relevant, others : tuple of str
        Docids.
    """

    relevant: tuple[str, ...]
    others: tuple[str, ...]


def judged_documents(index: PositionalIndex, feedback: Feedback, qid: str) -> Judged:
    """The judged documents of a query, without those outside the index."""
    grades = dict(sorted(feedback.get(qid, {}).items()))
    known = [docid for docid, number in zip(grades, index.documents([*grades]).tolist(), strict=True) if number >= 0]
    relevant = tuple(docid for docid in known if grades[docid] > 0)
    return Judged(relevant, tuple(docid for docid in known if grades[docid] <= 0))


def rescore_known(ranking: Ranking, numbers: IntArray, scores: FloatArray) -> Ranking:
    """Rank documents by new scores, those outside the index (number -1) last, in incoming order.

    Parameters
    ----------
    ranking : Ranking
    numbers : int array, shape (n,)
        The documents' numbers in the index.
    scores : float array, shape (n,)
        Finite; ignored for documents outside the index, which get the least score of the others less 1, 2, ....
    """
    outside = numbers < 0
    lowest = scores[~outside].min() if not outside.all() else 0.0
    return ranking.rescore(np.where(outside, lowest - np.cumsum(outside), scores))
