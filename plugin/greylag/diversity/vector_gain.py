"""What MMR, MSD and DPP share: a stage over vectors, and a gain of the cosines with the picks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from greylag.diversity.stage import GreedyStage
from greylag.errors import ParameterError
from greylag.ranking import BoolArray, FloatArray, Ranking, unit_range
from greylag.vectors.protocol import Matrix, Vectors, unit_rows, vectors_of
from greylag.vectors.vector_files import open_vectors

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

_SMALL = 1 << 17  # coordinates up to which float64 costs less than a filter in float32
_GRID = 1.5 * 2.0**26  # adding it leaves 26 binary places
_SAFE = 1e-30, 1e30  # squared lengths that neither overflow nor lose digits in float32


class VectorGain(ABC):
    """A gain ``w rel - (1 - w) penalty`` over n candidates; the penalty grows with a statistic of the cosines.

    The statistic combines what `term` makes of the cosines with each pick. Sums by BLAS depend on its threads, and
    picks must not. Coordinates of unit vectors are therefore rounded to 26 binary places: float64 adds their products
    without any error, in any order. Where that is slow and `exact` is false, all cosines are computed in float32, and
    in float64 only where two candidates may have the highest gain.

    Parameters
    ----------
    relevance : array, shape (n,)
        In [0, 1].
    vectors : csr_matrix, shape (n, V), or float32 or float64 array, shape (n, m)
        Sparse rows of unit length or zero, or dense rows of any length.
    relevance_weight : float in [0, 1]
        w.
    exact : bool, default True
        Whether gains are wanted, and not just the candidate of the highest.
    """

    combine: ClassVar[np.ufunc] = np.add
    start: ClassVar[float] = 0.0

    def __init__(self, relevance: FloatArray, vectors: Matrix, relevance_weight: float, *, exact: bool = True) -> None:
        self.worth = relevance_weight * relevance
        self.weight = 1.0 - relevance_weight
        self.statistics = np.full(len(relevance), self.start)
        self.picked = 0
        self.error = 0.0  # of a cosine
        if not isinstance(vectors, np.ndarray):
            from greylag.diversity.sparse_cosines import cosines_by_column  # imports Numba, as what made them did

            self.rows: Any = vectors
            self._sparse = cosines_by_column(vectors)
            return
        squares = np.einsum("ij,ij->i", vectors, vectors)
        if not ((squares > _SAFE[0]) & (squares < _SAFE[1])).all():
            vectors = unit_rows(vectors)
            squares = np.einsum("ij,ij->i", vectors, vectors)
        self.scales = np.divide(1.0, np.sqrt(squares), out=np.zeros(len(squares)), where=squares > 0)
        if exact or vectors.size <= _SMALL:
            self.rows = vectors.astype(np.float64)
            self.rows *= self.scales[:, None]
            rounded(self.rows)
            return
        self.rows, self._vectors = vectors.astype(np.float32, copy=False), vectors
        self.error = (vectors.shape[1] + np.sqrt(vectors.shape[1]) + 16) * 2.0**-24
        self.directions = np.empty((16, vectors.shape[1]))
        self.first = self.statistics
        self._exact: dict[int, tuple[int, float]] = {}  # statistics of candidates in doubt, after so many picks

    @abstractmethod
    def penalty(self, statistics: FloatArray) -> FloatArray:
        """What is subtracted, shape (n,)."""

    def term(self, cosines: FloatArray) -> FloatArray:
        """What cosines add to the statistic."""
        return cosines

    def statistic_error(self) -> float:
        """How far a statistic in float32 may be from the exact one."""
        return self.error

    def gains(self) -> FloatArray:
        """The gains, or if not `exact`, bounds of all but the highest, which is exact if it is in doubt, shape (n,)."""
        if not self.error:
            return self.worth - self.weight * self.penalty(self.statistics)
        error = self.statistic_error()
        gains = self.worth - self.weight * self.penalty(self.statistics - error)
        best = slice(gains.argmax(), gains.argmax() + 1)
        lowest = self.worth[best] - self.weight * self.penalty(self.statistics[best] + error)
        near = (gains >= lowest).nonzero()[0]
        if len(near) == 1:
            return gains
        for candidate in near.tolist():
            unit = self.unit_row(candidate)
            seen, statistic = self._exact.get(candidate) or (0, self.first[candidate])
            terms = self.term(np.einsum("pd,d->p", self.directions[seen : self.picked], unit))
            self._exact[candidate] = self.picked, self.combine.reduce(terms, initial=statistic)
        statistics = np.array([self._exact[candidate][1] for candidate in near.tolist()])
        gains[near] = self.worth[near] - self.weight * self.penalty(statistics)
        return gains

    def add(self, candidate: int) -> None:
        """Pick a candidate."""
        cosines = self.cosines(candidate)
        self.picked += 1
        self.worth[candidate] = -np.inf
        self.statistics = self.combine(self.statistics, self.term(cosines))

    def cosines(self, candidate: int) -> FloatArray:
        """The cosines of all candidates with one, shape (n,)."""
        if not self.error:
            dense = isinstance(self.rows, np.ndarray)
            return np.asarray(self.rows @ self.rows[candidate]) if dense else self._sparse(candidate)
        if self.picked == len(self.directions):
            self.directions = np.concatenate([self.directions, np.empty_like(self.directions)])
        self.directions[self.picked] = direction = self.direction(candidate)
        return np.asarray((self.rows @ direction.astype(np.float32)) * self.scales)

    def direction(self, candidate: int) -> FloatArray:
        """The unit vector whose products with the others are to be added, shape (m,)."""
        return self.unit_row(candidate)

    def unit_row(self, candidate: int) -> FloatArray:
        """The vector of a candidate in float64, shape (m,)."""
        return rounded(self._vectors[candidate] * self.scales[candidate])


def rounded(units: FloatArray) -> FloatArray:
    """Coordinates in [-1, 1] rounded, in place, to 26 binary places."""
    units += _GRID
    units -= _GRID
    return units


@dataclass(frozen=True)
class VectorStage(GreedyStage):
    """A greedy stage that weighs the incoming score, scaled to [0, 1] over the candidates, against similar picks.

    Parameters
    ----------
    index, vectors, relevance_weight
        See `greylag.MMR`.
    depth, k : int
        See `greylag.diversity.DiversityStage`.
    """

    readers: ClassVar = {"vectors": open_vectors}
    kind: ClassVar[type[VectorGain]]

    index: PositionalIndex | None = None
    _: KW_ONLY
    vectors: Vectors | None = None
    relevance_weight: float = 0.7
    _vectors: Vectors = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_vectors", vectors_of(type(self).__name__, self.index, self.vectors))
        if not 0 <= self.relevance_weight <= 1:
            raise ParameterError(f"relevance_weight must be in [0, 1], not {self.relevance_weight}")

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Which documents have a vector."""
        return self._vectors.knows(docids)

    def gain(self, candidates: Ranking) -> VectorGain:
        """The gain over these documents, to the last digit."""
        return self._gain(candidates, exact=True)

    def diversify(self, ranking: Ranking) -> Ranking:
        """Pick `k` of the top `depth` documents."""
        return self.move_picks(ranking, self._gain(self.candidates(ranking), exact=False))

    def _gain(self, candidates: Ranking, *, exact: bool) -> VectorGain:
        vectors = self._vectors.documents(candidates.docids)
        return self.kind(unit_range(candidates.scores), vectors, self.relevance_weight, exact=exact)
