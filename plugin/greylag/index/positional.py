"""PositionalIndex: the one data structure under features, diversity and manifold ranking.

It holds a collection twice over one array of positions: postings by term (which documents, where) and, by document, the
terms and their postings. `from_lucene` exports it once from a Lucene index (`index.export` does the writing) and maps
the files into memory ever after; `from_texts` makes the same structure from strings, without a JVM.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greylag.errors import ParameterError
from greylag.index import analysis
from greylag.ranking import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from greylag.lucene.lucene_index import LuceneIndex

Int32Array = NDArray[np.int32]
_REMEMBERED = 1 << 20  # documents

Analyzer = Callable[[str], Sequence[str]]


@dataclass(frozen=True, eq=False)
class PositionalIndex:
    """An immutable positional index of N documents, V terms, P postings and |C| tokens.

    Documents and terms are numbered; the arrays are read-only, in memory or mapped from files.

    Parameters
    ----------
    docids : bytes array, shape (N,); UTF-8.
    docid_order : int32, shape (N,): document numbers in the order of their docids.
    terms : uint8: the terms' UTF-8 bytes one after another, in ascending order; `term_offsets` int64, shape (V + 1,).
    postings_offsets : int64, shape (V + 1,): term t's postings are ``postings_offsets[t]:postings_offsets[t + 1]``.
    postings_docs : int32, shape (P,): document numbers, ascending within a term.
    postings_starts : int64, shape (P + 1,): posting p's positions are ``postings_starts[p]:postings_starts[p + 1]``.
    positions : int32, shape (|C|,): ascending within a posting; stop words leave holes.
    forward_offsets : int64, shape (N + 1,): document d's entries, in the order of their terms.
    forward_terms, forward_postings : int32 and int64, shape (P,): each entry's term and posting.
    analyze : text to index terms, as the documents were analysed.
    fingerprint : identifies the collection as indexed: docids, lengths, terms, df and cf, in whatever order documents
        were indexed.
    folder : where the files are, and where window statistics are kept; None in memory.
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

    @classmethod
    def from_lucene(cls, lucene: LuceneIndex | str | Path) -> PositionalIndex:
        """The positional index of a Lucene index: exported on first use, mapped from its files after that.

        Raises
        ------
        CollectionError
            Where the Lucene index has no positions, or the export's totals differ from Lucene's own.
        """
        from greylag.index.export import open_export

        return open_export(lucene)

    @classmethod
    def from_texts(cls, texts: Mapping[str, str] | Iterable[tuple[str, str]]) -> PositionalIndex:
        """The same structure from docid and text, in memory; analysed by `greylag.index.analysis`."""
        from greylag.index.invert import index_texts

        return cls(
            **index_texts(dict(texts) if isinstance(texts, Mapping) else _unique(texts)), analyze=analysis.analyze
        )

    @property
    def n_documents(self) -> int:
        """N."""
        return len(self.docids)

    @property
    def n_terms(self) -> int:
        """V."""
        return len(self.term_offsets) - 1

    @property
    def n_tokens(self) -> int:
        """|C|, the collection's length in indexed tokens."""
        return len(self.positions)

    @property
    def average_length(self) -> float:
        """avgdl, over the documents that hold a token, as Lucene has it."""
        return self.n_tokens / max(1, int(np.count_nonzero(self.document_lengths)))

    @cached_property
    def document_frequencies(self) -> IntArray:
        """Counts df by term, shape (V,)."""
        return np.diff(self.postings_offsets)

    @cached_property
    def collection_frequencies(self) -> IntArray:
        """Counts cf by term, shape (V,)."""
        return np.diff(self.postings_starts[self.postings_offsets])

    @cached_property
    def document_lengths(self) -> IntArray:
        """|D| in indexed tokens by document, shape (N,)."""
        return document_lengths(self.postings_docs, self.postings_starts, len(self.docids))

    def documents(self, docids: Sequence[str]) -> IntArray:
        """Document numbers of docids, shape (len(docids),); -1 for a document outside the index."""
        known = self._met_documents
        new = [docid for docid in docids if docid not in known]
        if new:
            if len(known) > _REMEMBERED:
                known.clear()
                new = list(docids)
            known.update(zip(new, self._look_up(new).tolist(), strict=True))
        return np.array([known[docid] for docid in docids], dtype=np.int64)

    @cached_property
    def _met_documents(self) -> dict[str, int]:
        """Numbers of documents looked up before, since the same ones are ranked again and again."""
        return {}

    def _look_up(self, docids: Sequence[str]) -> IntArray:
        if not self.n_documents:
            return np.full(len(docids), -1, dtype=np.int64)
        wanted = np.char.encode(np.asarray(docids, dtype=np.str_), "utf-8")
        at = np.searchsorted(self.docids, wanted, sorter=self.docid_order)
        numbers = self.docid_order[np.minimum(at, self.n_documents - 1)].astype(np.int64)
        return np.where(self.docids[numbers] == wanted, numbers, -1)

    def docid(self, document: int) -> str:
        """The docid of a document number."""
        return bytes(self.docids[document]).decode()

    def term(self, term: int) -> str:
        """The text of a term number."""
        return bytes(self.terms[self.term_offsets[term] : self.term_offsets[term + 1]]).decode()

    def term_numbers(self, terms: Sequence[str]) -> IntArray:
        """Numbers of analysed terms, shape (len(terms),); -1 for a term that the collection lacks."""
        return np.array([self._find(term.encode()) for term in terms], dtype=np.int64)

    @cached_property
    def query_terms(self) -> Callable[[str], IntArray]:
        """A text's term numbers in order, -1 for a term that the collection lacks; the last ones are remembered."""
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
        """Term numbers and positions of a document's tokens, in the order of positions, each of shape (|D|,)."""
        entries = slice(self.forward_offsets[document], self.forward_offsets[document + 1])
        postings = self.forward_postings[entries]
        counts = self.postings_starts[postings + 1] - self.postings_starts[postings]
        terms = np.repeat(self.forward_terms[entries].astype(np.int64), counts)
        positions = self.positions[ranges(self.postings_starts[postings], counts)].astype(np.int64)
        order = np.argsort(positions, kind="stable")
        return terms[order], positions[order]

    def term_frequencies(self, documents: Sequence[int] | IntArray) -> csr_matrix:
        """Counts tf of the documents' terms, sparse, shape (len(documents), V); a document -1 has an empty row."""
        from scipy.sparse import csr_matrix

        numbers = np.asarray(documents, dtype=np.int64)
        counts = np.where(numbers < 0, 0, self.forward_offsets[numbers + 1] - self.forward_offsets[numbers])
        entries = ranges(self.forward_offsets[np.maximum(numbers, 0)], counts)
        postings = self.forward_postings[entries]
        tf = (self.postings_starts[postings + 1] - self.postings_starts[postings]).astype(np.float64)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return csr_matrix((tf, self.forward_terms[entries], indptr), shape=(len(numbers), self.n_terms))

    def tfidf(self, documents: Sequence[int] | IntArray) -> csr_matrix:
        """Rows of (1 + log tf) log(N / df), of unit length; an empty document keeps a zero row. Shape as above."""
        return self.weigh_tfidf(self.term_frequencies(documents))

    def weigh_tfidf(self, frequencies: csr_matrix) -> csr_matrix:
        """TF-IDF as in `tfidf` of any matrix of term frequencies over this vocabulary, such as a query's."""
        weights = frequencies.copy()
        weights.data = (1.0 + np.log(weights.data)) * self.idf[weights.indices]
        lengths = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)).ravel())
        weights.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(weights.indptr))
        return weights

    @cached_property
    def idf(self) -> FloatArray:
        """log(N / df) by term, shape (V,)."""
        return np.log(self.n_documents / np.maximum(self.document_frequencies, 1))


def ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """The numbers ``starts[i], ..., starts[i] + counts[i] - 1`` for every i, one after another."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)


def document_lengths(postings_docs: Int32Array, postings_starts: IntArray, n_documents: int) -> IntArray:
    """Tokens by document, shape (N,), from postings, a bounded part of them at a time."""
    lengths = np.zeros(n_documents, dtype=np.int64)
    for first in range(0, len(postings_docs), 1 << 22):
        part = slice(first, first + (1 << 22))
        tf = np.diff(postings_starts[first : first + (1 << 22) + 1])
        lengths += np.bincount(postings_docs[part], weights=tf, minlength=n_documents).astype(np.int64)
    return lengths


def fingerprint(arrays: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of docids in order, their lengths, terms, df and cf: the same however documents were numbered."""
    order = arrays["docid_order"]
    lengths = document_lengths(arrays["postings_docs"], arrays["postings_starts"], len(order))
    df = np.diff(arrays["postings_offsets"])
    cf = np.diff(arrays["postings_starts"][arrays["postings_offsets"]])
    digest = hashlib.sha256()
    for part in (arrays["docids"][order], lengths[order], arrays["terms"], arrays["term_offsets"], df, cf):
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for docid, text in pairs:
        if docid in texts:
            raise ParameterError(f"document {docid!r} is given twice")
        texts[docid] = text
    return texts
