"""What MMR, MSD and DPP share: a stage over vectors, and a gain of the cosines with the picks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from greylag.diversity.stage import GreedyStage
from greylag.errors import ParameterError
from greylag.greedy import TIE_TOLERANCE, greedy_picks
from greylag.ranking import BoolArray, FloatArray, IntArray, Ranking, unit_range
from greylag.vectors.dense import Dense
from greylag.vectors.protocol import Matrix, Vectors, unit_rows, vectors_of
from greylag.vectors.vector_files import open_vectors

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

_GRID = 1.5 * 2.0**26  # adding it leaves 26 binary places
_SAFE = 1e-30, 1e30  # squared lengths that neither overflow nor lose digits in float32
LARGE, BLOCK = 1 << 17, 16
_DOUBTS = 16  # candidates up to which float64 is for them alone


class VectorGain(ABC):
    """A gain of relevance and of the cosines with the picks, over n candidates.

    Sums by BLAS depend on its threads, and picks must not. Coordinates of unit vectors are therefore rounded to 26
    binary places: float64 adds their products without any error, in any order.

    Parameters
    ----------
    relevance : array, shape (n,)
        In [0, 1].
    vectors : csr_matrix, shape (n, V), or float32 or float64 array, shape (n, m)
        Sparse rows of unit length or zero, or dense rows of any length.
    relevance_weight : float in [0, 1]
    """

    def __init__(self, relevance: FloatArray, vectors: Matrix, relevance_weight: float) -> None:
        self.worth = relevance_weight * relevance
        self.weight = 1.0 - relevance_weight
        self.rows: Any = vectors
        self._sparse: Callable[[int], FloatArray] | None = None
        if isinstance(vectors, np.ndarray):
            self.rows = exact_rows(*with_scales(vectors))
        else:
            from greylag.diversity.sparse_cosines import cosines_by_column  # imports Numba, as what made them did

            self._sparse = cosines_by_column(vectors)

    def cosines(self, candidate: int) -> FloatArray:
        """The cosines of all candidates with one, shape (n,)."""
        return np.asarray(self.rows @ self.rows[candidate]) if self._sparse is None else self._sparse(candidate)

    @abstractmethod
    def gains(self) -> FloatArray:
        """The gains, shape (n,)."""

    @abstractmethod
    def add(self, candidate: int) -> None:
        """Pick a candidate."""

    @classmethod
    @abstractmethod
    def picks(cls, relevance: FloatArray, vectors: Matrix, relevance_weight: float, k: int) -> IntArray:
        """`greedy_picks` of this gain, with as little as possible in float64."""


class CosineGain(VectorGain):
    """The gain ``w rel + (1 - w) (constant * |picks| - statistic)``, and ``w rel`` of the first pick.

    The statistic combines the cosines with the picks.
    """

    combine: ClassVar[np.ufunc]
    start: ClassVar[float]
    constant: ClassVar[float]

    def __init__(self, relevance: FloatArray, vectors: Matrix, relevance_weight: float) -> None:
        super().__init__(relevance, vectors, relevance_weight)
        self._statistics = np.full(len(relevance), self.start)
        self._picked = 0

    def gains(self) -> FloatArray:
        """The gains, shape (n,)."""
        if not self._picked:
            return self.worth
        return self.worth - (self._statistics - self.constant * self._picked) * self.weight

    def add(self, candidate: int) -> None:
        """Pick a candidate."""
        self.combine(self._statistics, self.cosines(candidate), out=self._statistics)
        self._picked += 1

    @classmethod
    def picks(cls, relevance: FloatArray, vectors: Matrix, relevance_weight: float, k: int) -> IntArray:
        """`greedy_picks` of this gain.

        All cosines of dense vectors are computed in float32, and in float64 where several candidates may have the
        highest gain; everything in float64 if many may.
        """
        if not isinstance(vectors, np.ndarray):
            return greedy_picks(cls(relevance, vectors, relevance_weight), k)
        vectors, scales = with_scales(vectors)
        worth, weight = relevance_weight * relevance, 1.0 - relevance_weight
        cosines = Float32Cosines(vectors, scales)
        statistics, gains, error = np.full(len(worth), cls.start), worth, 0.0
        picked = np.empty(min(k, len(worth)), dtype=np.int64)
        units, converted = np.empty((len(picked), vectors.shape[1])), 0
        for place in range(len(picked)):
            best = int(gains.argmax())
            near = gains >= gains.item(best) - 2.0 * (weight * error + TIE_TOLERANCE * (1 + place))
            doubts = np.count_nonzero(near)
            if not 1 <= doubts <= _DOUBTS:
                return greedy_picks(cls(relevance, vectors, relevance_weight), k)
            if doubts > 1:
                places, new = near.nonzero()[0], picked[converted:place]
                units[converted:place], converted = exact_rows(vectors[new], scales[new]), place
                products = units[:place] @ exact_rows(vectors[places], scales[places]).T
                exact = cls.combine.reduce(products, axis=0, initial=cls.start)
                exact = worth[places] - (exact * weight if place else 0.0)
                tie = TIE_TOLERANCE * np.abs(gains[np.isfinite(gains)] + weight * cls.constant * place).max()
                best = int(places[(exact >= exact.max() - tie).argmax()])
            picked[place] = best
            cls.combine(statistics, cosines.with_row(best, gains), out=statistics)
            worth[best] = -np.inf
            gains = worth - statistics * weight  # less the constant, which decides nothing
            error = float(cls.combine(error, cosines.error))
        return picked


class Float32Cosines:
    """The cosines of all rows with one.

    A product with several rows costs little more than with one. From the second pick on, it is with those of the
    highest gains, too, unless all are few numbers.
    """

    def __init__(self, vectors: Dense, scales: FloatArray) -> None:
        self._rows = vectors.astype(np.float32, copy=False)
        self._scales, self._row_scales = scales, scales.astype(np.float32)
        self._ahead: dict[int, FloatArray] = {}
        self._block = 1
        self._next_block = BLOCK if vectors.size >= LARGE and len(vectors) > BLOCK else 1
        self.error = float(vectors.shape[1] + np.sqrt(vectors.shape[1]) + 16) * 2.0**-24  # the largest

    def with_row(self, row: int, gains: FloatArray) -> FloatArray:
        """The cosines with a row, shape (n,); by their gains, other rows are prepared."""
        if row in self._ahead:
            return self._ahead.pop(row)
        size, self._block = self._block, self._next_block
        if size == 1:
            return self.with_direction(self._rows[row] * self._row_scales[row])
        block = np.argpartition(-gains, size)[:size]
        block[0] = row
        products = self._rows @ (self._rows[block] * self._row_scales[block, None]).T
        self._ahead.update(zip(block.tolist(), (products * self._scales[:, None]).T, strict=True))
        return self._ahead.pop(row)

    def with_direction(self, direction: Dense) -> FloatArray:
        """The cosines with a float32 vector of unit length, shape (n,)."""
        return np.asarray((self._rows @ direction) * self._scales)


def with_scales(vectors: Dense) -> tuple[Dense, FloatArray]:
    """Vectors, of unit length if some are very long or short, and what to multiply each by for unit length."""
    squares = np.einsum("ij,ij->i", vectors, vectors)
    if not (_SAFE[0] < squares.min(initial=1.0) and squares.max(initial=1.0) < _SAFE[1]):
        vectors = unit_rows(vectors)
        squares = np.einsum("ij,ij->i", vectors, vectors)
    return vectors, np.divide(1.0, np.sqrt(squares), out=np.zeros(len(squares)), where=squares > 0)


def exact_rows(vectors: Dense, scales: FloatArray) -> FloatArray:
    """Unit vectors in float64, whose coordinates have 26 binary places."""
    rows = vectors.astype(np.float64)
    rows *= scales[:, None]
    rows += _GRID
    rows -= _GRID
    return rows


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
        """The gain over these documents."""
        return self.kind(*self._given(candidates))

    def diversify(self, ranking: Ranking) -> Ranking:
        """Pick `k` of the top `depth` documents."""
        return ranking.first(self.kind.picks(*self._given(self.candidates(ranking)), self.k))

    def _given(self, candidates: Ranking) -> tuple[FloatArray, Matrix, float]:
        return unit_range(candidates.scores), self._vectors.documents(candidates.docids), self.relevance_weight
