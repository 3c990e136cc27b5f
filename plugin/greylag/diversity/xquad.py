"""xQuAD (Santos, Macdonald & Ounis 2010): relevance, and the aspects of the query that are not covered yet."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from greylag.base import FloatArray, Ranking, unit_range
from greylag.diversity.aspects import AspectStage


@dataclass(frozen=True)
class XQuAD(AspectStage):
    """Pick documents that are relevant, and relevant to aspects that no pick covers yet.

    Each pick maximises

        w P(d|q) + (1 - w) sum over aspects a of P(a|q) P(d|a) product over picked s of (1 - P(s|a))

    with w the relevance weight (1 - lambda in the paper) and P(a|q) equal for all aspects. P(d|q) is the incoming score
    scaled to [0, 1] over the candidates; for P(d|a), which the paper leaves open, see `scale`. A query without aspects
    is ranked by P(d|q), in the incoming order.

    Parameters
    ----------
    index : PositionalIndex, optional
        The collection, if aspects are texts. A document that it lacks keeps its rank.
    aspects : mapping, sequence of Run or callable
        Texts by qid, which BM25 scores; scores by qid, aspect and docid, as from `greylag.evaluation.read_aspects`; a
        run for each aspect; or a function from the candidates' `Ranking` to scores of shape (n, aspects). Without a
        score, P(d|a) = 0.
    scale : {"none", "max", "sigmoid"}, optional
        How scores become P(d|a). "max", the default for texts, divides them by the candidates' highest for the aspect.
        "sigmoid" is 1 / (1 + exp(-s)), for logits. "none", the default for scores, takes probabilities unchanged.
    relevance_weight : float in [0, 1], default 0.5
        1 keeps the incoming order.
    depth, k : int
        See `greylag.diversity.DiversityStage`.

    References
    ----------
    Santos, Macdonald and Ounis, Exploiting query reformulations for web search result diversification, WWW 2010.
    """

    strength = "relevance_weight"

    _: KW_ONLY
    relevance_weight: float = 0.5

    def gain(self, candidates: Ranking) -> XQuADGain:
        """Return the gain of xQuAD."""
        return XQuADGain(unit_range(candidates.scores), self.relevance(candidates), self.relevance_weight)


class XQuADGain:
    """The gain of xQuAD over n candidates, with P(d|q) of shape (n,) and P(d|a) of shape (n, aspects)."""

    def __init__(self, scores: FloatArray, relevance: FloatArray, relevance_weight: float) -> None:
        self._scores = relevance_weight * scores
        self._relevance = relevance
        self._weights = np.full(relevance.shape[1], (1.0 - relevance_weight) / max(1, relevance.shape[1]))

    def gains(self) -> FloatArray:
        """Compute the gains, shape (n,)."""
        if not len(self._weights):
            return -np.arange(len(self._scores), dtype=np.float64)  # no aspects: the incoming order
        return np.asarray(self._scores + (self._relevance * self._weights).sum(axis=1))

    def add(self, candidate: int) -> None:
        """Multiply the weight of each aspect by 1 - P(s|a)."""
        # The product over picks so far, kept up to date rather than computed anew.
        self._weights = self._weights * (1.0 - self._relevance[candidate])
