"""Training sets: targets, constraints and the objective."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.errors import ModelError, ParameterError
from greylag.structured import TrainingSet, inner
from greylag.structured.model import task_losses
from tests.greylag.structured.models import Table, random_tables


def test_targets_constraints_and_objective_are_the_definitions() -> None:
    examples = random_tables(0, n=4, outputs=5, d=3)
    training, weights = TrainingSet(Table(), examples), np.random.default_rng(0).standard_normal(3)
    assert training.targets == tuple(int(np.argmin(truth)) for _, truth in examples)
    assert training.target_losses.tolist() == [truth.min() for _, truth in examples]
    hinges = [(x @ weights + truth).max() - x[np.argmin(truth)] @ weights for x, truth in examples]
    np.testing.assert_allclose(training.hinge_losses(weights), hinges, rtol=1e-12)
    assert training.objective(weights, 2.0) == pytest.approx(weights @ weights / 2 + 2.0 * np.mean(hinges))


def test_task_losses_are_those_of_predictions() -> None:
    examples, weights = random_tables(0, n=4, outputs=5, d=3), np.random.default_rng(0).standard_normal((2, 3))
    expected = [[truth[np.argmax(x @ member)] for x, truth in examples] for member in weights]
    assert task_losses(Table(), examples, weights).tolist() == expected


def test_signs() -> None:
    training = TrainingSet(Table(nonnegative=(-1, 0, 2)), random_tables(0, n=2, outputs=3, d=3))
    assert training.nonnegative.tolist() == [0, 2]
    assert training.project(np.array([[-1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])).tolist() == [[0, -2, 3], [4, 5, 0]]
    assert TrainingSet(Table(), training.examples).nonnegative.tolist() == []
    for place in (3, -4):
        invalid = TrainingSet(Table(nonnegative=(place,)), training.examples)
        with pytest.raises(ModelError, match=f"nonnegative weight {place} does not exist: the model has 3 joint feat"):
            _ = invalid.nonnegative


def test_inner() -> None:
    assert inner(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0])).tolist() == [21.0, 43.0]


def test_invalid_examples() -> None:
    with pytest.raises(ParameterError, match="there are no examples to train on"):
        TrainingSet(Table(), [])
    mixed = TrainingSet(Table(), [*random_tables(0, 1, 2, 3), *random_tables(0, 1, 2, 4)])
    with pytest.raises(ModelError, match="from 3 to 4 joint features; all must have the same number"):
        _ = mixed.target_features
