"""CombMNZ: CombSUM times the number of rankings that have the document.

References
----------
Fox and Shaw, Combination of multiple searches, TREC-2 1993. Lee, Analyses of multiple evidence combination, SIGIR 1997
(the normalisation of scores).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from greylag.fusion.combsum import normalised_scores
from greylag.ranking import Ranking


def comb_mnz(rankings: Sequence[Ranking]) -> Ranking:
    """Rank all documents by the sum of `comb_sum`, times the number of rankings that contain the document.

    Parameters
    ----------
    rankings : sequence of Ranking
        At least one, all of the same query.

    Raises
    ------
    ParameterError
        If there is no ranking, or if the rankings are of different queries.
    """
    parts = normalised_scores(rankings)
    scores = [len(own) * math.fsum(own) for own in parts.values()]
    return Ranking.sort(rankings[0].qid, rankings[0].query, list(parts), scores)
