from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import greylag
from greylag.experiments.runner import run_study
from greylag.experiments.study import load
from greylag_papers.schiegg_2016.methods import COULOMB
from greylag_papers.schiegg_2016.subsets import SHOWN
from greylag_papers.schiegg_2016.subsets_synthetic import STUDY, Settings
from tests.greylag_papers.schiegg_2016.samples import ONE

CONFIG = Path(greylag.__file__).parents[2] / "configs" / "synthetic.cssvm.yaml"


@pytest.mark.long
def test_study(tmp_path: Path) -> None:
    settings = Settings(
        name="s", study="cssvm_subsets_synthetic", n_sets=6, sizes=(1, 2), n_training=2, n_validation=2, n_single=1,
        alpha_curve=(0.0, 0.1), **ONE,
    )  # fmt: skip
    result = run_study(STUDY, settings, tmp_path / "new").scores
    assert tuple(result) == SHOWN
    assert set(COULOMB) < set(SHOWN)
    content = json.loads((tmp_path / "new" / "results.json").read_text())
    for name in ("2 queries", "1 query"):
        for method, scores in result.items():
            M = 1 if method == "ssvm" else 2
            losses = np.array([*content[name][method][str(M)]["losses"].values()])
            assert losses.shape == (2, M)
            assert scores[f"pick-best@{M} from {name}"] == pytest.approx(losses.min(axis=1).mean())
            assert scores[f"mean@{M} from {name}"] == pytest.approx(losses.mean())
    assert (tmp_path / "new" / "report.html").read_text().count("<svg") == 2


def test_experiment_file_is_valid() -> None:
    study, settings = load(CONFIG)
    assert study is STUDY
    assert settings.name == CONFIG.stem
    assert set(settings.expected) in (set(SHOWN), set())  # all or, before they are measured, none
    assert np.isfinite([value for scores in settings.expected.values() for value in scores.values()]).all()
