"""DPP: greedy search for the most probable subset of a determinantal point process (Chen, Zhang & Zhou 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from greylag.diversity.vector_gain import BLOCK, LARGE, Float32Cosines, VectorGain, VectorStage, with_scales
from greylag.greedy import TIE_TOLERANCE, ModularGain, greedy_picks
from greylag.ranking import FloatArray, IntArray
from greylag.vectors.protocol import Matrix

_DEPENDENT = 1e-6  # the residual up to which a vector counts as a combination of the picks'
_CLOSE = 1e-9  # more than ties, and than errors of float64


class LogDeterminant(VectorGain):
    """The gain of DPP, by the squared distances of candidates from the span of the picks.

    A pick subtracts the squares of coordinates in an orthonormal basis of the span, a row of the Cholesky factor. What
    was rounded has other lengths than 1, whose squares distances are divided by.
    """

    def __init__(self, relevance: FloatArray, vectors: Matrix, relevance_weight: float) -> None:
        super().__init__(relevance, vectors, relevance_weight)
        dense = isinstance(self.rows, np.ndarray)
        squares = np.einsum("ij,ij->i", self.rows, self.rows) if dense else self.rows.power(2).sum(axis=1)
        self._distances = np.array(squares).ravel()
        self._squares = np.where(self._distances > 0, self._distances, 1.0)
        self._factor = np.empty((16, len(relevance)))
        self._basis: list[tuple[int, FloatArray, float]] = []  # picks, coordinates and distances

    def gains(self) -> FloatArray:
        """The gains, shape (n,)."""
        return _gains(self.worth, self.weight, self._distances / self._squares)

    def add(self, candidate: int) -> None:
        """Pick a candidate, which adds a dimension to the span unless it is in it."""
        distance, coordinates = self._distances.item(candidate), self._factor[: len(self._basis), candidate]
        if distance > _DEPENDENT:
            self._project(self.cosines(candidate), coordinates, distance)
            self._basis.append((candidate, coordinates.copy(), distance))

    def _project(self, cosines: FloatArray, coordinates: FloatArray, distance: float) -> None:
        size = len(coordinates)
        if size == len(self._factor):
            self._factor = np.concatenate([self._factor, np.empty_like(self._factor)])
        new = self._factor[size]
        np.subtract(cosines, np.einsum("pn,p->n", self._factor[:size], coordinates), out=new)
        new *= 1.0 / sqrt(distance)
        self._distances -= new * new

    def extend(self, relevance: FloatArray, vectors: Matrix, relevance_weight: float) -> None:
        """Add candidates with dense vectors, as if they had been there from the start."""
        new = LogDeterminant(relevance, vectors, relevance_weight)
        for pick, coordinates, distance in self._basis:
            new._project(new.rows @ self.rows[pick], coordinates, distance)
        self._factor = np.hstack([self._factor, new._factor])
        for name in ("worth", "rows", "_distances", "_squares"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(new, name)]))

    @classmethod
    def picks(cls, relevance: FloatArray, vectors: Matrix, relevance_weight: float, k: int) -> IntArray:
        """`greedy_picks` of this gain, which only falls: of many dense vectors, by a list of those that may be picked.

        The others have less than the best of the list by bounds that follow, in float32, from their cosines with the
        sum of the picks, which is in the span.
        """
        if not isinstance(vectors, np.ndarray) or vectors.size < LARGE:
            return greedy_picks(cls(relevance, vectors, relevance_weight), k)
        vectors, scales = with_scales(vectors)
        worth, weight = relevance_weight * relevance, 1.0 - relevance_weight
        cosines = Float32Cosines(vectors, scales)
        bounds = _gains(worth, weight, np.sign(scales))
        listed = greedy_picks(ModularGain(bounds), 1)
        gain, best = cls(relevance[listed], vectors[listed], relevance_weight), 0
        bounds[listed] = -np.inf
        picked, due = [], 1
        while True:
            picked.append(listed[best])
            if len(picked) == min(k, len(worth)):
                return np.array(picked)
            gain.add(best)
            gain.worth[best] = -np.inf
            gains = gain.gains()
            while (rest := bounds.max()) >= (highest := gains.max()) - _CLOSE and rest > -np.inf:
                if len(picked) >= due:
                    due = 2 * len(picked)
                    total = gain.rows[[pick for pick, _, _ in gain._basis]].sum(axis=0)
                    if (length := sqrt(total @ total)) > 0.5:
                        near = np.abs(cosines.with_direction((total / length).astype(np.float32))) - 2.0 * cosines.error
                        bounds = np.minimum(bounds, _gains(worth, weight, 1.0 - np.square(np.maximum(near, 0.0))))
                    continue
                more = min(max(BLOCK, len(listed) // 2), len(bounds))
                level = np.partition(bounds, -more)[-more]
                level = min(level, highest - _CLOSE) if highest > -np.inf else level
                new = ((bounds >= level) & (bounds > -np.inf)).nonzero()[0]
                gain.extend(relevance[new], vectors[new], relevance_weight)
                listed, bounds[new], gains = np.concatenate([listed, new]), -np.inf, gain.gains()
            tie = TIE_TOLERANCE * np.abs(gains[np.isfinite(gains)]).max()
            ties = (gains >= highest - tie).nonzero()[0]
            best = int(ties[listed[ties].argmin()])


def _gains(worth: FloatArray, weight: float, distances: FloatArray) -> FloatArray:
    """The gains w rel + (1 - w) log distance."""
    logs = np.log(np.maximum(distances, _DEPENDENT))
    logs *= weight
    logs += worth
    return np.asarray(logs)


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
