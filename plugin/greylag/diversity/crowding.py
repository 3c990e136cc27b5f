"""How crowded the top of rankings is, without judgements: near duplicates, and what share of the queries has any."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from greylag.core.tables import aligned
from greylag.diversity.group_limit import Groups, group_numbers
from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.index.vectors.protocol import Vectors, unit_rows, vectors_of
from greylag.ranking import FloatArray, Ranking, Run, as_run

THRESHOLDS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Crowding:
    """How crowded the top k are, by threshold of the cosine; ``str`` is the table.

    Parameters
    ----------
    k : int
    queries : int
        How many have at least two documents with vectors in the top k. The figures are means over them.
    thresholds : tuple of float
    near_duplicates : tuple of float
        The share of the documents whose cosine with a better ranked one is at least the threshold.
    crowded : tuple of float
        The share of the queries with a near duplicate.
    given_group : float, optional
        The share of the largest group among those that were given, such as sites.
    """

    k: int
    queries: int
    thresholds: tuple[float, ...]
    near_duplicates: tuple[float, ...]
    crowded: tuple[float, ...]
    given_group: float | None = None

    def __str__(self) -> str:
        columns = zip(self.thresholds, self.near_duplicates, self.crowded, strict=True)
        rows = [[f"{level:g}", *(f"{share:.3f}" for share in shares)] for level, *shares in columns]
        header = ["cosine from", "near duplicates", "queries with any"]
        notes = [
            f"Means over {self.queries} queries, of the top {self.k}.",
            "near duplicates: the share of documents whose cosine with one ranked above is at least that.",
        ]
        if self.given_group is not None:
            notes.append(f"The largest of the given groups has {self.given_group:.3f} of the documents.")
        return "\n".join([*aligned([header, *rows]), "", *notes]) + "\n"


def measure_crowding(
    rankings: Run | Iterable[Ranking],
    *,
    index: PositionalIndex | None = None,
    vectors: Vectors | None = None,
    k: int = 10,
    thresholds: Iterable[float] = THRESHOLDS,
    groups: Groups | None = None,
) -> Crowding:
    """Measure how crowded the top k documents are, which shows without judgements whether there is much to diversify.

    Parameters
    ----------
    rankings : Run or iterable of Ranking
    index : PositionalIndex, optional
        The collection, for its TF-IDF vectors. Give it or `vectors`.
    vectors : Vectors, optional
        Other vectors, whose cosines may all be high: compare thresholds. Documents without one do not count.
    k : int >= 2, default 10
    thresholds : iterable of float in (0, 1], optional
        Cosines from which documents are near duplicates.
    groups : mapping of str to str, or callable from str to str or None, optional
        The group of each docid, as for `GroupLimit`; without one, a document is a group of its own.
    """
    levels = tuple(thresholds)
    if k < 2 or not levels or not all(0 < level <= 1 for level in levels):
        raise ParameterError(f"k is {k} and thresholds are {levels}: k is at least 2, and thresholds in (0, 1]")
    space, figures = vectors_of("crowding", index, vectors), []
    shares = []
    for ranking in as_run(rankings).rankings:
        top = ranking.head(k)
        docids = top.select(space.knows(top.docids)).docids
        if len(docids) > 1:
            rows: Any = space.documents(docids)
            if groups is not None:
                shares.append(float(np.bincount(group_numbers(docids, groups)).max() / len(docids)))
            figures.append(_figures(unit_rows(rows.toarray() if issparse(rows) else rows), levels))
    if not figures:
        raise ParameterError(f"no query has two documents with vectors in its top {k}")
    near, crowded = np.mean(figures, axis=0).T.tolist()
    given_group = float(np.mean(shares)) if shares else None
    return Crowding(k, len(figures), levels, tuple(near), tuple(crowded), given_group)


def _figures(rows: FloatArray, levels: tuple[float, ...]) -> list[tuple[float, float]]:
    """Compute for each level the share of near duplicates, and 1 if there are any."""
    cosines = np.array([(rows * row).sum(axis=1) for row in rows])  # BLAS sums in an order that depends on the threads
    figures = []
    for level in levels:
        near = np.tril(cosines >= level - 1e-9, -1).any(axis=1)  # equal documents may have a cosine just below 1
        figures.append((float(near.mean()), float(near.any())))
    return figures
