"""The compiled dual solver against its conditions of optimality."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.structured.pairwise_steps import climb


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
    climb(normals @ normals.T, violations, order, starts, alpha, 1e-10, 100_000)
    np.testing.assert_allclose(violations, bounds - normals @ (normals.T @ alpha), atol=1e-9)
    assert (alpha >= 0).all()
    for example in range(3):
        own = owners == example
        assert alpha[own].sum() == pytest.approx(2.0)
        assert violations[own & (alpha > 0)].min() >= violations[own].max() - 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_multipliers_of_signs_are_complementary_to_the_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    normals = np.vstack([rng.standard_normal((12, 5)), np.eye(5)[[0, 2, 3]]])
    bounds = np.append(rng.random(12), np.zeros(3))
    centre, alpha = rng.standard_normal(5) - 3.0, np.zeros(15)
    alpha[[0, 4, 8]] = 2.0
    violations = bounds - normals @ (centre + normals.T @ alpha)
    climb(normals @ normals.T, violations, np.arange(15), np.array([0, 4, 8, 12]), alpha, 1e-10, 100_000)
    weights = centre + normals.T @ alpha
    np.testing.assert_allclose(violations, bounds - normals @ weights, atol=1e-9)
    assert (alpha >= 0).all()
    assert (weights[[0, 2, 3]] >= -1e-9).all()
    np.testing.assert_allclose(alpha[12:] * weights[[0, 2, 3]], 0.0, atol=1e-9)
    assert (alpha[12:] > 0).any()
    for own in (slice(0, 4), slice(4, 8), slice(8, 12)):
        assert alpha[own].sum() == pytest.approx(2.0)
        assert violations[own][alpha[own] > 0].min() >= violations[own].max() - 1e-9
