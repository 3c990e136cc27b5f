"""The constraints that members share: hinge losses, optima, and the conditions of optimality of the compiled solver."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.structured import CuttingPlane, TrainingSet
from greylag.structured.constraint_pool import IDLE_LIMIT, ConstraintPool
from greylag.structured.dual_steps import climb
from tests.greylag.structured.models import Table, optimum_around, random_tables


def test_hinge_losses_are_exact_after_the_search_for_constraints() -> None:
    training = TrainingSet(Table(), random_tables(0, n=4, outputs=6, d=5))
    pool, weights = ConstraintPool(training, 3), np.random.default_rng(0).standard_normal((3, 5))
    expected = np.array([training.hinge_losses(member) for member in weights])
    assert (pool.hinge_losses(weights) == training.target_losses).all()
    costs = np.ones((3, 4))
    assert pool.search(weights, costs, 1e-9)[0]
    np.testing.assert_allclose(pool.hinge_losses(weights), expected, rtol=1e-12)
    assert not pool.search(weights, costs, 1e-9)[0]


def test_only_examples_with_costs_are_searched() -> None:
    training = TrainingSet(Table(), random_tables(0, n=4, outputs=6, d=5))
    pool, weights = ConstraintPool(training, 1), np.random.default_rng(0).standard_normal((1, 5))
    assert not pool.search(weights, np.zeros((1, 4)), 1e-9)[0]
    assert pool.search(weights, np.array([[0.0, 2.0, 0.0, 0.0]]), 1e-9)[0]
    hinges, expected = pool.hinge_losses(weights)[0], training.hinge_losses(weights[0])
    assert hinges[1] == pytest.approx(expected[1])
    assert hinges[[0, 2, 3]].tolist() == training.target_losses[[0, 2, 3]].tolist()


@pytest.mark.parametrize("seed", range(4))
def test_optimum_with_signs_is_that_of_another_solver(seed: int) -> None:
    examples, signs = random_tables(seed, n=4, outputs=6, d=5), (0, 2, 3)
    training = TrainingSet(Table(nonnegative=signs), examples)
    pool, rng, C = ConstraintPool(training, 3), np.random.default_rng(seed), np.array([0.1, 3.0, 30.0])
    centres, costs = rng.standard_normal((3, 5)), np.tile(C[:, None] / 4, (1, 4))
    weights, _ = pool.solve(centres, costs, 1e-9)
    while pool.search(weights, costs, 1e-9)[0]:
        weights, _ = pool.solve(centres, costs, 1e-9)
    for member, centre, cost in zip(weights, centres, C, strict=True):
        expected = optimum_around(centre, examples, cost, training.targets, signs)
        np.testing.assert_allclose(member, expected, atol=1e-5)
    assert (weights[:, signs] == 0.0).any()
    assert (weights[:, signs] >= 0.0).all()


@pytest.mark.parametrize("seed", range(3))
def test_members_without_examples_for_long_still_reach_the_optimum(seed: int) -> None:
    training = TrainingSet(Table(), random_tables(seed, n=4, outputs=8, d=5))
    pool, centres, C = ConstraintPool(training, 2), np.zeros((2, 5)), np.full((2, 4), 2.5)
    alone = C * np.array([[1.0], [0.0]])
    weights, _ = pool.solve(centres, alone, 1e-9)
    for _ in range(IDLE_LIMIT + 10):
        pool.search(weights, C, 1e-9)
        weights, _ = pool.solve(centres, alone, 1e-9)
    np.testing.assert_array_equal(weights[1], 0.0)
    best = CuttingPlane(10.0, epsilon=1e-8).fit(Table(), training.examples)
    np.testing.assert_allclose(weights[0], best.weights, atol=1e-4)
    for _ in range(IDLE_LIMIT):
        pool.search(weights, C, 1e-9)
        weights, _ = pool.solve(centres, C, 1e-9)
    np.testing.assert_allclose(weights, [best.weights, best.weights], atol=1e-4)
    assert training.objective(weights[1], 10.0) == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_optimum_shares_weight_among_the_most_violated_constraints(seed: int) -> None:
    rng = np.random.default_rng(seed)
    normals, bounds = rng.standard_normal((12, 4)), rng.random(12)
    owners = np.repeat(np.arange(3), 4)
    order, starts = rng.permutation(12), np.array([0, 4, 8, 12])
    owners[order] = np.repeat(np.arange(3), 4)
    alpha = np.zeros(12)
    alpha[order[starts[:-1]]] = 2.0
    violations = bounds - normals @ (normals.T @ alpha)
    climb(normals @ normals.T, violations, order, starts, alpha, 1e-10, 1000)
    np.testing.assert_allclose(violations, bounds - normals @ (normals.T @ alpha), atol=1e-9)
    assert (alpha >= 0).all()
    for example in range(3):
        part = owners == example
        assert alpha[part].sum() == pytest.approx(2.0)
        assert violations[part & (alpha > 0)].min() >= violations[part].max() - 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_multipliers_of_signs_are_complementary_to_the_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    normals = np.vstack([rng.standard_normal((12, 5)), np.eye(5)[[0, 2, 3]]])
    bounds = np.append(rng.random(12), np.zeros(3))
    centre, alpha = rng.standard_normal(5) - 3.0, np.zeros(15)
    alpha[[0, 4, 8]] = 2.0
    violations = bounds - normals @ (centre + normals.T @ alpha)
    climb(normals @ normals.T, violations, np.arange(15), np.array([0, 4, 8, 12]), alpha, 1e-10, 1000)
    weights = centre + normals.T @ alpha
    np.testing.assert_allclose(violations, bounds - normals @ weights, atol=1e-9)
    assert (alpha >= 0).all()
    assert (weights[[0, 2, 3]] >= -1e-9).all()
    np.testing.assert_allclose(alpha[12:] * weights[[0, 2, 3]], 0.0, atol=1e-9)
    assert (alpha[12:] > 0).any()
    for part in (slice(0, 4), slice(4, 8), slice(8, 12)):
        assert alpha[part].sum() == pytest.approx(2.0)
        assert violations[part][alpha[part] > 0].min() >= violations[part].max() - 1e-9
