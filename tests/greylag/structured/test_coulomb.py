"""The Coulomb structured SVM: its limit cases, fixed points and assignments."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.ranking import FloatArray
from greylag.structured import Coulomb, CuttingPlane, TrainingSet
from greylag.structured.coulomb import SETTLED, Assignment, Update
from greylag.structured.electrostatics import coulomb_energy, displacements
from tests.greylag.structured.models import Table, optimum_around, random_tables

UPDATES: tuple[Update, ...] = ("exact", "subgradient", "stochastic")
ASSIGNMENTS: tuple[Assignment, ...] = ("all", "best", "sampled", "stochastic")
THOMSON = {2: 0.5, 4: 3.674235, 6: 9.985281, 12: 49.165253}  # known minima on the sphere in three dimensions


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_without_alpha_every_member_is_the_structured_svm(update: Update, C: float) -> None:
    examples = random_tables(0, n=6, outputs=8, d=5)
    best = CuttingPlane(C, epsilon=1e-8).fit(Table(), examples).objective
    epochs = 100 if update == "exact" else 3000
    ensemble = Coulomb(3, alpha=0.0, C=C, update=update, epochs=epochs).fit(Table(), examples)
    training = TrainingSet(Table(), examples)
    for member in ensemble.weights:
        assert best - 1e-9 <= training.objective(member, C) <= 1.01 * best


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
@pytest.mark.parametrize("update", UPDATES)
def test_one_member_is_the_structured_svm(update: Update, assignment: Assignment) -> None:
    examples = random_tables(1, n=6, outputs=8, d=5)
    best = CuttingPlane(2.0, epsilon=1e-8).fit(Table(), examples).objective
    epochs = 100 if update == "exact" else 2000
    ensemble = Coulomb(1, alpha=1.0, C=2.0, assignment=assignment, update=update, epochs=epochs).fit(Table(), examples)
    assert TrainingSet(Table(), examples).objective(ensemble.weights[0], 2.0) == pytest.approx(best, rel=0.01)


@pytest.mark.parametrize("m", THOMSON)
def test_without_risk_members_solve_the_thomson_problem(m: int) -> None:
    # All outputs have the same features and no loss, so that all weights are equally good.
    examples = [(np.ones((2, 3)), np.zeros(2))]
    ensemble = Coulomb(m, alpha=2.0, epochs=2000).fit(Table(), examples)
    assert ensemble.weights.shape == (m, 3)
    assert coulomb_energy(ensemble.weights) == pytest.approx(THOMSON[m], rel=1e-6)


@pytest.mark.parametrize("update", UPDATES)
def test_larger_alpha_makes_larger_angles(update: Update) -> None:
    examples = random_tables(2, n=5, outputs=6, d=12)
    learners = [Coulomb(4, alpha=alpha, C=5.0, update=update) for alpha in (0.0, 1e-3, 1e-2, 1e-1, 1.0)]
    angles = [learner.fit(Table(), examples).mean_angle for learner in learners]
    assert angles == sorted(angles)
    assert angles[-1] > angles[1] + 10.0


@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_members_converge_to_the_fixed_point_of_the_steps(alpha: float) -> None:
    """The fixed point of eq. 8, by another solver: each member is the optimum around its displacement."""
    C, examples = 5.0, random_tables(3, n=5, outputs=6, d=8)
    ensemble = Coulomb(4, alpha=alpha, C=C, epsilon=1e-6).fit(Table(), examples)
    assert ensemble.converged
    for member, centre in zip(ensemble.weights, displacements(ensemble.weights, alpha), strict=True):
        expected = optimum_around(centre, examples, C, [int(np.argmin(truth)) for _, truth in examples])
        assert np.linalg.norm(member - expected) <= 2 * SETTLED * np.linalg.norm(member)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
@pytest.mark.parametrize("update", UPDATES)
def test_same_seed_same_bytes(update: Update, assignment: Assignment) -> None:
    examples = random_tables(4, n=5, outputs=6, d=8)
    learner = Coulomb(3, alpha=0.1, C=2.0, assignment=assignment, update=update, epochs=15, seed=5)
    first, second = (learner.fit(Table(), examples).weights for _ in range(2))
    assert first.tobytes() == second.tobytes()
    other = replace(learner, seed=6).fit(Table(), examples).weights
    assert not np.array_equal(first, other)


def test_assignments() -> None:
    hinges, rng = np.array([[0.0, 3.0, 1.0, 1.0], [5.0, 0.0, 1.0, 1.0 + np.log(3)]]), np.random.default_rng(0)
    np.testing.assert_array_equal(Coulomb(assignment="all").assign(hinges, rng), np.ones((2, 4)))
    np.testing.assert_array_equal(Coulomb(assignment="best").assign(hinges, rng), [[1, 0, 1, 1], [0, 1, 0, 0]])
    shares: dict[Assignment, FloatArray] = {
        "sampled": np.exp(-hinges) / np.exp(-hinges).sum(axis=0),
        "stochastic": np.full((2, 4), 0.5),
    }
    for assignment, expected in shares.items():
        drawn = np.array([Coulomb(assignment=assignment).assign(hinges, rng) for _ in range(20_000)])
        assert (drawn.sum(axis=1) == 1).all()
        np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.015)
    assert shares["sampled"][0, 3] == pytest.approx(0.75)


def test_best_makes_members_specialise() -> None:
    # Two kinds of examples that no single weight vector can fit.
    x = np.array([[1.0], [-1.0]])
    examples = [(x, truth) for truth in (np.array([0.0, 1.0]), np.array([1.0, 0.0])) for _ in range(3)]
    ensemble = Coulomb(2, alpha=0.1, C=10.0, assignment="best").fit(Table(), examples)
    losses = ensemble.losses(Table(), examples)
    assert losses.min(axis=0).max() == 0.0
    assert losses.mean() == 0.5
    assert losses.shape == (2, 6)


def test_best_converges_to_the_optimum_of_the_examples_of_each_member() -> None:
    C, examples = 5.0, random_tables(9, n=9, outputs=6, d=5)
    ensemble = Coulomb(3, alpha=0.0, C=C, assignment="best", epsilon=1e-6, seed=1).fit(Table(), examples)
    assert ensemble.converged
    training = TrainingSet(Table(), examples)
    owner = np.array([training.hinge_losses(member) for member in ensemble.weights]).argmin(axis=0)
    assert len(set(owner)) > 1
    for m in set(owner):
        own = [example for example, o in zip(examples, owner, strict=True) if o == m]
        alone = CuttingPlane(C * len(own) / len(examples), epsilon=1e-8).fit(Table(), own).weights
        np.testing.assert_allclose(ensemble.weights[m], alone, atol=5e-3 * np.linalg.norm(alone))


@pytest.mark.parametrize("assignment", ["best", "sampled", "stochastic"])
def test_one_example_goes_to_one_member(assignment: Assignment) -> None:
    # Random assignments are frozen after the first epochs.
    examples = random_tables(6, n=1, outputs=10, d=6)
    weights = Coulomb(3, alpha=0.0, C=5.0, assignment=assignment).fit(Table(), examples).weights
    lengths = np.linalg.norm(weights, axis=1)
    assert np.sort(lengths)[1] <= 3 * SETTLED * lengths.max()


@pytest.mark.parametrize("update", ["subgradient", "stochastic"])
def test_steps_with_random_assignments_reach_the_optimum_of_each_share(update: Update) -> None:
    examples = random_tables(6, n=4, outputs=10, d=6)
    training, share = TrainingSet(Table(), examples), 5.0 / 3
    best = CuttingPlane(share, epsilon=1e-8).fit(Table(), examples).objective
    ensemble = Coulomb(3, alpha=0.0, C=5.0, assignment="stochastic", update=update, epochs=2000).fit(Table(), examples)
    assert max(training.objective(member, share) for member in ensemble.weights) == pytest.approx(best, rel=0.02)


def test_one_example_is_enough_for_different_members() -> None:
    examples = random_tables(6, n=1, outputs=10, d=6)
    ensemble = Coulomb(5, alpha=0.3, C=5.0).fit(Table(), examples)
    assert ensemble.mean_angle > 20.0
    assert len(ensemble) == 5


def test_more_members_than_directions() -> None:
    weights = Coulomb(5, alpha=1.0).fit(Table(), random_tables(7, n=2, outputs=3, d=1)).weights
    assert np.isfinite(weights).all()


def test_the_limit_warns(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "greylag"):
        ensemble = Coulomb(3, epochs=2).fit(Table(), random_tables(8, n=3, outputs=4, d=5))
    assert not ensemble.converged
    assert "limit of 2 epochs" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"M": 0},
        {"alpha": -1.0},
        {"alpha": np.nan},
        {"alpha": np.inf},
        {"C": 0.0},
        {"assignment": "none"},
        {"update": "newton"},
        {"epochs": 0},
        {"epsilon": 0.0},
        {"seed": -1},
    ],
)
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(options))):
        Coulomb(**options)


def test_no_examples() -> None:
    with pytest.raises(ParameterError, match="no examples"):
        Coulomb().fit(Table(), [])
