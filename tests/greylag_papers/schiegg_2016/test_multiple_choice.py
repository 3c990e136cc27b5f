"""Multiple choice learning: against a plain implementation, members specialise, and diversity separates outputs."""

from dataclasses import replace

import numpy as np
import pytest

from greylag.learning import CuttingPlane, TrainingSet
from greylag_papers.schiegg_2016.ensemble import perturbations
from greylag_papers.schiegg_2016.multiple_choice import MultipleChoice
from tests.greylag.learning.structured.models import ComparingTable, Table, optimum_around, random_tables


def fit(learner, model, examples):
    training = TrainingSet(model, examples)
    return learner.solve(training, CuttingPlane(learner.C, epsilon=learner.epsilon).solve(training).weights)


def choices(weights, examples):
    """The member of lowest task loss for each example; ties go to the lower hinge loss, then to the first."""
    found = []
    for x, truth in examples:
        hinges = [(x @ w + truth).max() - x[np.argmin(truth)] @ w for w in weights]
        losses = [truth[np.argmax(x @ w)] for w in weights]
        best = [m for m in range(len(weights)) if losses[m] == min(losses)]
        found.append(next(m for m in best if hinges[m] <= min(hinges[k] for k in best) + 1e-6))
    return np.array(found)


@pytest.mark.parametrize("start", ["svm", "perturbed"])
@pytest.mark.parametrize("seed", range(3))
def test_rounds_alternate_choices_and_optima(start, seed):
    C, M, examples = 20.0, 3, random_tables(seed, n=12, outputs=6, d=4)
    learner = MultipleChoice(M, C=C, start=start, rounds=1, epsilon=1e-6, seed=seed)
    optimum, rng = CuttingPlane(C, epsilon=1e-6).fit(Table(), examples).weights, np.random.default_rng(seed)
    if start == "perturbed":
        weights = optimum + perturbations(optimum, M, rng)
        assigned = choices(weights, examples)
    else:
        weights, assigned = np.tile(optimum, (M, 1)), rng.permutation(12) % M
    for rounds in range(1, 5):
        for m in set(assigned.tolist()):
            own = [example for example, o in zip(examples, assigned, strict=True) if o == m]
            targets = [int(np.argmin(truth)) for _, truth in own]
            weights[m] = optimum_around(np.zeros(4), own, C * len(own) / 12, targets)
        found = fit(replace(learner, rounds=rounds), Table(), examples)
        np.testing.assert_allclose(found.weights, weights, atol=2e-3 * np.linalg.norm(optimum))
        if found.converged:
            assert rounds > 1
            break
        assigned = choices(weights, examples)


def test_a_circle_of_assignments_and_the_limit_of_rounds_are_not_convergence(caplog):
    examples = random_tables(123, n=5, outputs=5, d=3)
    ensemble = fit(MultipleChoice(3, C=10.0, rounds=50, seed=123), Table(), examples)
    assert not ensemble.converged
    assert ensemble.epochs < 50
    assert "in a circle of assignments" in caplog.text
    ensemble = fit(MultipleChoice(3, C=20.0, rounds=1), ComparingTable(6), random_tables(0, n=12, outputs=6, d=4))
    assert not ensemble.converged
    assert "limit of 1 rounds" in caplog.text


@pytest.mark.parametrize("diversity", [0.0, 1.0])
def test_one_member_is_the_structured_svm(diversity):
    examples = random_tables(1, n=6, outputs=5, d=4)
    ensemble = fit(MultipleChoice(1, C=3.0, diversity=diversity), ComparingTable(5), examples)
    np.testing.assert_array_equal(ensemble.weights[0], CuttingPlane(3.0).fit(Table(), examples).weights)


def test_on_one_example_only_diversity_or_the_start_separates_members():
    examples = random_tables(2, n=1, outputs=6, d=8)
    plain = fit(MultipleChoice(4, C=10.0), ComparingTable(6), examples)
    assert (plain.weights == plain.weights[0]).all()
    assert plain.converged
    diverse = fit(MultipleChoice(4, C=10.0, diversity=1.0), ComparingTable(6), examples)
    assert diverse.mean_angle > 5.0
    perturbed = fit(MultipleChoice(4, C=10.0, start="perturbed"), ComparingTable(6), examples).weights
    optimum = CuttingPlane(10.0).fit(Table(), examples).weights
    start = optimum + perturbations(optimum, 4, np.random.default_rng(0))
    assert (perturbed == start).all(axis=1).sum() == 3  # members without examples keep their start


@pytest.mark.parametrize("seed", range(3))
def test_a_diverse_member_is_the_optimum_of_its_stated_problem(seed):
    examples, model, C, reward = random_tables(seed, n=6, outputs=5, d=12), ComparingTable(5), 0.3, 0.4
    ensemble = fit(MultipleChoice(2, C=C, diversity=reward, rounds=60, epsilon=1e-7), model, examples)
    assert ensemble.converged
    posed = []
    for (x, truth), own in zip(examples, choices(ensemble.weights, examples) == 1, strict=True):
        other = model.infer(x, ensemble.weights[0])
        alike = np.array([model.similarity(y, other) for y in range(5)])
        posed.append((x, truth + reward * alike) if own else (reward * x, reward * alike))
    expected = optimum_around(np.zeros(12), posed, C, [int(np.argmin(truth)) for _, truth in examples])
    np.testing.assert_allclose(ensemble.weights[1], expected, atol=1e-3 * np.linalg.norm(expected))
