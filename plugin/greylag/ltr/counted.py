"""Counted rankings: training data whose windows are counted once, for any number of parameters."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from greylag.features.counts import FeatureCounts
from greylag.features.derived import plain_features
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature
from greylag.features.spec import FeatureSpec
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.data import Qrels, RankingData, judged_rankings
from greylag.ranking import Ranking
from greylag.runtime.parallel import rebuilt


@dataclass(frozen=True, eq=False)
class CountedRankings:
    """Rankings from which `RankingData` is made for one set of feature parameters after another.

    Parameters in which only weighting differs (mu, k1, b, idf) share the counts of windows, which take most of the time
    of extraction. Instances are safe to share between threads.

    Parameters
    ----------
    rankings : tuple of Ranking
        Those whose query has a relevant document are used, without documents outside the index.
    qrels : mapping of qid to docid to grade
    index : PositionalIndex
    features : tuple of Feature
        The columns of the data.

    Raises
    ------
    ParameterError
        If no query has a relevant document, there are no features, or one is given twice.
    """

    rankings: tuple[Ranking, ...]
    qrels: Qrels
    index: PositionalIndex
    features: tuple[Feature, ...]
    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)
    _counted: dict[tuple[object, ...], FeatureCounts] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        extractor = FeatureExtractor(self.index, tuple(self.features))
        object.__setattr__(self, "features", extractor.specs)
        object.__setattr__(self, "rankings", judged_rankings(self.rankings, self.qrels, extractor))

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def data(self, parameters: FeatureParameters) -> RankingData:
        """The data with these parameters, equal to `RankingData.from_rankings`."""
        values = np.empty((len(self._rows.docids), len(self.features)))
        for columns in self._parts:
            own = tuple(self.features[column] for column in columns)
            extractor = FeatureExtractor(self.index, own, parameters)
            values[:, columns] = extractor.weigh(self._counts(extractor))
        return replace(self._rows, specs=self.features, features=values, origin=extractor.origin)

    def _counts(self, extractor: FeatureExtractor) -> FeatureCounts:
        key = extractor.specs, extractor.counting
        with self._lock:
            if key not in self._counted:
                self._counted[key] = extractor.count(self.rankings)
            return self._counted[key]

    @cached_property
    def _parts(self) -> list[list[int]]:
        """The columns of expansion features and of all others, whose counts depend on other parameters."""
        expands = [
            any(isinstance(base, FeatureSpec) and base.expands for base in plain_features(feature))
            for feature in self.features
        ]
        parts = [[column for column, own in enumerate(expands) if own == kind] for kind in (False, True)]
        return [columns for columns in parts if columns]

    @cached_property
    def _rows(self) -> RankingData:
        """The data without features."""
        return RankingData.of_rankings(self.rankings, self.qrels)
