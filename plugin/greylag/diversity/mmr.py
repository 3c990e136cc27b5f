"""Maximal marginal relevance (Carbonell & Goldstein 1998)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.sparse import csr_matrix

from greylag.diversity.stage import GreedyStage
from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, Ranking, unit_range


@dataclass(frozen=True)
class MMR(GreedyStage):
    """Rerank by relevance and novelty.

    Each pick maximises

        w rel(d) - (1 - w) max over picked s of cos(d, s)

    with w the relevance weight (lambda in the paper), rel the incoming score scaled to [0, 1] over the candidates (all
    0 if they are equal), and cos the cosine of TF-IDF vectors, in [0, 1] and 0 for a document without terms. Both terms
    have the same range, so that w = 0.5 weighs them equally whatever the scores of the ranking.

    Parameters
    ----------
    index : PositionalIndex
        The collection. A document that it lacks has no terms.
    relevance_weight : float in [0, 1], default 0.7
        1 keeps the incoming order; 0 is novelty alone, after the top document.
    depth, k : int
        See `greylag.diversity.DiversityStage`.

    References
    ----------
    Carbonell and Goldstein, The use of MMR, diversity-based reranking for reordering documents and producing summaries,
    SIGIR 1998.
    """

    index: PositionalIndex
    _: KW_ONLY
    relevance_weight: float = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.relevance_weight <= 1:
            raise ParameterError(f"relevance_weight must be in [0, 1], not {self.relevance_weight}")

    def gain(self, candidates: Ranking) -> MarginalRelevance:
        """The marginal relevance of these documents."""
        vectors = self.index.tfidf(self.index.documents(candidates.docids))
        return MarginalRelevance(unit_range(candidates.scores), vectors, self.relevance_weight)


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
        self._rows = vectors
        if vectors.shape[1] > vectors.nnz:  # renumber the columns that are not empty
            used, columns = np.unique(vectors.indices, return_inverse=True)
            self._rows = csr_matrix((vectors.data, columns, vectors.indptr), shape=(len(relevance), len(used)))
        self._columns = self._rows.tocsc()
        self._relevance = relevance_weight * relevance
        self._novelty_weight = 1.0 - relevance_weight
        self._closest = np.zeros(len(relevance))

    def gains(self) -> FloatArray:
        """``w rel - (1 - w) max cos``, shape (n,)."""
        return self._relevance - self._novelty_weight * self._closest

    def add(self, candidate: int) -> None:
        """Update the similarity of every candidate to the closest pick."""
        from greylag.diversity.products import row_products

        row, by_column = slice(*self._rows.indptr[candidate : candidate + 2]), self._columns
        columns, values = self._rows.indices[row], self._rows.data[row]
        close = row_products(by_column.indptr, by_column.indices, by_column.data, columns, values, len(self._closest))
        np.maximum(self._closest, close, out=self._closest)
