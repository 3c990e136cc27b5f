"""The vectors of a FAISS index that Pyserini made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from greylag.base import BoolArray, CollectionError, FloatArray, IntArray, imported, rebuilt
from greylag.index.vectors.dense import Dense, QueryVectors, checked, query_vector
from greylag.index.vectors.protocol import cosines


@dataclass(frozen=True, eq=False)
class FaissVectors:
    """The vectors of a FAISS index as Pyserini writes it: a folder with the files ``index`` and ``docid``.

    Vectors are reconstructed by FAISS: exactly for flat and HNSW indexes, approximately for compressed ones.

    Parameters
    ----------
    folder : str or Path
        The index, such as the output of ``python -m pyserini.encode ... --to-faiss``.
    queries : mapping of str to array-like, or callable from str to array-like, optional
        The vectors of queries, by qid or from the text, such as the ``encode`` of a Pyserini query encoder.
    """

    folder: str | Path
    _: KW_ONLY
    queries: QueryVectors | None = None

    def __post_init__(self) -> None:
        if self._index.ntotal != len(self._rows):
            count = self._index.ntotal
            raise CollectionError(f"{self.folder} has {count} vectors but {len(self._rows)} distinct docids")

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    @cached_property
    def _index(self) -> Any:
        faiss = imported("faiss", "faiss-cpu")
        files = [Path(self.folder, name) for name in ("index", "docid")]
        missing = [file for file in files if not file.is_file()]
        if missing:
            raise CollectionError(f"{self.folder} is not a FAISS index of Pyserini: it has no file {missing[0].name!r}")
        try:
            index = faiss.read_index(str(files[0]))
            if isinstance(index, faiss.IndexIDMap):  # its ids are not the lines of docid
                raise RuntimeError("it has ids of its own; make it without an IDMap, as Pyserini does")
            if isinstance(index, faiss.IndexIVF):
                # An IVF index finds vectors by list, and a document's only by this map.
                index.make_direct_map()
            if index.ntotal:
                # Not every index can: better now than in the first query.
                index.reconstruct(0)
        except RuntimeError as error:
            raise CollectionError(f"{files[0]} cannot be read by FAISS ({error})") from error
        return index

    @cached_property
    def _rows(self) -> dict[str, int]:
        path = Path(self.folder, "docid")
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise CollectionError(f"{path} is not UTF-8 ({error.reason} at byte {error.start})") from None
        return {docid.strip(): row for row, docid in enumerate(lines)}

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Return which documents are in the index."""
        return np.array([docid in self._rows for docid in docids], dtype=bool)

    def documents(self, docids: Sequence[str]) -> Dense:
        """Return the vectors of documents, float32, shape (len(docids), m)."""
        rows = np.array([self._rows[docid] for docid in docids], dtype=np.int64)
        vectors = self._index.reconstruct_batch(rows) if len(rows) else np.zeros((0, self._index.d), dtype=np.float32)
        return checked(vectors, (len(rows), self._index.d), "of the documents")

    @cached_property
    def docids(self) -> Sequence[str]:
        """The documents in the order of the index."""
        return tuple(self._rows)

    def nearest(self, query: Dense, k: int) -> list[str]:
        """Find the documents of `nearest_rows`."""
        return [self.docids[row] for row in self.nearest_rows(query, k)[0].tolist()]

    def nearest_rows(self, query: Dense, k: int) -> tuple[IntArray, FloatArray]:
        """Find up to k rows by FAISS, best first, and their cosines; as exact as FAISS is. None for a zero query."""
        if not query.any():
            return np.empty(0, np.int64), np.empty(0)
        _, (rows,) = self._index.search(np.asarray(query, dtype=np.float32), min(k, len(self.docids)))
        rows = rows[rows >= 0]
        values = self.cosines(rows, query)
        order = np.argsort(-values, kind="stable")
        return rows[order], values[order]

    def cosines(self, rows: IntArray, query: Dense) -> FloatArray:
        """Compute the cosines of rows with a query's vector, shape (n,)."""
        return cosines(self.documents([self.docids[row] for row in rows.tolist()]), query)

    def query(self, qid: str, text: str) -> Dense:
        """Return the vector of a query."""
        return query_vector(self.queries, qid, text, self._index.d)
