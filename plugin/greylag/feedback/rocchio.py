"""Rocchio's method: the query moves towards the relevant documents and away from the others.

References
----------
Rocchio, Relevance feedback in information retrieval, in: The SMART Retrieval System, 1971.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.sparse import csr_matrix

from greylag.errors import ParameterError
from greylag.features import CollectionStatistics, FeatureParameters
from greylag.features.expansion import COMMON
from greylag.features.weighting import BM25
from greylag.feedback.judged import Feedback, judged_documents
from greylag.index.positional import PositionalIndex
from greylag.missing_documents import rerank_known
from greylag.pipeline import Stage
from greylag.ranking import FloatArray, IntArray, Ranking


@dataclass(frozen=True)
class Rocchio(Stage):
    """Ranks documents by a query that is moved by judged documents.

    The vector of the new query is q + beta mean(R) - gamma mean(N), where q, the relevant documents R and the others N
    are vectors of term frequencies of unit length. Terms of R and N in over a tenth of the documents are left out, as
    are negative weights, and the `terms` highest weights are kept. A document's score is the sum of the weights of the
    query's terms times their BM25 weights in the document. Anserini's Rocchio, which takes the top documents as
    relevant, is built in the same way.

    A query without a judged relevant document keeps its ranking, and documents outside the index keep their ranks.

    Parameters
    ----------
    index : PositionalIndex
    feedback : mapping of qid to docid to grade
        Judged documents, in the ranking or not; relevant from grade 1.
    beta, gamma : float >= 0, default 0.75 and 0.15
        Weights of the relevant and of the other judged documents.
    terms : int >= 1, default 100
        Number of terms of the new query.
    parameters : FeatureParameters
        `k1`, `b` and `idf` of BM25.
    """

    index: PositionalIndex
    feedback: Feedback
    _: KW_ONLY
    beta: float = 0.75
    gamma: float = 0.15
    terms: int = 100
    parameters: FeatureParameters = FeatureParameters()

    def __post_init__(self) -> None:
        for name in ("beta", "gamma"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ParameterError(f"{name} is {getattr(self, name)}; it must be a finite number >= 0")
        if self.terms < 1:
            raise ParameterError(f"terms is {self.terms}; it must be at least 1")

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank the documents of one query."""
        relevant, others = judged_documents(self.index, self.feedback, ranking.qid)
        if not relevant:
            return ranking
        moved = self._query(ranking.query)
        moved += self.beta * self._centroid(relevant)
        if others:
            moved -= self.gamma * self._centroid(others)
        kept = np.argsort(-moved, kind="stable")[: self.terms]
        weights = np.zeros_like(moved)
        weights[kept] = np.maximum(moved[kept], 0.0)

        def rerank(known: Ranking) -> Ranking:
            return known.rescore(_row_sums(self._bm25(self.index.documents(known.docids)), weights))

        return rerank_known(ranking, self.index.documents(ranking.docids) >= 0, rerank, stage="Rocchio")

    def _query(self, text: str) -> FloatArray:
        terms = self.index.query_terms(text)
        counts = np.bincount(terms[terms >= 0], minlength=self.index.n_terms).astype(np.float64)
        return counts / max(float(np.linalg.norm(counts)), 1.0)

    def _centroid(self, docids: tuple[str, ...]) -> FloatArray:
        """The mean of the documents' vectors."""
        frequencies = self.index.term_frequencies(self.index.documents(docids))
        common = self.index.document_frequencies > COMMON * self.index.n_documents
        frequencies.data[common[frequencies.indices]] = 0.0
        rows = np.repeat(np.arange(len(docids)), np.diff(frequencies.indptr))
        norms = np.sqrt(np.bincount(rows, weights=frequencies.data**2, minlength=len(docids)))
        values = frequencies.data / np.maximum(norms, 1.0)[rows] / len(docids)
        mean = np.bincount(frequencies.indices, weights=values, minlength=self.index.n_terms)
        return np.asarray(mean, dtype=np.float64)

    def _bm25(self, numbers: IntArray) -> csr_matrix:
        """The BM25 weights of the documents' terms."""
        frequencies = self.index.term_frequencies(numbers)
        weighting = BM25(CollectionStatistics.of(self.index), self.parameters)
        terms, df = frequencies.indices, self.index.document_frequencies
        lengths = weighting.document(self.index.document_lengths[numbers])
        saturated = frequencies.data / (frequencies.data + np.repeat(lengths, np.diff(frequencies.indptr)))
        frequencies.data = weighting.clique(df[terms], df[terms]) * saturated
        return frequencies


def _row_sums(matrix: csr_matrix, weights: FloatArray) -> FloatArray:
    """The product of a sparse matrix and a vector, added in the order of terms."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    sums = np.bincount(rows, weights=matrix.data * weights[matrix.indices], minlength=matrix.shape[0])
    return np.asarray(sums, dtype=np.float64)
