"""Training data: the features of rankings with their judgements, in flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from greylag.errors import ParameterError
from greylag.ranking import FloatArray, IntArray, Ranking


@dataclass(frozen=True, eq=False)
class RankingData:
    """Documents of q queries, one after another, with f features and grades.

    Parameters
    ----------
    names : the features' names, in the order of columns.
    qids : the queries, shape (q,).
    offsets : shape (q + 1,): query i's documents are rows ``offsets[i]:offsets[i + 1]``. Of documents with equal scores
        the earlier row is ranked higher.
    docids : the rows' documents.
    features : shape (n, f).
    grades : shape (n,), integers; 0 or less for not relevant or not judged.
    judged : for each query, the positive grades of all its judged documents, retrieved or not.
    """

    names: tuple[str, ...]
    qids: tuple[str, ...]
    offsets: IntArray
    docids: tuple[str, ...]
    features: FloatArray
    grades: IntArray
    judged: tuple[IntArray, ...]

    def __post_init__(self) -> None:
        if self.features.shape != (len(self.docids), len(self.names)):
            raise ParameterError(
                f"features of shape {self.features.shape} for {len(self.docids)} documents and {len(self.names)} names"
            )
        if not np.isfinite(self.features).all():
            row, column = np.argwhere(~np.isfinite(self.features))[0]
            raise ParameterError(
                f"feature {self.names[column]} of document {self.docids[row]} is {self.features[row, column]}: "
                "features have to be finite"
            )

    @classmethod
    def from_rankings(
        cls,
        rankings: Iterable[Ranking],
        qrels: Mapping[str, Mapping[str, int]],
        names: Sequence[str],
        extract: Callable[[Ranking], FloatArray],
    ) -> RankingData:
        """Data of the rankings whose query has a relevant document; the others teach nothing.

        Raises
        ------
        ParameterError
            Where no query is left.
        """
        used = [ranking for ranking in rankings if any(grade > 0 for grade in qrels.get(ranking.qid, {}).values())]
        if not used:
            raise ParameterError(
                "none of the ranked queries has a relevant document in the qrels: nothing to learn from"
            )
        grades = [qrels[ranking.qid].get(docid, 0) for ranking in used for docid in ranking.docids]
        return cls(
            names=tuple(names),
            qids=tuple(ranking.qid for ranking in used),
            offsets=np.cumsum([0, *map(len, used)]),
            docids=tuple(docid for ranking in used for docid in ranking.docids),
            features=np.concatenate([extract(ranking) for ranking in used]),
            grades=np.array(grades, dtype=np.int64),
            judged=tuple(positive_grades(qrels[ranking.qid]) for ranking in used),
        )

    @cached_property
    def columns(self) -> FloatArray:
        """The features by column, contiguous: shape (f, n)."""
        return np.ascontiguousarray(self.features.T)

    def select_queries(self, qids: Sequence[str]) -> RankingData:
        """The data of `qids`, in their order; those that are not in the data are left out."""
        places = [self.qids.index(qid) for qid in qids if qid in self.qids]
        if not places:
            raise ParameterError(f"none of the queries {', '.join(qids)} has training data")
        spans = [(int(self.offsets[i]), int(self.offsets[i + 1])) for i in places]
        rows = np.concatenate([np.arange(first, end) for first, end in spans])
        return RankingData(
            names=self.names,
            qids=tuple(self.qids[i] for i in places),
            offsets=np.cumsum([0, *(end - first for first, end in spans)]),
            docids=tuple(chain.from_iterable(self.docids[first:end] for first, end in spans)),
            features=self.features[rows],
            grades=self.grades[rows],
            judged=tuple(self.judged[i] for i in places),
        )

    def select_features(self, columns: Sequence[int]) -> RankingData:
        """The data with these columns only, in this order."""
        names = tuple(self.names[column] for column in columns)
        return RankingData(
            names, self.qids, self.offsets, self.docids, self.features[:, list(columns)], self.grades, self.judged
        )


def positive_grades(judgements: Mapping[str, int]) -> IntArray:
    """The grades above 0, highest first."""
    return np.array(sorted((grade for grade in judgements.values() if grade > 0), reverse=True), dtype=np.int64)


def centred(data: RankingData) -> FloatArray:
    """The features minus their means within each query, by column: shape (f, n)."""
    columns = data.columns.copy()
    for first, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        if end > first:
            columns[:, first:end] -= columns[:, first:end].mean(axis=1, keepdims=True)
    return columns


def distinct_features(data: RankingData) -> tuple[list[int], dict[int, str]]:
    """Columns to keep, and why each other one goes: constant within every query, or ranking as an earlier one does.

    Two features rank alike where, within every query, one is an increasing linear function of the other with the same
    slope for all queries: where they are equal to within 1e-9 once each is centred in every query and of length 1.
    """
    units = centred(data)
    spans = np.abs(units).max(axis=1, initial=0.0)
    scale = np.maximum(1.0, np.abs(data.columns).max(axis=1, initial=0.0))
    units /= np.maximum(np.linalg.norm(units, axis=1), 1e-300)[:, None]
    near = units @ units.T > 1.0 - 1e-6  # only these can be equal: |u - v|^2 = 2 - 2 u.v
    kept: list[int] = []
    dropped: dict[int, str] = {}
    for column, name in enumerate(data.names):
        if spans[column] <= 1e-12 * scale[column]:
            dropped[column] = f"{name} is constant within every query"
            continue
        twin = next((k for k in kept if near[column, k] and np.abs(units[column] - units[k]).max() <= 1e-9), None)
        if twin is None:
            kept.append(column)
        else:
            dropped[column] = f"{name} ranks as {data.names[twin]} does"
    return kept, dropped
