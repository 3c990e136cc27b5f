"""CombSUM: the sum of the scores that several rankings of one query give a document.

References
----------
Fox and Shaw, Combination of multiple searches, TREC-2 1993. Lee, Analyses of multiple evidence combination, SIGIR 1997
(the normalisation of scores).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from greylag.fusion.reciprocal_rank import check_one_query
from greylag.ranking import Ranking, unit_range


def comb_sum(rankings: Sequence[Ranking]) -> Ranking:
    """Rank all documents by the sum of their scores, each ranking's scaled to [0, 1]; 0 where it lacks the document.

    Sums are rounded once. Ties go to the document that appears in an earlier ranking, then to the one ranked higher
    there. A ranking whose scores are equal adds nothing.

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
    return Ranking.sort(rankings[0].qid, rankings[0].query, list(parts), [*map(math.fsum, parts.values())])


def normalised_scores(rankings: Sequence[Ranking]) -> dict[str, list[float]]:
    """For each document, its scores in the rankings that have it, scaled to [0, 1] over each ranking."""
    check_one_query(rankings)
    parts: dict[str, list[float]] = {}
    for ranking in rankings:
        for docid, score in zip(ranking.docids, unit_range(ranking.scores).tolist(), strict=True):
            parts.setdefault(docid, []).append(score)
    return parts
