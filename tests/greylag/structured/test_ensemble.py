"""The result of ensemble learners."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.structured import Ensemble
from greylag.structured.ensemble import perturbations
from tests.greylag.structured.models import Table, random_tables


def test_size_angle_and_losses() -> None:
    ensemble = Ensemble(np.eye(3), epochs=4, converged=True)
    assert len(ensemble) == 3
    assert ensemble.mean_angle == pytest.approx(90.0)
    examples = random_tables(0, n=5, outputs=6, d=3)
    losses = ensemble.losses(Table(), examples)
    assert losses.tolist() == [[truth[np.argmax(x[:, m])] for x, truth in examples] for m in range(3)]
    np.testing.assert_allclose(ensemble.mean_losses(Table(), examples), losses.mean(axis=1))
    assert ensemble.losses(Table(), []).shape == (3, 0)


def test_perturbations_are_a_tenth_as_long_as_the_weights() -> None:
    rng = np.random.default_rng(0)
    weights = np.array([3.0, 0.0, 4.0])
    found = perturbations(weights, 200, rng)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 0.5)
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=0.08)  # no preferred direction
    np.testing.assert_allclose(np.linalg.norm(perturbations(np.zeros(3), 4, rng), axis=1), 0.1)
