"""Maximal marginal relevance (Carbonell & Goldstein, SIGIR 1998) as a stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from greylag.errors import ParameterError
from greylag.greedy import GreedyStage
from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, Ranking, unit_range


@dataclass(frozen=True)
class MMR(GreedyStage):
    """Reranks by relevance and novelty.

    Each pick maximises ``w rel(d) - (1 - w) max over picked s of cos(d, s)``, with w the relevance weight (the paper's
    lambda), rel the incoming score brought to [0, 1] over the candidates (the lowest 0, the highest 1; all 0 where they
    are equal), and cos the cosine of TF-IDF vectors, in [0, 1] and 0 for a document without terms. Both have the same
    range, so that w = 0.5 weighs them alike, whatever scored the ranking.

    Parameters
    ----------
    index : the collection.
    relevance_weight : in [0, 1]; 1 gives the incoming order, 0 novelty alone (after the first pick, the first
        document).
    depth : candidates are the first so many documents, >= 1.
    k : how many of them to pick, >= 1.
    """

    index: PositionalIndex
    relevance_weight: float = 0.7
    depth: int = 100
    k: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.relevance_weight <= 1:
            raise ParameterError(f"relevance_weight has to be in [0, 1], not {self.relevance_weight}")

    def gain(self, candidates: Ranking) -> MarginalRelevance:
        """MMR's gain over these documents."""
        vectors = self.index.tfidf(self.index.documents(candidates.docids))
        return MarginalRelevance(unit_range(candidates.scores), vectors, self.relevance_weight)


class MarginalRelevance:
    """MMR's gain over n candidates: `relevance` (n,), rows of `vectors` (n, V) of unit length or zero."""

    def __init__(self, relevance: FloatArray, vectors: csr_matrix, relevance_weight: float) -> None:
        self._rows = vectors
        if vectors.shape[1] > vectors.nnz:  # most columns are empty: number those that are not
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
        """Remember how close every candidate is to this one."""
        from greylag.diversity.products import row_products

        row, by_column = slice(*self._rows.indptr[candidate : candidate + 2]), self._columns
        columns, values = self._rows.indices[row], self._rows.data[row]
        close = row_products(by_column.indptr, by_column.indices, by_column.data, columns, values, len(self._closest))
        np.maximum(self._closest, close, out=self._closest)
