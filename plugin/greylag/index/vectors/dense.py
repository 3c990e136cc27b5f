"""Embeddings that the user has: rows of an array, or the results of a function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from greylag.base import (
    BoolArray,
    FloatArray,
    IntArray,
    ParameterError,
    as_query_vectors,
    as_vectors,
    check_sequences,
    compiled,
    rebuilt,
    shown,
)
from greylag.index.vectors.protocol import cosines, unit_rows

Dense = NDArray[np.floating[Any]]
QueryVectors = Mapping[str, ArrayLike] | Callable[[str], ArrayLike]
"""Vectors of queries: a mapping from qid, or a function from the text, such as an encoder's."""
BLOCK_ROWS = 1 << 10  # that are converted at once, and stay in the processor's cache
_STEPS = 127  # of a coordinate to either side, as 8 bits have them
_SAMPLE = 1 << 10  # rows for a mean
_ROUNDING = 4 * float(np.finfo(np.float32).eps)  # of two estimates of differences of unit vectors, for each coordinate
_SHORT, _LONG = 1e-12, 1e12  # lengths between which products in float32 neither vanish nor overflow


@dataclass(frozen=True, eq=False)
class ArrayVectors:
    """The rows of an array, such as embeddings in memory or memory-mapped. Only the rows asked for are read.

    Parameters
    ----------
    docids : sequence of str, length n
        Without duplicates.
    array : VectorsLike
        The vector of each document, such as an array or memmap of float, shape (n, m): rows in the order of `docids`,
        or by the labels of a mapping, a Series or a frame; of any length. Float16 and integers are read as float32.
    queries : mapping of str to array-like, or callable from str to array-like, optional
        The vectors of queries, shape (m,), by qid or from the text.

    Examples
    --------
    >>> vectors = ArrayVectors(["d1", "d2"], [[1.0, 0.0], [0.6, 0.8]], queries={"q1": [0.0, 1.0]})
    >>> vectors.documents(["d2"]).tolist(), vectors.knows(["d2", "d3"]).tolist()
    ([[0.6, 0.8]], [True, False])
    """

    docids: Sequence[str]
    array: Any
    queries: QueryVectors | None = None

    def __post_init__(self) -> None:
        check_sequences(docids=self.docids)
        array = as_vectors(self.array, self.docids)
        object.__setattr__(self, "queries", as_query_vectors(self.queries))
        object.__setattr__(self, "array", array)
        if len(self._rows) != len(array):
            twice = next(docid for row, docid in enumerate(self.docids) if self._rows[docid] != row)
            raise ParameterError(f"document {twice!r} has two vectors")

    @cached_property
    def _rows(self) -> dict[str, int]:
        return dict(zip(self.docids, range(len(self.array)), strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    def __repr__(self) -> str:
        return f"ArrayVectors({len(self.docids)} documents, {self.array.shape[1]} dimensions)"

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Return which documents have a row."""
        if docids is self.docids:
            return np.ones(len(docids), dtype=bool)
        return np.fromiter(map(self._rows.__contains__, docids), bool, len(docids))

    def documents(self, docids: Sequence[str]) -> Dense:
        """Return the rows of documents."""
        if docids is self.docids:
            return checked(self.array, self.array.shape, "of the documents")
        rows = [*map(self._rows.__getitem__, docids)]
        first = rows[0] if rows else 0
        # Consecutive rows are a view of the array, and not a copy.
        following = range(first, first + len(rows))
        vectors = self.array[first : following.stop] if rows == [*following] else self.array[rows]
        return checked(vectors, (len(rows), self.array.shape[1]), "of the documents")

    def query(self, qid: str, text: str) -> Dense:
        """Return the vector of a query."""
        return query_vector(self.queries, qid, text, self.array.shape[1])

    def nearest(self, query: Dense, k: int) -> list[str]:
        """Find the documents of `nearest_rows`."""
        return [self.docids[row] for row in self.nearest_rows(query, k)[0].tolist()]

    def nearest_rows(self, query: Dense, k: int, among: BoolArray | None = None) -> tuple[IntArray, FloatArray]:
        """Find the k rows with the highest cosines, best first, and these; ties in the order of rows.

        None for a zero query. `among`, shape (n,), says which rows to find. All are compared in 8 bits, which take m
        bytes of memory each; only those are read whose cosines may be among the best.
        """
        query = checked(query, (1, self.array.shape[1]), "of a query")  # compiled loops trust its size
        if not query.any() or not len(self.docids):
            return np.empty(0, np.int64), np.empty(0)
        rows = np.arange(len(self.array)) if among is None else np.flatnonzero(among)
        if k < len(rows):
            unit, coarse = unit_rows(query)[0], self._coarse
            estimates, away = coarse.estimates(unit), coarse.away
            if among is not None:
                estimates, away = estimates[rows], away[rows]
            least = np.partition(estimates - away, -k)[-k] - _ROUNDING * (len(unit) + 16)
            rows = rows[estimates + away >= least]
        blocks = (rows[first : first + BLOCK_ROWS] for first in range(0, max(len(rows), 1), BLOCK_ROWS))
        values = np.concatenate([self.cosines(block, query) for block in blocks])
        order = np.argsort(-values, kind="stable")[:k]
        return rows[order], values[order]

    def cosines(self, rows: IntArray, query: Dense) -> FloatArray:
        """Compute the cosines of rows with a query's vector, shape (n,), as `greylag.index.cosines` does."""
        lengths, odd = self._lengths
        vectors = self._read(rows)
        if len(odd) and np.isin(rows, odd).any():
            return cosines(vectors, query)
        products: FloatArray = (vectors / lengths[rows, None] * unit_rows(query)).sum(axis=1)
        return products

    def _read(self, rows: IntArray | slice) -> Dense:
        """Return rows as float32 or float64."""
        return np.asarray(self.array[rows], dtype=np.float64 if self.array.dtype == np.float64 else np.float32)

    def _blocks(self) -> Iterator[Dense]:
        """Yield the rows in blocks, as float32 or float64."""
        return (self._read(slice(first, first + BLOCK_ROWS)) for first in range(0, len(self.array), BLOCK_ROWS))

    @cached_property
    def _lengths(self) -> tuple[FloatArray, IntArray]:
        """The rows' lengths, 1 for zero and odd rows, shape (n,); and odd rows: products may overflow or vanish."""
        squares = []
        for block in self._blocks():
            rows = checked(block, block.shape, "of the documents").astype(np.float64)
            with np.errstate(over="ignore"):
                squares.append(np.square(rows).sum(axis=1))  # to the last bit as `unit_rows`
        lengths: FloatArray = np.sqrt(np.concatenate(squares))
        odd = np.flatnonzero(~((lengths > _SHORT) & (lengths < _LONG)))
        lengths[odd] = 1.0
        return lengths, odd[self.array[odd].any(axis=1)]

    @cached_property
    def _coarse(self) -> _Coarse:
        """The directions of the rows in 8 bits, a quarter of float32's memory."""
        (lengths, odd), n = self._lengths, len(self.array)
        lengths = lengths.astype(np.float32)
        lengths[odd] = np.inf  # which makes them 0
        # Directions of texts have much in common, which would take steps from what they differ in.
        some = slice(None, None, max(1, n // _SAMPLE))
        common = (self._read(some) / lengths[some, None]).mean(axis=0, dtype=np.float32)
        codes, (steps, away) = np.empty(self.array.shape, np.int8), np.empty((2, n), np.float32)
        for first, block in zip(range(0, n, BLOCK_ROWS), self._blocks(), strict=True):
            part = slice(first, first + BLOCK_ROWS)
            rows = (block / lengths[part, None]).astype(np.float32, copy=False)
            rows -= common
            steps[part] = step = np.maximum(rows.max(axis=1), -rows.min(axis=1)) / _STEPS
            rows /= np.where(step, step, 1)[:, None]
            codes[part] = coded = np.rint(rows)
            rows -= coded
            away[part] = step * np.sqrt(np.square(rows).sum(axis=1))
        away[odd] = np.inf
        return _Coarse(codes, steps, away, common)


@dataclass(frozen=True, slots=True)
class _Coarse:
    """Unit rows in steps of their own: a row is ``common + step * codes``, up to a difference of the length `away`.

    So is its cosine, by Cauchy and Schwarz. Vectors of real texts leave some more than k rows to be compared exactly;
    where one coordinate is great and varies, or many rows are nearly equal, half of them may be left.
    """

    codes: NDArray[np.int8]  # (n, m)
    steps: NDArray[np.float32]  # (n,)
    away: NDArray[np.float32]  # (n,)
    common: NDArray[np.float32]  # (m,)

    def estimates(self, unit: FloatArray) -> NDArray[np.float32]:
        """Estimate the cosines of all rows with a unit query, in single precision, shape (n,)."""
        out = np.empty(len(self.codes), np.float32)
        _multiply(self.codes, unit.astype(np.float32), out)
        out *= self.steps
        out += np.float32(unit @ self.common)
        return out


# Any order of the sum, so that it is vectorised: as fast as memory is read, where BLAS would need floats.
@compiled(error_model="numpy", fastmath={"reassoc", "contract"})
def _multiply(codes: NDArray[np.int8], query: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Set the products of rows and a query."""
    for i in range(len(out)):
        total = np.float32(0)
        for j in range(len(query)):
            total += np.float32(codes[i, j]) * query[j]
        out[i] = total


@dataclass(frozen=True)
class FunctionVectors:
    """Vectors that a function looks up or computes, as in a vector store.

    Parameters
    ----------
    function : callable
        From a list of docids to an array of shape (n, m); a row of NaN is a document without a vector. It may be called
        from several threads.
    queries : mapping of str to array-like, or callable from str to array-like, optional
        The vectors of queries, shape (m,), by qid or from the text.
    """

    function: Callable[[list[str]], ArrayLike]
    queries: QueryVectors | None = None
    _last: threading.local = field(init=False, repr=False, compare=False, default_factory=threading.local)

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Return which documents the function gives a vector."""
        return np.asarray(~np.isnan(self._ask(docids)).any(axis=1), dtype=bool)

    def documents(self, docids: Sequence[str]) -> Dense:
        """Return the results of the function."""
        rows = self._ask(docids)
        return checked(rows, rows.shape, "of the documents")

    def query(self, qid: str, text: str) -> Dense:
        """Return the vector of a query."""
        return query_vector(self.queries, qid, text, None)

    def _ask(self, docids: Sequence[str]) -> Dense:
        """Return the rows of documents; a thread's last call is cached, as `knows` comes first."""
        if not docids:
            return np.zeros((0, 1))
        last: dict[str, Any] = getattr(self._last, "rows", {})
        if any(docid not in last for docid in docids):
            rows = np.asarray(self.function(list(docids)))
            if rows.ndim != 2 or len(rows) != len(docids) or rows.dtype.kind not in "fiu":
                raise ParameterError(
                    f"the function of vectors gave an array of shape {rows.shape} and type {rows.dtype} for "
                    f"{len(docids)} documents: it must give one row of numbers for each"
                )
            last = self._last.rows = dict(zip(docids, rows, strict=True))
        return np.array([last[docid] for docid in docids])


def checked(rows: Any, shape: tuple[int, ...], what: str) -> Dense:
    """Check vectors; return them as C-contiguous float32 or float64, of the expected shape and finite."""
    array = np.asarray(rows)
    array = np.ascontiguousarray(array, dtype=np.float64 if array.dtype == np.float64 else np.float32)
    if array.shape != shape:
        raise ParameterError(f"the vectors {what} have shape {array.shape}, not {shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(np.vdot(array, array))  # else some may be, whose squares overflow
    if not finite and not np.isfinite(array).all():
        raise ParameterError(f"a vector {what} contains {array[~np.isfinite(array)][0]}: vectors must be finite")
    return array


def query_vector(queries: QueryVectors | None, qid: str, text: str, size: int | None) -> Dense:
    """Return the vector of a query, shape (1, size)."""
    if queries is None:
        raise ParameterError(
            "these vectors have none for queries: give queries=, a mapping from qid or a function of the query's text"
        )
    if isinstance(queries, Mapping):
        if qid not in queries:
            raise ParameterError(f"query {qid!r:.60} has no vector among the {len(queries)} in queries=")
        vector = queries[qid]
    else:
        vector = queries(text)
    row = np.asarray(vector).reshape(1, -1)
    if row.dtype.kind not in "fiu":
        raise ParameterError(f"the vector of query {qid!r:.60} is {shown(vector)}: give numbers")
    return checked(row, row.shape if size is None else (1, size), f"of query {qid!r:.60}")
