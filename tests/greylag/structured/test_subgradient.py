"""The steps of eq. 8 to 10 against a plain implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from greylag.ranking import FloatArray
from greylag.structured import TrainingSet
from greylag.structured.coulomb_problem import CoulombProblem
from greylag.structured.electrostatics import displacements, energy_descent
from greylag.structured.subgradient import walk
from tests.greylag.structured.models import Table, random_tables

EXAMPLES = random_tables(0, n=5, outputs=6, d=4)
START = np.random.default_rng(1).standard_normal((3, 4))


def problem(table: Table, **given: Any) -> CoulombProblem:
    parameters = {"C": 5.0, "alpha": 0.3, "s": 1.0, "repulsion": "displacement", "assignment": "all"} | given
    return CoulombProblem(TrainingSet(table, EXAMPLES), **parameters)


def subgradient(w: FloatArray, own: list[int]) -> FloatArray:
    """The mean of g over the examples of a member (eq. 7)."""
    found = []
    for x, truth in (EXAMPLES[i] for i in own):
        found.append(x[np.argmin(truth)] - x[np.argmax(x @ w + truth)])
    return -np.mean(found, axis=0)


@pytest.mark.parametrize("repulsion", ["displacement", "gradient"])
def test_one_step_is_eq_8(repulsion: str) -> None:
    repel = {"displacement": displacements, "gradient": energy_descent}[repulsion](START, 0.3)
    slopes = [-(w + 5.0 * subgradient(w, [0, 1, 2, 3, 4]) - force) for w, force in zip(START, repel, strict=True)]
    eta = 1.0 / max(1.0, np.linalg.norm(slopes, axis=1).max() / 0.5)
    found = walk(problem(Table(), repulsion=repulsion), START, 0.5, epochs=1, rng=np.random.default_rng(0))
    np.testing.assert_allclose(found.weights, START + eta * np.array(slopes))
    assert not found.converged


def test_a_stochastic_epoch_is_eq_9_with_an_example_for_each_member() -> None:
    found = walk(problem(Table(), assignment="stochastic"), START, 0.5, epochs=2, rng=np.random.default_rng(0))
    rng, weights, delay, suffix = np.random.default_rng(0), START.copy(), 0.0, []
    for step in range(10):
        drawn = rng.integers(5, size=3)
        slopes = displacements(weights, 0.3)
        for m, i in enumerate(drawn):
            slopes[m] -= weights[m] + 5.0 * subgradient(weights[m], [i])
        delay = delay or max(1.0, np.linalg.norm(slopes, axis=1).max() / 0.5)
        weights = weights + slopes / (step + delay)
        suffix.append(weights)
    np.testing.assert_allclose(found.weights, np.mean(suffix[5:], axis=0), rtol=1e-10)


def test_a_member_without_examples_is_only_repelled() -> None:
    # The first member is best on all examples; the others keep their lengths (eq. 10).
    examples = [(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.0, 1.0]))] * 2
    start = np.array([[3.0, 0.1], [-2.0, 0.5], [-0.5, 1.0]])
    alone = CoulombProblem(TrainingSet(Table(), examples), 1.0, 0.05, 1.0, "displacement", "best")
    after = walk(alone, start, 10.0, epochs=1, rng=np.random.default_rng(0)).weights
    np.testing.assert_allclose(np.linalg.norm(after[1:], axis=1), np.linalg.norm(start[1:], axis=1))
    moved = (start + displacements(start, 0.05))[1:]
    np.testing.assert_allclose(after[1:], moved)
    assert np.linalg.norm(after[0]) < 2.5


@pytest.mark.parametrize("assignment", ["all", "best", "sampled", "stochastic"])
def test_signs_are_projected(assignment: str) -> None:
    signed = problem(Table(nonnegative=(1, 3)), assignment=assignment)
    start = signed.training.project(START)
    free = problem(Table(), assignment=assignment)
    found, other = (walk(p, start, 0.5, epochs=30, rng=np.random.default_rng(0)).weights for p in (signed, free))
    assert (found[:, [1, 3]] >= 0.0).all()
    assert (other[:, [1, 3]] < 0.0).any()
