"""TF-IDF vectors of an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from greylag.index.positional import PositionalIndex
from greylag.ranking import BoolArray


@dataclass(frozen=True)
class TfidfVectors:
    """The TF-IDF vectors of an index, sparse and of unit length (see `PositionalIndex.tfidf`).

    A document or query without terms has a zero vector.

    Parameters
    ----------
    index : PositionalIndex
    """

    index: PositionalIndex

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Return which documents are in the index."""
        return self.index.knows(docids)

    def documents(self, docids: Sequence[str]) -> csr_matrix:
        """Return vectors of documents, shape (len(docids), V)."""
        return self.index.tfidf(self.index.documents(docids))

    def query(self, qid: str, text: str) -> csr_matrix:
        """Return the vector of a query's terms, shape (1, V)."""
        terms = self.index.query_terms(text)
        terms, counts = np.unique(terms[terms >= 0], return_counts=True)
        frequencies = csr_matrix((counts.astype(np.float64), terms, [0, len(terms)]), shape=(1, self.index.n_terms))
        return self.index.weigh_tfidf(frequencies)
