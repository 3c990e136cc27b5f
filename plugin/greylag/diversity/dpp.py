"""DPP: greedy search for the most probable subset of a determinantal point process (Chen, Zhang & Zhou 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from greylag.diversity.vector_gain import VectorGain, VectorStage
from greylag.ranking import FloatArray
from greylag.vectors.protocol import Matrix

_DEPENDENT = 1e-6  # the residual up to which a vector counts as a combination of the picks'


class LogDeterminant(VectorGain):
    """The gain of DPP: the statistic is the squared length of a candidate's projection on the span of the picks.

    It is the sum of the squares of a row of the Cholesky factor: the coordinates of the candidate in an orthonormal
    basis of the span. In float32 they are products with that basis, since Cholesky's divisions multiply errors.
    """

    def __init__(self, relevance: FloatArray, vectors: Matrix, relevance_weight: float, *, exact: bool = True) -> None:
        super().__init__(relevance, vectors, relevance_weight, exact=exact)
        if self.error:
            self._scales = self.scales
        else:
            dense = isinstance(self.rows, np.ndarray)
            squares = np.einsum("ij,ij->i", self.rows, self.rows) if dense else self.rows.power(2).sum(axis=1)
            lengths = np.sqrt(np.asarray(squares).ravel())
            self._scales = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
        self.statistics[self._scales == 0] = 1.0  # no volume
        self._factor = np.empty((16, 0 if self.error else len(relevance)))

    def penalty(self, statistics: FloatArray) -> FloatArray:
        """The logarithm of the squared distance from the span, negative."""
        return np.asarray(-np.log(np.maximum(1.0 - statistics, _DEPENDENT)))

    def term(self, cosines: FloatArray) -> FloatArray:
        """The squares."""
        return np.square(cosines)

    def statistic_error(self) -> float:
        """That of the squares of coordinates whose squares add up to 1 at most."""
        return float(2.0 * np.sqrt(self.picked) + self.picked * self.error) * self.error

    def cosines(self, candidate: int) -> FloatArray:
        """The next coordinate of all candidates, shape (n,)."""
        cosines = super().cosines(candidate)
        if self.error:
            return cosines
        if self.picked == len(self._factor):
            self._factor = np.concatenate([self._factor, np.empty_like(self._factor)])
        before, residual = self._factor[: self.picked], 1.0 - self.statistics.item(candidate)
        new: FloatArray | float = 0.0
        if residual > _DEPENDENT:
            cosines = cosines * (self._scales * self._scales[candidate])  # what was rounded had other lengths
            new = (cosines - np.einsum("pn,p->n", before, before[:, candidate])) / sqrt(residual)
        self._factor[self.picked] = new
        return np.asarray(self._factor[self.picked])

    def unit_row(self, candidate: int) -> FloatArray:
        """The vector of a candidate, of unit length after rounding."""
        unit = super().unit_row(candidate)
        return np.asarray(unit * (1.0 / np.sqrt(np.einsum("d,d->", unit, unit) or 1.0)))

    def direction(self, candidate: int) -> FloatArray:
        """The next vector of the basis; zero if the candidate is in the span."""
        before, new, square = self.directions[: self.picked], self.unit_row(candidate), 1.0
        while True:
            new -= np.einsum("pd,p->d", before, np.einsum("pd,d->p", before, new))
            square, last = np.einsum("d,d->", new, new), square
            if square <= _DEPENDENT:
                return np.zeros_like(new)
            if square > 0.01 * last:  # else cancellation leaves errors
                return np.asarray(new / np.sqrt(square))


@dataclass(frozen=True)
class DPP(VectorStage):
    """Pick documents that are relevant and whose vectors span a large volume.

    The picked set Y maximises, greedily,

        w sum over d in Y of rel(d) + (1 - w) log det S_Y,

    with S the cosines and rel as in `greylag.MMR`. It is the log-probability, times 1 - w, of a process with the kernel
    exp(alpha rel(d)) S exp(alpha rel(d')), alpha = w / (2 (1 - w)). Determinants follow from Cholesky factors that grow
    by a row with each pick. The cosine counts by its square: opposite vectors are as alike as equal ones. A document
    whose vector is zero, or a combination of the picks', adds log 1e-6.

    Parameters
    ----------
    index, vectors, relevance_weight
        See `greylag.MMR`; the weight is theta in the paper.
    depth, k : int
        See `greylag.diversity.DiversityStage`.

    References
    ----------
    Chen, Zhang and Zhou, Fast greedy MAP inference for determinantal point process to improve recommendation diversity,
    NeurIPS 2018, sections 3 and 5.
    """

    kind = LogDeterminant
