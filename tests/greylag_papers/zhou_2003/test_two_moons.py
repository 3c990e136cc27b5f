"""The study of two moons."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import greylag
from greylag.studies import deviations, load
from greylag.studies.runner import run_study
from greylag_papers.zhou_2003.by_example import connecting
from greylag_papers.zhou_2003.two_moons import path_lengths, separates

CONFIG = Path(greylag.__file__).parents[2] / "configs" / "two_moons.manifold.yaml"


def test_expected_scores_and_reproducible_files(tmp_path):
    study, settings = load(CONFIG)
    finished = run_study(study, settings, tmp_path / "a", n_jobs=1)
    assert deviations(finished.scores, settings.expected) == []
    assert finished.scores["f*"] == {
        "separated": 1.0, "ROC area": 1.0, "falls along the moon": pytest.approx(0.9843, abs=1e-4)
    }  # fmt: skip
    run_study(study, settings, tmp_path / "b", n_jobs=2)
    for name in ("results.json", "report.html"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_separation():
    moons = np.array([0, 0, 1, 1])
    scores = np.array([[3.0, 1, 0, 2], [2, 2, 0, 1], [1, 1, 2, 2], [0, 0, 1, 3]])
    assert separates(scores, moons).tolist() == [1, 0, 1, 0]


def test_shortest_paths_follow_the_edges_of_the_graph():
    X = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1.2]])  # all pairs but the two diagonals and (0, 3)
    expected = [[0, 1, 2, 3 + 0.0198], [1, 0, 1, 2.0198], [2, 1, 0, 1.0198], [3.0198, 2.0198, 1.0198, 0]]
    np.testing.assert_allclose(path_lengths(X, connecting(cdist(X, X)) * 1.0), expected, atol=1e-4)
