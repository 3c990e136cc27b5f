"""RM3 as a reranking stage: BM25 by the query, interpolated with BM25 by a relevance model of the top documents."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import FeatureSpec
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.pipeline import Stage
from greylag.ranking import Ranking

PARTS = FeatureSpec("FI", "term", "BM25"), FeatureSpec("FI", "expansion", "BM25")
_DEFAULTS = FeatureParameters()


@dataclass(frozen=True)
class RM3(Stage):
    """Rerank by the query expanded with a relevance model; ties keep the incoming order.

    score(D) = sum over t of (w P(t|Q) + (1 - w) P(t|R)) BM25(t, D), with w the weight of the original query, P(t|Q) the
    share of t among the query's terms, and P(t|R) the relevance model of `greylag.features.relevance_model`.
    `greylag.index.RM3Search` says how greylag's three kinds of RM3 differ.

    Parameters
    ----------
    index : PositionalIndex
    original_weight : float in [0, 1], default 0.5
        w; 1 is BM25.
    k1, b, fb_docs, fb_terms, mu
        As in `FeatureParameters`; `mu` is that of the relevance model.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.

    References
    ----------
    Abdul-Jaleel et al., UMass at TREC 2004: novelty and HARD, TREC 2004.
    """

    index: PositionalIndex
    _: KW_ONLY
    original_weight: float = 0.5
    k1: float = _DEFAULTS.k1
    b: float = _DEFAULTS.b
    fb_docs: int = _DEFAULTS.fb_docs
    fb_terms: int = _DEFAULTS.fb_terms
    mu: float = _DEFAULTS.mu
    _extractor: FeatureExtractor = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.original_weight <= 1:
            raise ParameterError(f"original_weight must be in [0, 1], not {self.original_weight}")
        parameters = FeatureParameters(k1=self.k1, b=self.b, fb_docs=self.fb_docs, fb_terms=self.fb_terms, mu=self.mu)
        object.__setattr__(self, "_extractor", FeatureExtractor(self.index, PARTS, parameters))

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rank the documents of one query."""
        by_query, by_feedback = self._extractor(ranking).T
        n_terms = max(1, len(self.index.query_terms(ranking.query)))
        return ranking.rescore(self.original_weight * by_query / n_terms + (1 - self.original_weight) * by_feedback)
