import json

import numpy as np
import pytest
from sklearn.metrics import jaccard_score

from greylag.studies.runner import run_study
from greylag_papers.schiegg_2016.potts import PottsModel
from greylag_papers.schiegg_2016.scenes import (
    LINEAR,
    STUDY,
    UNARIES,
    Settings,
    best_predictions,
    jaccard,
    with_potentials,
)
from greylag_papers.schiegg_2016.synthetic_images import SyntheticImages
from greylag_papers.schiegg_2016.trials import METHODS
from tests.greylag_papers.schiegg_2016.samples import ONE

SCENES = SyntheticImages(1, 8, n_objects=(3, 6), n_classes=3, seed=1).draw()[0]


def test_jaccard_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    pairs = [(rng.integers(4, size=50), rng.integers(4, size=50)) for _ in range(3)]
    truth, found = (np.concatenate(part) for part in zip(*pairs, strict=True))
    np.testing.assert_allclose(jaccard(pairs, 4), jaccard_score(truth, found, average=None))
    assert np.isnan(jaccard(pairs, 5)).tolist() == [False] * 4 + [True]


def test_potentials_are_log_probabilities_that_see_other_scenes_only():
    examples = with_potentials(SCENES[:4], SCENES[4:], 4)
    for (x, truth), image in zip(examples, SCENES[4:], strict=True):
        assert x.features.shape == (12 * 16, 5)
        np.testing.assert_allclose(np.exp(x.features[:, :4]).sum(axis=1), 1.0)
        assert (x.features[:, 4] == 1.0).all()
        assert truth is image.labels
    right = np.mean([np.mean(x.features[:, :4].argmax(axis=1) == truth) for x, truth in examples])
    assert right > 0.6


def test_the_best_member_is_taken_for_each_scene():
    model, examples = PottsModel(4, (1.0, 2.0, 3.0, 4.0)), with_potentials(SCENES[:4], SCENES[4:], 4)
    weights = np.abs(np.random.default_rng(0).standard_normal((3, 17)))
    for (x, truth), (same, found) in zip(examples, best_predictions(model, weights, examples), strict=True):
        assert same is truth
        assert model.loss(truth, found) == min(model.loss(truth, model.infer(x, member)) for member in weights)


def test_study(tmp_path):
    settings = Settings(
        name="s", study="cssvm_scenes", n_classes=2, n_potentials=4, n_training=3, n_validation=2, n_test=2,
        sizes=(2,), svm_costs=(0.1, 1.0), **ONE,
    )  # fmt: skip
    result = run_study(STUDY, settings, tmp_path).scores
    assert tuple(result) == (UNARIES, LINEAR, *METHODS)
    assert all(0 < result[method][f"jaccard {name}"] <= 1 for method in result for name in ("validation", "test"))
    found = json.loads((tmp_path / "results.json").read_text())["jaccard"]
    for method, scores in result.items():
        assert np.mean(found[method]["test"]) == pytest.approx(scores["jaccard test"])
