"""Energy, forces and displacements against definitions, derivatives and known optima of the Thomson problem."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from greylag.ranking import FloatArray
from greylag.structured.electrostatics import (
    directions,
    displacements,
    energy_descent,
    lengths,
    mean_angle,
    riesz_energy,
    riesz_forces,
)

EXPONENTS = (0.5, 1.0, 2.0, 3.5)


def random_weights(seed: int, m: int, d: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, d)) * rng.uniform(0.1, 10.0, (m, 1))


def plain_energy(points: FloatArray, s: float = 1.0) -> float:
    return sum(np.linalg.norm(points[m] - points[k]) ** -s for m in range(len(points)) for k in range(m))


def numerical_gradient(energy: Callable[[FloatArray], float], points: FloatArray) -> FloatArray:
    gradient, step = np.zeros_like(points), 1e-6
    for place in np.ndindex(points.shape):
        moved = np.zeros_like(points)
        moved[place] = step
        gradient[place] = (energy(points + moved) - energy(points - moved)) / (2 * step)
    return gradient


def test_known_energies() -> None:
    assert riesz_energy(np.array([[2.0, 0.0], [-5.0, 0.0]])) == pytest.approx(0.5)
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=float)
    assert riesz_energy(corners) == pytest.approx(3.674235, abs=1e-6)
    assert riesz_energy(np.ones((1, 3))) == 0.0
    assert riesz_energy(np.array([[1.0, 2.0], [3.0, 6.0]])) > 1e7


@pytest.mark.parametrize("seed", range(4))
def test_energy_depends_only_on_directions(seed: int) -> None:
    weights = random_weights(seed, 5, 4)
    units = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    np.testing.assert_allclose(directions(weights), units, rtol=1e-14)
    for s in EXPONENTS:
        assert riesz_energy(weights, s) == pytest.approx(plain_energy(units, s))


@pytest.mark.parametrize("s", EXPONENTS)
@pytest.mark.parametrize("seed", range(4))
def test_force_is_the_negative_gradient_of_the_energy(seed: int, s: float) -> None:
    units = directions(random_weights(seed, 4, 3))
    gradient = numerical_gradient(lambda points: plain_energy(points, s), units)
    np.testing.assert_allclose(riesz_forces(units, s), -gradient, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("s", EXPONENTS)
@pytest.mark.parametrize("seed", range(4))
def test_descent_is_the_negative_gradient_by_the_weights(seed: int, s: float) -> None:
    weights = random_weights(seed, 4, 3)
    gradient = numerical_gradient(lambda points: 0.7 * riesz_energy(points, s), weights)
    descent = energy_descent(weights, 0.7, s)
    np.testing.assert_allclose(descent, -gradient, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(np.einsum("md,md->m", descent, weights), 0.0, atol=1e-12 * np.abs(descent).max())
    # To first order in alpha, displacements are the descent in units of the squared lengths.
    small = displacements(weights, 1e-9, s)
    np.testing.assert_allclose(small, 1e-9 / 0.7 * lengths(weights)[:, None] ** 2 * descent, rtol=1e-5, atol=1e-14)


def test_coulomb_is_the_default() -> None:
    weights = random_weights(0, 4, 3)
    assert riesz_energy(weights) == riesz_energy(weights, 1.0)
    np.testing.assert_array_equal(riesz_forces(weights), riesz_forces(weights, 1.0))
    np.testing.assert_array_equal(displacements(weights, 0.3), displacements(weights, 0.3, 1.0))


@pytest.mark.parametrize("m", [1, 2, 7])
def test_forces_sum_to_zero(m: int) -> None:
    forces = riesz_forces(random_weights(m, m, 6))
    np.testing.assert_allclose(forces.sum(axis=0), 0.0, atol=1e-12 * max(1.0, np.abs(forces).max()))


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
def test_displacement_stays_on_the_members_sphere_and_lowers_the_energy(alpha: float) -> None:
    weights = random_weights(3, 6, 5)
    lengths = np.linalg.norm(weights, axis=1)
    moved = weights + displacements(weights, alpha)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), lengths, rtol=1e-12)
    units = weights / lengths[:, None]
    expected = units + alpha * riesz_forces(weights)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(moved, lengths[:, None] * expected, rtol=1e-10)
    assert riesz_energy(weights + 1e-3 * displacements(weights, alpha)) < riesz_energy(weights)


def test_displacement_vanishes_without_alpha() -> None:
    weights = random_weights(4, 5, 8)
    np.testing.assert_allclose(displacements(weights, 0.0), 0.0, atol=1e-14)


def test_coinciding_and_zero_weights_are_finite() -> None:
    weights = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1e-300, 1e-300]])
    assert riesz_energy(weights) == np.inf
    assert np.isfinite(riesz_forces(weights)).all()
    assert np.isfinite(displacements(weights, 1.0)).all()
    assert np.isfinite(energy_descent(weights, 1.0)).all()
    np.testing.assert_array_equal(energy_descent(weights, 1.0)[2], 0.0)
    np.testing.assert_array_equal(directions(weights)[2], 0.0)
    np.testing.assert_allclose(directions(weights)[4], np.sqrt(0.5))
    # The two that coincide experience the same forces and exert none on each other.
    np.testing.assert_array_equal(riesz_forces(weights)[0], riesz_forces(weights)[1])


def test_angles() -> None:
    assert mean_angle(np.eye(3)) == pytest.approx(90.0)
    assert mean_angle(np.array([[1.0, 0.0], [-3.0, 0.0]])) == pytest.approx(180.0)
    assert mean_angle(np.ones((1, 4))) == 0.0
    assert mean_angle(np.array([[1.0, 0.0], [1.0, 1e-9]])) == pytest.approx(np.degrees(1e-9))
