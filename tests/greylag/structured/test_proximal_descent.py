"""Stationary points of the objective with the Riesz energy: descent, optimality, and equilibria on the sphere."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from greylag.ranking import FloatArray
from greylag.structured import Ensemble, TrainingSet, riesz_energy
from greylag.structured.coulomb_problem import SETTLED, CoulombProblem
from greylag.structured.electrostatics import energy_descent
from greylag.structured.proximal_descent import descend
from tests.greylag.structured.models import Table, optimum_around, random_tables

THOMSON = {2: 0.5, 4: 3.674235, 6: 9.985281, 12: 49.165253}  # known minima on the sphere in three dimensions
Examples = list[tuple[FloatArray, FloatArray]]


def descended(table: Table, examples: Examples, M: int, *, epochs: int = 300, **given: Any) -> Ensemble:
    rng, d = np.random.default_rng(0), examples[0][0].shape[1]
    parameters = {"C": 5.0, "alpha": 0.1, "s": 1.0, "repulsion": "gradient", "assignment": "all"} | given
    problem = CoulombProblem(TrainingSet(table, examples), **parameters)
    start = problem.training.project(rng.standard_normal((M, d)))
    return descend(problem, start, epochs=epochs, epsilon=1e-6, rng=rng)


def objective(weights: FloatArray, examples: Examples, C: float, alpha: float, s: float) -> float:
    training = TrainingSet(Table(), examples)
    return alpha * riesz_energy(weights, s) + sum(training.objective(member, C) for member in weights)


@pytest.mark.parametrize("nonnegative", [(), (0, 3, 5)])
@pytest.mark.parametrize(("alpha", "s"), [(0.01, 1.0), (1.0, 1.0), (1.0, 2.0)])
def test_each_member_is_the_optimum_around_the_descent_of_the_energy(
    alpha: float, s: float, nonnegative: tuple[int, ...]
) -> None:
    """Stationarity by another solver: 0 is a subgradient of the objective."""
    table, examples = Table(nonnegative=nonnegative), random_tables(3, n=5, outputs=6, d=8)
    ensemble = descended(table, examples, 4, alpha=alpha, s=s)
    assert ensemble.converged
    assert (ensemble.weights[:, nonnegative] >= 0.0).all()
    targets = [int(np.argmin(truth)) for _, truth in examples]
    for member, centre in zip(ensemble.weights, energy_descent(ensemble.weights, alpha, s), strict=True):
        expected = optimum_around(centre, examples, 5.0, targets, nonnegative)
        assert np.linalg.norm(member - expected) <= 2 * SETTLED * np.linalg.norm(member)


@pytest.mark.parametrize("s", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("assignment", ["all", "stochastic"])
def test_the_objective_never_rises_and_is_that_of_the_weights(assignment: str, alpha: float, s: float) -> None:
    examples = random_tables(4, n=5, outputs=6, d=8)
    ensemble = descended(Table(), examples, 4, alpha=alpha, s=s, C=20.0, assignment=assignment)
    assert len(ensemble.objectives) == ensemble.epochs
    assert all(after <= before for before, after in pairwise(ensemble.objectives))
    assert ensemble.objectives[-1] < ensemble.objectives[0]
    assert objective(ensemble.weights, examples, 20.0, alpha, s) == pytest.approx(ensemble.objectives[-1], rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_no_local_search_lowers_the_objective_much(seed: int) -> None:
    examples = random_tables(seed, n=3, outputs=5, d=4)
    ensemble = descended(Table(), examples, 3, alpha=0.5, C=5.0)
    found = minimize(
        lambda flat: objective(flat.reshape(3, 4), examples, 5.0, 0.5, 1.0),
        ensemble.weights.ravel(),
        method="Nelder-Mead",
        options={"maxfev": 4000},
    )
    assert found.fun == pytest.approx(ensemble.objectives[-1], rel=1e-3)


@pytest.mark.parametrize("m", THOMSON)
def test_at_vanishing_risk_members_solve_the_thomson_problem(m: int) -> None:
    examples = random_tables(5, n=2, outputs=4, d=3)
    ensemble = descended(Table(), examples, m, C=1e-6, alpha=1.0, epochs=4)
    assert riesz_energy(ensemble.weights) == pytest.approx(THOMSON[m], rel=1e-4)


def test_members_without_examples_keep_their_lengths_in_equilibrium() -> None:
    examples = random_tables(6, n=1, outputs=10, d=6)
    start = np.random.default_rng(0).standard_normal((3, 6))
    ensemble = descended(Table(), examples, 3, assignment="best", alpha=1.0)
    assert ensemble.converged
    lengths = np.linalg.norm(ensemble.weights, axis=1)
    kept = np.isclose(lengths, np.linalg.norm(start, axis=1))
    assert kept.sum() == 2
    forces = energy_descent(ensemble.weights, 1.0)[kept]
    assert np.linalg.norm(forces, axis=1).max() <= SETTLED * lengths.mean()
