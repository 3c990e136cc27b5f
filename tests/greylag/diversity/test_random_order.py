"""Random order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greylag.diversity import RandomOrder, random_gain
from greylag.errors import ParameterError
from greylag.greedy import greedy
from tests.greylag.diversity import samples


def test_orders_are_equally_likely() -> None:
    rng = np.random.default_rng(0)
    orders = [tuple(greedy(random_gain(3, rng), 3)) for _ in range(6000)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert np.abs(np.array(counts) - 1000).max() < 5 * np.sqrt(1000)


def test_order_depends_on_seed_and_query() -> None:
    ranking = samples.ranking(0, 15)
    orders = {RandomOrder(seed)(replace(ranking, qid=qid)).docids for seed in (0, 1) for qid in ("a", "b")}
    assert len(orders) == 4
    with pytest.raises(ParameterError, match="seed must be at least 0, not -1"):
        RandomOrder(-1)
