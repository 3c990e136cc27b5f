from __future__ import annotations

import numpy as np

from greylag_papers.schiegg_2016.label_moves import make_network


def test_network() -> None:
    network = make_network(np.array([[0, 1, 0], [1, 2, 2]]), 4)
    assert network.starts.tolist() == [0, 2, 4, 6, 6]  # node 3 has no neighbour
    tails = np.repeat(np.arange(4), np.diff(network.starts))
    arcs = list(zip(tails.tolist(), network.heads.tolist(), strict=True))
    assert sorted(arcs) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert [arcs[arc] for arc in network.reverse] == [(head, tail) for tail, head in arcs]
    assert [arcs[arc] for arc in network.back] == [(1, 0), (2, 1), (2, 0)]
