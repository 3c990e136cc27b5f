"""The protocol of vectors, operations on them, and TF-IDF vectors of an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from greylag.base import BoolArray, FloatArray, ParameterError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from greylag.index.positional import PositionalIndex

    Matrix: TypeAlias = csr_matrix | NDArray[np.floating[Any]]
    """Rows of vectors, sparse or dense."""
else:
    Matrix = Any

_SHORT, _LONG = 1e-140, 1e140  # lengths between which squares keep their digits


@runtime_checkable
class Vectors(Protocol):
    """Vectors of documents and queries in one space of m dimensions. Safe to share between threads."""

    def knows(self, docids: Sequence[str], /) -> BoolArray:
        """Return which documents have a vector, shape (len(docids),)."""

    def documents(self, docids: Sequence[str], /) -> Matrix:
        """Return vectors of documents that all have one, shape (len(docids), m): sparse, or dense float32 or 64."""

    def query(self, qid: str, text: str, /) -> Matrix:
        """Return the vector of a query, shape (1, m); zero if the query has nothing in common with any document.
        `ParameterError` if there are no vectors of queries, or none of this one.
        """


@dataclass(frozen=True)
class TfidfVectors:
    """The TF-IDF vectors of an index, sparse and of unit length (see `PositionalIndex.tfidf`).

    A document or query without terms has a zero vector.
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
        from scipy.sparse import csr_matrix

        terms = self.index.query_terms(text)
        terms, counts = np.unique(terms[terms >= 0], return_counts=True)
        frequencies = csr_matrix((counts.astype(np.float64), terms, [0, len(terms)]), shape=(1, self.index.n_terms))
        return self.index.weigh_tfidf(frequencies)


def vectors_of(stage: str, index: PositionalIndex | None, vectors: Vectors | None, *, latent: bool = False) -> Vectors:
    """Return a stage's vectors: `vectors`, or by TF-IDF or latent semantic analysis from `index`, but not both."""
    if (index is None) == (vectors is None):
        received = "neither" if index is None else "both"
        raise ParameterError(f"{stage} needs an index or vectors=, and was given {received}")
    if latent and index is None:
        raise ParameterError(f"{stage}: latent vectors come from an index: leave latent or vectors out")
    if index is not None:
        from greylag.index.positional import check_index  # which embeddings do not need

        check_index(stage, index)
        if latent:
            from greylag.index.vectors.latent import LatentVectors  # imports SciPy's linear algebra

            return LatentVectors(index)
        return TfidfVectors(index)
    if not isinstance(vectors, Vectors):
        raise ParameterError(
            f"{stage} needs vectors with the methods knows, documents and query, not a {type(vectors).__name__}: for "
            "an array, use ArrayVectors(docids, array)"
        )
    return vectors


def unit_rows(vectors: NDArray[np.floating[Any]]) -> FloatArray:
    """Scale dense vectors to unit Euclidean length, in float64; zero rows stay zero."""
    rows = np.array(vectors, dtype=np.float64)
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    extreme = ((lengths < _SHORT) | (lengths > _LONG))[:, 0]
    if extreme.any():  # their squares overflow or lose digits
        highest = np.abs(rows[extreme]).max(axis=1, keepdims=True, initial=0.0)
        rows[extreme] /= np.where(highest > 0, highest, 1.0)
        lengths[extreme] = np.sqrt(np.square(rows[extreme]).sum(axis=1, keepdims=True))
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows


def cosines(rows: NDArray[np.floating[Any]], query: NDArray[np.floating[Any]]) -> FloatArray:
    """Compute the cosines of dense rows with a query's, shape (1, m); 0 where one of the two is zero."""
    # BLAS would sum in an order that depends on the threads.
    products: FloatArray = (unit_rows(rows) * unit_rows(query)).sum(axis=1)
    return products
