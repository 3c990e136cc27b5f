"""Search by vectors: the documents that are nearest to a query."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import numpy as np

from greylag.core.checks import check_counts
from greylag.core.guidance import guided
from greylag.errors import ParameterError
from greylag.index.vectors.dense import BLOCK_ROWS, ArrayVectors, Dense
from greylag.index.vectors.protocol import Vectors, cosines, unit_rows, vectors_of
from greylag.pipeline import Source
from greylag.ranking import BoolArray, FloatArray, Query, Ranking
from greylag.runtime.blas import one_blas_thread

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

SAMPLE = 1000
"""The most documents whose cosines are compared with each other."""
_log = logging.getLogger("greylag")


@runtime_checkable
class Searchable(Vectors, Protocol):
    """Dense vectors that can be searched."""

    @property
    def docids(self) -> Sequence[str]:
        """All documents that have a vector."""

    def nearest(self, query: Dense, k: int, /) -> list[str]:
        """Find the k documents with the highest cosines, best first."""


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
        If given, only its documents are found, and the numbers of documents that one of the two lacks are logged.
    k : int >= 1, default 1000
        The number of documents to retrieve.

    Raises
    ------
    ParameterError
        If no document of the index has a vector.
    """

    vectors: Vectors
    index: PositionalIndex | None = None
    _: KW_ONLY
    k: int = 1000
    _searched: Searchable = field(init=False, repr=False, compare=False)
    _outside: int = field(init=False, repr=False, compare=False)  # vectors of documents that the index lacks

    def __post_init__(self) -> None:
        check_counts(k=self.k)
        vectors, index = vectors_of("VectorSearch", None, self.vectors), self.index
        if not isinstance(vectors, Searchable):
            if index is None:
                raise ParameterError(f"{type(vectors).__name__} cannot be searched without an index: give index=")
            vectors = _gathered(vectors, index)
        known = np.zeros(0, dtype=bool) if index is None else index.knows(vectors.docids)
        object.__setattr__(self, "_searched", vectors)
        object.__setattr__(self, "_outside", len(known) - int(known.sum()))
        if index is not None:
            self._report(index, known)

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
        out[known] = cosines(cast(Dense, self._searched.documents([*compress(docids, known.tolist())])), row)
        return out

    @cached_property
    def spread(self) -> float:
        """The standard deviation of cosines between up to 1,000 documents at equal distances; 0 for one document."""
        docids = self._searched.docids
        places = np.linspace(0, len(docids) - 1, min(len(docids), SAMPLE)).round().astype(int).tolist()
        units = unit_rows(cast(Dense, self._searched.documents([docids[place] for place in places])))
        with one_blas_thread():  # sums must not depend on the number of threads
            products = (units @ units.T)[np.triu_indices(len(units), 1)]
        return float(products.std()) if len(products) else 0.0

    def _report(self, index: PositionalIndex, known: BoolArray) -> None:
        """Log how many documents have no vector, and how many vectors have no document."""
        docids = self._searched.docids
        numbers = index.documents([*compress(docids, known.tolist())])
        if not len(numbers):
            first = ", ".join([*index.docids_of(np.arange(min(1, index.n_documents))), *docids[:1]])
            raise ParameterError(f"no document of the index has a vector; compare the docids of both ({first})")
        if self._outside:
            first = docids[int(np.argmin(known))]
            _log.warning(
                "%d of %d vectors are of documents that the index lacks, such as %s", self._outside, len(known), first
            )
        lacking = np.ones(index.n_documents, dtype=bool)
        lacking[numbers] = False
        if lacking.any():
            (first,) = index.docids_of(np.array([np.argmax(lacking)]))
            _log.warning(
                "%d of the index's %d documents have no vector, such as %s", lacking.sum(), index.n_documents, first
            )


def _gathered(vectors: Vectors, index: PositionalIndex) -> ArrayVectors:
    """Ask for the vectors of all documents of an index, in blocks; keep them as an array."""
    docids: list[str] = []
    rows: list[Dense] = []
    for first in range(0, index.n_documents, BLOCK_ROWS):
        block = index.docids_of(np.arange(first, min(first + BLOCK_ROWS, index.n_documents)))
        known = [*compress(block, vectors.knows(block).tolist())]
        if known:
            docids += known
            rows.append(cast(Dense, vectors.documents(known)))
            if not isinstance(rows[-1], np.ndarray):
                raise ParameterError(f"{type(vectors).__name__} are sparse: give those of an encoder")
    if not rows:
        raise ParameterError("no document of the index has a vector")
    return ArrayVectors(docids, np.concatenate(rows))
