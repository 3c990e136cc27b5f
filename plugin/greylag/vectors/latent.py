"""Latent semantic analysis: dense vectors of an index's own documents, without an encoder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds
from threadpoolctl import threadpool_limits

from greylag.index.positional import PositionalIndex
from greylag.ranking import BoolArray, FloatArray, IntArray
from greylag.runtime.cache import Cache
from greylag.vectors.tfidf import TfidfVectors

DIMENSIONS = 100
"""The number of dimensions, at most."""
SAMPLE = 20_000
"""The largest number of documents that are decomposed; the others are folded in."""
_FILE = "latent.sqlite"
_lock = threading.Lock()


@dataclass(frozen=True)
class LatentVectors:
    """Vectors by latent semantic analysis of the collection.

    With A = U S V' the singular value decomposition, truncated to 100 dimensions, of the documents' TF-IDF vectors (see
    `PositionalIndex.tfidf`), a document or query with the TF-IDF vector x has V'x; the documents of A have the rows of
    U S. Terms that a single document of A has are left out. Of a collection with more than 20,000 documents, A has as
    many, drawn with a fixed seed. It is decomposed once, and V is kept beside the index.

    Parameters
    ----------
    index : PositionalIndex

    References
    ----------
    Deerwester, Dumais, Furnas, Landauer and Harshman, Indexing by latent semantic analysis, JASIS 41(6), 1990.
    """

    index: PositionalIndex

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Which documents are in the index."""
        return self.index.knows(docids)

    def documents(self, docids: Sequence[str]) -> FloatArray:
        """Vectors of documents, shape (len(docids), m)."""
        return self._fold(TfidfVectors(self.index).documents(docids))

    def query(self, qid: str, text: str) -> FloatArray:
        """The vector of a query's terms, shape (1, m)."""
        return self._fold(TfidfVectors(self.index).query(qid, text))

    def _fold(self, tfidf: csr_matrix) -> FloatArray:
        with _lock:  # else several threads would decompose the same
            rows_of_terms, right = decomposed(self.index)
        rows = rows_of_terms[tfidf.indices]
        # Terms without a row weigh nothing; their entries stay, so that `indptr` does.
        weights = np.where(rows >= 0, tfidf.data, 0.0)
        shape = len(tfidf.indptr) - 1, len(right)
        return np.asarray(csr_matrix((weights, np.maximum(rows, 0), tfidf.indptr), shape=shape) @ right)


@lru_cache(maxsize=4)
def decomposed(index: PositionalIndex) -> tuple[IntArray, FloatArray]:
    """The row of V of each term, -1 for one without, shape (V,), and these rows."""
    store = None if index.folder is None else Cache(index.folder / _FILE)
    key = f"{index.fingerprint} {DIMENSIONS} {SAMPLE}".encode()
    stored = store.load(key) if store else None
    if stored is None:
        stored = [*decompose(index)]
        if store:
            store.save(key, stored)
    terms, right = stored
    rows = np.full(index.n_terms, -1)
    rows[terms] = np.arange(len(terms))
    return rows, right


def decompose(index: PositionalIndex) -> tuple[IntArray, FloatArray]:
    """The terms that two documents of the sample have, ascending, and their rows of V, shape (terms, m)."""
    documents = index.docid_order.astype(np.int64)  # their numbers depend on the order in which they were indexed
    if len(documents) > SAMPLE:
        documents = documents[np.sort(np.random.default_rng(0).permutation(len(documents))[:SAMPLE])]
    rows = index.tfidf(documents)
    terms = np.flatnonzero(np.bincount(rows.indices, minlength=index.n_terms) > 1)
    rows = rows[:, terms]
    size = min(DIMENSIONS, min(rows.shape) - 1)
    if size < 1 or not rows.data.any():  # terms that all documents have weigh nothing
        return terms[:0], np.zeros((1, 1))
    with threadpool_limits(1, "blas"):  # sums depend on the number of threads
        _, values, right = svds(rows, size, v0=np.ones(min(rows.shape)))
    # `svds` gives no order; the signs of the rows do not matter to cosines.
    order = np.argsort(-values, kind="stable")
    return terms, np.ascontiguousarray(right[order].T)
