"""The query that RM3 makes of a query and of its top documents, computed as Anserini does, in single precision.

References
----------
Abdul-Jaleel et al., UMass at TREC 2004: novelty and HARD, TREC 2004.
Anserini, ``io.anserini.rerank.lib.Rm3Reranker``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from greylag.lucene.jvm import calls_java, java_class
from greylag.ranking import IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_COMMON = np.float32(0.1)
_WORD = re.compile("[a-z0-9]{2,20}")


class Terms(Protocol):
    """What RM3 reads: documents' terms, numbered in ascending order. `greylag.index.PositionalIndex` has them."""

    @property
    def n_documents(self) -> int:
        """The number of documents."""

    @property
    def document_frequencies(self) -> IntArray:
        """The number of documents of each term."""

    def documents(self, docids: Sequence[str]) -> IntArray:
        """The numbers of documents."""

    def term(self, term: int) -> str:
        """The term with this number."""

    def term_frequencies(self, documents: Sequence[int] | IntArray) -> csr_matrix:
        """Term frequencies, a row a document, in ascending order of terms."""


def frequent_terms(index: Terms, docids: Sequence[str], fb_terms: int) -> list[dict[str, float]]:
    """The `fb_terms` most frequent terms of each document, with their frequencies; ties are broken by term, ascending.

    Only terms of 2 to 20 characters of a-z and 0-9 are used that are in at most a tenth of the documents.
    """
    matrix, df = index.term_frequencies(index.documents(docids)), index.document_frequencies
    found = []
    for first, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        terms, tfs = matrix.indices[first:end], matrix.data[first:end]
        rare = np.flatnonzero(df[terms].astype(np.float32) / np.float32(index.n_documents) <= _COMMON)
        ordered = rare[np.argsort(-tfs[rare], kind="stable")]
        words = ((index.term(int(terms[place])), float(tfs[place])) for place in ordered)
        found.append(dict(islice((pair for pair in words if _WORD.fullmatch(pair[0])), fb_terms)))
    return found


def relevance_model(
    documents: Iterable[Mapping[str, float]], scores: Iterable[float], fb_terms: int
) -> dict[str, float]:
    """The `fb_terms` most probable terms of the relevance model; ties are broken by term, ascending.

    P(t|R) is proportional to the sum over D of P(t|D) score(D), where P(t|D) is the share of t in the document.

    Parameters
    ----------
    documents : iterable of mappings of str to float
        The result of `frequent_terms`.
    scores : iterable of float
        The documents' scores.
    fb_terms : int >= 1

    Returns
    -------
    dict of str to float
        The terms' probabilities, which sum to 1. Empty if all weights are 0, as query likelihood may score any number
        of documents 0.
    """
    weights: dict[str, Any] = {}
    for frequencies, score in zip(documents, scores, strict=True):
        total = np.float32(sum(frequencies.values()))
        for term, tf in frequencies.items():
            weights[term] = weights.get(term, np.float32(0)) + np.float32(tf) / total * np.float32(score)
    return _shares(dict(sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:fb_terms]))


def interpolate(terms: Sequence[str], model: Mapping[str, float], original_query_weight: float) -> dict[str, float]:
    """The expanded query: the weight w P(t|Q) + (1 - w) P(t|R) of each term, in ascending order of terms.

    Parameters
    ----------
    terms : sequence of str
        The terms of the query; P(t|Q) is the share of t among them.
    model : mapping of str to float
        P(t|R).
    original_query_weight : float in [0, 1]
        w.
    """
    query, weight = _shares(Counter(terms)), np.float32(original_query_weight)
    expanded = {}
    for term in sorted({*query, *model}):
        own = float(weight * np.float32(query.get(term, 0.0)))
        expanded[term] = float(np.float32(own + (1.0 - float(weight)) * model.get(term, 0.0)))
    return expanded


@calls_java
def lucene_query(weights: Mapping[str, float]) -> Any:
    """The Lucene query for documents with any of the terms, weighted."""
    term, term_query, boost = [
        java_class(f"org.apache.lucene.{name}") for name in ("index.Term", "search.TermQuery", "search.BoostQuery")
    ]
    builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
    should = java_class("org.apache.lucene.search.BooleanClause$Occur").SHOULD
    for text, weight in weights.items():
        builder.add(boost(term_query(term("contents", text)), weight), should)
    return builder.build()


def _shares(values: Mapping[str, float]) -> dict[str, float]:
    """The values divided by their sum; none if it is 0."""
    total = sum(map(float, values.values()))
    return {term: float(np.float32(float(value) / total)) for term, value in values.items() if total}
