"""RM3 with judged documents: the relevance model is estimated on documents that are known to be relevant.

References
----------
Lavrenko & Croft, Relevance-based language models, SIGIR 2001.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial

import numpy as np

from greylag.errors import ParameterError
from greylag.features import FeatureExtractor, FeatureParameters, FeatureSpec
from greylag.feedback.judged import Feedback, judged_documents
from greylag.index.positional import PositionalIndex
from greylag.missing_documents import rerank_known
from greylag.pipeline import Stage
from greylag.ranking import Ranking

FEATURES = (FeatureSpec("FI", "term", "LM"), FeatureSpec("FI", "expansion", "LM"))


@dataclass(frozen=True)
class RelevanceModelRanker(Stage):
    """Ranks documents by the query, interpolated with the relevance model of the judged relevant documents.

    The score is w/|Q| sum over the query terms of log P(t|D) + (1 - w) sum over the expansion terms of
    P(t|R) log P(t|D), where w is `query_weight`, P(t|D) the Dirichlet-smoothed language model, and P(t|R) the relevance
    model RM1 (see `greylag.features.relevance_model`) of the relevant documents in place of the top ones. Documents
    that were judged not relevant have no influence.

    A query without a judged relevant document keeps its ranking, and documents outside the index keep their ranks.

    Parameters
    ----------
    index : PositionalIndex
    feedback : mapping of qid to docid to grade
        Judged documents, in the ranking or not; relevant from grade 1.
    query_weight : float in [0, 1], default 0.5
        w.
    parameters : FeatureParameters
        `mu` of the language model, and `fb_terms`.
    """

    index: PositionalIndex
    feedback: Feedback
    _: KW_ONLY
    query_weight: float = 0.5
    parameters: FeatureParameters = FeatureParameters()

    def __post_init__(self) -> None:
        if not 0 <= self.query_weight <= 1:
            raise ParameterError(f"query_weight is {self.query_weight}; it must be in [0, 1]")

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank the documents of one query."""
        relevant = judged_documents(self.index, self.feedback, ranking.qid).relevant
        if not relevant:
            return ranking
        known = self.index.documents(ranking.docids) >= 0
        return rerank_known(ranking, known, partial(self._rerank, relevant), stage="RelevanceModelRanker")

    def _rerank(self, relevant: tuple[str, ...], ranking: Ranking) -> Ranking:
        # Expansion features are estimated on the top of a ranking, so the relevant documents are put there.
        first = tuple(dict.fromkeys((*relevant, *ranking.docids)))
        extract = FeatureExtractor(self.index, FEATURES, replace(self.parameters, fb_docs=len(relevant)))
        values = extract(Ranking(ranking.qid, ranking.query, first, np.zeros(len(first))))
        n_terms = max(1, len(self.index.query_terms(ranking.query)))
        combined = self.query_weight / n_terms * values[:, 0] + (1.0 - self.query_weight) * values[:, 1]
        by_docid = dict(zip(first, combined.tolist(), strict=True))
        return ranking.rescore([by_docid[docid] for docid in ranking.docids])
