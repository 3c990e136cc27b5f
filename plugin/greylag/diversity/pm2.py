"""PM-2 (Dang & Croft 2012): each aspect of the query gets its share of the ranks."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from greylag.base import FloatArray, Ranking
from greylag.diversity.aspects import AspectStage


@dataclass(frozen=True)
class PM2(AspectStage):
    """Fill ranks as seats of a parliament are filled, by the Sainte-Laguë method, with aspects as its parties.

    For each rank, the quotient of aspect a is qt(a) = v(a) / (2 s(a) + 1), with v the aspect's weight, equal for all,
    and s the seats that it has. The aspect a* of the highest quotient is next, and the pick maximises

        w qt(a*) P(d|a*) + (1 - w) sum over other aspects a of qt(a) P(d|a).

    Its seat is divided: s(a) rises by P(d|a) / sum over aspects b of P(d|b). Documents that maximise it equally, such
    as those of no aspect, keep the incoming order; with w = 0 or 1, documents of other aspects may be among them.

    Parameters
    ----------
    index, aspects, scale, depth, k
        See `XQuAD`.
    aspect_weight : float in [0, 1], default 0.5
        w, lambda in the paper: 1 serves one aspect at a time, lower values favour documents of several.

    References
    ----------
    Dang and Croft, Diversity by proportionality: an election-based approach to search result diversification, SIGIR
    2012.
    """

    strength = "aspect_weight"

    _: KW_ONLY
    aspect_weight: float = 0.5

    def gain(self, candidates: Ranking) -> PM2Gain:
        """Return the gain of PM-2."""
        return PM2Gain(self.relevance(candidates), self.aspect_weight)


class PM2Gain:
    """The gain of PM-2 over n candidates, with P(d|a) of shape (n, aspects)."""

    def __init__(self, relevance: FloatArray, aspect_weight: float) -> None:
        self._relevance = relevance
        self._aspect_weight = aspect_weight
        self._seats = np.zeros(relevance.shape[1])  # by aspect

    def gains(self) -> FloatArray:
        """Compute the gains, shape (n,)."""
        if not len(self._seats):
            return np.zeros(len(self._relevance))
        quotients = 1.0 / (2.0 * self._seats + 1.0)
        factors = np.full(len(quotients), 1.0 - self._aspect_weight)
        # The first of equal quotients is a*; all others share the rest.
        factors[np.argmax(quotients)] = self._aspect_weight
        return np.asarray((self._relevance * (factors * quotients)).sum(axis=1))

    def add(self, candidate: int) -> None:
        """Divide a seat among the aspects of the pick."""
        relevance = self._relevance[candidate]
        if relevance.sum() > 0:
            self._seats = self._seats + relevance / relevance.sum()
