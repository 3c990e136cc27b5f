"""What every structured model promises its learners, and every learner its models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from greylag.diversity.coverage import CoverageModel
from greylag.structured import CuttingPlane, StructuredModel, TrainingSet
from tests.diversity import samples
from tests.structured.models import Table, random_tables

MODELS: dict[str, tuple[StructuredModel[Any, Any, Any], list[tuple[Any, Any]]]] = {
    "coverage": (CoverageModel(3), [(samples.candidates(s, 9 + s), samples.subtopics(s, 9 + s)) for s in range(4)]),
    "table": (Table(), random_tables(0, n=5, outputs=6, d=7)),
}
LEARNERS = {"one-slack": CuttingPlane(C=10.0), "n-slack": CuttingPlane(C=10.0, slack="n")}


@pytest.fixture(params=MODELS)
def training(request: pytest.FixtureRequest) -> TrainingSet[Any, Any, Any]:
    return TrainingSet(*MODELS[request.param])


def test_model_keeps_the_protocol(training: TrainingSet[Any, Any, Any]) -> None:
    model, rng = training.model, np.random.default_rng(1)
    d = training.target_features.shape[1]
    assert training.target_features.dtype == np.float64
    for _ in range(10):
        weights = rng.standard_normal(d)
        for (x, truth), target, features in zip(
            training.examples, training.targets, training.target_features, strict=True
        ):
            outputs = [model.infer(x, weights), model.infer_augmented(x, truth, weights)]
            for y in outputs:
                assert model.joint_feature(x, y).shape == (d,)
                assert model.loss(truth, y) >= 0
            augmented = model.joint_feature(x, outputs[1]) @ weights + model.loss(truth, outputs[1])
            assert augmented >= features @ weights + model.loss(truth, target) - 1e-12
            assert np.array_equal(outputs[0], model.infer(x, weights))
            assert np.array_equal(outputs[0], model.infer(x, 3.0 * weights))


def test_hinge_losses_are_the_constraints(training: TrainingSet[Any, Any, Any]) -> None:
    weights = np.random.default_rng(2).standard_normal(training.target_features.shape[1])
    hinges = training.hinge_losses(weights)
    assert (hinges >= training.target_losses - 1e-12).all()
    for i, (x, truth) in enumerate(training.examples):
        y = training.model.infer_augmented(x, truth, weights)
        normal, loss = training.most_violated(i, weights)
        np.testing.assert_array_equal(normal, training.target_features[i] - training.model.joint_feature(x, y))
        assert loss == training.model.loss(truth, y)
        assert hinges[i] == pytest.approx(loss - normal @ weights)
    assert training.objective(weights, 2.0) == pytest.approx(weights @ weights / 2 + 2.0 * hinges.mean())


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_learner_converges_on_every_model(learner: CuttingPlane, training: TrainingSet[Any, Any, Any]) -> None:
    solution = learner.fit(training.model, training.examples)
    assert solution.converged
    assert -1e-9 <= solution.gap <= learner.C * learner.epsilon + 1e-6
    assert solution.objective < training.objective(np.zeros_like(solution.weights), learner.C)
    # Inference that is not exact may miss what the learner still remembers.
    assert training.objective(solution.weights, learner.C) <= solution.objective + 1e-9
    again = learner.fit(training.model, training.examples)
    assert again.weights.tobytes() == solution.weights.tobytes()
