"""Training of linear models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.letor import read_features, write_features
from greylag.ltr.rankers import MRFRanker
from greylag.ltr.training import train, useful_features
from greylag.ranking import Ranking
from tests.greylag.ltr.phrases import collection, rankings, trained
from tests.greylag.ltr.randomdata import random_data


def test_learns_that_phrases_are_relevant() -> None:
    index = collection()
    model = trained(index)
    assert model.features[0].window.order == "O"
    assert model.features[0].window.width == 1
    assert model.training_scores[0] == pytest.approx(1.0)
    ranked, qrels = rankings(index)
    for ranking in ranked:
        grades = [qrels[ranking.qid][docid] for docid in MRFRanker(model, index)(ranking).docids]
        assert grades == sorted(grades, reverse=True)


def test_features_from_files_can_be_fitted_but_not_made_a_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ranking = Ranking("1", "", tuple(f"d{i}" for i in range(20)), np.zeros(20))
    qrels = {"1": {f"d{i}": i % 2 for i in range(20)}}
    write_features(tmp_path / "f.txt", ["FI/term/LM", "b"], [(ranking, rng.random((20, 2)))], qrels)
    data = read_features(tmp_path / "f.txt", qrels)
    assert data.specs == ("FI/term/LM", "b")
    assert GreedySelection("AP").fit(data).columns
    with pytest.raises(ParameterError, match=r"features come from a file.*FeatureExtractor"):
        train(data, GreedySelection("AP"))


def test_constant_features_alone_are_refused() -> None:
    data = random_data(2)
    with pytest.raises(ParameterError, match="every feature is constant"):
        useful_features(replace(data, features=np.ones_like(data.features)))
