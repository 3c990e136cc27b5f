"""PositionalIndex: the data structure behind features, diversity and manifold ranking.

It has two views of a collection, both compressed: postings with positions by term, and terms with their frequencies by
document. `from_lucene` exports it once from a Lucene index and memory-maps the files afterwards; `from_texts` makes it
from strings, without a JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from greylag.base import (
    BoolArray,
    CollectionError,
    FloatArray,
    IntArray,
    ParameterError,
    PassagesLike,
    as_texts,
    check_sequences,
    guided,
    rebuilt,
    shown,
)
from greylag.index.analysis import LuceneAnalysis
from greylag.index.languages import ENGLISH, warn_of_other_language
from greylag.index.multilingual import analysis_of
from greylag.index.shards import Part, Parts, Shard
from greylag.index.tables import DAMAGE_ERROR, Int32Array, Tables
from greylag.index.tables import offsets as offsets_of
from greylag.index.words import CollectionWords, Words

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from greylag.index.bm25 import PositionalBM25
    from greylag.index.lucene.lucene_index import LuceneIndex

_CACHED_DOCIDS = 1 << 20

Analyzer = Callable[[str], Sequence[str]]
_Made = TypeVar("_Made")


class Numbered(tuple[str, ...]):
    """Docids that know their numbers in an index, so that no feature looks them up again."""

    known_to: PositionalIndex
    numbers: IntArray

    @classmethod
    def of(cls, docids: Iterable[str], index: PositionalIndex, numbers: IntArray) -> Numbered:
        """Return docids of documents with these numbers."""
        numbered = cls(docids)
        numbered.known_to, numbered.numbers = index, numbers
        return numbered

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)  # without the index


def _no_words() -> None:
    """Return None, where the texts of a shard are unknown."""


@guided
@dataclass(frozen=True, eq=False, kw_only=True)
class PositionalIndex(Tables):
    """An immutable positional index of N documents, V terms and C tokens.

    Documents and terms are numbered from 0. Use `from_lucene` or `from_texts` to create an index.

    Attributes
    ----------
    fingerprint : str
        SHA-256 (hex) of the collection as indexed: docids, lengths, terms, df and cf. It does not depend on the order
        in which documents were indexed.
    n_documents, n_terms, n_tokens : int
        N, V and C.
    document_lengths : int array, shape (N,)
        Number of indexed tokens |D| of each document.
    document_frequencies, collection_frequencies : int array, shape (V,)
        Df and cf of each term.
    analyze : callable, str to list of str
        Analyses text into index terms as the documents were analysed.
    folder : Path or None
        The folder of the files; None if the index is in memory.
    """

    parts: Parts  # the shards with the postings
    analyze: Analyzer = field(repr=False)
    read_words: Callable[[], CollectionWords | None] = field(repr=False)  # for `words`
    background: PositionalIndex | None = field(default=None, repr=False)  # see `greylag.index.beside`

    def __repr__(self) -> str:
        return f"PositionalIndex({self.n_documents} documents, {self.n_terms} terms, {self.n_tokens} tokens)"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the name of the Lucene index, which each process opens once, or else all arrays."""
        if self.folder is None:
            return rebuilt(self)
        return _reopened, (getattr(self.analyze, "lucene", None), self.fingerprint)

    @classmethod
    def from_lucene(cls, lucene: LuceneIndex | str | Path | Sequence[str | Path]) -> PositionalIndex:
        """Return the positional index of a Lucene index, exported on first use and memory-mapped afterwards.

        `CollectionError` if the Lucene index has no positions, the export cannot be written or two shards have a docid.

        Parameters
        ----------
        lucene : LuceneIndex, str, Path, sequence of str or Path, or Pyserini's LuceneSearcher
            The Lucene index or its folder, or the folders of a collection in shards. Each shard is exported on its own,
            and exported again only if it has changed.
        """
        from greylag.index.export import open_export, open_words
        from greylag.index.lucene.lucene_index import LuceneIndex
        from greylag.index.lucene.open_index import folders
        from greylag.index.merge import open_merged

        if not isinstance(lucene, LuceneIndex):
            is_searcher = hasattr(lucene, "index_dir")
            with LuceneIndex(lucene if is_searcher else folders(lucene, positions=True)) as opened:
                return cls.from_lucene(opened)
        shards = [Shard(**open_export(source)) for source in lucene.shards]
        analyze, read_words = LuceneAnalysis(lucene), partial(open_words, lucene.paths, lucene.fingerprint)
        if len(shards) == 1:
            return cls.of_shard(shards[0], analyze, read_words)
        tables, parts = open_merged(lucene, shards)
        return cls(**tables, parts=parts, analyze=analyze, read_words=read_words)

    @staticmethod
    def verify_export(lucene: LuceneIndex | str | Path | Sequence[str | Path]) -> str:
        """Compare the files that `from_lucene` made for an index or shards with their checksums; return a report."""
        from greylag.index.export import verify_export, verify_words
        from greylag.index.lucene.lucene_index import LuceneIndex
        from greylag.index.merge import verify_merged

        index = lucene if isinstance(lucene, LuceneIndex) else LuceneIndex(lucene)
        return "; ".join([*map(verify_export, index.shards), *verify_merged(index), *verify_words(index)])

    @classmethod
    def from_texts(cls, texts: PassagesLike, *, language: str = "en") -> PositionalIndex:
        """Return the positional index of texts, in memory, analysed without Java.

        Parameters
        ----------
        texts : mapping of str to str, or iterable of pairs of str
            Docids and texts.
        language : str, default "en"
            A name or code, such as "German" or "de". English, Chinese and Korean have the index terms of Lucene.
            Arabic, Danish, Dutch, Finnish, French, German, Hungarian, Italian, Norwegian, Portuguese, Romanian,
            Russian, Spanish and Swedish are stemmed by Snowball, Japanese is split into bigrams, and Bengali, Hindi,
            Indonesian, Persian, Polish, Telugu, Turkish and Ukrainian words are not stemmed. Or "whitespace": words as
            they stand between white space. Others are a `ParameterError`, as is Thai, which only Lucene splits.
        """
        from greylag.index.invert import invert

        analysis = analysis_of(language)
        given = as_texts(texts)
        warn_of_other_language(given.values(), analysis.language)
        shard = Shard(**invert(given, analysis.tokens))
        return cls.of_shard(shard, analysis, partial(_words_of, tuple(given.values())))

    @classmethod
    def of_shard(
        cls, shard: Shard, analyze: Analyzer, read_words: Callable[[], CollectionWords | None] = _no_words
    ) -> PositionalIndex:
        """Return the index of a single shard."""
        tables = {part.name: getattr(shard, part.name) for part in fields(Tables)}
        return cls(**tables, parts=Parts([Part(shard)]), analyze=analyze, read_words=read_words)

    @cached_property
    def words(self) -> CollectionWords | None:
        """The documents' surface words, read on first use; None if the texts are not known or not in the index."""
        return self.read_words()

    @property
    def language(self) -> str:
        """The code of the language that documents and queries are analysed in."""
        return str(getattr(self.analyze, "language", ENGLISH))

    @cached_property
    def n_tokens(self) -> int:
        """C, the number of indexed tokens in the collection."""
        tokens = int(self.collection_frequencies.sum())
        # Lengths have the same sum: one flipped bit of either array makes a difference.
        if tokens != int(self.document_lengths.sum()):
            raise CollectionError(DAMAGE_ERROR)
        return tokens

    @cached_property
    def average_length(self) -> float:
        """Mean length of the documents that have a token, as in Lucene."""
        return self.n_tokens / max(1, int(np.count_nonzero(self.document_lengths)))

    def documents(self, docids: Sequence[str]) -> IntArray:
        """Look up document numbers of docids, shape (len(docids),); -1 for a docid that is not in the index."""
        if isinstance(docids, Numbered) and docids.known_to is self:
            return docids.numbers
        check_sequences(docids=docids)
        cache = self._document_numbers
        with suppress(KeyError):  # all are known, as a rule
            return np.fromiter(map(cache.__getitem__, docids), np.int64, len(docids))
        numbers = [cache.get(docid) for docid in docids]
        if new := [docid for docid, number in zip(docids, numbers, strict=True) if number is None]:
            numbers_of_new = self.find_docids([docid.encode() for docid in new]).tolist()
            looked_up = dict(zip(new, numbers_of_new, strict=True))
            # Other threads may clear the cache at any time, so what was read from it is not read again.
            numbers = [
                looked_up[docid] if number is None else number for docid, number in zip(docids, numbers, strict=True)
            ]
            if len(cache) > _CACHED_DOCIDS:
                cache.clear()
            cache.update(looked_up)
        return np.array(numbers, dtype=np.int64)

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Return which docids are in the index, shape (len(docids),)."""
        return self.documents(docids) >= 0

    @cached_property
    def _document_numbers(self) -> dict[str, int]:
        """Numbers of recently looked-up documents: stages and features look up the same ones."""
        return {}

    def cache(self, make: Callable[[PositionalIndex], _Made], made: _Made | None = None) -> _Made:
        """Return what a function makes of this index, once for all features that ask for it; it goes with the index.

        If it was `made` before, such as in a file, that is kept.
        """
        if made is not None:
            self._caches[make] = made
        # Two threads may both make one; the last stays, and either is right.
        if make not in self._caches:
            self._caches[make] = make(self)
        return cast(_Made, self._caches[make])

    @cached_property
    def _caches(self) -> dict[Any, Any]:
        """Rows, entries and other parts by the function that makes them."""
        return {}

    def term_numbers(self, terms: Sequence[str]) -> IntArray:
        """Look up numbers of analysed terms, shape (len(terms),); -1 for a term that is not in the collection."""
        check_sequences(terms=terms)
        return self.find_terms([term.encode() for term in terms])

    @cached_property
    def query_terms(self) -> Callable[[str], IntArray]:
        """A cached function from a text to its term numbers, in order; -1 for a term that is not in the collection."""
        return lru_cache(maxsize=4096)(lambda text: self.term_numbers(self.analyze(text)))

    def bm25(self, k: int = 1000, *, k1: float = 0.9, b: float = 0.4) -> PositionalBM25:
        """Return the source that ranks by BM25 without Java, with the docids and scores of `greylag.index.BM25`.

        Its parameters are those. All postings of the query's terms are read: a query takes time in proportion to
        their df.
        """
        from greylag.index.bm25 import PositionalBM25

        return PositionalBM25(self, k=k, k1=k1, b=b)

    def token_stream(self, document: int) -> tuple[IntArray, IntArray]:
        """Return the term numbers and positions of a document's tokens, ordered by position, each of shape (|D|,)."""
        documents = np.array([document])
        _, terms, _ = self.parts.entries(documents)
        located = self.parts.locate(terms.astype(np.int64), documents)
        if (located.postings < 0).any():
            raise CollectionError(DAMAGE_ERROR)
        # Positions are unique within a document, so that sorting them restores the text's order.
        order = np.argsort(located.positions, kind="stable")
        tokens = np.repeat(terms.astype(np.int64), np.diff(located.starts))
        return tokens[order], located.positions[order].astype(np.int64)

    def term_frequencies(self, documents: Sequence[int] | IntArray) -> csr_matrix:
        """Return tf, sparse, shape (len(documents), V). The row of a document -1 is empty."""
        from scipy.sparse import csr_matrix

        numbers = np.asarray(documents, dtype=np.int64)
        indptr, terms, tf = self.parts.entries(numbers)
        return csr_matrix((tf.astype(np.float64), terms, indptr), shape=(len(numbers), self.n_terms))

    def tfidf(self, documents: Sequence[int] | IntArray) -> csr_matrix:
        """Compute TF-IDF vectors (1 + log tf) log(N / df), sparse, shape (len(documents), V)."""
        return self.weigh_tfidf(self.term_frequencies(documents))

    def weigh_tfidf(self, frequencies: csr_matrix) -> csr_matrix:
        """Compute TF-IDF as in `tfidf`, from a matrix of term frequencies over this vocabulary, such as a query's."""
        weights = frequencies.copy()
        weights.data = self.unit_weights(weights.indptr, weights.indices, weights.data)
        return weights

    def unit_weights(self, starts: IntArray, terms: IntArray | Int32Array, tf: FloatArray | Int32Array) -> FloatArray:
        """Compute TF-IDF as in `tfidf` of rows of terms, shape (m,); row i is ``starts[i], ..., starts[i + 1] - 1``."""
        weights = (1.0 + np.log(tf)) * np.take(self.idf, terms)
        squares, ends = np.square(weights), starts
        if not squares.all():  # zeros would change the pairs that NumPy sums, and the last digit
            ends = offsets_of(squares > 0)[starts]
            squares = squares[squares > 0]
        sizes = np.diff(ends)
        lengths = np.ones(len(sizes))
        if len(squares):
            lengths[sizes > 0] = np.sqrt(np.add.reduceat(squares, ends[:-1][sizes > 0]))
        weights /= np.repeat(lengths, np.diff(starts))
        return weights

    @cached_property
    def idf(self) -> FloatArray:
        """Inverse document frequency log(N / df) of each term, shape (V,)."""
        return np.log(self.n_documents / np.maximum(self.document_frequencies, 1))


@lru_cache(maxsize=8)
def _reopened(lucene: LuceneIndex, fingerprint: str) -> PositionalIndex:
    """Open the index that was pickled, once in this process."""
    index = PositionalIndex.from_lucene(lucene)
    if index.fingerprint != fingerprint:
        raise CollectionError(f"{index.folder} is not the collection that the work began with: export it again")
    return index


def _words_of(texts: Sequence[str]) -> CollectionWords:
    """Return the words of documents in memory."""
    return CollectionWords((Words.of(texts),))


def check_index(reader: str, index: object) -> None:
    """Raise `ParameterError` if the index that `reader` was given is none."""
    if not isinstance(index, PositionalIndex):
        raise ParameterError(
            f"{reader} needs a PositionalIndex, not {shown(index)}: make one with PositionalIndex.from_lucene, which "
            "takes a folder, a LuceneIndex or a LuceneSearcher, or PositionalIndex.from_texts"
        )
