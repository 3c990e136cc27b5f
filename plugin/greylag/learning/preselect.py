"""Preselection: reducing the pool before greedy selection to features that are informative and not redundant.

Greedy selection runs a line search along every candidate in every round, whereas preselection takes one pass over
counts. It is MMR feature selection as for words (`greylag.learning.selection`), with relevance as the class: a
feature "occurs" in the documents that it would rank near the top.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from greylag.base import ParameterError
from greylag.learning.data import RankingData

EQUAL_WEIGHTS = 0.5
# A feature holds for one in DOCUMENTS_PER_MATCH documents. Of seven rules (above the mean, above the median, the top
# 20, 10, 5 or 2 per cent, above the midpoint of relevant and other documents), this one orders the pool most like AP on
# CACM, Cranfield and Vaswani, using all of their judgements. Means and medians rank windows above single terms.
DOCUMENTS_PER_MATCH = 10


@dataclass(frozen=True)
class MMRPreselection:
    """MMR selection of ranking features.

    Parameters
    ----------
    n_features : int >= 1
        The number of features to keep.
    relevance_weight : float in [0, 1], default 0.5
        Lambda of `MMRFeatureSelection`; 1 keeps the features of highest information gain.
    """

    n_features: int
    _: KW_ONLY
    relevance_weight: float = EQUAL_WEIGHTS

    def __post_init__(self) -> None:
        if self.n_features < 1:
            raise ParameterError(f"preselection must keep at least 1 feature, not {self.n_features}")
        if not 0 <= self.relevance_weight <= 1:
            raise ParameterError(f"the relevance weight of preselection must be in [0, 1], not {self.relevance_weight}")

    def __str__(self) -> str:
        weight = "" if self.relevance_weight == EQUAL_WEIGHTS else f",relevance_weight={self.relevance_weight:g}"
        return f"mmr(n_features={self.n_features}{weight})"

    def select(self, data: RankingData) -> RankingData:
        """Select the data with the selected features, in pool order; trivial and duplicate ones are dropped first."""
        # All others are kept if relevance, of all documents or of none, does not distinguish features.
        from greylag.learning.selection import MMRFeatureSelection  # scikit-learn is slow to import

        distinct = data.select_features(data.distinct[0])
        relevant = distinct.grades > 0
        if len(distinct.specs) <= self.n_features or relevant.all() or not relevant.any():
            return distinct
        selector = MMRFeatureSelection(
            self.n_features, relevance_weight=self.relevance_weight, preselect=len(distinct.specs)
        )
        return distinct.select_features(np.sort(selector.fit(binarise(distinct), relevant).selected_).tolist())


def binarise(data: RankingData) -> NDArray[np.bool_]:
    """Return whether each feature holds for each document, shape (n, f): alone, it ranks it in the top tenth."""
    # A feature holds for those of a query's n_q documents whose value is above the (ceil(n_q / 10) + 1)-th highest. If
    # there are ties at that rank, it holds for fewer documents, or none: most windows do not occur in most documents.
    holds = np.zeros(data.features.shape, dtype=np.bool_)
    for first, end in pairwise(data.offsets.tolist()):
        values, beyond = data.features[first:end], end - first - 1 - math.ceil((end - first) / DOCUMENTS_PER_MATCH)
        if beyond >= 0:
            holds[first:end] = values > np.partition(values, beyond, axis=0)[beyond]
    return holds
