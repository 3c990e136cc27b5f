"""The greedy loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refuses

from greylag.base import ModularGain, ParameterError, greedy_picks


def test_ties_go_to_the_better_rank_despite_rounding_errors():
    assert greedy_picks(ModularGain(np.zeros(4)), 4).tolist() == [0, 1, 2, 3]
    assert greedy_picks(ModularGain(np.array([0.1 + 0.2, 0.3, 0.3 + 1e-9])), 3).tolist() == [2, 0, 1]
    assert greedy_picks(ModularGain(np.array([0.3, 0.1 + 0.2])), 2).tolist() == [0, 1]
    assert greedy_picks(ModularGain(np.array([-2.0, -1.0])), 5).tolist() == [1, 0]


GAINS = st.lists(st.sampled_from([0.3, 0.1 + 0.2, 0.0, -1.0, 1e12, -1e12]) | st.floats(-2, 2), min_size=1, max_size=9)


@given(GAINS, st.integers(1, 9))
def test_picks_are_those_of_the_definition(worth, k):
    left, picked = list(range(len(worth))), []
    while left and len(picked) < k:
        tie = 1e-12 * max(abs(worth[i]) for i in left)
        picked.append(next(i for i in left if worth[i] >= max(worth[i] for i in left) - tie))
        left.remove(picked[-1])
    assert greedy_picks(ModularGain(np.array(worth)), k).tolist() == picked


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_gains_of_picked_candidates_are_ignored(value):
    class Spent(ModularGain):
        def add(self, candidate):
            self._worth = np.where(np.arange(3) == candidate, value, self._worth)

    assert greedy_picks(Spent(np.array([1.0, 3.0, 2.0])), 3).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("gain", "n", "parts"),
    [
        *(
            (ModularGain(np.array(w)), None, "candidate 0 finite")
            for w in ([np.nan, 1.0], [np.inf, 1.0], [-np.inf] * 2)
        ),
        *((ModularGain(np.ones(shape)), 3, "3 candidates") for shape in (2, 4, (3, 1))),
        ("abc", None, "'abc' gains add"),
    ],
)
def test_refusals(gain, n, parts):
    refuses(lambda: greedy_picks(gain, 2, n), ParameterError, parts)


def test_nothing_to_pick_from():
    assert greedy_picks(ModularGain(np.empty(0)), 3).tolist() == []
