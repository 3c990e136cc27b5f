"""Narrowing the pool before greedy selection: features that tell much of relevance, and little that others tell.

Greedy selection searches along every candidate in every round; this takes one pass over counts. It is MMR feature
selection as for words (`greylag.selection.mmr`): the class is relevance, and a feature "occurs" in the documents that
it would rank high.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from greylag.errors import ParameterError
from greylag.ltr.data import RankingData, distinct_features

EQUAL_WEIGHTS = 0.5
# A feature holds for one in so many documents. Of seven rules (above the mean, the median, the highest 20, 10, 5 or 2
# per cent, half way between relevant and other documents) this one orders the pool much as AP does on CACM, Cranfield
# and Vaswani, all of whose judgements went into that comparison; means and medians put windows before single terms.
SHARE = 10


@dataclass(frozen=True)
class MMRPreselection:
    """MMR selection of ranking features.

    Parameters
    ----------
    n_features : how many to keep, >= 1.
    relevance_weight : lambda of `greylag.selection.MMRFeatureSelection`, 0 to 1; 1 keeps those of highest information
        gain.
    """

    n_features: int
    relevance_weight: float = EQUAL_WEIGHTS

    def __post_init__(self) -> None:
        if self.n_features < 1:
            raise ParameterError(f"preselection has to keep at least 1 feature, not {self.n_features}")
        if not 0 <= self.relevance_weight <= 1:
            raise ParameterError(f"preselection's relevance weight is from 0 to 1, not {self.relevance_weight}")

    def __str__(self) -> str:
        weight = "" if self.relevance_weight == EQUAL_WEIGHTS else f":{self.relevance_weight:g}"
        return f"mmr:{self.n_features}{weight}"

    @classmethod
    def parse(cls, text: str) -> MMRPreselection:
        """``mmr:16`` (16 features), or ``mmr:16:0.7`` (relevance weight 0.7); the inverse of ``str``."""
        match = re.fullmatch(r"mmr:(\d+)(?::(\d*\.?\d+))?", text.strip())
        if not match:
            raise ParameterError(f"preselection {text!r} is not of the form mmr:16 or mmr:16:0.7")
        return cls(int(match[1]), float(match[2] or EQUAL_WEIGHTS))

    def narrow(self, data: RankingData) -> RankingData:
        """The data with the features that are kept, in their order; trivial and duplicate ones go first.

        All others are kept where they are few enough, or where all documents are relevant, or none, so that nothing
        tells them apart.
        """
        from greylag.selection.mmr import MMRFeatureSelection

        distinct = data.select_features(distinct_features(data)[0])
        relevant = distinct.grades > 0
        if len(distinct.names) <= self.n_features or relevant.all() or not relevant.any():
            return distinct
        selector = MMRFeatureSelection(
            self.n_features, relevance_weight=self.relevance_weight, preselect=len(distinct.names)
        )
        return distinct.select_features(np.sort(selector.fit(binarise(distinct), relevant).selected_).tolist())


def binarise(data: RankingData) -> NDArray[np.bool_]:
    """Whether each feature holds for each document, shape (n, f): whether it alone would rank it in the first tenth.

    Of a query's n_q documents a feature holds for those whose value is above the (ceil(n_q / 10) + 1)-th highest. Where
    ties reach over that place, it holds for fewer, or none: most windows do not occur in most documents.
    """
    holds = np.zeros(data.features.shape, dtype=np.bool_)
    for first, end in pairwise(data.offsets.tolist()):
        values, beyond = data.features[first:end], end - first - 1 - math.ceil((end - first) / SHARE)
        if beyond >= 0:
            holds[first:end] = values > np.partition(values, beyond, axis=0)[beyond]
    return holds
