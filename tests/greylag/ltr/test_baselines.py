"""Baselines with fixed features."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.ltr.baselines import BM25, MRF_LM, RM3, SDM
from greylag.ltr.data import linear_scores
from greylag.ltr.objectives import Objective
from tests.greylag.ltr.randomdata import random_data


def test_baselines_are_those_of_the_literature() -> None:
    assert [str(f) for f in MRF_LM.features] == ["FI/term/LM", "FD/ordered/LM-O-1", "FD/unordered/LM-U-4"]
    assert (BM25.weights, SDM.weights) == ((1.0,), (0.85, 0.1, 0.05))
    assert not BM25.trained
    assert MRF_LM.trained
    assert RM3.tuned == ("fb_docs", "fb_terms")


def test_weights_are_learned_only_if_trained() -> None:
    data, objective = random_data(2, queries=10, documents=30), Objective("AP")
    fixed, value = SDM.fit(data, objective)
    assert fixed == SDM.weights
    assert value == pytest.approx(np.mean(objective.evaluate(data, linear_scores(data, [0, 1, 2], np.array(fixed)))))
    learned, better = MRF_LM.fit(data, objective)
    assert better > value
    assert learned != MRF_LM.weights
