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
