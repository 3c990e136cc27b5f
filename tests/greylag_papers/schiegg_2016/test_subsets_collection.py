from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import greylag
from greylag.experiments.runner import run_study
from greylag.experiments.study import load
from greylag_papers.schiegg_2016.subsets import ENSEMBLES, SHOWN
from greylag_papers.schiegg_2016.subsets_collection import STUDY, Settings
from tests.greylag_papers.schiegg_2016.samples import ONE

DEMO = Path(greylag.__file__).parent / "demo"
CONFIGS = Path(greylag.__file__).parents[2] / "configs"


@pytest.mark.long
def test_study(tmp_path: Path) -> None:
    settings = Settings(
        name="demo", study="cssvm_subsets_collection", docs="docs.jsonl", topics="topics.tsv",
        subtopic_qrels="qrels.subtopics.txt", depth=20, k=3, sizes=(2,), n_training=3, n_validation=1, n_single=1,
        data_folder=DEMO, alpha_curve=(0.0, 0.1),
        **ONE,
    )  # fmt: skip
    result = run_study(STUDY, settings, tmp_path).scores
    for method in ENSEMBLES:
        scores = result[method]
        for name in ("3 queries", "1 query"):
            assert 0 < scores[f"pick-best@2 from {name}"] <= scores[f"mean@2 from {name}"] < 1
    assert "Mean angle in degrees" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("name", ["ambient", "div400"])
def test_experiment_files_are_valid(name: str) -> None:
    study, settings = load(CONFIGS / f"{name}.cssvm.yaml")
    assert study is STUDY
    assert settings.name == f"{name}.cssvm"
    assert set(settings.expected) in (set(SHOWN), set())  # all or, before they are measured, none
    assert np.isfinite([value for scores in settings.expected.values() for value in scores.values()]).all()
