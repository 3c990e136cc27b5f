"""DPP: greedy search for the most probable subset of a determinantal point process (Chen, Zhang & Zhou 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from greylag.base import FloatArray
from greylag.diversity.vector_gain import VectorGain, VectorStage
from greylag.index import Matrix

_DEPENDENT = 1e-6  # the residual up to which a vector counts as a combination of the picks'


class LogDeterminant(VectorGain):
    """The gain of DPP, by the squared distances of candidates from the span of the picks."""

    # Each pick adds an axis to an orthonormal basis of the span, and takes the square of a candidate's coordinate on
    # it, a row of the Cholesky factor, from its distance. Rounded vectors do not have exactly length 1, so that
    # distances are divided by the squares of their lengths.
    def __init__(self, relevance: FloatArray, vectors: Matrix, relevance_weight: float) -> None:
        super().__init__(relevance, vectors, relevance_weight)
        dense = isinstance(self.rows, np.ndarray)
        squares = np.einsum("ij,ij->i", self.rows, self.rows) if dense else self.rows.power(2).sum(axis=1)
        self._distances = np.array(squares).ravel()
        self._squares = np.where(self._distances > 0, self._distances, 1.0)
        # Doubled when it is full, as the number of picks is not known here.
        self._factor = np.empty((16, len(relevance)))  # a row for each dimension of the span, with room for more
        self._size = 0

    def gains(self) -> FloatArray:
        """Return the gains, shape (n,)."""
        logs: FloatArray = np.log(np.maximum(self._distances / self._squares, _DEPENDENT))
        return self.worth + self.weight * logs

    def add(self, candidate: int) -> None:
        """Pick a candidate, which adds a dimension to the span unless it is in it."""
        distance = self._distances.item(candidate)
        # Dividing by it would amplify rounding; the pick adds no direction that others could share.
        if distance <= _DEPENDENT:
            return
        if self._size == len(self._factor):
            self._factor = np.concatenate([self._factor, np.empty_like(self._factor)])
        # Gram-Schmidt: the new axis is the pick minus its projection on the basis, scaled to unit length.
        basis, new = self._factor[: self._size], self._factor[self._size]
        np.subtract(self.cosines(candidate), np.einsum("pn,p->n", basis, basis[:, candidate]), out=new)
        new *= 1.0 / sqrt(distance)
        self._distances -= new * new  # may fall just below 0 by rounding, which `gains` raises
        self._size += 1


@dataclass(frozen=True)
class DPP(VectorStage):
    """Pick documents that are relevant and whose vectors span a large volume.

    The picked set Y maximises, greedily,

        w sum over d in Y of rel(d) + (1 - w) log det S_Y,

    with S the cosines and rel as in `greylag.MMR`: the log-probability, times 1 - w, of a process with the kernel
    exp(alpha rel(d)) S exp(alpha rel(d')), alpha = w / (2 (1 - w)). Opposite vectors are as alike as equal ones. A
    document whose vector is zero, or a combination of the picks', adds log 1e-6.

    Parameters
    ----------
    index, vectors, latent, relevance_weight, scale, depth, k
        See `greylag.MMR`; the weight is theta in the paper.

    References
    ----------
    Chen, Zhang and Zhou, Fast greedy MAP inference for determinantal point process to improve recommendation diversity,
    NeurIPS 2018, sections 3 and 5.
    """

    kind = LogDeterminant
