"""Training data: the features of rankings and their relevance grades, in flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from greylag.base import MAX_VALUE, FloatArray, IntArray, ParameterError

if TYPE_CHECKING:  # whoever learns from the matrix need not load what makes it
    from greylag.features import Feature, Origin

Judgements = Mapping[str, Mapping[str, int]]
T = TypeVar("T")

MAX_SEARCHED_QUERIES = 2000
"""The most training queries that slow searches use: the grid of tuned sources, and greedy selection in the choice."""


@dataclass(frozen=True, eq=False, repr=False)
class RankingData:
    """The documents of q queries, one query after another: n rows with f features and a grade.

    `X`, `y` and `groups` are its arrays by the names that LightGBM and scikit-learn give them.
    """

    specs: tuple[Feature | str, ...]  # the columns; those of a file are known by name only
    qids: tuple[str, ...]
    offsets: IntArray  # (q + 1,): query i has rows offsets[i]:offsets[i + 1]; the earlier row wins ties
    docids: tuple[str, ...]
    features: FloatArray  # (n, f): at most 1e100 in magnitude; NaN is a missing value, which trees alone know
    grades: IntArray  # (n,): 0 or less if the document is not relevant or not judged
    relevant_grades: tuple[IntArray, ...]  # of each query, all that are positive, of documents retrieved or not
    origin: Origin | None = None  # the feature parameters and the collection; None for what needs no index

    def __post_init__(self) -> None:
        if self.features.shape != (len(self.docids), len(self.specs)):
            raise ParameterError(
                f"features of shape {self.features.shape} for {len(self.docids)} documents and {len(self.specs)} names"
            )
        least, most = (find.reduce(self.features, axis=None, initial=0.0) for find in (np.fmin, np.fmax))  # without NaN
        if not (least >= -MAX_VALUE and most <= MAX_VALUE):
            row, column = np.argwhere(np.abs(self.features) > MAX_VALUE)[0]
            raise ParameterError(
                f"feature {self.specs[column]} of document {self.docids[row]} is {self.features[row, column]}: "
                f"features must be finite, and at most {MAX_VALUE:g} in magnitude"
            )

    @classmethod
    def from_arrays(
        cls, X: ArrayLike, y: ArrayLike, groups: ArrayLike, *, names: Sequence[str] | None = None
    ) -> RankingData:
        """Make the data of arrays, as LightGBM takes them; queries and documents get their numbers, from 1, as names.

        These are the features X, shape (n, f), grades y, shape (n,), and the number of documents of each query, shape
        (q,), whose rows follow one another. Features are named "1", "2", ... by default. All relevant documents of a
        query are taken to be among its rows.

        Examples
        --------
        >>> RankingData.from_arrays([[0.5, 1.0], [0.2, 3.0], [0.1, 0.0]], [1, 0, 2], [2, 1])
        <RankingData of 2 queries, 3 documents, 2 features>
        """
        features, grades, sizes = np.asarray(X, dtype=np.float64), np.asarray(y), np.asarray(groups)
        if features.ndim != 2 or grades.shape != (len(features),):
            raise ParameterError(
                f"X has the shape {features.shape} and y {grades.shape}: give (n, f) and (n,), a row for each document"
            )
        if grades.dtype.kind not in "biuf" or not (np.isfinite(grades) & (grades == np.round(grades))).all():
            raise ParameterError(f"y has grades that are not whole numbers (of the type {grades.dtype})")
        if sizes.ndim != 1 or ((sizes < 0) | (sizes % 1 != 0)).any() or sizes.sum() != len(features):
            raise ParameterError(
                f"groups are whole numbers, the documents of each query, and add up to the {len(features)} rows of X, "
                f"not to {sizes.sum()}"
            )
        whole, ends = grades.astype(np.int64), np.cumsum([0, *sizes], dtype=np.int64)
        return cls(
            tuple(map(str, range(1, features.shape[1] + 1) if names is None else names)),
            tuple(map(str, range(1, len(sizes) + 1))),
            ends,
            tuple(map(str, range(1, len(features) + 1))),
            features,
            whole,
            tuple(positive_grades(whole[first:end]) for first, end in pairwise(ends)),
        )

    def __repr__(self) -> str:
        queries, documents, features = len(self.qids), len(self.docids), len(self.specs)
        return f"<RankingData of {queries} queries, {documents} documents, {features} features>"

    @property
    def X(self) -> FloatArray:  # noqa: N802 - as elsewhere
        """The features, shape (n, f)."""
        return self.features

    @property
    def y(self) -> IntArray:
        """The grades, shape (n,)."""
        return self.grades

    @property
    def groups(self) -> IntArray:
        """The number of documents of each query, shape (q,)."""
        return np.diff(self.offsets)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in the order of columns."""
        return tuple(map(str, self.specs))

    @cached_property
    def spans(self) -> dict[str, tuple[int, int]]:
        """The first row of each query, and the one after its last."""
        return dict(zip(self.qids, pairwise(self.offsets.tolist()), strict=True))

    @cached_property
    def lacking(self) -> tuple[str, ...]:
        """The names of the features that are missing (NaN) for a document."""
        missing = np.isnan(self.features.sum(axis=0))  # of finite values, the sum is finite
        return tuple(self.names[column] for column in np.flatnonzero(missing))

    @cached_property
    def columns(self) -> FloatArray:
        """The features by column, contiguous: shape (f, n); `ParameterError` if one is missing."""
        return np.ascontiguousarray(self.complete.T)

    @cached_property
    def complete(self) -> FloatArray:
        """The features; `ParameterError` if one is missing."""
        if self.lacking:
            row, column = np.argwhere(np.isnan(self.features))[0]
            raise ParameterError(
                f"feature {self.specs[column]} of document {self.docids[row]} is missing (NaN), which the "
                "trees of lambdamart know and weights do not: fill it in"
            )
        return self.features

    @cached_property
    def distinct(self) -> tuple[list[int], dict[int, str]]:
        """The columns to keep, and the reason for dropping each of the others.

        A column is dropped if it is constant within every query, or ranks documents as an earlier one does: if, within
        every query, it is an increasing linear function of the earlier one with the same slope for all queries. This is
        the case if the two are equal to within 1e-9 after centring within each query and scaling to unit length.
        """
        units = centred(self)
        spans = np.abs(units).max(axis=1, initial=0.0)
        scale = np.maximum(1.0, np.abs(self.columns).max(axis=1, initial=0.0))
        units /= np.maximum(np.linalg.norm(units, axis=1), 1e-300)[:, None]
        near = units @ units.T > 1.0 - 1e-6  # only these can be equal: |u - v|^2 = 2 - 2 u.v
        kept: list[int] = []
        dropped: dict[int, str] = {}
        for column, name in enumerate(self.names):
            if spans[column] <= 1e-12 * scale[column]:
                dropped[column] = f"{name} is constant within every query"
                continue
            twin = next((k for k in kept if near[column, k] and np.abs(units[column] - units[k]).max() <= 1e-9), None)
            if twin is None:
                kept.append(column)
            else:
                dropped[column] = f"{name} ranks as {self.specs[twin]} does"
        return kept, dropped

    def columns_of(self, names: Iterable[str]) -> list[int]:
        """Return the numbers of the columns with these names, which the data has."""
        return [self._numbers[name] for name in names]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def select_queries(self, qids: Sequence[str]) -> RankingData:
        """Select the data of `qids`, in their order, without those that the data lacks; an error if none is left."""
        known = [qid for qid in qids if qid in self.spans]
        if not known:
            raise ParameterError(f"none of the queries {', '.join(qids)} has training data")
        spans, relevant = [self.spans[qid] for qid in known], dict(zip(self.qids, self.relevant_grades, strict=True))
        rows = np.concatenate([np.arange(first, end) for first, end in spans])
        return replace(
            self,
            qids=tuple(known),
            offsets=np.cumsum([0, *(end - first for first, end in spans)]),
            docids=tuple(chain.from_iterable(self.docids[first:end] for first, end in spans)),
            features=self.features[rows],
            grades=self.grades[rows],
            relevant_grades=tuple(relevant[qid] for qid in known),
        )

    def select_features(self, columns: Sequence[int]) -> RankingData:
        """Select these columns of the data, in this order."""
        return replace(
            self, specs=tuple(self.specs[column] for column in columns), features=self.features[:, list(columns)]
        )


def useful_features(data: RankingData, *, missing: bool = False) -> tuple[RankingData, list[str]]:
    """Drop features that are trivial or duplicates by value; return the data and the reasons.

    With `missing`, features that are missing for a document are kept, as that alone may tell; else they are refused.
    """
    partial = data.columns_of(data.lacking) if missing else []
    whole = [column for column in range(len(data.specs)) if column not in partial]
    kept, dropped = (data.select_features(whole) if partial else data).distinct
    if not (columns := sorted([*partial, *(whole[column] for column in kept)])):
        raise ParameterError("every feature is constant within every training query: there is nothing to select")
    return data.select_features(columns), list(dropped.values())


def spaced(items: Sequence[T], limit: int) -> list[T]:
    """Select at most `limit` of the items, at equal distances."""
    places = np.linspace(0, len(items) - 1, min(limit, len(items))).round().astype(int)
    return [items[place] for place in places]


def concatenated(parts: Sequence[RankingData]) -> RankingData:
    """Concatenate the queries of data sets with the same features."""
    return replace(
        parts[0],
        qids=tuple(chain.from_iterable(part.qids for part in parts)),
        offsets=np.cumsum(np.concatenate([[0], *(np.diff(part.offsets) for part in parts)])),
        docids=tuple(chain.from_iterable(part.docids for part in parts)),
        features=np.concatenate([part.features for part in parts]),
        grades=np.concatenate([part.grades for part in parts]),
        relevant_grades=tuple(chain.from_iterable(part.relevant_grades for part in parts)),
    )


def positive_grades(grades: Iterable[int]) -> IntArray:
    """Return the grades above 0, in descending order."""
    return np.array(sorted((grade for grade in grades if grade > 0), reverse=True), dtype=np.int64)


def weighted_sum(features: FloatArray, weights: FloatArray) -> FloatArray:
    """Compute ``features @ weights``, shape (n,), column by column: BLAS sums in an order that depends on threads."""
    scores = np.zeros(len(features))
    with np.errstate(over="ignore", invalid="ignore"):  # whoever ranks by infinite scores refuses them
        for column, weight in zip(features.T, weights, strict=True):
            scores += weight * column
    return scores


def linear_scores(data: RankingData, columns: Sequence[int], weights: FloatArray) -> FloatArray:
    """Compute the weighted sum of the columns, shape (n,), added in their order."""
    scores = np.zeros(len(data.docids))
    for column, weight in zip(columns, weights, strict=True):
        scores += weight * data.columns[column]
    return scores


def centred(data: RankingData) -> FloatArray:
    """Subtract each query's means from the features, by column: shape (f, n)."""
    columns = data.columns.copy()
    for first, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        if end > first:
            columns[:, first:end] -= columns[:, first:end].mean(axis=1, keepdims=True)
    return columns


def measure_spreads(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Compute root mean squares of values, shape (n, f), around means within queries, shape (f,)."""
    # Between queries, features and scores differ by much more, which changes no ranking. `offsets`, shape (q + 1,), has
    # the rows of each query, as in `RankingData`.
    squares = np.zeros(values.shape[1])
    for first, end in pairwise(offsets.tolist()):
        if end > first:
            rows = values[first:end]
            squares += ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(squares / max(1, len(values))))
