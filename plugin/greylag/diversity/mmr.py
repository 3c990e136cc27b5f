"""Maximal marginal relevance (Carbonell & Goldstein 1998)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from greylag.diversity.stage import GreedyStage
from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.index.renumber import drop_empty_columns
from greylag.ranking import BoolArray, FloatArray, IntArray, Ranking, unit_range
from greylag.runtime.compilation import compiled
from greylag.vectors.protocol import Vectors, unit_rows, vectors_of
from greylag.vectors.vector_files import open_vectors

_LONGEST = 1e140  # the squares of longer vectors overflow, those of vectors shorter than its inverse lose digits


@dataclass(frozen=True)
class MMR(GreedyStage):
    """Rerank by relevance and novelty.

    Each pick maximises

        w rel(d) - (1 - w) max over picked s of cos(d, s)

    with w the relevance weight (lambda in the paper), rel the incoming score scaled to [0, 1] over the candidates (all
    0 if they are equal), and cos the cosine of the documents' vectors. That of TF-IDF vectors is in [0, 1], and 0 for a
    document without terms: both terms have the same range, so that w = 0.5 weighs them equally whatever the scores of
    the ranking. A cosine of embeddings may be negative; for the first pick, the maximum is 0.

    Parameters
    ----------
    index : PositionalIndex, optional
        The collection, for its TF-IDF vectors. Give it or `vectors`.
    vectors : Vectors, optional
        Other vectors, such as `greylag.vectors.ArrayVectors`. A document without a vector keeps its rank.
    relevance_weight : float in [0, 1], default 0.7
        1 keeps the incoming order; 0 is novelty alone, after the top document.
    depth, k : int
        See `greylag.diversity.DiversityStage`.

    References
    ----------
    Carbonell and Goldstein, The use of MMR, diversity-based reranking for reordering documents and producing summaries,
    SIGIR 1998.
    """

    readers: ClassVar = {"vectors": open_vectors}

    index: PositionalIndex | None = None
    _: KW_ONLY
    vectors: Vectors | None = None
    relevance_weight: float = 0.7
    _vectors: Vectors = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_vectors", vectors_of("MMR", self.index, self.vectors))
        if not 0 <= self.relevance_weight <= 1:
            raise ParameterError(f"relevance_weight must be in [0, 1], not {self.relevance_weight}")

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Which documents have a vector."""
        return self._vectors.knows(docids)

    def gain(self, candidates: Ranking) -> MarginalRelevance | DenseMarginalRelevance:
        """The marginal relevance of these documents."""
        vectors, relevance = self._vectors.documents(candidates.docids), unit_range(candidates.scores)
        if issparse(vectors):
            return MarginalRelevance(relevance, vectors, self.relevance_weight)
        return DenseMarginalRelevance(relevance, vectors, self.relevance_weight)


class MarginalRelevance:
    """The gain of MMR over n candidates.

    Parameters
    ----------
    relevance : array, shape (n,)
        In [0, 1].
    vectors : csr_matrix, shape (n, V)
        Rows of unit length or zero.
    relevance_weight : float in [0, 1]
        See `MMR`.
    """

    def __init__(self, relevance: FloatArray, vectors: csr_matrix, relevance_weight: float) -> None:
        rows = drop_empty_columns(vectors) if vectors.shape[1] > vectors.nnz else vectors
        by_column = rows.tocsc()
        self._starts, self._columns, self._values = rows.indptr.tolist(), rows.indices, rows.data
        self._raise = partial(_raise_to_products, by_column.indptr, by_column.indices, by_column.data)
        self._relevance = relevance_weight * relevance
        self._novelty_weight = 1.0 - relevance_weight
        self._closest = np.zeros(len(relevance))

    def gains(self) -> FloatArray:
        """``w rel - (1 - w) max cos``, shape (n,)."""
        return self._relevance - self._novelty_weight * self._closest

    def add(self, candidate: int) -> None:
        """Update the similarity of every candidate to the closest pick."""
        row = slice(self._starts[candidate], self._starts[candidate + 1])
        self._raise(self._columns[row], self._values[row], self._closest)


class DenseMarginalRelevance:
    """The gain of MMR over n candidates with float32 or float64 vectors of any length; cosines are sums in float64.

    A gain only falls as documents are picked, so that one that is not up to date is a bound. `gains` brings up to date
    only those that could be the highest, which is why MMR on embeddings is fast.
    """

    def __init__(self, relevance: FloatArray, vectors: NDArray[np.floating[Any]], relevance_weight: float) -> None:
        lengths = _lengths(vectors)
        if (lengths > _LONGEST).any() or vectors[lengths < 1.0 / _LONGEST].any():
            vectors = unit_rows(vectors)
            lengths = _lengths(vectors)
        self._rows = vectors
        self._scales = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        self._relevance = relevance_weight * relevance
        self._novelty_weight = 1.0 - relevance_weight
        self._picks = np.empty(len(relevance), dtype=np.int64)
        self._picked = 0
        self._seen = np.zeros(len(relevance), dtype=np.int64)  # the picks that each gain takes into account
        self._closest = np.full(len(relevance), -1.0)
        self._gains = self._relevance + self._novelty_weight  # bounds, for the lowest cosine

    def gains(self) -> FloatArray:
        """``w rel - (1 - w) max cos`` where it is highest, and upper bounds elsewhere, shape (n,)."""
        if not self._picked:
            return self._relevance
        _refresh_gains(
            self._rows, self._scales, self._relevance, self._novelty_weight, self._picks[: self._picked], self._seen,
            self._closest, self._gains,
        )  # fmt: skip
        return self._gains

    def add(self, candidate: int) -> None:
        """Pick a candidate."""
        self._picks[self._picked] = candidate
        self._picked += 1
        self._seen[candidate] = len(self._seen) + 1
        self._gains[candidate] = -np.inf


@compiled()
def _raise_to_products(
    indptr: Any, rows: Any, data: Any, columns: Any, values: FloatArray, closest: FloatArray
) -> None:
    """Raise `closest` to the inner products of a sparse vector, `columns` and `values`, with the rows of a CSC matrix.

    Only the vector's columns are visited. Rows are unsigned, since Numba counts negative ones from the end of an array.
    """
    products = np.zeros(len(closest))
    for place in range(len(columns)):
        value, column = values[place], columns[place]
        for entry in range(np.uint64(indptr[column]), np.uint64(indptr[column + 1])):
            products[np.uint64(rows[entry])] += value * data[entry]
    for row in range(len(closest)):
        closest[row] = max(closest[row], products[row])


# The order of a sum is chosen when the loop is compiled, so that, unlike that of BLAS, it does not depend on threads.
@compiled(fastmath={"reassoc", "contract"})
def _refresh_gains(
    rows: Any, scales: FloatArray, relevance: FloatArray, novelty_weight: float, picks: IntArray, seen: IntArray,
    closest: FloatArray, gains: FloatArray,
) -> None:  # fmt: skip
    """Update `gains`, `closest` (the highest cosine with a pick) and `seen` until the highest gain is exact.

    A gain is brought up to date if it could be the highest, or within 1e-9 of it, for ties. `scales` are the inverse
    lengths of the rows. The gains of the picked rows are minus infinity.
    """
    highest = -np.inf
    while True:
        best = int(np.argmax(gains))
        if seen[best] < len(picks):
            row = best
        else:
            highest, row = gains[best], -1
            for other in range(len(gains)):
                if seen[other] < len(picks) and gains[other] >= highest - 1e-9:
                    row = other
                    break
            if row < 0:
                return
        for pick in picks[seen[row] :]:
            product = 0.0
            for j in range(rows.shape[1]):
                product += np.float64(rows[row, j]) * np.float64(rows[pick, j])
            closest[row] = max(closest[row], product * scales[row] * scales[pick])
        seen[row] = len(picks)
        gains[row] = relevance[row] - novelty_weight * closest[row]


@compiled(fastmath={"reassoc", "contract"})
def _lengths(rows: Any) -> FloatArray:
    """The Euclidean length of each dense row, shape (n,)."""
    lengths = np.zeros(len(rows))
    for i in range(len(rows)):
        square = 0.0
        for j in range(rows.shape[1]):
            square += np.float64(rows[i, j]) * np.float64(rows[i, j])
        lengths[i] = np.sqrt(square)
    return lengths
