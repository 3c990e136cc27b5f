"""Latent semantic analysis: dense vectors of an index's own documents, without an encoder."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from greylag.base import BoolArray, Cache, FloatArray, IntArray, compiled, is_array, one_blas_thread
from greylag.index.positional import PositionalIndex
from greylag.index.tables import Int32Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

DIMENSIONS = 100
"""The number of dimensions, at most."""
SAMPLE = 20_000
"""The largest number of documents that are decomposed; the others are folded in."""
FOLDED = 0.1
"""The share of texts that may have come or gone before `keep_basis` has V computed anew."""
ALWAYS_ANEW = 1000
"""Up to this number of texts, `keep_basis` keeps none."""
MAX_DENSE_SIZE = 200
"""Up to this number of documents or terms, the decomposition is full: ARPACK may fail, and depends on earlier calls."""
_MIN_SINGULAR_VALUE = 1e-10  # of the largest singular value; below it are rounding errors of 0
_TIE_TOLERANCE = 1e-8  # relative difference of singular values; below it the vectors of each depend on rounding
_VERSION = 3  # of `decompose`: projections of another version are not used
_FILE = "latent.sqlite"
_lock = threading.Lock()


@dataclass(frozen=True)
class LatentVectors:
    """Vectors by latent semantic analysis of the collection.

    With A = U S V' the singular value decomposition, truncated to 100 dimensions, of the documents' TF-IDF vectors (see
    `PositionalIndex.tfidf`), a document or query with the TF-IDF vector x has V'x; the documents of A have the rows of
    U S. Terms that a single document of A has are left out. Of a collection with more than 20,000 documents, A has as
    many, drawn with a fixed seed. It is decomposed once, and V is kept beside the index; an index of texts that came
    and went keeps V while few have changed, see `keep_basis`. Singular values of 0 are left out, and those that equal
    the first one beyond the 100, as their vectors would be arbitrary.

    References
    ----------
    Deerwester, Dumais, Furnas, Landauer and Harshman, Indexing by latent semantic analysis, JASIS 41(6), 1990.
    """

    index: PositionalIndex

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Return which documents are in the index."""
        return self.index.knows(docids)

    def documents(self, docids: Sequence[str]) -> FloatArray:
        """Return vectors of documents, shape (len(docids), m)."""
        return self.numbered(self.index.documents(docids))

    def numbered(self, documents: IntArray) -> FloatArray:
        """Return vectors of documents with these numbers, shape (len(documents), m)."""
        return self._fold(*self.index.parts.entries(documents))

    def query(self, qid: str, text: str) -> FloatArray:
        """Return the vector of a query's terms, shape (1, m)."""
        counts = Counter(term for term in self.index.query_terms(text).tolist() if term >= 0)
        terms = sorted(counts)
        tf = np.array([counts[term] for term in terms], np.int32)
        return self._fold(np.array([0, len(terms)]), np.array(terms, np.int32), tf)

    def _fold(self, starts: IntArray, terms: Int32Array, tf: Int32Array) -> FloatArray:
        """Compute V'x of rows of terms with their tf."""
        with _lock:  # else several threads would decompose the same
            places, right = decomposed(self.index)
        folded = np.zeros((len(starts) - 1, right.shape[1]))
        _fold(starts, places[terms], self.index.unit_weights(starts, terms, tf), right, folded)
        return folded


@compiled(error_model="numpy")
def _fold(starts: IntArray, places: IntArray, weights: FloatArray, right: FloatArray, out: FloatArray) -> None:
    """Add weight times row ``right[place]`` to each row of `out` for its terms; -1 is a term without one."""
    for i in range(len(out)):
        for j in range(starts[i], starts[i + 1]):
            weight, place = weights[j], places[j]
            if place >= 0:
                for m in range(out.shape[1]):
                    out[i, m] += weight * right[place, m]


def decomposed(index: PositionalIndex) -> tuple[IntArray, FloatArray]:
    """Return the row of V of each term, -1 for one without, shape (V,), and these rows."""
    if index.background is None:
        return index.cache(_decomposed)[:2]
    from greylag.index.beside import terms_of_background

    background_rows, right, _ = index.background.cache(_decomposed)
    # The texts' own terms are not in the background's space, and are left out.
    places = np.full(index.n_terms, -1)
    places[terms_of_background(index, index.background)] = background_rows
    return places, right


class Basis(NamedTuple):
    """The space of an index's latent vectors."""

    rows: IntArray  # of V, of each term, -1 for one without, shape (V,)
    right: FloatArray  # these rows
    changed: int = 0  # the number of texts that came or went since V was computed


def basis_of(index: PositionalIndex) -> Basis:
    """Return the basis of an index, as `keep_basis` and files keep it."""
    return index.cache(_decomposed)


def keep_basis(index: PositionalIndex, made: PositionalIndex, terms: IntArray, more: int) -> None:
    """Give an index that was made by changing another one its basis, while few texts have changed since.

    `terms` are the new numbers of the old terms, shape (V,), -1 for one that is gone, and `more` the number of texts
    that came or went. V is computed anew from `FOLDED` of the texts on, and for up to `ALWAYS_ANEW`. Until then, texts
    that came are folded in with the present weights of their terms, as queries are; a term that V lacks is left out.
    """
    if made.n_documents <= ALWAYS_ANEW:
        return
    rows, right, before = basis_of(index)
    if before + more > FOLDED * made.n_documents:
        return
    kept, left = np.full(made.n_terms, -1), terms >= 0
    kept[terms[left]] = rows[left]
    kept.flags.writeable = False
    made.cache(_decomposed, Basis(kept, right, before + more))


def load_basis(index: PositionalIndex, basis: Basis) -> None:
    """Give an index the basis that a file has."""
    index.cache(_decomposed, basis)


def _decomposed(index: PositionalIndex) -> Basis:
    store = None if index.folder is None else Cache(index.folder / _FILE)
    key = f"{index.fingerprint} {DIMENSIONS} {SAMPLE} {_VERSION}".encode()
    stored = store.load(key) if store else None
    if stored is None or not _is_projection(stored, index.n_terms):
        stored = [*decompose(index)]
        if store:
            store.save(key, stored)
    terms, right = stored
    rows = np.full(index.n_terms, -1)
    rows[terms] = np.arange(len(terms))
    rows.flags.writeable = right.flags.writeable = False  # as those of a file, for which loops are compiled
    return Basis(rows, right)


def decompose(index: PositionalIndex) -> tuple[IntArray, FloatArray]:
    """Return the terms that two documents of the sample have, ascending, and their rows of V, shape (terms, m)."""
    documents = index.docid_order.astype(np.int64)  # their numbers depend on the order in which they were indexed
    if len(documents) > SAMPLE:
        documents = documents[np.sort(np.random.default_rng(0).permutation(len(documents))[:SAMPLE])]
    rows = index.tfidf(documents)
    # A term of one document joins it with no other, and only adds a column.
    terms = np.flatnonzero(np.bincount(rows.indices, minlength=index.n_terms) > 1)
    rows = rows[:, terms]
    size = min(DIMENSIONS, min(rows.shape) - 1)
    if size < 1 or not rows.data.any():  # terms that all documents have weigh nothing
        return terms[:0], np.zeros((1, 1))
    whole = rows[np.diff(rows.indptr) > 0]
    with one_blas_thread():
        if min(whole.shape) <= MAX_DENSE_SIZE:
            _, values, right = np.linalg.svd(whole.toarray(), full_matrices=False)
        else:
            values, right = _largest(rows, size + 1)  # one more than is used, to see ties
    beyond = values[size] if len(values) > size else 0.0
    right = right[:size][values[:size] > max(_MIN_SINGULAR_VALUE * values[0], (1 + _TIE_TOLERANCE) * beyond)]
    return terms, np.ascontiguousarray(right.T)


def _largest(rows: csr_matrix, size: int) -> tuple[FloatArray, FloatArray]:
    """Find the largest singular values of rows, descending, and their right singular vectors, shape (size, columns)."""
    from scipy.sparse.linalg import LinearOperator, eigsh  # slow to import

    is_wide = rows.shape[0] < rows.shape[1]
    tall = rows.T if is_wide else rows
    gram = LinearOperator(matvec=lambda x: tall.T @ (tall @ x), dtype=float, shape=(tall.shape[1],) * 2)
    # As SciPy's `svds`, which gives ARPACK no generator: without one, it draws restarts from the operating system.
    _, basis = eigsh(gram, size, v0=np.ones(tall.shape[1]), rng=np.random.default_rng(0))
    basis, _ = np.linalg.qr(basis)  # ARPACK's vectors of close values need not be orthogonal
    left, values, right = np.linalg.svd(tall @ basis, full_matrices=False)
    return values, left.T if is_wide else right @ basis.T


def _is_projection(stored: Any, n_terms: int) -> bool:
    """Return whether a value from a file can be a result of `decompose`: ascending terms, and orthonormal columns."""
    # One without columns is computed again: nothing distinguishes it from a wrong one.
    pair: list[Any] = stored if isinstance(stored, list) and len(stored) == 2 else [None, None]
    terms, right = pair
    with one_blas_thread():  # several would take 50 times as long where they wait for a core
        return (
            is_array(terms, "int64", (None,), 0, n_terms - 1)
            and bool((np.diff(terms) > 0).all())
            and is_array(right, "float64", (len(terms), None), -1 - _MIN_SINGULAR_VALUE, 1 + _MIN_SINGULAR_VALUE)
            and 0 < (size := right.shape[1]) <= DIMENSIONS
            and np.allclose(right.T @ right, np.eye(size), rtol=0, atol=1e-6)
        )
