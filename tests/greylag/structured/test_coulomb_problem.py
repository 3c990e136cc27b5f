"""What the solvers of the Coulomb structured SVM share, against definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from greylag.structured import TrainingSet, riesz_energy
from greylag.structured.assignment import sampling_shares
from greylag.structured.coulomb_problem import CoulombProblem
from greylag.structured.electrostatics import displacements, energy_descent
from greylag.structured.model import task_losses
from tests.greylag.structured.models import Table, random_tables

EXAMPLES = random_tables(0, n=6, outputs=5, d=4)
WEIGHTS = np.random.default_rng(1).standard_normal((3, 4))


def problem(nonnegative: tuple[int, ...] = (), **given: Any) -> CoulombProblem:
    parameters = {"C": 5.0, "alpha": 0.3, "s": 2.0, "repulsion": "displacement", "assignment": "all"} | given
    return CoulombProblem(TrainingSet(Table(nonnegative=nonnegative), EXAMPLES), **parameters)


def test_repulsion_and_objective() -> None:
    np.testing.assert_array_equal(problem().targets(WEIGHTS), displacements(WEIGHTS, 0.3, 2.0))
    gradient = problem(repulsion="gradient")
    np.testing.assert_array_equal(gradient.targets(WEIGHTS), energy_descent(WEIGHTS, 0.3, 2.0))
    hinges = np.array([gradient.training.hinge_losses(member) for member in WEIGHTS])
    risks = [member @ member / 2 + 5.0 * hinge.mean() for member, hinge in zip(WEIGHTS, hinges, strict=True)]
    found = gradient.objective(WEIGHTS, hinges, gradient.costs(np.ones((3, 6))))
    assert found == pytest.approx(0.3 * riesz_energy(WEIGHTS, 2.0) + sum(risks))
    assert problem(alpha=0.0).energy(np.ones((2, 4))) == 0.0


def test_drawn_shares_are_those_of_table_1() -> None:
    rng, none = np.random.default_rng(0), np.zeros((3, 6))
    losses = task_losses(Table(), EXAMPLES, WEIGHTS)
    assert (problem().drawn_shares(WEIGHTS, none, rng) == 1.0).all()
    best = problem(assignment="best").drawn_shares(WEIGHTS, none, rng)
    assert ((best * losses).sum(axis=0) == losses.min(axis=0)).all()
    assert (best.sum(axis=0) == 1.0).all()
    for assignment, axis, expected in (
        ("sampled", 0, sampling_shares(losses)),
        ("stochastic", 1, np.full((3, 6), 1 / 6)),
    ):
        drawing = problem(assignment=assignment)
        drawn = np.array([drawing.drawn_shares(WEIGHTS, none, rng) for _ in range(3000)])
        assert (drawn.sum(axis=1 + axis) == 1.0).all()
        np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.04)


def test_expected_shares_are_means_over_the_epochs() -> None:
    rng, shares, sampled = np.random.default_rng(0), np.zeros((3, 6)), problem(assignment="sampled")
    points = [np.random.default_rng(seed).standard_normal((3, 4)) for seed in range(4)]
    for epoch, weights in enumerate(points, 1):
        shares = sampled.expected_shares(weights, shares, epoch, rng)
    expected = np.mean([sampling_shares(task_losses(Table(), EXAMPLES, weights)) for weights in points], axis=0)
    np.testing.assert_allclose(shares, expected)
    for assignment in ("all", "stochastic"):
        assert (problem(assignment=assignment).expected_shares(WEIGHTS, shares, 1, rng) == 1.0).all()


def test_points_return_to_spheres() -> None:
    moved = np.array([[3.0, 4.0, 0.0, -1.0], [0.0, 0.0, 0.0, -2.0]])
    weights = np.array([[0.0, 0.0, 0.0, 2.0], [1.0, 0.0, 0.0, 0.0]])
    found = problem(nonnegative=(3,)).return_to_spheres(moved, weights)
    np.testing.assert_allclose(found, [[1.2, 1.6, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])


def test_relative_distances() -> None:
    assert problem().relative(np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([[6.0, 8.0], [0.0, 0.0]])) == 1.0
