"""Query expansion by RM3 as Anserini computes it, in single precision: search, expand the query, search again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from greylag.base import ParameterError, Query, Ranking, Source, check_counts
from greylag.index.lucene.lucene_index import BM25, QueryLikelihood

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

_MAX_DF_SHARE = np.float32(0.1)
_WORD = re.compile("[a-z0-9]{2,20}")


@dataclass(frozen=True)
class RM3Search(Source):
    """Expands the query by its top documents, and searches the whole index with it, as Anserini and Pyserini do.

    A term's weight in the new query is w P(t|Q) + (1 - w) P(t|R): w is `original_query_weight`, P(t|Q) the share of t
    among the query's terms, and P(t|R) the relevance model of the `fb_docs` documents that `first` ranks highest, cut
    to `fb_terms` terms. A document's score is the sum of the weights times the terms' scores by `first`. Documents'
    terms are read from the `greylag.index.PositionalIndex`, which is exported if it was not before.

    P(t|R) weighs documents by their scores, and counts only the `fb_terms` most frequent terms of each, of those of 2
    to 20 letters a-z and digits in at most a tenth of the documents, as Anserini's ``Rm3Reranker`` in single precision.
    `greylag.rankers.RM3Stage` is another RM3: it reranks a first stage, by RM1 of all terms in at most a tenth of the
    documents, which weighs documents by the geometric mean of the smoothed P(t|D) of the query's terms.

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
    """

    first: BM25 | QueryLikelihood
    _: KW_ONLY
    fb_terms: int = 10
    fb_docs: int = 10
    original_query_weight: float = 0.5

    def __post_init__(self) -> None:
        check_counts(fb_terms=self.fb_terms, fb_docs=self.fb_docs)
        if not 0 <= self.original_query_weight <= 1:
            raise ParameterError(f"original_query_weight is {self.original_query_weight}: it must be between 0 and 1")

    def __call__(self, query: Query, /) -> Ranking:
        """Return the top documents for the expanded query; ties are broken by docid, ascending."""
        return self.first.search(query, weights=self.expand(query))

    def expand(self, query: Query) -> dict[str, float]:
        """Return the terms of the expanded query and their weights."""
        top = self.first.search(query, k=self.fb_docs)
        documents = frequent_terms(self._positional, top.docids, self.fb_terms)
        model = relevance_model(documents, top.scores, self.fb_terms)
        return interpolate(self.first.index.analyze(query.text), model, self.original_query_weight)

    @cached_property
    def _positional(self) -> PositionalIndex:
        from greylag.index.positional import PositionalIndex  # imports Numba, which plain searches do not need

        return PositionalIndex.from_lucene(self.first.index)


def frequent_terms(index: PositionalIndex, docids: Sequence[str], fb_terms: int) -> list[dict[str, float]]:
    """Return each document's `fb_terms` most frequent terms, with frequencies; ties are broken by term, ascending."""
    # Only terms of 2 to 20 characters of a-z and 0-9 are used that are in at most a tenth of the documents.
    matrix, df = index.term_frequencies(index.documents(docids)), index.document_frequencies
    frequent = []
    for first, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        terms, tfs = matrix.indices[first:end], matrix.data[first:end]
        # In single precision, as Anserini compares it: a term at the limit would fall on the other side.
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


def _shares(values: Mapping[str, float]) -> dict[str, float]:
    """Divide values by their sum; return none if it is 0."""
    total = sum(map(float, values.values()))
    return {term: float(np.float32(float(value) / total)) for term, value in values.items() if total}
