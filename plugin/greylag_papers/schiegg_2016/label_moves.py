"""The compiled search of `greylag_papers.schiegg_2016.potts` for the best labels, by minimum cuts.

scipy's maximum flow spends most of its time on making sparse matrices; `tests/benchmarks` compares the two.

References
----------
Boykov, Veksler and Zabih, Fast approximate energy minimization via graph cuts, PAMI 23, 2001 (expansion moves).
Dinic, Algorithm for solution of a problem of maximum flow in networks with power estimation, 1970.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greylag import IntArray, compiled


class Network(NamedTuple):
    """A graph of P nodes with an arc in each direction for each of E pairs of neighbours."""

    pairs: IntArray  # shape (2, E): the nodes p and q of each pair
    starts: IntArray  # shape (P + 1,): the arcs from node p are ``starts[p]`` to ``starts[p + 1]``, without the last
    heads: IntArray  # heads, reverse: shape (2 E,): the node that an arc leads to, and the arc in the other direction
    reverse: IntArray
    back: IntArray  # shape (E,): the arc from q to p


def make_network(pairs: IntArray, P: int) -> Network:
    """The network of P nodes and some pairs of neighbours, shape (2, E)."""
    E = pairs.shape[1]
    tails, heads = np.concatenate([pairs[0], pairs[1]]), np.concatenate([pairs[1], pairs[0]])
    order = np.argsort(tails, kind="stable")
    places = np.argsort(order)  # of the arcs p to q, then of the arcs q to p
    reverse = np.empty(2 * E, dtype=np.int64)
    reverse[places] = np.roll(places, E)
    return Network(pairs, np.searchsorted(tails[order], np.arange(P + 1)), heads[order], reverse, places[E:])


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
    places: IntArray,
    path: IntArray,
) -> None:
    """Send flow from one supply along ascending levels until nothing more can be sent."""
    p, depth = root, 0
    while supplies[root] > 0:
        if supplies[p] < 0:
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
        while places[p] < starts[p + 1]:
            arc = places[p]
            if capacities[arc] > 0 and levels[heads[arc]] == levels[p] + 1:
                break
            places[p] += 1
        if places[p] < starts[p + 1]:
            path[depth] = places[p]
            p = heads[places[p]]
            depth += 1
        elif depth == 0:
            break
        else:
            depth -= 1
            p = heads[reverse[path[depth]]]
            places[p] += 1


@compiled()
def _source_side(
    starts: IntArray, heads: IntArray, reverse: IntArray, capacities: IntArray, supplies: IntArray
) -> IntArray:
    """1 for the nodes on the source's side of the minimum cut, the smallest such set; changes the last two arrays.

    A node with a supply > 0 is joined to the source by an arc of that capacity, one with a supply < 0 to the sink.
    """
    levels, queue, path = np.empty_like(supplies), np.empty_like(supplies), np.empty_like(supplies)
    while _find_levels(starts, heads, capacities, supplies, levels, queue):
        places = starts[:-1].copy()
        for root in range(len(supplies)):
            _send(root, starts, heads, reverse, capacities, supplies, levels, places, path)
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
    """Labels y, shape (P,), of high energy sum_p unary[p, y_p] - sum over pairs of pairwise_pq [y_p != y_q].

    From y = 0, each move gives the label k to the set of nodes that raises the energy most, which is a minimum cut. It
    ends when no move raises the energy. With two labels, the first move finds the maximum; with more, the labels are
    within a factor of two of it in the sense of Boykov, Veksler & Zabih. Ties go to the smallest set.
    """
    P, K = unary.shape
    labels, supplies = np.zeros(P, dtype=np.int64), np.empty(P, dtype=np.int64)
    capacities = np.empty(len(heads), dtype=np.int64)
    k, idle = 1, 0
    while idle < (1 if K == 2 else K):
        for p in range(P):
            supplies[p] = unary[p, k] - unary[p, labels[p]]
        capacities[:] = 0
        for e in range(len(pairwise)):
            p, q = pairs[0, e], pairs[1, e]
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
