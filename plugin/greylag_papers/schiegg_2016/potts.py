"""Binary segmentation by a Potts model on a grid of superpixels: a structured model whose inference is an exact cut.

An example of a task that is not retrieval, for `greylag.structured`'s learners. An output is the superpixels' labels,
row by row: 1 for the object, 0 for the background. Each inference is a minimum cut (Greig, Porteous & Seheult 1989).
For a negative Potts weight, which asks for unlike neighbours, every other label, as on a chess board, is read the other
way round: a grid is bipartite, so that all neighbours are then asked to be alike.

References
----------
Greig, Porteous and Seheult, Exact maximum a posteriori estimation for binary images, JRSS B 51, 1989. Boykov and Jolly,
Interactive graph cuts for optimal boundary and region segmentation of objects in N-D images, ICCV 2001 (contrasts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from greylag.errors import ModelError, ParameterError
from greylag.ranking import FloatArray, IntArray
from greylag.structured import inner

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CAPACITY = 2**30 - 2**20
"""What a network's capacities sum to before they are rounded: less than 2^30 after, as scipy has 32 bits for flows."""
N_FEATURES = 13
"""How many features `Superpixels.from_colours` makes."""


@dataclass(frozen=True, eq=False)
class Superpixels:
    """An image, as a grid of P superpixels, numbered row by row.

    Parameters
    ----------
    shape : rows and columns, P in product.
    features : phi, shape (P, f).
    affinities : how alike neighbours are, >= 0, in the order of `neighbours`.

    Raises
    ------
    ParameterError
        Arrays of other lengths, or a negative affinity.
    """

    shape: tuple[int, int]
    features: FloatArray
    affinities: FloatArray

    def __post_init__(self) -> None:
        P, edges = self.shape[0] * self.shape[1], neighbours(self.shape).shape[1]
        if (len(self.features), len(self.affinities)) != (P, edges):
            raise ParameterError(
                f"a grid of {self.shape[0]} x {self.shape[1]} has {P} superpixels and {edges} pairs of neighbours, not "
                f"{len(self.features)} and {len(self.affinities)}"
            )
        if (self.affinities < 0).any():
            raise ParameterError(f"affinities have to be at least 0, not {self.affinities.min()}")

    @classmethod
    def from_colours(cls, colours: FloatArray) -> Superpixels:
        """From mean colours, red, green and blue in [0, 1], shape (rows, columns, 3).

        Features are `colour_features` and a constant 1. The affinity of p and q is exp(-||c_p - c_q||² / (2 s²)), where
        2 s² is the mean of ||c_p - c_q||² over all neighbours.
        """
        rows, columns, _ = colours.shape
        flat = colours.reshape(-1, 3)
        first, second = neighbours((rows, columns))
        contrasts = ((flat[first] - flat[second]) ** 2).sum(axis=1)
        mean = contrasts.mean() if contrasts.any() else 1.0
        features = np.column_stack([colour_features(flat), np.ones(len(flat))])
        return cls((rows, columns), features, np.exp(-contrasts / mean))


def colour_features(colours: FloatArray) -> FloatArray:
    """The 12 features of mean colours in [0, 1], shape (P, 3), to shape (P, 12).

    With r, g, b scaled to [-1, 1]: r, g, b, r², g², b², rg, gb, br; then value max(r, g, b), chroma max - min, both of
    the colours as they are, and their ratio, the saturation (0 for black), these three scaled to [-1, 1].
    """
    scaled = 2.0 * colours - 1.0
    value = colours.max(axis=1)
    chroma = value - colours.min(axis=1)
    saturation = chroma / np.where(value > 0, value, 1.0)
    hexcone = 2.0 * np.column_stack([value, chroma, saturation]) - 1.0
    return np.hstack([scaled, scaled**2, scaled * np.roll(scaled, -1, axis=1), hexcone])


@dataclass(frozen=True)
class PottsModel:
    """Segmentation as a `greylag.structured.StructuredModel`: from superpixels, with true labels, to labels.

    w' Psi(x, y) = (sum_p y_p u' phi_p - v sum over neighbours p, q of a_pq [y_p != y_q]) / P, for weights w = (u, v),
    features phi and affinities a. v may be negative. Delta is the share of wrong labels. All is divided by P so that
    neither weights nor losses depend on an image's size.
    """

    def joint_feature(self, x: Superpixels, y: IntArray) -> FloatArray:
        """Psi(x, y), shape (f + 1,)."""
        first, second = neighbours(x.shape)
        cut = inner(x.affinities, (y[first] != y[second]).astype(np.float64))
        return np.append(inner(x.features.T, y.astype(np.float64)), -cut) / len(y)

    def loss(self, truth: IntArray, y: IntArray) -> float:
        """The share of wrong labels."""
        return float(np.mean(truth != y))

    def target(self, x: Superpixels, truth: IntArray) -> IntArray:
        """The truth."""
        return truth

    def infer(self, x: Superpixels, weights: FloatArray) -> IntArray:
        """The y of largest w' Psi(x, y), as exact as `best_labels`.

        Raises
        ------
        ModelError
            Where the weights are not for the image's features.
        """
        return best_labels(x.shape, *_terms(x, weights))

    def infer_augmented(self, x: Superpixels, truth: IntArray, weights: FloatArray) -> IntArray:
        """The y of largest w' Psi(x, y) + Delta(t, y), likewise."""
        return self.infer_apart(x, truth, weights, (), task=1.0, similarity=0.0)

    def infer_apart(
        self,
        x: Superpixels,
        truth: IntArray,
        weights: FloatArray,
        others: Sequence[IntArray],
        *,
        task: float,
        similarity: float,
    ) -> IntArray:
        """The y of largest w' Psi(x, y) + task Delta(t, y) + similarity times its mean `similarity` to `others`."""
        unary, pairwise = _terms(x, weights)
        unary = unary + task * (1 - 2 * truth)
        if others:
            unary = unary + similarity * (2.0 * np.mean(others, axis=0) - 1.0)
        return best_labels(x.shape, unary, pairwise)

    def similarity(self, y: IntArray, other: IntArray) -> float:
        """The share of labels that both have in common, in [0, 1]."""
        return float(np.mean(y == other))


def _terms(x: Superpixels, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What label 1 is worth for each superpixel, and what unlike labels cost each pair of neighbours, both times P."""
    f = x.features.shape[1]
    if len(weights) != f + 1:
        raise ModelError(f"{len(weights)} weights do not fit superpixels of {f} features: there have to be {f + 1}")
    return inner(x.features, weights[:-1]), weights[-1] * x.affinities


def best_labels(shape: tuple[int, int], unary: FloatArray, pairwise: FloatArray) -> IntArray:
    """The y in {0, 1}^P of largest E(y) = sum_p unary_p y_p - sum over neighbours p, q of pairwise_pq [y_p != y_q].

    Capacities are whole numbers, so that E(y) is less than the largest by at most B (P + edges) / `CAPACITY`, where B
    is the sum of all absolute values of `unary` and `pairwise` (each edge twice), and P + edges counts the capacities
    that a cut can hold. Of equally good y, the one with fewest labels 1 (where `pairwise` is negative: with fewest on
    black squares and most on white ones).

    Parameters
    ----------
    shape : rows and columns.
    unary : shape (P,).
    pairwise : in the order of `neighbours`; all >= 0 or all <= 0.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    network = _network(shape)
    repulsive = bool((pairwise < 0).any())
    value = np.where(network.white, -unary, unary) if repulsive else unary
    edges = np.abs(pairwise)
    capacities = np.concatenate(
        [edges, edges, np.maximum(value, 0.0), np.maximum(-value, 0.0), np.zeros(2 * len(value))]
    )
    total = capacities.sum()
    scaled = np.rint(capacities * (CAPACITY / total)) if total else capacities
    places = network.places
    graph = csr_matrix((scaled.astype(np.int32)[places.data], places.indices, places.indptr), shape=places.shape)
    source, sink = len(value), len(value) + 1
    residual = graph - maximum_flow(graph, source, sink).flow  # without the entries that are 0
    reached = np.zeros(len(value) + 2, dtype=np.int64)
    reached[breadth_first_order(residual, source, return_predecessors=False)] = 1
    return reached[:-2] ^ network.white if repulsive else reached[:-2]


class _Network(NamedTuple):
    """A grid's flow network, without capacities.

    Parameters
    ----------
    places : for each arc, also those back, from the source P and to the sink P + 1, its capacity's place in the order
        edges, edges back, source to superpixels, superpixels to sink, and the last two back.
    white : 1 on the white squares of the chess board, 0 on the black ones, shape (P,).
    """

    places: csr_matrix
    white: IntArray


@lru_cache
def neighbours(shape: tuple[int, int]) -> IntArray:
    """The pairs of horizontal, then vertical neighbours in a grid, shape (2, edges), each pair once."""
    numbers = np.arange(shape[0] * shape[1]).reshape(shape)
    across = (numbers[:, :-1].ravel(), numbers[:, 1:].ravel())
    down = (numbers[:-1].ravel(), numbers[1:].ravel())
    pairs = np.hstack([across, down])
    pairs.flags.writeable = False
    return pairs


@lru_cache
def _network(shape: tuple[int, int]) -> _Network:
    from scipy.sparse import csr_matrix

    P = shape[0] * shape[1]
    first, second = neighbours(shape)
    superpixels, source, sink = np.arange(P), np.full(P, P), np.full(P, P + 1)
    tails = np.concatenate([first, second, source, superpixels, superpixels, sink])
    heads = np.concatenate([second, first, superpixels, sink, source, superpixels])
    places = csr_matrix((np.arange(len(tails)), (tails, heads)), shape=(P + 2, P + 2))
    return _Network(places, np.indices(shape).sum(axis=0).ravel() % 2)
