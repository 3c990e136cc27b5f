"""The fixed points of the displacement form, by another solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from greylag.ranking import FloatArray
from greylag.structured import Ensemble, TrainingSet
from greylag.structured.coulomb_problem import SETTLED, CoulombProblem
from greylag.structured.electrostatics import displacements
from greylag.structured.model import task_losses
from greylag.structured.relaxation import relax
from tests.greylag.structured.models import Table, optimum_around, random_tables


def relaxed(table: Table, examples: list[tuple[FloatArray, FloatArray]], M: int, **given: Any) -> Ensemble:
    rng, d = np.random.default_rng(0), examples[0][0].shape[1]
    parameters = {"C": 5.0, "alpha": 0.1, "s": 1.0, "repulsion": "displacement", "assignment": "all"} | given
    problem = CoulombProblem(TrainingSet(table, examples), **parameters)
    centres = rng.standard_normal((M, d))
    return relax(problem, problem.training.project(centres), centres, epochs=300, epsilon=1e-6, rng=rng)


@pytest.mark.parametrize("nonnegative", [(), (0, 3, 5)])
@pytest.mark.parametrize(("alpha", "s"), [(0.01, 1.0), (0.3, 1.0), (0.3, 2.0)])
def test_each_member_is_the_optimum_around_its_displacement(
    alpha: float, s: float, nonnegative: tuple[int, ...]
) -> None:
    """The fixed point of eq. 8."""
    table, examples = Table(nonnegative=nonnegative), random_tables(3, n=5, outputs=6, d=8)
    ensemble = relaxed(table, examples, 4, alpha=alpha, s=s)
    assert ensemble.converged
    assert (ensemble.weights[:, nonnegative] >= 0.0).all()
    targets = [int(np.argmin(truth)) for _, truth in examples]
    for member, centre in zip(ensemble.weights, displacements(ensemble.weights, alpha, s), strict=True):
        expected = optimum_around(centre, examples, 5.0, targets, nonnegative)
        assert np.linalg.norm(member - expected) <= 2 * SETTLED * np.linalg.norm(member)


def test_members_without_examples_find_equilibrium_on_their_spheres() -> None:
    examples = random_tables(6, n=1, outputs=10, d=6)
    start = np.random.default_rng(0).standard_normal((3, 6))
    ensemble = relaxed(Table(), examples, 3, assignment="best", alpha=1.0)
    assert ensemble.converged
    losses = task_losses(Table(), examples, ensemble.weights)[:, 0]
    lengths = np.linalg.norm(ensemble.weights, axis=1)
    kept = np.isclose(lengths, np.linalg.norm(start, axis=1))
    assert kept.sum() == 2
    assert losses[~kept] == losses.min()
    forces = displacements(ensemble.weights, 1.0)[kept]
    assert np.linalg.norm(forces, axis=1).max() <= SETTLED * lengths.mean()


@pytest.mark.parametrize("s", [0.5, 1.0, 2.0])
def test_without_risk_any_exponent_gives_the_tetrahedron(s: float) -> None:
    ensemble = relaxed(Table(), [(np.ones((2, 3)), np.zeros(2))], 4, alpha=2.0, s=s)
    units = ensemble.weights / np.linalg.norm(ensemble.weights, axis=1, keepdims=True)
    np.testing.assert_allclose((units @ units.T)[np.triu_indices(4, 1)], -1 / 3, atol=0.03)
