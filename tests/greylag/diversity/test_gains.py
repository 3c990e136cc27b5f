"""The greedy loop, and the gains of the methods that learn nothing, held against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from greylag.diversity.baselines import ModularGain, random_gain, unweighted_coverage
from greylag.diversity.essential_pages import EssentialPagesGain
from greylag.greedy import Gain, greedy, picked_first


def frequencies(seed: int, n: int = 8, words: int = 10) -> csr_matrix:
    """Term counts, some documents empty and some words unused."""
    rng = np.random.default_rng(seed)
    return csr_matrix(rng.integers(1, 5, (n, words)) * (rng.random((n, words)) < 0.3), dtype=np.float64)


def essential_pages(tf: np.ndarray, picked: list[int]) -> float:
    """The sum over words of the best C(v, d) of the picked documents."""
    df = (tf > 0).mean(axis=0)
    benefits = tf * np.log(1 / np.where(df > 0, df, 1.0))
    return float(benefits[picked].max(axis=0, initial=0.0).sum())


def different_words(tf: np.ndarray, picked: list[int]) -> float:
    return float((tf[picked] > 0).any(axis=0).sum())


@pytest.mark.parametrize(
    ("make", "value"), [(EssentialPagesGain, essential_pages), (unweighted_coverage, different_words)]
)
@pytest.mark.parametrize("seed", range(15))
def test_gains_are_rises_of_the_value(make: type[Gain], value: type[float], seed: int) -> None:
    tf = frequencies(seed)
    dense, gain, picked = tf.toarray(), make(tf), []  # type: ignore[call-arg, var-annotated]
    for candidate in np.random.default_rng(seed).permutation(8)[:5]:
        rises = [value(dense, [*picked, i]) - value(dense, picked) for i in range(8)]  # type: ignore[call-arg, operator]
        np.testing.assert_allclose(gain.gains(), rises, atol=1e-12)
        gain.add(int(candidate))
        picked.append(int(candidate))


def test_random_orders_are_all_as_likely() -> None:
    rng = np.random.default_rng(0)
    orders = [tuple(greedy(random_gain(3, rng), 3)) for _ in range(6000)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert np.abs(np.array(counts) - 1000).max() < 5 * np.sqrt(1000)


def test_ties_go_to_the_better_rank_even_through_rounding() -> None:
    assert greedy(ModularGain(np.zeros(4)), 4).tolist() == [0, 1, 2, 3]
    assert greedy(ModularGain(np.array([0.1 + 0.2, 0.3, 0.3 + 1e-9])), 3).tolist() == [2, 0, 1]
    assert greedy(ModularGain(np.array([0.3, 0.1 + 0.2])), 2).tolist() == [0, 1]
    assert greedy(ModularGain(np.array([-2.0, -1.0])), 5).tolist() == [1, 0]


def test_picked_first() -> None:
    assert picked_first(np.array([3, 1]), 5).tolist() == [3, 1, 0, 2, 4]
