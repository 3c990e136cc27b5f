"""Ensembles of images, trained on one image or on a fold of all.

Tests `categories`.
"""

import json

import numpy as np
import pytest

from greylag.studies.runner import run_study
from greylag_papers.schiegg_2016 import categories, images
from greylag_papers.schiegg_2016.synthetic_images import SyntheticImages
from tests.greylag_papers.schiegg_2016.samples import ONE

DRAWN = {"n_categories": 2, "n_images": 3, "sizes": (1, 2), **ONE, "costs": (10.0,)}


def test_each_image_is_trained_on_once_and_not_tested_by_itself():
    tasks = images.image_tasks("1.", SyntheticImages(n_categories=1, n_images=6).draw()[0], 2)
    assert [task.name for task in tasks] == [f"1.{number}" for number in range(1, 7)]
    assert [*tasks[4].test] == ["1.2", "1.3", "1.4"]
    for task in tasks:
        inputs = [x for x, _ in (*task.training, *task.validation, *task.test.values())]
        assert (len(task.training), len(task.validation), len(task.test)) == (1, 2, 3)
        assert len({id(x) for x in inputs}) == 6


def test_each_fold_is_trained_on_once_validated_on_twice_and_tested_twice():
    tasks = categories.fold_tasks(SyntheticImages(n_categories=3, n_images=4).draw(), 1)
    uses = {}
    for task in tasks:
        for use, part in (("training", task.training), ("validation", task.validation), ("test", task.test.values())):
            for x, _ in part:
                uses.setdefault(id(x), []).append(use)
    assert len(tasks) == 5
    assert len(uses) == 12
    assert all(sorted(found) == ["test", "test", "training", "validation", "validation"] for found in uses.values())
    assert {name for task in tasks for name in task.test} == {f"{c}.{i}" for c in (1, 2, 3) for i in (1, 2, 3, 4)}
    other = categories.fold_tasks(SyntheticImages(3, 4).draw(), 2)
    assert [[*task.test] for task in tasks] != [[*task.test] for task in other]


@pytest.mark.parametrize(("module", "units"), [(images, 6), (categories, 5)])
def test_studies(module, units, tmp_path):
    fields = {"n_validation": 1} if module is images else {}
    scores = run_study(module.STUDY, module.STUDY.settings(name="s", **DRAWN, **fields), tmp_path).scores
    assert tuple(scores)[: len(module.METHODS)] == module.METHODS
    found = json.loads((tmp_path / "results.json").read_text())
    for method in module.METHODS:
        M = 1 if method == "ssvm" else 2
        assert scores[method][f"pick-best@{M}"] <= scores[method][f"mean@{M}"] < 1
        if module is images:
            by_image = found["by training image"]["pick-best"][method]
            assert np.mean([*by_image.values()]) == pytest.approx(scores[method][f"pick-best@{M}"])
    assert scores["mcl"]["pick-best@1"] == scores["ssvm"]["pick-best@1"]  # C is the same
    # Trained ensembles are the units, not the images that they are tested on.
    assert scores["cssvm-all / ssvm, pick-best"]["n"] == units
