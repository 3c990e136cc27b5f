"""PositionalIndex: the data structure behind features, diversity and manifold ranking.

It has two views of a collection over one array of positions: postings by term, and entries by document that point into
the postings. `from_lucene` exports it once from a Lucene index and memory-maps the files afterwards; `from_texts` makes
it from strings, without a JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greylag.errors import CollectionError, ParameterError
from greylag.index import analysis
from greylag.index.arrays import Int32Array, check_bounds, document_lengths, ranges
from greylag.parallel import rebuilt
from greylag.ranking import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from greylag.lucene.lucene_index import LuceneIndex

_CACHED_DOCIDS = 1 << 20

Analyzer = Callable[[str], Sequence[str]]


@dataclass(frozen=True, eq=False)
class PositionalIndex:
    """An immutable positional index of N documents, V terms, P postings and C tokens.

    Documents and terms are numbered from 0. The arrays are read-only, in memory or mapped from files. Use `from_lucene`
    or `from_texts` to create an index.

    Parameters
    ----------
    docids : bytes array, shape (N,)
        Docids in UTF-8.
    docid_order : int32 array, shape (N,)
        Document numbers in ascending order of docids.
    terms : uint8 array
        The concatenated UTF-8 bytes of the terms, in ascending order.
    term_offsets : int64 array, shape (V + 1,)
        Term t is ``terms[term_offsets[t]:term_offsets[t + 1]]``.
    postings_offsets : int64 array, shape (V + 1,)
        The postings of term t are ``postings_offsets[t]:postings_offsets[t + 1]``.
    postings_docs : int32 array, shape (P,)
        Document numbers, ascending within a term.
    postings_starts : int64 array, shape (P + 1,)
        The positions of posting p are ``positions[postings_starts[p]:postings_starts[p + 1]]``.
    positions : int32 array, shape (C,)
        Ascending within a posting; stop words leave gaps.
    forward_offsets : int64 array, shape (N + 1,)
        The entries of document d are ``forward_offsets[d]:forward_offsets[d + 1]``.
    forward_terms : int32 array, shape (P,)
        The term of each entry, ascending within a document.
    forward_postings : int64 array, shape (P,)
        The posting of each entry.
    fingerprint : str
        SHA-256 (hex) of the collection as indexed: docids, lengths, terms, df and cf. It does not depend on the order
        in which documents were indexed.
    analyze : callable, str to list of str
        Analyses text into index terms as the documents were analysed.
    folder : Path, optional
        The folder of the files, in which window statistics are also stored. None if the index is in memory.
    """

    docids: NDArray[np.bytes_]
    docid_order: Int32Array
    terms: NDArray[np.uint8]
    term_offsets: IntArray
    postings_offsets: IntArray
    postings_docs: Int32Array
    postings_starts: IntArray
    positions: Int32Array
    forward_offsets: IntArray
    forward_terms: Int32Array
    forward_postings: IntArray
    fingerprint: str
    analyze: Analyzer = field(repr=False)
    folder: Path | None = None

    def __repr__(self) -> str:
        return f"PositionalIndex({self.n_documents} documents, {self.n_terms} terms, {self.n_tokens} tokens)"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the name of the Lucene index, which each process opens once, or else all arrays."""
        if self.folder is None:
            return rebuilt(self)
        return _reopened, (getattr(self.analyze, "__self__", None), self.fingerprint)

    @classmethod
    def from_lucene(cls, lucene: LuceneIndex | str | Path) -> PositionalIndex:
        """The positional index of a Lucene index, exported on first use and memory-mapped afterwards.

        Parameters
        ----------
        lucene : LuceneIndex, str or Path
            The Lucene index or its folder.

        Raises
        ------
        CollectionError
            If the Lucene index has no positions, or the export cannot be written or is incomplete.
        """
        from greylag.index.export import open_export
        from greylag.lucene.lucene_index import LuceneIndex

        if not isinstance(lucene, LuceneIndex):
            with LuceneIndex(lucene) as opened:
                return cls.from_lucene(opened)
        folder, arrays = open_export(lucene)
        return cls(**arrays, analyze=lucene.analyze, folder=folder)

    @staticmethod
    def verify_export(lucene: LuceneIndex | str | Path) -> str:
        """Compare the files that `from_lucene` made for an index with their checksums; return what was found.

        Raises
        ------
        CollectionError
            If a file is damaged.
        """
        from greylag.index.export import verify_export
        from greylag.lucene.lucene_index import LuceneIndex

        return verify_export(lucene if isinstance(lucene, LuceneIndex) else LuceneIndex(lucene))

    @classmethod
    def from_texts(cls, texts: Mapping[str, str] | Iterable[tuple[str, str]]) -> PositionalIndex:
        """The positional index of texts, in memory, analysed by `greylag.index.analyze`.

        Parameters
        ----------
        texts : mapping of str to str, or iterable of pairs of str
            Docids and texts.

        Raises
        ------
        ParameterError
            If a docid is empty or duplicated.
        """
        from greylag.index.invert import invert

        return cls(**invert(texts if isinstance(texts, Mapping) else _unique(texts)), analyze=analysis.analyze)

    @property
    def n_documents(self) -> int:
        """N, the number of documents."""
        return len(self.docids)

    @property
    def n_terms(self) -> int:
        """V, the number of terms."""
        return len(self.term_offsets) - 1

    @property
    def n_tokens(self) -> int:
        """C, the number of indexed tokens in the collection."""
        return len(self.positions)

    @property
    def average_length(self) -> float:
        """Mean length of the documents that have a token, as in Lucene."""
        return self.n_tokens / max(1, int(np.count_nonzero(self.document_lengths)))

    @cached_property
    def document_frequencies(self) -> IntArray:
        """Document frequency df of each term, shape (V,)."""
        return np.diff(self.postings_offsets)

    @cached_property
    def collection_frequencies(self) -> IntArray:
        """Collection frequency cf of each term, shape (V,)."""
        return np.diff(self.postings_starts[self.postings_offsets])

    @cached_property
    def document_lengths(self) -> IntArray:
        """Number of indexed tokens |D| of each document, shape (N,)."""
        return document_lengths(self.postings_docs, self.postings_starts, len(self.docids))

    def documents(self, docids: Sequence[str]) -> IntArray:
        """Document numbers of docids, shape (len(docids),); -1 for a docid that is not in the index."""
        cache = self._cached_documents
        numbers = [cache.get(docid) for docid in docids]
        if new := [docid for docid, number in zip(docids, numbers, strict=True) if number is None]:
            found = dict(zip(new, self._look_up(new).tolist(), strict=True))
            # Other threads may clear the cache at any time, so what was read from it is not read again.
            numbers = [
                found[docid] if number is None else number for docid, number in zip(docids, numbers, strict=True)
            ]
            if len(cache) > _CACHED_DOCIDS:
                cache.clear()
            cache.update(found)
        return np.array(numbers, dtype=np.int64)

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Which docids are in the index, shape (len(docids),)."""
        return self.documents(docids) >= 0

    @cached_property
    def _cached_documents(self) -> dict[str, int]:
        """Numbers of recently looked-up documents, as the same ones are usually ranked several times."""
        return {}

    def _look_up(self, docids: Sequence[str]) -> IntArray:
        if not self.n_documents:
            return np.full(len(docids), -1, dtype=np.int64)
        wanted = np.char.encode(np.asarray(docids, dtype=np.str_), "utf-8")
        at = np.searchsorted(self.docids, wanted, sorter=self.docid_order)
        numbers = self.docid_order[np.minimum(at, self.n_documents - 1)].astype(np.int64)
        return np.where(self.docids[numbers] == wanted, numbers, -1)

    def docid(self, document: int) -> str:
        """The docid of document number `document`."""
        return bytes(self.docids[document]).decode()

    def term(self, term: int) -> str:
        """The term with number `term`."""
        return bytes(self.terms[self.term_offsets[term] : self.term_offsets[term + 1]]).decode()

    def term_numbers(self, terms: Sequence[str]) -> IntArray:
        """Numbers of analysed terms, shape (len(terms),); -1 for a term that is not in the collection."""
        return np.array([self._find(term.encode()) for term in terms], dtype=np.int64)

    @cached_property
    def query_terms(self) -> Callable[[str], IntArray]:
        """A cached function from a text to its term numbers, in order; -1 for a term that is not in the collection."""
        return lru_cache(maxsize=4096)(lambda text: self.term_numbers(self.analyze(text)))

    def _find(self, term: bytes) -> int:
        low, high = 0, self.n_terms
        while low < high:
            middle = (low + high) // 2
            if bytes(self.terms[self.term_offsets[middle] : self.term_offsets[middle + 1]]) < term:
                low = middle + 1
            else:
                high = middle
        found = low < self.n_terms and bytes(self.terms[self.term_offsets[low] : self.term_offsets[low + 1]]) == term
        return low if found else -1

    def token_stream(self, document: int) -> tuple[IntArray, IntArray]:
        """Term numbers and positions of a document's tokens, ordered by position, each of shape (|D|,)."""
        own, starts, counts = self.entries(slice(self.forward_offsets[document], self.forward_offsets[document + 1]))
        terms = np.repeat(own.astype(np.int64), counts)
        positions = self.positions[ranges(starts, counts)].astype(np.int64)
        order = np.argsort(positions, kind="stable")
        return terms[order], positions[order]

    def entries(self, places: slice | IntArray) -> tuple[Int32Array, IntArray, IntArray]:
        """The terms of forward entries, the first of each one's `positions`, and their number tf, each of shape (n,).

        Raises
        ------
        CollectionError
            If an entry points outside the arrays, as the files are damaged.
        """
        terms, postings = self.forward_terms[places], self.forward_postings[places]
        check_bounds(terms, self.n_terms)
        check_bounds(postings, len(self.postings_docs))
        starts, ends = self.postings_starts[postings], self.postings_starts[postings + 1]
        check_bounds(starts, self.n_tokens)
        check_bounds(ends - 1, self.n_tokens)
        check_bounds(ends - starts, self.n_tokens + 1)
        return terms, starts, ends - starts

    def term_frequencies(self, documents: Sequence[int] | IntArray) -> csr_matrix:
        """Term frequencies tf, sparse, shape (len(documents), V). The row of a document -1 is empty."""
        from scipy.sparse import csr_matrix

        numbers = np.asarray(documents, dtype=np.int64)
        counts = np.where(numbers < 0, 0, self.forward_offsets[numbers + 1] - self.forward_offsets[numbers])
        terms, _, tf = self.entries(ranges(self.forward_offsets[np.maximum(numbers, 0)], counts))
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return csr_matrix((tf.astype(np.float64), terms, indptr), shape=(len(numbers), self.n_terms))

    def tfidf(self, documents: Sequence[int] | IntArray) -> csr_matrix:
        """TF-IDF vectors (1 + log tf) log(N / df), sparse, shape (len(documents), V).

        Rows have unit Euclidean length, except that an empty document has a zero row.
        """
        return self.weigh_tfidf(self.term_frequencies(documents))

    def weigh_tfidf(self, frequencies: csr_matrix) -> csr_matrix:
        """TF-IDF as in `tfidf`, from a matrix of term frequencies over this vocabulary, such as a query's."""
        weights = frequencies.copy()
        weights.data = (1.0 + np.log(weights.data)) * self.idf[weights.indices]
        lengths = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)).ravel())
        weights.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(weights.indptr))
        return weights

    @cached_property
    def idf(self) -> FloatArray:
        """Inverse document frequency log(N / df) of each term, shape (V,)."""
        return np.log(self.n_documents / np.maximum(self.document_frequencies, 1))


@lru_cache(maxsize=8)
def _reopened(lucene: LuceneIndex, fingerprint: str) -> PositionalIndex:
    """The index that was pickled, opened once in this process."""
    index = PositionalIndex.from_lucene(lucene)
    if index.fingerprint != fingerprint:
        raise CollectionError(f"{index.folder} is not the collection that the work began with: export it again")
    return index


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for docid, text in pairs:
        if docid in texts:
            raise ParameterError(f"duplicate document {docid!r}")
        texts[docid] = text
    return texts
