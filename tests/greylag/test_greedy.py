"""The greedy loop."""

from __future__ import annotations

import numpy as np

from greylag.greedy import ModularGain, greedy, picked_first


def test_ties_go_to_the_better_rank_despite_rounding_errors() -> None:
    assert greedy(ModularGain(np.zeros(4)), 4).tolist() == [0, 1, 2, 3]
    assert greedy(ModularGain(np.array([0.1 + 0.2, 0.3, 0.3 + 1e-9])), 3).tolist() == [2, 0, 1]
    assert greedy(ModularGain(np.array([0.3, 0.1 + 0.2])), 2).tolist() == [0, 1]
    assert greedy(ModularGain(np.array([-2.0, -1.0])), 5).tolist() == [1, 0]


def test_nothing_to_pick_from() -> None:
    assert greedy(ModularGain(np.empty(0)), 3).tolist() == []


def test_picked_first() -> None:
    assert picked_first(np.array([3, 1]), 5).tolist() == [3, 1, 0, 2, 4]
