"""Search by vectors: the documents that are nearest to a query."""

from __future__ import annotations

import logging
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, cast

import numpy as np

from greylag.base import (
    BoolArray,
    FloatArray,
    IntArray,
    ParameterError,
    Query,
    Ranking,
    Source,
    check_counts,
    guided,
    one_blas_thread,
)
from greylag.index.vectors.dense import ArrayVectors, Dense
from greylag.index.vectors.faiss_index import FaissVectors
from greylag.index.vectors.protocol import Vectors, unit_rows, vectors_of

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

SAMPLE = 1000
"""The most documents whose cosines are compared with each other."""
EQUAL = 1e-9  # below it, cosines differ by rounding alone
_log = logging.getLogger("greylag")


Searchable = ArrayVectors | FaissVectors


@guided
@dataclass(frozen=True)
class VectorSearch(Source):
    """Retrieves the documents whose vectors have the highest cosines with the query's.

    cos(q, d) = q'd / (|q| |d|), and 0 if d's vector is zero; a query whose vector is zero finds nothing. Ties are in
    the order of the vectors. The search is exact, over all rows of an array; a FAISS index is searched by FAISS, which
    may be approximate, and its cosines are those of the reconstructed vectors.

    Parameters
    ----------
    vectors : ArrayVectors, FaissVectors or Vectors
        With vectors of queries. Others than these two are asked once for all documents of `index`, and kept in memory.
    index : PositionalIndex, optional
        If given, only its documents are found, and the numbers of documents that one of the two lacks are logged; if
        none has a vector, it is a `ParameterError`.
    k : int >= 1, default 1000
        The number of documents to retrieve.
    """

    vectors: Vectors
    index: PositionalIndex | None = None
    _: KW_ONLY
    k: int = 1000

    def __post_init__(self) -> None:
        check_counts(k=self.k)
        _ = self._searched  # checks the vectors
        if self.index is not None:
            self._report(self.index)

    @cached_property
    def _searched(self) -> Searchable:
        vectors = vectors_of("VectorSearch", None, self.vectors)
        if isinstance(vectors, Searchable):
            return vectors
        if self.index is None:
            raise ParameterError(f"{type(vectors).__name__} cannot be searched without an index: give index=")
        return _gathered(vectors, self.index)

    @cached_property
    def documents(self) -> IntArray:
        """The number in the index of each row's document, -1 for one that the index lacks, shape (rows,)."""
        docids = self._searched.docids
        return np.arange(len(docids)) if self.index is None else self.index.documents(docids)

    @cached_property
    def rows(self) -> IntArray:
        """The row of each document of the index, -1 for one without a vector, shape (N,)."""
        rows = np.full(len(self.documents) if self.index is None else self.index.n_documents, -1)
        inside = np.flatnonzero(self.documents >= 0)
        rows[self.documents[inside]] = inside
        return rows

    @cached_property
    def _outside(self) -> int:
        """The number of vectors of documents that the index lacks."""
        return int((self.documents < 0).sum())

    def __call__(self, query: Query, /) -> Ranking:
        """Retrieve the nearest documents of a query."""
        rows, cosines = self.nearest(self.row(query), self.k)
        docids = tuple(map(self._searched.docids.__getitem__, rows.tolist()))
        return Ranking(query.qid, query.text, docids, cosines)

    def row(self, query: Query) -> Dense:
        """Return the vector of a query, shape (1, m)."""
        return cast(Dense, self.vectors.query(query.qid, query.text))

    def nearest(self, row: Dense, k: int, among: BoolArray | None = None) -> tuple[IntArray, FloatArray]:
        """Find the rows of the k documents that are nearest to a query's vector, best first, and their cosines.

        `among`, shape (N,), says which documents of the index to find; a FAISS index then finds all.
        """
        if among is None and not self._outside:
            return self._searched.nearest_rows(row, k)
        inside = self.documents >= 0
        if among is not None:
            inside &= among[self.documents]
        if isinstance(self._searched, ArrayVectors):
            return self._searched.nearest_rows(row, k, inside)
        rows, cosines = self._searched.nearest_rows(row, k + self._outside if among is None else len(inside))
        kept = inside[rows]
        return rows[kept][:k], cosines[kept][:k]

    def cosines(self, row: Dense, documents: IntArray) -> FloatArray:
        """Compute the cosines of documents with a query's vector, shape (n,); NaN for one without a vector."""
        rows = self.rows[documents]
        known, out = rows >= 0, np.full(len(documents), np.nan)
        out[known] = self._searched.cosines(rows[known], row)
        return out

    def docids_of(self, documents: IntArray) -> list[str]:
        """Return the docids of documents of the index; those of rows are at hand, and others are decoded."""
        rows = self.rows[documents]
        if self.index is not None and (rows < 0).any():
            return self.index.docids_of(documents)
        return [*map(self._searched.docids.__getitem__, rows.tolist())]

    @property
    def spread(self) -> float:
        """The standard deviation of cosines between up to 1,000 documents at equal distances; 0 if all are the same."""
        return self._between[1]

    @property
    def mean_cosine(self) -> float:
        """The mean of these cosines; 0 of one document alone."""
        return self._between[0]

    @cached_property
    def _between(self) -> tuple[float, float]:
        """The mean and the standard deviation of cosines between documents."""
        docids = self._searched.docids
        places = np.linspace(0, len(docids) - 1, min(len(docids), SAMPLE)).round().astype(int).tolist()
        units = unit_rows(self._searched.documents([docids[place] for place in places]))
        with one_blas_thread():  # sums must not depend on the number of threads
            products = (units @ units.T)[~np.tri(len(units), dtype=bool)]
        if not len(products):
            return 0.0, 0.0
        spread = float(products.std())
        return float(products.mean()), spread if spread > EQUAL else 0.0

    def _report(self, index: PositionalIndex) -> None:
        """Log how many vectors have no document, and how many documents no vector; refuse if all are so."""
        docids, lacking = self._searched.docids, self.rows < 0
        without = index.docids_of(np.flatnonzero(lacking)[:1])
        if lacking.all():
            first = ", ".join([*without, *docids[:1]])
            raise ParameterError(f"no document of the index has a vector; compare the docids of both ({first})")
        if self._outside:
            first = docids[int(np.argmin(self.documents))]
            _log.warning(
                "the index lacks %d of %d documents with vectors, such as %s", self._outside, len(docids), first
            )
        if without:
            _log.warning("%d of %d documents have no vector, such as %s", lacking.sum(), len(lacking), without[0])


def _gathered(vectors: Vectors, index: PositionalIndex) -> ArrayVectors:
    """Ask for the vectors of all documents of an index; keep them as an array."""
    docids = index.docids_of(np.arange(index.n_documents))
    known = [*compress(docids, vectors.knows(docids).tolist())]
    rows = vectors.documents(known)
    if not isinstance(rows, np.ndarray):
        raise ParameterError(f"{type(vectors).__name__} are sparse: give those of an encoder")
    return ArrayVectors(known, rows)
