import json

import numpy as np
import pytest

from greylag.studies.runner import run_study
from greylag_papers.schiegg_2016.images import CSSVM, METHODS, STUDY, Settings, image_tasks
from greylag_papers.schiegg_2016.synthetic_images import SyntheticImages

SMALL = Settings(
    name="small", study="cssvm_images", n_categories=2, n_images=3, n_validation=1, sizes=(1, 2), costs=(10.0,),
    ensemble_costs=(10.0,), alphas=(0.1,), gradient_alphas=(10.0,), diversities=(0.1,), spreads=(1.0,),
)  # fmt: skip


def test_each_image_is_trained_on_once_and_not_tested_by_itself():
    tasks = image_tasks("1.", SyntheticImages(n_categories=1, n_images=6).draw()[0], 2)
    assert [task.name for task in tasks] == [f"1.{number}" for number in range(1, 7)]
    assert [*tasks[4].test] == ["1.2", "1.3", "1.4"]
    for task in tasks:
        inputs = [x for x, _ in (*task.training, *task.validation, *task.test.values())]
        assert (len(task.training), len(task.validation), len(task.test)) == (1, 2, 3)
        assert len({id(x) for x in inputs}) == 6
        assert task.name not in task.test


def test_study(tmp_path):
    result = run_study(STUDY, SMALL, tmp_path).scores
    assert tuple(result)[: len(METHODS)] == METHODS
    for method in METHODS:
        scores = result[method]
        assert scores["pick-best@1"] == scores["mean@1"]
        if method != "ssvm":
            assert scores["pick-best@2"] <= scores["mean@2"]
    assert result["mcl"]["pick-best@1"] == result["ssvm"]["pick-best@1"]  # C is the same
    assert result[CSSVM]["pick-best@2"] < result[CSSVM]["mean@2"] < 0.5
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["scores"] == result
    by_training = found["by training image"]["pick-best"]
    for method, chosen in found["chosen"].items():
        largest = "pick-best@1" if method == "ssvm" else "pick-best@2"
        assert np.mean([*by_training[method].values()]) == pytest.approx(result[method][largest])
        assert list(chosen) == list(by_training[method]) == ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3"]
    assert (tmp_path / "report.html").read_text().count("<svg") == 2
