"""LuceneIndex: an index of Pyserini, Anserini or `build`, as a first stage and as a source of postings.

`PositionalIndex.from_lucene` takes its postings from here once; after that only searching and analysing need the JVM,
which starts when one of them first does.
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from greylag.errors import CollectionError, ParameterError
from greylag.lucene import transfers as bulk
from greylag.lucene.jvm import calls_java, java_class, pyjnius, reason
from greylag.lucene.transfers import PostingsBlock
from greylag.ranking import Composable, Query, Ranking

BUILD = "build it with greylag index (or Anserini's -storePositions -optimize)"

__all__ = ["BM25", "LuceneIndex", "PostingsBlock", "QueryLikelihood", "Statistics"]


class Statistics(NamedTuple):
    """Lucene's own totals: documents, and tokens, terms and postings of the field ``contents``."""

    documents: int
    tokens: int
    terms: int
    postings: int


class LuceneIndex:
    """A Lucene index with Anserini's fields: ``id``, and ``contents``, which is searched.

    Opening it reads one small file. All methods may be called from several threads at once.

    Parameters
    ----------
    path : the index's folder.

    Raises
    ------
    CollectionError
        Where the folder holds no Lucene index.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._fingerprint = _fingerprint(self.path)
        self._analyzer: Any = None
        self._lock = threading.RLock()
        self._opened: Any = None

    @classmethod
    def from_searcher(cls, searcher: Any) -> LuceneIndex:
        """The index of a Pyserini ``LuceneSearcher``, with the searcher's analyzer.

        What else was set there (similarity, RM3) does not carry over; `Ranking.from_hits` takes its hits as they are.
        """
        try:
            index = cls(searcher.index_dir)
            index._analyzer = searcher.object.get_analyzer()
        except AttributeError as error:
            raise ParameterError(f"{type(searcher).__name__} is not a Pyserini LuceneSearcher: {error}") from error
        return index

    def __repr__(self) -> str:
        return f"LuceneIndex({str(self.path)!r})"

    def fingerprint(self) -> str:
        """SHA-256 of the name and bytes of the commit file (``segments_N``), which differ for any two builds."""
        return self._fingerprint

    def bm25(self, k: int = 1000, k1: float = 0.9, b: float = 0.4) -> BM25:
        """The source that ranks by BM25."""
        return BM25(self, k, k1, b)

    def ql(self, k: int = 1000, mu: float = 1000.0) -> QueryLikelihood:
        """The source that ranks by query likelihood with Dirichlet smoothing."""
        return QueryLikelihood(self, k, mu)

    @calls_java
    def analyze(self, text: str) -> list[str]:
        """The index terms of `text`, in order: by Anserini's English analyzer, or that of `from_searcher`."""
        tokens = java_class("io.anserini.analysis.AnalyzerUtils").analyze(self._java_analyzer(), text)
        joined = java_class("org.apache.commons.lang3.StringUtils").join(tokens.iterator(), "\n")
        return joined.split("\n") if joined else []

    @calls_java
    def statistics(self) -> Statistics:
        """The index's totals, as Lucene keeps them."""
        reader, terms = self._reader(), self._terms("contents")
        return Statistics(
            documents=int(reader.numDocs()),
            tokens=int(terms.getSumTotalTermFreq()),
            terms=bulk.count_terms(terms),
            postings=int(terms.getSumDocFreq()),
        )

    @calls_java
    def has_positions(self) -> bool:
        """Whether the field ``contents`` was indexed with positions."""
        return bool(self._terms("contents").hasPositions())

    @calls_java
    def check_exportable(self) -> None:
        """See that `postings_blocks` can be had.

        Raises
        ------
        CollectionError
            Where the index has no positions, or documents were deleted.
        """
        if not self.has_positions():
            raise CollectionError(f"{self.path} has no positions: {BUILD}")
        self._refuse_deletions()

    @calls_java
    def docids(self) -> list[str]:
        """Every document's id, in the order of Lucene's document numbers.

        Raises
        ------
        CollectionError
            Where an id stands twice, a document has none, or documents were deleted.
        """
        self._refuse_deletions()
        docids = np.full(self._reader().maxDoc(), None, dtype=object)
        for block in bulk.postings_blocks(self._terms("id")):
            if (block.df != 1).any():
                at = int(np.argmax(block.df))
                raise CollectionError(f"{self.path}: {block.df[at]} documents have the id {block.terms[at].decode()!r}")
            docids[block.docs] = [term.decode() for term in block.terms]
        listed: list[str] = docids.tolist()
        if None in listed:
            raise CollectionError(f"{self.path}: a document has no id: {BUILD}")
        return listed

    def postings_blocks(self) -> Iterator[PostingsBlock]:
        """The postings of the field ``contents``, all segments merged, in blocks of about two million positions.

        Raises
        ------
        CollectionError
            As `check_exportable`.
        """
        self.check_exportable()
        blocks = bulk.postings_blocks(calls_java(self._terms)("contents"))
        while (block := calls_java(next)(blocks, None)) is not None:
            yield block

    def _refuse_deletions(self) -> None:
        if self._reader().hasDeletions():
            raise CollectionError(f"{self.path} has deleted documents: {BUILD}")

    def _java_analyzer(self) -> Any:
        if self._analyzer is None:
            self._analyzer = java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        return self._analyzer

    def _reader(self) -> Any:
        """The index's ``DirectoryReader``: opened once, of the commit that was there when `self` was made."""
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
        return self._opened

    def _open(self) -> Any:
        try:
            reader = java_class("org.apache.lucene.index.DirectoryReader").open(bulk.directory(self.path))
        except pyjnius().JavaException as error:
            raise CollectionError(
                f"{self.path} cannot be opened; perhaps another Pyserini wrote it ({reason(error)}): {BUILD}"
            ) from error
        if _fingerprint(self.path) != self._fingerprint:
            raise CollectionError(f"{self.path} has changed since it was opened: open it again")
        return pyjnius().cast("org.apache.lucene.index.IndexReader", reader)

    def _terms(self, field: str) -> Any:
        terms = java_class("org.apache.lucene.index.MultiTerms").getTerms(self._reader(), field)
        if terms is None:
            raise CollectionError(f"{self.path} has no indexed field {field!r}: {BUILD}")
        return terms


@dataclass(frozen=True)
class _Source(Composable, ABC):
    """A source over a LuceneIndex, with an ``IndexSearcher`` of its own, since that holds the similarity."""

    index: LuceneIndex
    k: int = 1000

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ParameterError(f"k is {self.k}: it must be at least 1")

    @calls_java
    def __call__(self, query: Query) -> Ranking:
        """The `k` best documents; of equal scores the lesser docid first. A query without index terms finds none."""
        try:
            generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
            words = generator.buildQuery("contents", self.index._java_analyzer(), query.text)
            docids, scores = bulk.hits(self._searcher, words, self.k)
        except pyjnius().JavaException as error:
            raise CollectionError(f"query {query.qid} on {self.index.path}: {reason(error)}") from error
        return Ranking(query.qid, query.text, tuple(docids), np.array(scores))

    @cached_property
    def _searcher(self) -> Any:
        searcher = java_class("org.apache.lucene.search.IndexSearcher")(self.index._reader())
        searcher.setSimilarity(self._similarity())
        return searcher

    @abstractmethod
    def _similarity(self) -> Any: ...


@dataclass(frozen=True)
class BM25(_Source):
    """BM25 as Lucene and Anserini have it (without the constant factor k1 + 1).

    Parameters
    ----------
    index : where to search.
    k : the number of documents to return, at least 1.
    k1 : saturation of the term frequency, at least 0.
    b : normalisation by document length, 0 to 1.
    """

    k1: float = 0.9
    b: float = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.k1) and self.k1 >= 0):
            raise ParameterError(f"k1 is {self.k1}: it must be finite and at least 0")
        if not 0 <= self.b <= 1:
            raise ParameterError(f"b is {self.b}: it must be between 0 and 1")

    def _similarity(self) -> Any:
        return java_class("org.apache.lucene.search.similarities.BM25Similarity")(self.k1, self.b)


@dataclass(frozen=True)
class QueryLikelihood(_Source):
    """Query likelihood with Dirichlet smoothing, as Lucene has it (a term's score is never below 0).

    Parameters
    ----------
    index : where to search.
    k : the number of documents to return, at least 1.
    mu : the smoothing parameter, above 0.
    """

    mu: float = 1000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.mu) and self.mu > 0):
            raise ParameterError(f"mu is {self.mu}: it must be finite and above 0")

    def _similarity(self) -> Any:
        return java_class("org.apache.lucene.search.similarities.LMDirichletSimilarity")(self.mu)


def _fingerprint(path: Path) -> str:
    commits = [file for file in path.glob("segments_*") if re.fullmatch("segments_[0-9a-z]+", file.name)]
    if not commits:
        raise CollectionError(f"{path} is not a Lucene index (it holds no segments_N file): {BUILD}")
    newest = max(commits, key=lambda file: int(file.name.removeprefix("segments_"), 36))
    return hashlib.sha256(newest.name.encode() + newest.read_bytes()).hexdigest()
