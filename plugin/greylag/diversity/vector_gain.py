"""The base of MMR, MSD and DPP: a stage over vectors, and a gain of the cosines with the picks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from greylag.core.checks import check_choice
from greylag.diversity.stage import GreedyStage
from greylag.greedy import Gain
from greylag.index.vectors.dense import Dense
from greylag.index.vectors.protocol import Matrix, Vectors, unit_rows, vectors_of
from greylag.index.vectors.vector_files import open_vectors
from greylag.ranking import BoolArray, FloatArray, Ranking, unit_range

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

Scale = Literal["range", "none"]
_GRID = 1.5 * 2.0**26  # adding it leaves 26 binary places
_SHORT, _LONG = 1e-140, 1e140  # lengths whose squares neither overflow nor lose digits


class VectorGain(Gain):
    """A gain of relevance and of the cosines with the picks, over n candidates."""

    # Sums by BLAS depend on its threads, and picks must not. Coordinates of unit vectors are therefore rounded to 26
    # binary places: float64 adds their products without any error, in any order.
    def __init__(self, relevance: FloatArray, vectors: Matrix, relevance_weight: float) -> None:
        self.worth = relevance_weight * relevance
        self.weight = 1.0 - relevance_weight
        self.rows: Any = vectors
        self._sparse: Callable[[int], FloatArray] | None = None
        if isinstance(vectors, np.ndarray):
            self.rows = exact_rows(vectors)
        else:
            from greylag.diversity.sparse_cosines import cosines_by_column  # imports Numba, as sparse sources do

            self._sparse = cosines_by_column(vectors)

    def cosines(self, candidate: int) -> FloatArray:
        """Compute the cosines of all candidates with one, shape (n,)."""
        return np.asarray(self.rows @ self.rows[candidate]) if self._sparse is None else self._sparse(candidate)


class CosineGain(VectorGain):
    """The gain ``w rel + (1 - w) (constant * |picks| - statistic of cosines)``, and ``w rel`` of the first pick."""

    combine: ClassVar[np.ufunc]
    start: ClassVar[float]
    constant: ClassVar[float]

    def __init__(self, relevance: FloatArray, vectors: Matrix, relevance_weight: float) -> None:
        super().__init__(relevance, vectors, relevance_weight)
        self._statistics = np.full(len(relevance), self.start)
        self._picked = 0

    def gains(self) -> FloatArray:
        """Return the gains, shape (n,)."""
        if not self._picked:
            return self.worth
        return self.worth - (self._statistics - self.constant * self._picked) * self.weight

    def add(self, candidate: int) -> None:
        """Pick a candidate."""
        self.combine(self._statistics, self.cosines(candidate), out=self._statistics)
        self._picked += 1


def exact_rows(vectors: Dense) -> FloatArray:
    """Scale rows to unit length in float64, with coordinates of 26 binary places."""
    rows = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if len(rows) and lengths.min() > _SHORT and lengths.max() < _LONG:
        rows *= 1.0 / lengths[:, None]
    else:
        rows = unit_rows(vectors)  # exact at any length, and slower
    # Adding and taking away a large power of two rounds to its grid. Products of such numbers are sums of few bits,
    # which every order of summation gives alike: BLAS is exact here on any number of threads.
    rows += _GRID
    rows -= _GRID
    return rows


@dataclass(frozen=True)
class VectorStage(GreedyStage):
    """A greedy stage that weighs the incoming score against similar picks; parameters are those of `greylag.MMR`."""

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

    def gain(self, candidates: Ranking) -> VectorGain:
        """Return the gain over these documents."""
        vectors = self._vectors.documents(candidates.docids)
        relevance = unit_range(candidates.scores) if self.scale == "range" else candidates.scores
        return self.kind(relevance, vectors, self.relevance_weight)
