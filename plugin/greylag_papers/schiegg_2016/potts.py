"""Segmentation by a Potts model on a grid of superpixels: a structured model for two labels or more.

An output holds the labels of the superpixels row by row; 0 is the background. Two neighbours with different labels cost
a constant and, in proportion to their similarity, another one: the contrast-insensitive and the contrast-sensitive
Potts term of Schiegg, Diego & Hamprecht (2016), section 4, task i. Their weights must be non-negative, which makes the
energy submodular (section 3.3). Inference for two labels is then a minimum cut, which is exact (Greig, Porteous &
Seheult 1989); for more labels it is a sequence of them (Boykov, Veksler & Zabih 2001), where the paper has TRW-S. The
cuts are compiled; scipy's maximum flow spends most of its time on making sparse matrices.

References
----------
Greig, Porteous and Seheult, Exact maximum a posteriori estimation for binary images, JRSS B 51, 1989.
Boykov, Veksler and Zabih, Fast approximate energy minimization via graph cuts, PAMI 23, 2001.
Dinic, Algorithm for solution of a problem of maximum flow in networks with power estimation, 1970.
Boykov and Jolly, Interactive graph cuts for optimal boundary and region segmentation of objects in N-D images, ICCV
2001 (affinities).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from greylag import ParameterError
from greylag.base import FloatArray, IntArray, compiled
from greylag.learning import inner


class Network(NamedTuple):
    """A graph of P nodes with an arc in each direction for each of E pairs of neighbours."""

    pairs: IntArray  # shape (2, E): the nodes p and q of each pair
    starts: IntArray  # shape (P + 1,): the arcs from node p are ``starts[p]`` to ``starts[p + 1]``, without the last
    heads: IntArray  # heads, reverse: shape (2 E,): the node that an arc leads to, and the arc in the other direction
    reverse: IntArray
    back: IntArray  # shape (E,): the arc from q to p


def make_network(pairs: IntArray, P: int) -> Network:
    """Make the network of P nodes and some pairs of neighbours, shape (2, E)."""
    E = pairs.shape[1]
    tails, heads = np.concatenate([pairs[0], pairs[1]]), np.concatenate([pairs[1], pairs[0]])
    order = np.argsort(tails, kind="stable")
    numbers = np.argsort(order)  # of the arcs p to q, then of the arcs q to p
    reverse = np.empty(2 * E, dtype=np.int64)
    reverse[numbers] = np.roll(numbers, E)
    return Network(pairs, np.searchsorted(tails[order], np.arange(P + 1)), heads[order], reverse, numbers[E:])


@compiled()
def _find_levels(
    starts: IntArray, heads: IntArray, capacities: IntArray, supplies: IntArray, levels: IntArray, queue: IntArray
) -> bool:
    """Set the distance of each node from the nearest supply, or -1; whether a demand is reached."""
    levels[:] = -1
    first, last, reached = 0, 0, False
    for p in range(len(supplies)):
        if supplies[p] > 0:
            levels[p] = 0
            queue[last] = p
            last += 1
    while first < last:
        p = queue[first]
        first += 1
        reached = reached or supplies[p] < 0
        for arc in range(starts[p], starts[p + 1]):
            if capacities[arc] > 0 and levels[heads[arc]] < 0:
                levels[heads[arc]] = levels[p] + 1
                queue[last] = heads[arc]
                last += 1
    return reached


@compiled()
def _send(
    root: int,
    starts: IntArray,
    heads: IntArray,
    reverse: IntArray,
    capacities: IntArray,
    supplies: IntArray,
    levels: IntArray,
    next_arcs: IntArray,
    path: IntArray,
) -> None:
    """Send flow from one supply along ascending levels until nothing more can be sent."""
    p, depth = root, 0
    while supplies[root] > 0:
        if supplies[p] < 0:
            # A demand is reached: send as much as the narrowest arc of the path lets through, and start again.
            amount = min(supplies[root], -supplies[p])
            for arc in path[:depth]:
                amount = min(amount, capacities[arc])
            for arc in path[:depth]:
                capacities[arc] -= amount
                capacities[reverse[arc]] += amount
            supplies[root] -= amount
            supplies[p] += amount
            p, depth = root, 0
            continue
        # An arc that was of no use once is of none until the levels change, so that each is looked at once (Dinic).
        while next_arcs[p] < starts[p + 1]:
            arc = next_arcs[p]
            if capacities[arc] > 0 and levels[heads[arc]] == levels[p] + 1:
                break
            next_arcs[p] += 1
        if next_arcs[p] < starts[p + 1]:
            path[depth] = next_arcs[p]
            p = heads[next_arcs[p]]
            depth += 1
        # A dead end: step back, and give up the arc that led here; at the root, nothing more can be sent.
        elif depth == 0:
            break
        else:
            depth -= 1
            p = heads[reverse[path[depth]]]
            next_arcs[p] += 1


@compiled()
def _source_side(
    starts: IntArray, heads: IntArray, reverse: IntArray, capacities: IntArray, supplies: IntArray
) -> IntArray:
    """Mark by 1 the nodes on the source's side of the smallest minimum cut; changes the last two arrays."""
    # A node with a supply > 0 is joined to the source by an arc of that capacity, one with a supply < 0 to the sink.
    levels, queue, path = np.empty_like(supplies), np.empty_like(supplies), np.empty_like(supplies)
    while _find_levels(starts, heads, capacities, supplies, levels, queue):
        next_arcs = starts[:-1].copy()
        for root in range(len(supplies)):
            _send(root, starts, heads, reverse, capacities, supplies, levels, next_arcs, path)
    return (levels >= 0).astype(np.int64)


@compiled()
def improve(
    unary: IntArray,
    pairwise: IntArray,
    pairs: IntArray,
    starts: IntArray,
    heads: IntArray,
    reverse: IntArray,
    back: IntArray,
) -> IntArray:
    """Find labels y, shape (P,), of high energy sum_p unary[p, y_p] - sum over pairs of pairwise_pq [y_p != y_q].

    From y = 0, each move gives the label k to the set of nodes that raises the energy most, which is a minimum cut. It
    ends when no move raises the energy. With two labels, the first move finds the maximum; with more, the labels are
    within a factor of two of it in the sense of Boykov, Veksler & Zabih. Ties go to the smallest set.
    """
    P, K = unary.shape
    labels, supplies = np.zeros(P, dtype=np.int64), np.empty(P, dtype=np.int64)
    capacities = np.empty(len(heads), dtype=np.int64)
    k, idle = 1, 0
    # Until each label in turn was tried in vain. With two labels one cut is the optimum.
    while idle < (1 if K == 2 else K):
        for p in range(P):
            supplies[p] = unary[p, k] - unary[p, labels[p]]
        capacities[:] = 0
        for e in range(len(pairwise)):
            p, q = pairs[0, e], pairs[1, e]
            # The costs of a pair by which of its nodes move to k, as capacities and supplies of a cut (Kolmogorov and
            # Zabih's construction).
            now = pairwise[e] * (labels[p] != labels[q])
            if_q, if_p = pairwise[e] * (labels[p] != k), pairwise[e] * (labels[q] != k)  # costs if one node moves
            supplies[p] -= if_p - now
            supplies[q] += if_p
            capacities[back[e]] = if_q + if_p - now
        moved = _source_side(starts, heads, reverse, capacities, supplies)
        idle += 1
        for p in range(P):
            if moved[p] and labels[p] != k:
                labels[p] = k
                idle = 0 if K > 2 else 1
        k = (k + 1) % K
    return labels


# Integers, since a cut by floats may depend on the order of additions, and never ends if rounding leaves a residue.
PRECISION = 2**48
"""The sum of all terms of an energy after scaling and before rounding to integers."""


@dataclass(frozen=True, eq=False)
class Superpixels:
    """An image, as a grid of P superpixels, numbered row by row."""

    shape: tuple[int, int]  # rows and columns; their product is P
    features: FloatArray  # shape (P, f): phi
    affinities: FloatArray  # shape (edges,): similarity of the pairs of neighbours, in the order of `neighbours`

    @classmethod
    def from_colours(cls, colours: FloatArray) -> Superpixels:
        """Make superpixels of their mean colours, with `colour_features` and a constant 1, and `colour_affinities`."""
        flat = colours.reshape(-1, 3)
        features = np.column_stack([colour_features(flat), np.ones(len(flat))])
        return cls(colours.shape[:2], features, colour_affinities(colours))


def colour_affinities(colours: FloatArray) -> FloatArray:
    """The similarities of neighbours, shape (edges,), in the order of `neighbours`.

    The affinity of p and q is exp(-||c_p - c_q||² / (2 s²)), where 2 s² is the mean of ||c_p - c_q||² over all pairs of
    neighbours.
    """
    flat = colours.reshape(-1, 3)
    first, second = neighbours(colours.shape[:2])
    contrasts = ((flat[first] - flat[second]) ** 2).sum(axis=1)
    return np.asarray(np.exp(-contrasts / (contrasts.mean() if contrasts.any() else 1.0)))


def colour_features(colours: FloatArray) -> FloatArray:
    """Compute colour features, shape (P, 12), of mean colours in [0, 1], shape (P, 3).

    With r, g and b scaled to [-1, 1]: r, g, b, r², g², b², rg, gb, br. Then, from the unscaled colours, value
    max(r, g, b), chroma value - min(r, g, b) and saturation chroma / value (0 for black), each scaled to [-1, 1].
    """
    scaled = 2.0 * colours - 1.0
    value = colours.max(axis=1)
    chroma = value - colours.min(axis=1)
    saturation = chroma / np.where(value > 0, value, 1.0)
    hexcone = 2.0 * np.column_stack([value, chroma, saturation]) - 1.0
    return np.hstack([scaled, scaled**2, scaled * np.roll(scaled, -1, axis=1), hexcone])


@dataclass(frozen=True)
class PottsModel:
    """Segmentation as a `greylag.learning.StructuredModel`: inputs are superpixels, outputs labels.

        w' Psi(x, y) = (sum_p u_(y_p)' phi_p - sum over neighbours p, q of (v + v' a_pq) [y_p != y_q]) / P

    for weights w = (u_1, ..., u_(K-1), v, v'), u_0 = 0, v and v' >= 0 (the model's `nonnegative`),
    features phi and affinities a. Only differences between labels count, so that label 0 needs no weights. Delta is the
    share of wrong labels, or the sum of the class weights c of their true labels, divided by P. The division by P makes
    weights and losses independent of the size of the image.
    """

    n_labels: int = 2  # K
    class_weights: tuple[float, ...] = ()  # c, for each label; see `inverse_frequencies`

    @property
    def nonnegative(self) -> tuple[int, int]:
        """The positions of v and v'."""
        return -2, -1

    def joint_feature(self, x: Superpixels, y: IntArray) -> FloatArray:
        """Compute Psi(x, y), shape ((K - 1) f + 2,)."""
        first, second = neighbours(x.shape)
        cut = (y[first] != y[second]).astype(np.float64)
        sums = np.einsum("pk,pf->kf", self._indicators(y)[:, 1:], x.features)
        return np.append(sums.ravel(), (-cut.sum(), -inner(x.affinities, cut))) / len(y)

    def loss(self, truth: IntArray, y: IntArray) -> float:
        """Return the share of wrong labels, weighted by class if the classes have weights."""
        return float(np.mean(self._costs(truth) * (truth != y)))

    def target(self, x: Superpixels, truth: IntArray) -> IntArray:
        """Return the truth."""
        return truth

    def infer(self, x: Superpixels, weights: FloatArray) -> IntArray:
        """Return the y with the highest w' Psi(x, y), as exact as `best_labels`."""
        return best_labels(x.shape, *self._terms(x, weights))

    def infer_augmented(self, x: Superpixels, truth: IntArray, weights: FloatArray) -> IntArray:
        """Return the y with the highest w' Psi(x, y) + Delta(t, y), likewise."""
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
        """The y with the highest w' Psi(x, y) + task Delta(t, y) + similarity times its mean similarity to `others`."""
        unary, pairwise = self._terms(x, weights)
        unary += task * self._costs(truth)[:, None] * (1.0 - self._indicators(truth))
        for other in others:
            unary += similarity / len(others) * self._indicators(other)
        return best_labels(x.shape, unary, pairwise)

    def similarity(self, y: IntArray, other: IntArray) -> float:
        """Return the share of equal labels, in [0, 1]."""
        return float(np.mean(y == other))

    def _indicators(self, y: IntArray) -> FloatArray:
        """Return 1 for the label of each superpixel, 0 for all others; shape (P, K)."""
        return np.asarray(y[:, None] == np.arange(self.n_labels), dtype=np.float64)

    def _costs(self, truth: IntArray) -> FloatArray:
        """Return C for each superpixel."""
        return np.array(self.class_weights)[truth] if self.class_weights else np.ones(len(truth))

    def _terms(self, x: Superpixels, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P times the score of each label for each superpixel, and P times the cost of unlike pairs."""
        f, K = x.features.shape[1], self.n_labels
        scores = np.einsum("pf,kf->pk", x.features, weights[:-2].reshape(K - 1, f))
        return np.column_stack([np.zeros(len(scores)), scores]), weights[-2] + weights[-1] * x.affinities


def inverse_frequencies(truths: Sequence[IntArray], n_labels: int) -> tuple[float, ...]:
    """Divide the number of all superpixels by K times that of each label."""
    # A constant prediction then loses on average 1 - 1/K over these images, whatever the label is.
    counts = np.bincount(np.concatenate(truths), minlength=n_labels)
    if not counts.all():
        raise ParameterError(f"label {int(counts.argmin())} does not occur in the images that classes are weighted by")
    return tuple((counts.sum() / (n_labels * counts)).tolist())


def best_labels(shape: tuple[int, int], unary: FloatArray, pairwise: FloatArray) -> IntArray:
    """Find a y in {0, ..., K - 1}^P with a high energy, the highest if K = 2,

        E(y) = sum_p unary_p(y_p) - sum over neighbours p, q of pairwise_pq [y_p != y_q].

    See `improve`. Terms are rounded to integers after division by B /
    `PRECISION`, where B is the sum of the absolute values of all terms. E(y) is therefore within B (P + edges) /
    `PRECISION` of the highest if K = 2. Then, ties go to the y with the fewest labels 1.
    """
    total = np.abs(unary).sum() + pairwise.sum()
    scale = PRECISION / total if total else 0.0
    return np.asarray(
        improve(np.rint(scale * unary).astype(np.int64), np.rint(scale * pairwise).astype(np.int64), *_network(shape))
    )


@lru_cache
def neighbours(shape: tuple[int, int]) -> IntArray:
    """Return pairs of neighbours in a grid, horizontal before vertical, shape (2, edges); each pair once."""
    numbers = np.arange(shape[0] * shape[1]).reshape(shape)
    across = (numbers[:, :-1].ravel(), numbers[:, 1:].ravel())
    down = (numbers[:-1].ravel(), numbers[1:].ravel())
    pairs = np.hstack([across, down])
    pairs.flags.writeable = False
    return pairs


@lru_cache
def _network(shape: tuple[int, int]) -> Network:
    return make_network(neighbours(shape).copy(), shape[0] * shape[1])
