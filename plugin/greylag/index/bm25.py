"""BM25 without Java, from a `PositionalIndex`, with Lucene's arithmetic."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.core.checks import check_counts
from greylag.errors import CollectionError, ParameterError
from greylag.index.tables import DAMAGE_ERROR, Int32Array
from greylag.pipeline import Source
from greylag.ranking import IntArray, Query, Ranking

EXACT_LENGTHS = 24  # below which Lucene stores a document's length exactly; of greater ones, four binary digits


@dataclass(frozen=True)
class PositionalBM25(Source):
    """The source of `PositionalIndex.bm25`, with the scores of `greylag.index.lucene.BM25` in every digit."""

    index: Any  # a PositionalIndex, whose module imports this one
    _: KW_ONLY
    k: int = 1000
    k1: float = 0.9
    b: float = 0.4

    def __post_init__(self) -> None:
        check_counts(k=self.k)
        if not (math.isfinite(self.k1) and self.k1 >= 0 and 0 <= self.b <= 1):
            raise ParameterError(f"k1 is {self.k1} and b {self.b}: k1 must be at least 0 and finite, b from 0 to 1")

    def __call__(self, query: Query, /) -> Ranking:
        """Return the top `k` documents; ties are broken by docid, ascending. A query without index terms finds none."""
        index, scores = self.index, np.zeros(self.index.n_documents)
        counts = Counter(number for number in index.query_terms(query.text).tolist() if number >= 0)
        for term, count in counts.items():
            documents, tfs = index.parts.postings(term)
            df = np.float64(len(documents))
            idf = np.float32(np.log(1 + (self._n - df + 0.5) / (df + 0.5)))
            # Every step in the precision that Lucene has there: single for terms, double for the sum, single for the
            # score.
            weight = np.float32(count) * idf
            norms = np.float32(1) + tfs.astype(np.float32) * self._inverse_norms[documents]
            scores[documents] += weight - weight / norms
        # Every term of the query adds more than 0.
        documents = np.flatnonzero(scores)
        values = scores[documents].astype(np.float32)
        if len(documents) > self.k:
            # All that tie with the k-th score stay, since docids decide between them.
            least = np.partition(values, -self.k)[-self.k]
            documents, values = documents[values >= least], values[values >= least]
        best = np.lexsort((self._places[documents], -values))[: self.k]
        docids = tuple(index.docids_of(documents[best]))
        return Ranking(query.qid, query.text, docids, values[best].astype(np.float64))

    @cached_property
    def _places(self) -> Int32Array:
        """The place of each document in the ascending order of docids, shape (N,)."""
        order: Int32Array = self.index.docid_order
        # As unsigned numbers, the negative ones are too large. A number that occurs twice leaves a gap.
        counts = np.bincount(order[order.view(np.uint32) < len(order)], minlength=len(order))
        if not counts.all():
            raise CollectionError(DAMAGE_ERROR)
        places = np.empty_like(order)
        places[order] = np.arange(len(places), dtype=places.dtype)
        return places

    @cached_property
    def _n(self) -> int:
        """Number of documents that have a token."""
        return int(np.count_nonzero(self.index.document_lengths))

    @cached_property
    def _inverse_norms(self) -> NDArray[np.float32]:
        """1 / (k1 (1 - b + b |D| / avgdl)) of each document, shape (N,)."""
        k1, b, one = np.float32(self.k1), np.float32(self.b), np.float32(1)
        # Lucene keeps a length in a byte; with exact lengths, scores would differ from its own.
        lengths = stored_lengths(np.asarray(self.index.document_lengths, dtype=np.int64)).astype(np.float32)
        with np.errstate(divide="ignore"):
            norms: NDArray[np.float32] = one / (k1 * ((one - b) + b * lengths / np.float32(self.index.average_length)))
        return norms


def stored_lengths(lengths: IntArray) -> IntArray:
    """Round lengths as Lucene stores them in a byte (SmallFloat.intToByte4, and back), shape (N,)."""
    excess = np.maximum(lengths - EXACT_LENGTHS, 0)
    shift = np.maximum(np.frexp(excess.astype(np.float64))[1] - 4, 0)
    return np.where(lengths < EXACT_LENGTHS, lengths, EXACT_LENGTHS + (excess >> shift << shift))
