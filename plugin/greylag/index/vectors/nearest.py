"""Search by vectors: the documents that are nearest to a query."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, cast

import numpy as np

from greylag.base import (
    BoolArray,
    FloatArray,
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
from greylag.index.vectors.protocol import Vectors, cosines, unit_rows, vectors_of

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
    def _known(self) -> BoolArray:
        """Which of the vectors are of documents that the index has."""
        docids = self._searched.docids
        return np.ones(len(docids), dtype=bool) if self.index is None else self.index.knows(docids)

    @cached_property
    def _outside(self) -> int:
        """The number of vectors of documents that the index lacks."""
        return len(self._known) - int(self._known.sum())

    def __call__(self, query: Query, /) -> Ranking:
        """Retrieve the nearest documents of a query."""
        return self.nearest(query, self.row(query))

    def row(self, query: Query) -> Dense:
        """Return the vector of a query, shape (1, m)."""
        return cast(Dense, self.vectors.query(query.qid, query.text))

    def nearest(self, query: Query, row: Dense) -> Ranking:
        """Retrieve the documents that are nearest to a query's vector."""
        # Exact without a mask over all rows: as many more as may be outside.
        docids = self._searched.nearest(row, self.k + self._outside)
        if self.index is not None and self._outside:
            docids = [*compress(docids, self.index.knows(docids).tolist())]
        return Ranking.sort(query.qid, query.text, docids[: self.k], self.cosines(row, docids[: self.k]))

    def cosines(self, row: Dense, docids: Sequence[str]) -> FloatArray:
        """Compute the cosines of documents with a query's vector, shape (n,); NaN for one without a vector."""
        known = self._searched.knows(docids)
        out = np.full(len(docids), np.nan)
        out[known] = cosines(self._searched.documents([*compress(docids, known.tolist())]), row)
        return out

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
            products = (units @ units.T)[np.triu_indices(len(units), 1)]
        if not len(products):
            return 0.0, 0.0
        spread = float(products.std())
        return float(products.mean()), spread if spread > EQUAL else 0.0

    def _report(self, index: PositionalIndex) -> None:
        """Log how many vectors have no document, and how many documents no vector; refuse if all are so."""
        docids, lacking = self._searched.docids, np.ones(index.n_documents, dtype=bool)
        lacking[index.documents([*compress(docids, self._known.tolist())])] = False
        without = index.docids_of(np.flatnonzero(lacking)[:1])
        if lacking.all():
            first = ", ".join([*without, *docids[:1]])
            raise ParameterError(f"no document of the index has a vector; compare the docids of both ({first})")
        if self._outside:
            first = docids[int(np.argmin(self._known))]
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
