"""The contract of structured models and learners. To test a new one, add it to the tables below.

Tests `greylag.diversity.learner`.
"""

import numpy as np
import pytest

from greylag.base.core.registry import registered
from greylag.diversity import CoverageModel
from greylag.learning import CuttingPlane, TrainingSet
from greylag.recipes.spelling import find_learner
from greylag.testing import check_diversity_learner
from greylag_papers.schiegg_2016.coulomb import Coulomb
from greylag_papers.schiegg_2016.multiple_choice import MultipleChoice
from greylag_papers.schiegg_2016.potts import PottsModel, Superpixels
from tests.greylag.diversity import samples
from tests.greylag.learning.structured.models import ComparingTable, Table, random_tables


def random_image(seed, n_labels=2):
    rng = np.random.default_rng(seed)
    return Superpixels.from_colours(rng.random((3, 3, 3))), rng.integers(n_labels, size=9)


MODELS = {
    "coverage": (CoverageModel(3), [(samples.candidates(s, 9 + s), samples.subtopics(s, 9 + s)) for s in range(4)]),
    "table": (Table(), random_tables(0, n=5, outputs=6, d=7)),
    "signed table": (Table(nonnegative=(0, -1)), random_tables(0, n=5, outputs=6, d=7)),
    "potts": (PottsModel(), [random_image(0), random_image(1)]),
    "potts of three labels": (PottsModel(3, (0.5, 1.0, 2.0)), [random_image(0, 3), random_image(1, 3)]),
}
COMPARING = {
    "coverage": (CoverageModel(3), MODELS["coverage"][1]),
    "table": (ComparingTable(6), MODELS["table"][1]),
    "signed table": (ComparingTable(6, nonnegative=(0, -1)), MODELS["table"][1]),
    "potts": MODELS["potts"],
    "potts of three labels": MODELS["potts of three labels"],
}
ENSEMBLES = {
    "exact": Coulomb(3),
    "gradient": Coulomb(3, repulsion="gradient"),
    "best": Coulomb(3, assignment="best"),
    "subgradient": Coulomb(3, assignment="sampled", update="subgradient", epochs=10),
    "stochastic": Coulomb(3, assignment="stochastic", update="subgradient", epochs=10),
    "multiple choice": MultipleChoice(3),
    "perturbed multiple choice": MultipleChoice(3, start="perturbed"),
    "diverse multiple choice": MultipleChoice(3, diversity=0.5, rounds=2),
}


def test_learners_of_models_that_diversify():
    rows = [CuttingPlane(), *ENSEMBLES.values()]
    assert {find_learner(name, "diversity learner") for name in registered("diversity learner")} <= set(map(type, rows))
    # By gradients it does not converge in its 100 epochs, which take a minute.
    for learner in (*rows[:2], Coulomb(3, repulsion="gradient", epochs=5), *rows[3:5]):
        check_diversity_learner(learner)  # type: ignore[arg-type]


@pytest.fixture(params=MODELS)
def training(request):
    return TrainingSet(*MODELS[request.param])


def test_model_follows_the_protocol(training):
    model, rng = training.model, np.random.default_rng(1)
    d = training.target_features.shape[1]
    assert training.target_features.dtype == np.float64
    for _ in range(10):
        weights = training.project(rng.standard_normal(d))
        for x, truth in training.examples:
            outputs = [model.infer(x, weights), model.infer_augmented(x, truth, weights)]
            for y in outputs:
                assert model.joint_feature(x, y).shape == (d,)
                assert model.loss(truth, y) >= 0
            assert np.array_equal(outputs[0], model.infer(x, weights))
            assert np.array_equal(outputs[0], model.infer(x, 3.0 * weights))


def test_hinge_losses_are_the_constraints(training):
    weights = training.project(np.random.default_rng(2).standard_normal(training.target_features.shape[1]))
    hinges = training.hinge_losses(weights)
    assert (hinges >= training.target_losses - 1e-12).all()
    for i, (x, truth) in enumerate(training.examples):
        y = training.model.infer_augmented(x, truth, weights)
        normal, loss = training.most_violated(i, weights)
        found = training.target_features[i] - training.model.joint_feature(x, y), training.model.loss(truth, y)
        if found[1] - found[0] @ weights < training.target_losses[i]:  # approximate inference
            found = np.zeros_like(normal), training.target_losses[i]
        np.testing.assert_array_equal(normal, found[0])
        assert loss == found[1]
        assert hinges[i] == pytest.approx(loss - normal @ weights)
    assert training.objective(weights, 2.0) == pytest.approx(weights @ weights / 2 + 2.0 * hinges.mean())


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_learner_converges_on_every_model(C, training):
    learner = CuttingPlane(C)
    solution = learner.fit(training.model, training.examples)
    assert solution.converged
    np.testing.assert_array_equal(training.project(solution.weights), solution.weights)
    assert -1e-9 <= solution.gap <= learner.epsilon * solution.objective
    assert solution.objective < training.objective(np.zeros_like(solution.weights), learner.C)
    # Approximate inference may miss constraints that the learner has cached.
    assert training.objective(solution.weights, learner.C) <= solution.objective + 1e-9
    again = learner.fit(training.model, training.examples)
    assert again.weights.tobytes() == solution.weights.tobytes()


@pytest.mark.parametrize("name", COMPARING)
def test_comparing_model_follows_the_protocol(name):
    model, examples = COMPARING[name]
    training, rng = TrainingSet(model, examples), np.random.default_rng(3)
    for (x, truth), target in zip(examples, training.targets, strict=True):
        weights = training.project(rng.standard_normal(training.target_features.shape[1]))
        other = model.infer(x, weights)
        assert model.similarity(other, other) == 1.0
        assert 0.0 <= model.similarity(other, target) <= 1.0
        apart = model.infer_apart(x, truth, weights, [other], task=1.0, similarity=0.0)
        assert np.array_equal(apart, model.infer_augmented(x, truth, weights))
        same = model.infer_apart(x, truth, weights, [other, other], task=0.0, similarity=1e9)
        assert model.similarity(same, other) == pytest.approx(1.0)
        unlike = model.infer_apart(x, truth, weights, [other], task=0.0, similarity=-1e9)
        assert model.similarity(unlike, other) <= model.similarity(target, other) + 1e-12


@pytest.mark.parametrize("learner", ENSEMBLES.values(), ids=ENSEMBLES)
@pytest.mark.parametrize("name", COMPARING)
def test_ensemble_learner_works_with_every_model(name, learner):
    model, examples = COMPARING[name]
    training = TrainingSet(model, examples)
    optimum = CuttingPlane(learner.C, epsilon=learner.epsilon).solve(training).weights
    ensemble = learner.solve(training, optimum)
    d = training.target_features.shape[1]
    np.testing.assert_array_equal(training.project(ensemble.weights), ensemble.weights)
    assert ensemble.weights.shape == (len(ensemble.weights), d) == (3, d)
    assert np.isfinite(ensemble.weights).all()
    losses = ensemble.losses(model, examples)
    for member, row in zip(ensemble.weights, losses, strict=True):
        assert row.tolist() == [model.loss(truth, model.infer(x, member)) for x, truth in examples]
    again = learner.solve(training, optimum)
    assert again.weights.tobytes() == ensemble.weights.tobytes()
