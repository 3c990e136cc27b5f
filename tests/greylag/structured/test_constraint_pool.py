"""The constraints that members share: hinge losses, and optima after constraints have been dropped."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.structured import CuttingPlane, TrainingSet
from greylag.structured.constraint_pool import IDLE_LIMIT, ConstraintPool
from tests.greylag.structured.models import Table, random_tables


def test_hinge_losses_are_exact_after_the_search_for_constraints() -> None:
    training = TrainingSet(Table(), random_tables(0, n=4, outputs=6, d=5))
    pool, weights = ConstraintPool(training, 3), np.random.default_rng(0).standard_normal((3, 5))
    expected = np.array([training.hinge_losses(member) for member in weights])
    assert (pool.hinge_losses(weights) == training.target_losses).all()
    assert pool.extend(weights, 1e-9)
    np.testing.assert_allclose(pool.hinge_losses(weights), expected, rtol=1e-12)
    assert not pool.extend(weights, 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_members_without_examples_for_long_still_reach_the_optimum(seed: int) -> None:
    training = TrainingSet(Table(), random_tables(seed, n=4, outputs=8, d=5))
    pool, centres, C = ConstraintPool(training, 2), np.zeros((2, 5)), np.full((2, 4), 2.5)
    alone = C * np.array([[1.0], [0.0]])
    weights = pool.solve(centres, alone, 1e-9)
    for _ in range(IDLE_LIMIT + 10):
        pool.extend(weights, 1e-9)
        weights = pool.solve(centres, alone, 1e-9)
    np.testing.assert_array_equal(weights[1], 0.0)
    best = CuttingPlane(10.0, epsilon=1e-8).fit(Table(), training.examples)
    np.testing.assert_allclose(weights[0], best.weights, atol=1e-4)
    for _ in range(IDLE_LIMIT):
        pool.extend(weights, 1e-9)
        weights = pool.solve(centres, C, 1e-9)
    np.testing.assert_allclose(weights, [best.weights, best.weights], atol=1e-4)
    assert training.objective(weights[1], 10.0) == pytest.approx(best.objective, rel=1e-6)
