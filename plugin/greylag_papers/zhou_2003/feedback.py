"""Reranking by judged documents, beside manifold ranking with feedback: Rocchio's method, and the relevance model.

A query without a judged relevant document keeps its ranking, and documents outside the index keep their ranks.

References
----------
Rocchio, Relevance feedback in information retrieval, in: The SMART Retrieval System, 1971.
Lavrenko & Croft, Relevance-based language models, SIGIR 2001.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from greylag import PositionalIndex
from greylag.errors import ParameterError
from greylag.features import FeatureExtractor, FeatureParameters, FeatureSpec
from greylag.pipeline import Stage
from greylag.ranking import FloatArray, IntArray, Ranking

Feedback = Mapping[str, Mapping[str, int]]
"""Grades of judged documents by qid and docid, in the ranking or not; relevant from grade 1."""
FEATURES = (FeatureSpec("FI", "term", "LM"), FeatureSpec("FI", "expansion", "LM"))
MAX_DF_SHARE = 0.1  # as of the relevance model's terms


def judged_documents(index: PositionalIndex, feedback: Feedback, qid: str) -> tuple[list[str], list[str]]:
    """Return the judged relevant documents of a query and the others, in ascending order; all are in the index."""
    grades = dict(sorted(feedback.get(qid, {}).items()))
    known = [docid for docid, has in zip(grades, index.knows([*grades]), strict=True) if has]
    return [d for d in known if grades[d] > 0], [d for d in known if grades[d] <= 0]


@dataclass(frozen=True)
class Rocchio(Stage):
    """Ranks documents by a query that is moved by judged documents.

    The vector of the new query is q + beta mean(R) - gamma mean(N), where q, the relevant documents R and the others N
    are vectors of term frequencies of unit length. Terms of R and N in over a tenth of the documents are left out, as
    are negative weights, and the `terms` highest weights are kept. A document's score is the sum of the weights of the
    query's terms times their BM25 weights in the document.
    """

    needs = frozenset({"index"})
    by_query = ("feedback",)

    index: PositionalIndex
    feedback: Feedback
    _: KW_ONLY
    beta: float = 0.75
    gamma: float = 0.15
    terms: int = 100
    parameters: FeatureParameters = FeatureParameters()  # k1 and b of BM25

    def __post_init__(self) -> None:
        if not (0 <= self.beta < np.inf and 0 <= self.gamma < np.inf and self.terms >= 1):
            raise ParameterError(f"beta, gamma >= 0, terms >= 1: not {self.beta}, {self.gamma}, {self.terms}")

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank the documents of one query."""
        relevant, others = judged_documents(self.index, self.feedback, ranking.qid)
        if not relevant:
            return ranking
        ranking.check_query(type(self).__name__)
        terms = self.index.query_terms(ranking.query)
        moved = np.bincount(terms[terms >= 0], minlength=self.index.n_terms).astype(np.float64)
        # Unit length, as the documents' vectors have, or beta and gamma would depend on the length of the query.
        moved /= max(float(np.linalg.norm(moved)), 1.0)
        moved += self.beta * self._centroid(relevant)
        if others:
            moved -= self.gamma * self._centroid(others)
        heaviest = np.argsort(-moved, kind="stable")[: self.terms]
        weights = np.zeros_like(moved)
        weights[heaviest] = np.maximum(moved[heaviest], 0.0)

        def rerank(known: Ranking) -> Ranking:
            return known.rescore(self._scores(self.index.documents(known.docids), weights))

        return self.rerank_known(ranking, self.index.knows(ranking.docids), rerank)

    def _centroid(self, docids: list[str]) -> FloatArray:
        """Compute the mean of the documents' vectors."""
        frequencies = self.index.term_frequencies(self.index.documents(docids))
        common = self.index.document_frequencies > MAX_DF_SHARE * self.index.n_documents
        # Zero rather than removed: rows keep their entries, by which they are repeated below.
        frequencies.data[common[frequencies.indices]] = 0.0
        rows = np.repeat(np.arange(len(docids)), np.diff(frequencies.indptr))
        norms = np.sqrt(np.bincount(rows, weights=frequencies.data**2, minlength=len(docids)))
        values = frequencies.data / np.maximum(norms, 1.0)[rows] / len(docids)
        return np.asarray(np.bincount(frequencies.indices, weights=values, minlength=self.index.n_terms))

    def _scores(self, numbers: IntArray, weights: FloatArray) -> FloatArray:
        """Sum the documents' BM25 weights times `weights`, in the order of terms."""
        frequencies, (k1, b) = self.index.term_frequencies(numbers), (self.parameters.k1, self.parameters.b)
        df = self.index.document_frequencies[frequencies.indices]
        idf = np.log1p((self.index.n_documents - df + 0.5) / (df + 0.5))
        norms = k1 * (1 - b + b * self.index.document_lengths[numbers] / self.index.average_length)
        rows = np.repeat(np.arange(len(numbers)), np.diff(frequencies.indptr))
        saturated = (k1 + 1) * frequencies.data / (frequencies.data + norms[rows])
        products = weights[frequencies.indices] * idf * saturated
        return np.asarray(np.bincount(rows, weights=products, minlength=len(numbers)))


@dataclass(frozen=True)
class RelevanceModelRanker(Stage):
    """Ranks documents by the query, interpolated with the relevance model of the judged relevant documents.

    The score is w/|Q| sum over the query terms of log P(t|D) + (1 - w) sum over the expansion terms of
    P(t|R) log P(t|D), where w is `query_weight`, P(t|D) the Dirichlet-smoothed language model, and P(t|R) the relevance
    model of the relevant documents instead of the top ones. Documents that were judged not relevant have no influence.
    """

    needs = frozenset({"index"})
    by_query = ("feedback",)

    index: PositionalIndex
    feedback: Feedback
    _: KW_ONLY
    query_weight: float = 0.5
    parameters: FeatureParameters = FeatureParameters()  # mu of the language model, and fb_terms

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank the documents of one query."""
        relevant, _ = judged_documents(self.index, self.feedback, ranking.qid)
        if not relevant:
            return ranking
        extract = FeatureExtractor(self.index, FEATURES, replace(self.parameters, fb_docs=len(relevant)))
        weight = self.query_weight / max(1, len(self.index.query_terms(ranking.query)))

        def rerank(known: Ranking) -> Ranking:
            # Expansion features are estimated on the top of a ranking, so the relevant documents are put there.
            first = tuple(dict.fromkeys((*relevant, *known.docids)))
            by_query, by_model = extract(Ranking(known.qid, known.query, first, np.zeros(len(first)))).T
            combined = weight * by_query + (1.0 - self.query_weight) * by_model
            by_docid = dict(zip(first, combined.tolist(), strict=True))
            return known.rescore([by_docid[docid] for docid in known.docids])

        return self.rerank_known(ranking, self.index.knows(ranking.docids), rerank)
