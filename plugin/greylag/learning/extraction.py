"""Training data from rankings and judgements: extracted once, or counted once and weighed with many parameters."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from greylag.base import ParameterError, QrelsLike, Ranking, RunLike, as_qrels, as_run, parallel_map, rebuilt
from greylag.features import Feature, FeatureCounts, FeatureExtractor, FeatureParameters, FeatureSpec
from greylag.index import PositionalIndex
from greylag.learning.data import Judgements, RankingData, positive_grades

MAX_CACHED_BYTES = 1 << 28  # bytes of features that `CountedRankings` keeps
_log = logging.getLogger("greylag")


def training_data(
    rankings: RunLike, qrels: QrelsLike, extractor: FeatureExtractor, *, n_jobs: int | None = None
) -> RankingData:
    """Extract the features of the rankings whose query has a relevant document; other queries are left out.

    So are documents outside the index, which a ranker puts last; relevant ones count as not retrieved. The data does
    not depend on the number of workers `n_jobs`.
    """
    given, qrels = as_run(rankings).rankings, as_qrels(qrels)
    judged = judged_rankings(given, qrels, extractor)
    features = np.concatenate(list(parallel_map(extractor, judged, what="features", n_jobs=n_jobs)))
    if limited := sum(extractor.limits(ranking.query) for ranking in given):
        largest = extractor.parameters.max_clique
        _log.info("cliques of FD are limited to %d terms; queries with more terms: %d", largest, limited)
    return replace(_rows(judged, qrels), specs=extractor.specs, features=features, origin=extractor.origin)


@dataclass(frozen=True, eq=False)
class CountedRankings:
    """Rankings from which `RankingData` is made for one set of feature parameters after another.

    Parameters in which only weighting differs (mu, k1, b, idf) share the counts of windows, which take most of the time
    of extraction. Rankings are used as by `training_data`. Expansions are counted together for all `settings`, the
    parameters that will be asked for, which differ in `fb_docs` and `fb_terms`. Instances are safe to share between
    threads.
    """

    rankings: tuple[Ranking, ...]
    qrels: Judgements
    index: PositionalIndex
    features: tuple[Feature, ...]
    settings: tuple[FeatureParameters, ...] = ()
    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)
    _counted: dict[tuple[object, ...], FeatureCounts] = field(init=False, repr=False, default_factory=dict)
    _kept: dict[FeatureParameters, RankingData] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        extractor = FeatureExtractor(self.index, tuple(self.features))
        # As the extractor has them: parsed, and known documents alone.
        object.__setattr__(self, "features", extractor.specs)
        object.__setattr__(self, "rankings", judged_rankings(self.rankings, self.qrels, extractor))

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def data(self, parameters: FeatureParameters) -> RankingData:
        """Compute the data with these parameters, equal to `training_data` by that extractor; kept for other folds."""
        if parameters in self._kept:
            return self._kept[parameters]
        values = np.empty((len(self._rows.docids), len(self.features)))
        for columns in self._parts:
            extractor = FeatureExtractor(self.index, tuple(self.features[column] for column in columns), parameters)
            values[:, columns] = extractor.weigh(self._counts(extractor))
        data = replace(self._rows, specs=self.features, features=values, origin=extractor.origin)
        # Without a lock: at worst, two threads weigh the same.
        if (len(self._kept) + 1) * values.nbytes <= MAX_CACHED_BYTES:
            self._kept[parameters] = data
        return data

    def _counts(self, extractor: FeatureExtractor) -> FeatureCounts:
        asked = extractor.parameters
        settings = self.settings if extractor.expands and asked in self.settings else (asked,)
        # Expansions of all settings are one count; windows are shared by all parameters that do not change them.
        key = extractor.specs, settings if len(settings) > 1 else extractor.counting
        with self._lock:  # counting takes long, so that others wait for the counts
            if key not in self._counted:
                self._counted[key] = extractor.count(self.rankings, settings)
            counts = self._counted[key]
        return counts.by_setting(settings.index(asked)) if len(settings) > 1 else counts

    @cached_property
    def _parts(self) -> list[list[int]]:
        """The columns of expansion features and of all others, whose counts depend on other parameters."""
        bases = [feature.base for feature in self.features]
        expands = [isinstance(base, FeatureSpec) and base.expands for base in bases]
        parts = [[column for column, is_one in enumerate(expands) if is_one == kind] for kind in (False, True)]
        return [columns for columns in parts if columns]

    @cached_property
    def _rows(self) -> RankingData:
        return _rows(self.rankings, self.qrels)


def judged_topics(qids: Iterable[str], qrels: Judgements, rel: int = 1) -> list[str]:
    """Return the topics with a document of at least this grade, in their order; an error if there are none."""
    topics = list(qids)
    judged = [qid for qid in topics if any(grade >= rel for grade in qrels.get(qid, {}).values())]
    if not judged:
        unknown = topics and qrels and not any(qid in qrels for qid in topics)
        others = f"; the judgements are of others, {next(iter(qrels))!r} against {topics[0]!r}" if unknown else ""
        raise ParameterError(f"none of {len(topics)} topics has a relevant document{others}")
    return judged


def judged_rankings(rankings: Sequence[Ranking], qrels: Judgements, extractor: FeatureExtractor) -> tuple[Ranking, ...]:
    """Return the rankings whose query has a relevant document, without documents that are unknown to the extractor."""
    judged = frozenset(judged_topics((ranking.qid for ranking in rankings), qrels))
    return tuple(ranking.select(extractor.knows(ranking.docids)) for ranking in rankings if ranking.qid in judged)


def _rows(rankings: Sequence[Ranking], qrels: Judgements) -> RankingData:
    """Return the data of judged rankings, without features."""
    docids = tuple(docid for ranking in rankings for docid in ranking.docids)
    grades = [qrels[ranking.qid].get(docid, 0) for ranking in rankings for docid in ranking.docids]
    return RankingData(
        specs=(),
        qids=tuple(ranking.qid for ranking in rankings),
        offsets=np.cumsum([0, *map(len, rankings)]),
        docids=docids,
        features=np.empty((len(docids), 0)),
        grades=np.array(grades, dtype=np.int64),
        relevant_grades=tuple(positive_grades(qrels[ranking.qid].values()) for ranking in rankings),
    )
