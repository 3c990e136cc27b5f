"""The base of MMR, MSD and DPP: a stage over vectors, and a gain of the cosines with the picks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from greylag.base import BoolArray, FloatArray, Gain, IntArray, Ranking, check_choice, unit_range
from greylag.diversity.stage import DiversityStage
from greylag.index import Dense, Matrix, Vectors, open_vectors, unit_rows, vectors_of

if TYPE_CHECKING:
    from greylag.index import PositionalIndex

Scale = Literal["range", "none"]
_GRID = 1.5 * 2.0**26  # adding it leaves 26 binary places
_SHORT, _LONG = 1e-140, 1e140  # lengths whose squares neither overflow nor lose digits
_SMALL, _LARGE = 1e-30, 1e30  # squares of lengths between which float32 keeps its digits
_MANY = 2**15  # numbers from which estimating pays


class VectorGain(Gain):
    """A gain of relevance and of the cosines with the picks, over n candidates; subclasses define `gains` and `add`.

    Parameters
    ----------
    relevance : array of shape (n,)
        The candidates' relevance. `worth` is the same, times the relevance weight.
    vectors : array or sparse matrix of shape (n, d)
        Their vectors, of any length.
    relevance_weight : float in [0, 1]
        `weight` is 1 minus it.
    """

    # Sums by BLAS depend on its threads, and picks must not. Coordinates of unit vectors are therefore rounded to 26
    # binary places: float64 adds their products without any error, in any order.
    def __init__(self, relevance: FloatArray, vectors: Matrix, relevance_weight: float) -> None:
        self.worth = relevance_weight * relevance
        self.weight = 1.0 - relevance_weight
        self._sparse: Callable[[int], FloatArray] | None = None
        self.rows: Any = vectors
        if not isinstance(vectors, np.ndarray):
            from greylag.diversity.sparse_cosines import cosines_by_row  # imports SciPy, as sparse sources do

            self._sparse = cosines_by_row(vectors)
        elif not self.estimates(vectors):
            self.rows = exact_rows(vectors)

    def estimates(self, vectors: Dense) -> bool:
        """Return whether most cosines are only estimated."""
        return False

    def cosines(self, candidate: int) -> FloatArray:
        """Compute the cosines of all candidates with one, shape (n,)."""
        return np.asarray(self.rows @ self.rows[candidate]) if self._sparse is None else self._sparse(candidate)


class CosineGain(VectorGain):
    """The gain ``w rel + (1 - w) (constant * |picks| - statistic of cosines)``, and ``w rel`` of the first pick.

    Attributes
    ----------
    combine : ufunc
        Adds a cosine to the statistic, such as `numpy.maximum`.
    start : float
        The statistic without picks.
    constant : float
        Times the number of picks, from which the statistic is subtracted.
    adds_errors : bool
        Whether an error of the statistic is the sum of the cosines' errors, or the largest of them.
    """

    combine: ClassVar[np.ufunc]
    start: ClassVar[float]
    constant: ClassVar[float]
    adds_errors: ClassVar[bool]
    gains_matter = True  # and not the picks alone

    def __init__(self, relevance: FloatArray, vectors: Matrix, relevance_weight: float) -> None:
        super().__init__(relevance, vectors, relevance_weight)
        self._statistics = np.full(len(relevance), self.start)
        self._picked: list[int] = []
        self._exact = np.empty((0, vectors.shape[1]))  # the vectors of the first picks, where cosines are estimated
        self._error = 0.0
        if isinstance(vectors, np.ndarray) and self.estimates(vectors):
            self._short, self._inverse = _short_rows(vectors)
            # Of two lengths and a sum of m products in float32, and of rounding to 26 places.
            self._error = 2 * self.weight * (vectors.shape[1] + 16) * float(np.finfo(np.float32).eps)

    # Cosines in float32 take a third of the time, and are within a bound of the exact ones. What is exact are the gains
    # of candidates that may be the best: all others are below these by more than the bound.
    def estimates(self, vectors: Dense) -> bool:
        """Return whether most cosines are only estimated, in float32."""
        return vectors.dtype == np.float32 and vectors.size >= _MANY

    def gains(self) -> FloatArray:
        """Return the gains, shape (n,); if cosines are estimated, of those that may have the highest gain."""
        if not self._picked:
            return self.worth
        gains = self._gains(self.worth, self._statistics)
        if self._error:
            margin = self._error * (len(self._picked) if self.adds_errors else 1)
            close = (gains >= gains[gains.argmax()] - margin).nonzero()[0]
            if self.gains_matter or len(close) > 1:
                gains[close] = self._exact_gains(close)
        return gains

    def _gains(self, worth: FloatArray, statistics: FloatArray) -> FloatArray:
        if self.constant:
            statistics = statistics - self.constant * len(self._picked)
        return worth - statistics * self.weight

    def _exact_gains(self, candidates: IntArray) -> FloatArray:
        """Compute gains from exact cosines."""
        if len(self._exact) < len(self._picked):
            self._exact = np.concatenate([self._exact, exact_rows(self.rows[self._picked[len(self._exact) :]])])
        cosines = exact_rows(self.rows[candidates]) @ self._exact.T
        return self._gains(self.worth[candidates], self.combine.reduce(cosines, axis=1))

    def add(self, candidate: int) -> None:
        """Pick a candidate."""
        if self._error:
            cosines = self._short @ (self._short[candidate] * self._inverse[candidate])
            cosines *= self._inverse
            self.worth[candidate] = -np.inf  # no candidate for the exact gains any more
        else:
            cosines = self.cosines(candidate)
        self.combine(self._statistics, cosines, out=self._statistics)
        self._picked.append(candidate)


def _short_rows(vectors: Dense) -> tuple[Dense, Dense]:
    """Return vectors in float32, and the inverses of their lengths, 0 of zero vectors."""
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors)
        if not squares.min() > _SMALL or not squares.max() < _LARGE:
            vectors = unit_rows(vectors).astype(np.float32)
            squares = np.einsum("ij,ij->i", vectors, vectors)
    with np.errstate(divide="ignore"):
        return vectors, np.where(squares > 0, 1 / np.sqrt(squares), np.float32(0))


def exact_rows(vectors: Dense) -> FloatArray:
    """Scale rows to unit length in float64, with coordinates of 26 binary places."""
    rows = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    ordinary = (lengths > _SHORT) & (lengths < _LONG)
    if ordinary.all():
        rows *= (1.0 / lengths)[:, None]
    else:
        # Row by row, as a row must not depend on which others are there. Exact at any length, and slower.
        rows[ordinary] *= (1.0 / lengths[ordinary])[:, None]
        rows[~ordinary] = unit_rows(vectors[~ordinary])
    # Adding and taking away a large power of two rounds to its grid.
    rows += _GRID
    rows -= _GRID
    return rows


@dataclass(frozen=True)
class VectorStage(DiversityStage):
    """A stage that weighs the incoming score against similar picks; see `greylag.MMR` for its parameters.

    Subclasses are frozen dataclasses with a `kind`, the `VectorGain` by which they pick.
    """

    needs = frozenset({"vectors"})
    strength = "relevance_weight"
    readers: ClassVar = {"vectors": open_vectors}
    kind: ClassVar[type[VectorGain]]

    index: PositionalIndex | None = None
    _: KW_ONLY
    vectors: Vectors | None = None
    latent: bool = False
    relevance_weight: float = 0.7
    scale: Scale = "range"
    _vectors: Vectors = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("scale", self.scale, get_args(Scale))
        vectors = vectors_of(type(self).__name__, self.index, self.vectors, latent=self.latent)
        object.__setattr__(self, "_vectors", vectors)

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Return which documents have a vector."""
        return self._vectors.knows(docids)

    def diversify(self, ranking: Ranking) -> Ranking:
        """Pick `k` of the top `depth` documents."""
        gain = self.gain(self.candidates(ranking))
        if isinstance(gain, CosineGain):
            gain.gains_matter = False
        return self.move_picks(ranking, gain)

    def gain(self, candidates: Ranking) -> VectorGain:
        """Return the gain over these documents."""
        vectors = self._vectors.documents(candidates.docids)
        relevance = unit_range(candidates.scores) if self.scale == "range" else candidates.scores
        return self.kind(relevance, vectors, self.relevance_weight)
