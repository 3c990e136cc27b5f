"""Latent semantic analysis: dense vectors of an index's own documents, without an encoder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from threadpoolctl import threadpool_limits

from greylag.index.positional import PositionalIndex
from greylag.index.tables import Int32Array
from greylag.ranking import BoolArray, FloatArray, IntArray
from greylag.runtime.cache import Cache
from greylag.runtime.compilation import compiled

DIMENSIONS = 100
"""The number of dimensions, at most."""
SAMPLE = 20_000
"""The largest number of documents that are decomposed; the others are folded in."""
FEW = 200
"""Up to so many documents or terms, all is decomposed: ARPACK's results may depend on its calls before, or fail."""
_LEAST = 1e-10  # of the largest singular value; below it are rounding errors of 0
_GAP = 1e-9  # of the largest singular value; closer ones are equal, and their vectors any basis of what they span
_VERSION = 2  # of the decomposition, so that what earlier versions kept is not used
_FILE = "latent.sqlite"
_lock = threading.Lock()


@dataclass(frozen=True)
class LatentVectors:
    """Vectors by latent semantic analysis of the collection.

    With A = U S V' the singular value decomposition, truncated to 100 dimensions, of the documents' TF-IDF vectors (see
    `PositionalIndex.tfidf`), a document or query with the TF-IDF vector x has V'x; the documents of A have the rows of
    U S. Terms that a single document of A has are left out. So are dimensions whose singular value is 0, or equals that
    of the first one left out, as in collections of templates: their directions would be arbitrary. Of a collection with
    more than 20,000 documents, A has as many, drawn with a fixed seed. It is decomposed once, and V is kept beside the
    index.

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
        return self._fold(*self.index.entries(self.index.documents(docids)))

    def query(self, qid: str, text: str) -> FloatArray:
        """The vector of a query's terms, shape (1, m)."""
        terms = self.index.query_terms(text)
        terms, counts = np.unique(terms[terms >= 0], return_counts=True)
        return self._fold(np.array([0, len(terms)]), terms.astype(np.int32), counts.astype(np.int32))

    def _fold(self, starts: IntArray, terms: Int32Array, tf: Int32Array) -> FloatArray:
        """V'x of rows of terms with their tf."""
        with _lock:  # else several threads would decompose the same
            places, right = decomposed(self.index)
        folded: FloatArray = _fold(starts, places[terms], self.index.unit_weights(starts, terms, tf), right)
        return folded


@compiled(error_model="numpy")
def _fold(starts: IntArray, places: IntArray, weights: FloatArray, right: FloatArray) -> FloatArray:
    """The sum of weight times row ``right[place]`` over each row of terms; -1 is a term without one."""
    out = np.zeros((len(starts) - 1, right.shape[1]))
    for i in range(len(starts) - 1):
        row = out[i]
        for j in range(starts[i], starts[i + 1]):
            if places[j] >= 0:
                weight, of_term = weights[j], right[places[j]]
                for m in range(len(row)):
                    row[m] += weight * of_term[m]
    return out


def decomposed(index: PositionalIndex) -> tuple[IntArray, FloatArray]:
    """The row of V of each term, -1 for one without, shape (V,), and these rows."""
    if index.background is None:
        return _decomposed(index)
    from greylag.index.beside import terms_of_background

    of_background, right = _decomposed(index.background)
    places = np.full(index.n_terms, -1)
    places[terms_of_background(index, index.background)] = of_background
    return places, right


@lru_cache(maxsize=4)
def _decomposed(index: PositionalIndex) -> tuple[IntArray, FloatArray]:
    store = None if index.folder is None else Cache(index.folder / _FILE)
    key = f"{_VERSION} {index.fingerprint} {DIMENSIONS} {SAMPLE}".encode()
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
    whole = rows[np.diff(rows.indptr) > 0]
    with threadpool_limits(1, "blas"):  # sums depend on the number of threads
        if min(whole.shape) <= FEW:
            _, values, right = np.linalg.svd(whole.toarray(), full_matrices=False)
        else:
            from scipy.sparse.linalg import svds  # slow to import

            # One more than is kept, to see the gap after it. ARPACK draws where it restarts: seeded.
            more = min(size + 1, min(rows.shape) - 1)
            _, values, right = svds(rows, more, v0=np.ones(min(rows.shape)), rng=np.random.default_rng(0))
    # `svds` gives no order; the signs of the rows do not matter to cosines.
    order = np.argsort(-values, kind="stable")
    values, right = values[order], right[order]
    least = max(_LEAST * values[0], values[size] + _GAP * values[0] if len(values) > size else 0.0)
    return terms, np.ascontiguousarray(right[:size][values[:size] > least].T)
