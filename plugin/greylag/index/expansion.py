"""Query expansion as Anserini computes it, in single precision: search, expand the query, search again.

Terms are chosen from the documents of the first search.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from greylag.core.checks import check_counts, check_non_negative
from greylag.errors import ParameterError
from greylag.index.lucene.lucene_index import BM25, QueryLikelihood
from greylag.pipeline import Source
from greylag.ranking import Query, Ranking

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

_MAX_DF_SHARE = np.float32(0.1)
_WORD = re.compile("[a-z0-9]{2,20}")


@dataclass(frozen=True)
class ExpandedSearch(Source, ABC):
    """Searches with a query that the top documents of a first search expand."""

    first: BM25 | QueryLikelihood
    _: KW_ONLY
    fb_terms: int = 10
    fb_docs: int = 10

    def __post_init__(self) -> None:
        check_counts(fb_terms=self.fb_terms, fb_docs=self.fb_docs)

    def __call__(self, query: Query, /) -> Ranking:
        """Return the top documents for the expanded query; ties are broken by docid, ascending."""
        return self.first.search(query, weights=self.expand(query))

    @abstractmethod
    def expand(self, query: Query) -> dict[str, float]:
        """Return the terms of the expanded query and their weights."""

    @cached_property
    def _positional(self) -> PositionalIndex:
        from greylag.index.positional import PositionalIndex  # imports Numba, which plain searches do not need

        return PositionalIndex.from_lucene(self.first.index)


@dataclass(frozen=True, kw_only=True)
class RM3Search(ExpandedSearch):
    """Expands the query by its top documents, and searches the whole index with it, as Anserini and Pyserini do.

    A term's weight in the new query is w P(t|Q) + (1 - w) P(t|R): w is `original_query_weight`, P(t|Q) the share of t
    among the query's terms, and P(t|R) the relevance model of the `fb_docs` documents that `first` ranks highest, cut
    to `fb_terms` terms. A document's score is the sum of the weights times the terms' scores by `first`. Documents'
    terms are read from the `greylag.index.PositionalIndex`, which is exported if it was not before.

    greylag has three kinds of RM3. They differ in what they rank and in how P(t|R) weighs the feedback documents:

    - `RM3Search`, a source, ranks the whole index. P(t|R) weighs documents by their scores, and counts only the
      `fb_terms` most frequent terms of each, of those of 2 to 20 letters a-z and digits in at most a tenth of the
      documents. This is Anserini's ``Rm3Reranker``, in single precision.
    - `greylag.rankers.RM3Stage`, a stage, reranks a first stage. P(t|R) is RM1 of all terms in at most a tenth of
      the documents, which weighs documents by the geometric mean of the smoothed P(t|D) of the query's terms
      (`greylag.features.cliques.relevance_model`). The features FI/expansion/BM25 and FI/expansion/LM are made of it.
    - `greylag.manifold.RelevanceModelRanker`, a stage, is the same with judged documents instead of the top ones.

    Parameters
    ----------
    first : BM25 or QueryLikelihood
        The search; the result has its `k` documents.
    fb_terms, fb_docs : int, at least 1, default 10
        Number of terms and of documents.
    original_query_weight : float in [0, 1], default 0.5
        w.

    References
    ----------
    Abdul-Jaleel et al., UMass at TREC 2004: novelty and HARD, TREC 2004.
    Anserini, ``io.anserini.rerank.lib.Rm3Reranker``.

    Examples
    --------
    >>> RM3Search(LuceneIndex("index").bm25(100), fb_terms=20)(Query("1", "wind power"))  # doctest: +SKIP
    """

    original_query_weight: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.original_query_weight <= 1:
            raise ParameterError(f"original_query_weight is {self.original_query_weight}: it must be between 0 and 1")

    def expand(self, query: Query) -> dict[str, float]:
        """Return the terms of the expanded query and their weights."""
        top = self.first.search(query, k=self.fb_docs)
        documents = frequent_terms(self._positional, top.docids, self.fb_terms)
        model = relevance_model(documents, top.scores, self.fb_terms)
        return interpolate(self.first.index.analyze(query.text), model, self.original_query_weight)


@dataclass(frozen=True, kw_only=True)
class RocchioSearch(ExpandedSearch):
    """Moves the query towards its top documents, and searches the whole index with it, as Anserini and Pyserini do.

    A term's weight in the new query is its component of alpha q + beta r - gamma n, if that is above 0. q is the vector
    of the frequencies of the query's terms. r and n are the means of such vectors of the `fb_docs` top documents and of
    the last `bottom_fb_docs` that `first` finds, cut to the `fb_terms` and `bottom_fb_terms` highest components. All
    vectors have unit length. Documents' terms have 2 to 20 characters and are in at most a tenth of the documents. A
    document's score is the sum of the weights times the terms' scores by `first`.

    The rankings are those of Pyserini's ``set_rocchio`` where `first` finds at least `fb_docs` documents; with gamma
    above 0, those of ``use_negative=True``. `greylag.manifold.Rocchio`, a stage, takes judged documents instead of the
    top and the last ones.

    Parameters
    ----------
    first : BM25 or QueryLikelihood
        The search; the result has its `k` documents.
    fb_terms, fb_docs : int, at least 1, default 10
        Number of terms and of top documents.
    bottom_fb_terms, bottom_fb_docs : int, at least 1, default 10
        Number of terms and of last documents, which only count if `gamma` is above 0.
    alpha, beta, gamma : float, at least 0, default 1, 0.75 and 0
        The weights of the query, of the top documents and of the last ones.

    References
    ----------
    Rocchio, Relevance feedback in information retrieval, in: The SMART Retrieval System, 1971.
    Anserini, ``io.anserini.rerank.lib.RocchioReranker``.

    Examples
    --------
    >>> RocchioSearch(LuceneIndex("index").bm25(100), fb_terms=20)(Query("1", "wind power"))  # doctest: +SKIP
    """

    bottom_fb_terms: int = 10
    bottom_fb_docs: int = 10
    alpha: float = 1.0
    beta: float = 0.75
    gamma: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(bottom_fb_terms=self.bottom_fb_terms, bottom_fb_docs=self.bottom_fb_docs)
        check_non_negative(alpha=self.alpha, beta=self.beta, gamma=self.gamma)

    def expand(self, query: Query) -> dict[str, float]:
        """Return the terms of the expanded query and their weights."""
        top = self.first.search(query, k=self.fb_docs).docids
        own = Counter(self.first.index.analyze(query.text))
        vectors = [(self.alpha, _unit_vector(own)), (self.beta, mean_vector(self._positional, top, self.fb_terms))]
        if self.gamma:
            # The lowest of the k documents, the lowest first.
            last = self.first(query).docids[: -self.bottom_fb_docs - 1 : -1]
            vectors.append((-self.gamma, mean_vector(self._positional, last, self.bottom_fb_terms)))
        # In the order of terms, so that equal weights are summed and sent to Lucene in one order.
        moved = dict.fromkeys(sorted({term for _, vector in vectors for term in vector}), np.float32(0))
        for factor, vector in vectors:
            for term, value in vector.items():
                moved[term] += np.float32(factor) * np.float32(value)
        return {term: float(weight) for term, weight in moved.items() if weight > 0}


EXPANSIONS: Mapping[str, type[RM3Search | RocchioSearch]] = {"rm3": RM3Search, "rocchio": RocchioSearch}
"""Expansions of queries by name: what follows the plus in the spelling of a search."""


def frequent_terms(index: PositionalIndex, docids: Sequence[str], fb_terms: int) -> list[dict[str, float]]:
    """Return each document's `fb_terms` most frequent terms, with frequencies; ties are broken by term, ascending."""
    # Only terms of 2 to 20 characters of a-z and 0-9 are used that are in at most a tenth of the documents.
    matrix, df = index.term_frequencies(index.documents(docids)), index.document_frequencies
    frequent = []
    for first, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        terms, tfs = matrix.indices[first:end], matrix.data[first:end]
        rare = np.flatnonzero(df[terms].astype(np.float32) / np.float32(index.n_documents) <= _MAX_DF_SHARE)
        ordered = rare[np.argsort(-tfs[rare], kind="stable")]  # terms are in ascending order
        words = zip(index.terms_of(terms[ordered]), tfs[ordered].tolist(), strict=True)
        frequent.append(dict(islice((pair for pair in words if _WORD.fullmatch(pair[0])), fb_terms)))
    return frequent


def relevance_model(
    documents: Iterable[Mapping[str, float]], scores: Iterable[float], fb_terms: int
) -> dict[str, float]:
    """Estimate the `fb_terms` most probable terms of the relevance model; ties are broken by term, ascending."""
    # P(t|R) is proportional to the sum over D of P(t|D) score(D), where P(t|D) is the share of t among the frequent
    # terms of D. The model is empty if all weights are 0, as query likelihood may score any number of documents 0.
    weights: dict[str, Any] = {}
    for frequencies, score in zip(documents, scores, strict=True):
        total = np.float32(sum(frequencies.values()))
        for term, tf in frequencies.items():
            weights[term] = weights.get(term, np.float32(0)) + np.float32(tf) / total * np.float32(score)
    return _shares(dict(sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:fb_terms]))


def interpolate(terms: Sequence[str], model: Mapping[str, float], original_query_weight: float) -> dict[str, float]:
    """Compute the expanded query: the weight w P(t|Q) + (1 - w) P(t|R) of each term, in ascending order of terms."""
    query, weight = _shares(Counter(terms)), np.float32(original_query_weight)
    expanded = {}
    for term in sorted({*query, *model}):
        # As Anserini computes it: the weights in single precision, their sum in double, and rounded again.
        from_query = float(weight * np.float32(query.get(term, 0.0)))
        expanded[term] = float(np.float32(from_query + (1.0 - float(weight)) * model.get(term, 0.0)))
    return expanded


def mean_vector(index: PositionalIndex, docids: Sequence[str], fb_terms: int) -> dict[str, float]:
    """Return the `fb_terms` highest components of the mean of the documents' unit vectors, scaled to unit length."""
    # Components are frequencies of terms of 2 to 20 characters, as Java counts them, in at most a tenth of the
    # documents. Ties are broken by term, in Java's order.
    matrix = index.term_frequencies(index.documents(docids))
    terms, columns = np.unique(matrix.indices, return_inverse=True)
    words = index.terms_of(terms)
    units = [_utf16(word) for word in words]
    rare = index.document_frequencies[terms].astype(np.float32) / np.float32(index.n_documents) <= _MAX_DF_SHARE
    used = rare & np.array([2 <= len(word) // 2 <= 20 for word in units], dtype=bool)
    frequencies, total = np.where(used[columns], matrix.data, 0.0), np.zeros(len(terms), np.float32)
    for start, end in pairwise(matrix.indptr):
        if norm := np.float32(np.linalg.norm(frequencies[start:end])):
            total[columns[start:end]] += frequencies[start:end].astype(np.float32) / norm
    total /= np.float32(max(len(docids), 1))
    highest = sorted(np.flatnonzero(used).tolist(), key=lambda number: (-total[number], units[number]))[:fb_terms]
    return _unit_vector({words[number]: total[number] for number in highest})


def _utf16(term: str) -> bytes:
    """Return the characters of a term as Java has them, in its order."""
    return term.encode("utf-16-be")


def _shares(values: Mapping[str, float]) -> dict[str, float]:
    """Divide values by their sum; return none if it is 0."""
    return _divided(values, sum(map(float, values.values())))


def _unit_vector(values: Mapping[str, float]) -> dict[str, float]:
    """Divide values by their Euclidean norm."""
    return _divided(values, math.hypot(*map(float, values.values())))


def _divided(values: Mapping[str, float], divisor: float) -> dict[str, float]:
    return {term: float(np.float32(float(value) / divisor)) for term, value in values.items() if divisor}
