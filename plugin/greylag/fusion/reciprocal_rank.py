"""Reciprocal rank fusion of several rankings of one query.

References
----------
Cormack, Clarke and Büttcher, Reciprocal rank fusion outperforms Condorcet and individual rank learning methods, SIGIR
2009.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from greylag.errors import ParameterError
from greylag.ranking import Ranking

CONSTANT = 60
"""The constant of Cormack et al., which limits the influence of the first ranks."""


def reciprocal_rank_fusion(rankings: Sequence[Ranking]) -> Ranking:
    """Rank all documents by the sum of 1 / (60 + rank) over the rankings that contain them, with ranks from 1.

    Sums are rounded once, so that they do not depend on the order of the rankings. Ties go to the document that appears
    in an earlier ranking, then to the one ranked higher there.

    Parameters
    ----------
    rankings : sequence of Ranking
        At least one, all of the same query.

    Raises
    ------
    ParameterError
        If there is no ranking, or if the rankings are of different queries.
    """
    check_one_query(rankings)
    parts: dict[str, list[float]] = {}
    for ranking in rankings:
        for rank, docid in enumerate(ranking.docids, 1):
            parts.setdefault(docid, []).append(1 / (CONSTANT + rank))
    return Ranking.sort(rankings[0].qid, rankings[0].query, list(parts), [*map(math.fsum, parts.values())])


def check_one_query(rankings: Sequence[Ranking]) -> None:
    """Raise `ParameterError` unless there are rankings, and all are of the same query."""
    if len({(ranking.qid, ranking.query) for ranking in rankings}) != 1:
        found = ", ".join(repr(ranking.qid) for ranking in rankings) or "none"
        raise ParameterError(f"fusion needs rankings of a single query, not of {found}")
