"""Fusing several rankings of one query into one.

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
"""Cormack et al.'s, which keeps first ranks from outweighing all others."""


def reciprocal_rank_fusion(rankings: Sequence[Ranking]) -> Ranking:
    """All documents of the rankings by the sum of 1 / (60 + rank) over those that have them, ranks from 1.

    Sums are rounded once, so that the order of the rankings does not matter to them. Of equal ones, the document comes
    first that an earlier ranking has, or has higher.

    Parameters
    ----------
    rankings : at least one, all of one query.

    Raises
    ------
    ParameterError
        No ranking, or rankings of different queries.
    """
    if len({(ranking.qid, ranking.query) for ranking in rankings}) != 1:
        found = ", ".join(repr(ranking.qid) for ranking in rankings) or "none"
        raise ParameterError(f"fusion takes rankings of one query, not of {found}")
    parts: dict[str, list[float]] = {}
    for ranking in rankings:
        for rank, docid in enumerate(ranking.docids, 1):
            parts.setdefault(docid, []).append(1 / (CONSTANT + rank))
    return Ranking.sort(rankings[0].qid, rankings[0].query, list(parts), [*map(math.fsum, parts.values())])
