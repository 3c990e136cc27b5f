"""SVM-div as a stage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from greylag.diversity import PRESETS, DiversityModel, SVMDiv
from greylag.errors import ModelError
from greylag.index.positional import PositionalIndex
from tests.greylag.diversity import samples

N = 15


@pytest.fixture(scope="module")
def index() -> PositionalIndex:
    return samples.index(1, N)


def test_requires_the_training_collection(index: PositionalIndex) -> None:
    model = replace(samples.MODEL, fingerprint=index.fingerprint)
    SVMDiv(model, index)
    other = samples.index(2, N)
    with pytest.raises(ModelError, match="trained on another collection"):
        SVMDiv(model, other)
    SVMDiv(model, other, transfer=True)


def test_requires_and_uses_titles(index: PositionalIndex) -> None:
    titles = samples.texts(1, N)[1]
    weights = [1.0 if name.startswith("title") else 0.0 for name in samples.MODEL.features.names]
    model = replace(samples.MODEL, titles=True, weights=(tuple(weights),))
    with pytest.raises(ModelError, match="trained with titles"):
        SVMDiv(model, index)
    ranking = samples.ranking(6, N)
    assert SVMDiv(model, index, titles=titles)(ranking).docids != ranking.docids
    # A model trained without titles ignores them.
    assert SVMDiv(replace(model, titles=False), index, titles=titles)(ranking).docids == ranking.docids


def test_presets(index: PositionalIndex) -> None:
    for features in PRESETS.values():
        model = DiversityModel(features, ((1.0,) * features.n_features,), k=5)
        assert sorted(SVMDiv(model, index)(samples.ranking(0, N)).docids) == sorted(samples.ranking(0, N).docids)


def test_rejects_ensembles(index: PositionalIndex) -> None:
    with pytest.raises(ModelError, match=r"ensemble of 3: use all of it \(CSSVM, --method cssvm\), or one of"):
        SVMDiv(samples.ENSEMBLE, index)
