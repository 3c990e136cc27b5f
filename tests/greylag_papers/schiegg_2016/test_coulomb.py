"""The Coulomb structured SVM: its limit cases, for each update, repulsion and assignment.

Tests `electrostatics` and `ensemble`.
"""

import logging
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from greylag import ParameterError
from greylag.learning import CuttingPlane, TrainingSet
from greylag_papers.schiegg_2016.coulomb import Coulomb
from greylag_papers.schiegg_2016.electrostatics import displacements, riesz_energy
from greylag_papers.schiegg_2016.ensemble import Ensemble, perturbations
from tests.greylag.learning.structured.models import THOMSON, Table, optimum_around, random_tables
from tests.refusals import refuses

UPDATES = ("exact", "subgradient")
REPULSIONS = ("displacement", "gradient")
ASSIGNMENTS = ("all", "best", "sampled", "stochastic")


@pytest.mark.parametrize("assignment", ["all", "stochastic"])
@pytest.mark.parametrize(
    ("update", "repulsion"), [("exact", "displacement"), ("exact", "gradient"), ("subgradient", "displacement")]
)
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_without_alpha_every_member_is_the_structured_svm(update, repulsion, assignment, C):
    examples = random_tables(0, n=6, outputs=8, d=5)
    best = CuttingPlane(C, epsilon=1e-8).fit(Table(), examples).objective
    learner = Coulomb(3, alpha=0.0, C=C, repulsion=repulsion, assignment=assignment, update=update)
    steps = {"exact": 100, "subgradient": 600 if assignment == "stochastic" else 3000}
    ensemble = replace(learner, epochs=steps[update]).fit(Table(), examples)
    training = TrainingSet(Table(), examples)
    for member in ensemble.weights:
        assert best - 1e-9 <= training.objective(member, C) <= 1.01 * best


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
@pytest.mark.parametrize(
    ("update", "repulsion"), [("exact", "displacement"), ("exact", "gradient"), ("subgradient", "displacement")]
)
def test_one_member_is_the_structured_svm(update, repulsion, assignment):
    examples = random_tables(1, n=6, outputs=8, d=5)
    best = CuttingPlane(2.0, epsilon=1e-8).fit(Table(), examples).objective
    epochs = 100 if update == "exact" else 500 if assignment == "stochastic" else 2000
    learner = Coulomb(1, alpha=1.0, C=2.0, repulsion=repulsion, assignment=assignment, update=update, epochs=epochs)
    ensemble = learner.fit(Table(), examples)
    assert TrainingSet(Table(), examples).objective(ensemble.weights[0], 2.0) == pytest.approx(best, rel=0.01)


@pytest.mark.parametrize("m", THOMSON)
def test_without_risk_members_solve_the_thomson_problem(m):
    # All outputs have the same features and no loss, so that all weights are equally good.
    examples = [(np.ones((2, 3)), np.zeros(2))]
    ensemble = Coulomb(m, alpha=2.0, epochs=2000).fit(Table(), examples)
    assert ensemble.weights.shape == (m, 3)
    assert riesz_energy(ensemble.weights) == pytest.approx(THOMSON[m], rel=1e-6)


@pytest.mark.parametrize("assignment", ["all", "stochastic"])
@pytest.mark.parametrize("repulsion", REPULSIONS)
@pytest.mark.parametrize("update", UPDATES)
def test_larger_alpha_makes_larger_angles(update, repulsion, assignment):
    examples = random_tables(2, n=5, outputs=6, d=12)
    learners = [
        Coulomb(4, alpha=alpha, C=5.0, update=update, repulsion=repulsion, assignment=assignment)
        for alpha in (0.0, 1e-3, 1e-2, 1e-1, 1.0)
    ]
    angles = [learner.fit(Table(), examples).mean_angle for learner in learners]
    assert angles == sorted(angles)
    assert angles[-1] > angles[1] + 10.0


def test_only_the_gradient_form_passes_the_angle_of_displacements():
    examples = random_tables(2, n=5, outputs=6, d=12)
    bounded, free = (
        [Coulomb(4, alpha=alpha, C=20.0, repulsion=form).fit(Table(), examples).mean_angle for alpha in (1.0, 10.0)]
        for form in REPULSIONS
    )
    assert abs(bounded[1] - bounded[0]) < 2.0
    assert bounded[1] < 60.0 < free[0] < free[1]


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
@pytest.mark.parametrize("repulsion", REPULSIONS)
@pytest.mark.parametrize("update", UPDATES)
def test_same_seed_same_bytes(update, repulsion, assignment):
    examples = random_tables(4, n=5, outputs=6, d=8)
    learner = Coulomb(3, alpha=0.1, C=2.0, repulsion=repulsion, assignment=assignment, update=update, epochs=15, seed=5)
    with threadpool_limits(1):
        first = learner.fit(Table(), examples).weights
    second = learner.fit(Table(), examples).weights
    assert first.tobytes() == second.tobytes()
    other = replace(learner, seed=6).fit(Table(), examples).weights
    assert not np.array_equal(first, other)


def test_the_exact_update_expects_all_examples_of_stochastic_steps():
    examples = random_tables(4, n=5, outputs=6, d=8)
    first, second = (Coulomb(3, assignment=a).fit(Table(), examples).weights for a in ("all", "stochastic"))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("repulsion", REPULSIONS)
def test_best_makes_members_specialise(repulsion, update):
    # Two kinds of examples that no single weight vector can fit.
    x = np.array([[1.0], [-1.0]])
    examples = [(x, truth) for truth in (np.array([0.0, 1.0]), np.array([1.0, 0.0])) for _ in range(3)]
    learner = Coulomb(2, alpha=0.1, C=10.0, repulsion=repulsion, assignment="best", update=update)
    ensemble = learner.fit(Table(), examples)
    losses = ensemble.losses(Table(), examples)
    assert losses.min(axis=0).max() == 0.0
    assert losses.mean() == 0.5
    assert losses.shape == (2, 6)


@pytest.mark.parametrize("repulsion", REPULSIONS)
def test_best_converges_to_the_optimum_of_the_examples_of_each_member(repulsion):
    """The cost of a member's examples is C for any number of them (eq. 10)."""
    C, examples = 5.0, random_tables(9, n=9, outputs=6, d=5)
    learner = Coulomb(3, alpha=0.0, C=C, repulsion=repulsion, assignment="best", epsilon=1e-6, seed=1)
    ensemble = learner.fit(Table(), examples)
    assert ensemble.converged
    losses = ensemble.losses(Table(), examples)
    tied = losses == losses.min(axis=0)
    assert (tied.sum(axis=0) == 1).sum() >= 3
    for m, member in enumerate(ensemble.weights):
        sure = [example for example, own in zip(examples, tied[m] & (tied.sum(axis=0) == 1), strict=True) if own]
        maybe = [example for example, own in zip(examples, tied[m] & (tied.sum(axis=0) > 1), strict=True) if own]
        parts = [
            sure + [example for i, example in enumerate(maybe) if bits >> i & 1] for bits in range(2 ** len(maybe))
        ]
        optima = [CuttingPlane(C, epsilon=1e-8).fit(Table(), part).weights for part in parts if part]
        assert min(np.linalg.norm(member - optimum) for optimum in optima) <= 2e-2 * np.linalg.norm(member)


def test_sampled_costs_do_not_shrink_with_the_number_of_members():
    # All members predict alike, so that each learns from all examples at the full cost.
    C, examples = 5.0, random_tables(6, n=4, outputs=10, d=6)
    best = CuttingPlane(C, epsilon=1e-8).fit(Table(), examples).objective
    training = TrainingSet(Table(), examples)
    for M in (2, 6):
        ensemble = Coulomb(M, alpha=0.0, C=C, assignment="sampled").fit(Table(), examples)
        assert max(training.objective(member, C) for member in ensemble.weights) == pytest.approx(best, rel=0.01)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("repulsion", REPULSIONS)
def test_more_members_than_directions(repulsion, update):
    learner = Coulomb(5, alpha=1.0, repulsion=repulsion, update=update)
    weights = learner.fit(Table(), random_tables(7, n=2, outputs=3, d=1)).weights
    assert np.isfinite(weights).all()


def test_members_that_coincide_are_told(caplog):
    """Where the structured SVM has as many active constraints as weights, displacements move no member."""
    examples, C = random_tables(2, n=5, outputs=8, d=6), 1000.0
    ensemble = Coulomb(3, alpha=1.0, C=C, epochs=300).fit(Table(), examples)
    assert ensemble.mean_angle < 0.1
    assert ensemble.converged
    assert "members of the Coulomb structured SVM coincide" in caplog.text
    targets = [int(np.argmin(truth)) for _, truth in examples]
    for member, centre in zip(ensemble.weights, displacements(ensemble.weights, 1.0), strict=True):
        expected = optimum_around(centre, examples, C, targets)
        assert np.linalg.norm(member - expected) <= 0.02 * np.linalg.norm(member)


def test_the_limit_warns(caplog):
    with caplog.at_level(logging.WARNING, "greylag"):
        ensemble = Coulomb(3, epochs=2).fit(Table(), random_tables(8, n=3, outputs=4, d=5))
    assert not ensemble.converged
    assert "limit of 2 epochs" in caplog.text


def test_size_angle_and_losses():
    ensemble = Ensemble(np.eye(3), epochs=4, converged=True)
    assert len(ensemble.weights) == 3
    assert ensemble.mean_angle == pytest.approx(90.0)
    examples = random_tables(0, n=5, outputs=6, d=3)
    losses = ensemble.losses(Table(), examples)
    assert losses.tolist() == [[truth[np.argmax(x[:, m])] for x, truth in examples] for m in range(3)]
    assert ensemble.losses(Table(), []).shape == (3, 0)


def test_perturbations_are_a_tenth_as_long_as_the_weights():
    rng = np.random.default_rng(0)
    weights = np.array([3.0, 0.0, 4.0])
    found = perturbations(weights, 200, rng)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 0.5)
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=0.08)  # no preferred direction
    np.testing.assert_allclose(np.linalg.norm(perturbations(np.zeros(3), 4, rng), axis=1), 0.1)


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0, 1e5])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("repulsion", REPULSIONS)
def test_an_ensemble_of_one_is_the_structured_svm_at_any_cost(seed, C, repulsion):
    """At large C, where the optimum is a small part of C, too, and with weights that are at least 0."""
    examples, model = random_tables(seed, n=1 + seed, outputs=5 + 3 * seed, d=3 + 4 * seed), Table(nonnegative=(0, 2))
    alone = Coulomb(1, C=C, repulsion=repulsion).fit(model, examples)
    assert alone.converged
    best = CuttingPlane(C).fit(model, examples).objective
    assert TrainingSet(model, examples).objective(alone.weights[0], C) <= 1.03 * best


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"M": 0}, "M must be an integer of at least 1, not 0"),
        ({"alpha": -1.0}, "alpha must be a finite number of at least 0, not -1.0"),
        ({"alpha": np.nan}, "alpha"),
        ({"alpha": np.inf}, "alpha"),
        ({"s": 0.0}, "s must be a number above 0 and at most 1e+100, not 0.0"),
        ({"s": np.inf}, "s must"),
        ({"C": 0.0}, "C must"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"seed": -1}, "seed"),
        ({"epochs": 0}, "epochs"),
        ({"repulsion": "magnetic"}, "repulsion must be one of displacement, gradient, not 'magnetic'"),
        ({"assignment": "none"}, "assignment"),
        ({"update": "newton"}, "update"),
        ({"update": "stochastic"}, "update"),
    ],
)
def test_refusals(options, reason):
    refuses(lambda: Coulomb(**options), ParameterError, reason, "|")
