"""The study of two moons."""

import numpy as np
from scipy.spatial.distance import cdist

from greylag.studies import deviations, load
from greylag.studies.config import shipped_file
from greylag.studies.runner import run_study
from greylag_papers.zhou_2003.by_example import connecting
from greylag_papers.zhou_2003.two_moons import path_lengths, separates


def test_expected_scores(tmp_path):
    study, settings = load(shipped_file("two_moons.manifold"))
    assert deviations(run_study(study, settings, tmp_path).scores, settings.expected) == []


def test_separation():
    moons = np.array([0, 0, 1, 1])
    scores = np.array([[3.0, 1, 0, 2], [2, 2, 0, 1], [1, 1, 2, 2], [0, 0, 1, 3]])
    assert separates(scores, moons).tolist() == [1, 0, 1, 0]


def test_shortest_paths_follow_the_edges_of_the_graph():
    X = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1.2]])  # all pairs but the two diagonals and (0, 3)
    expected = [[0, 1, 2, 3 + 0.0198], [1, 0, 1, 2.0198], [2, 1, 0, 1.0198], [3.0198, 2.0198, 1.0198, 0]]
    np.testing.assert_allclose(path_lengths(X, connecting(cdist(X, X)) * 1.0), expected, atol=1e-4)
