"""Training data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.data import RankingData, distinct_features, linear_scores, weighted_sum
from greylag.ranking import Ranking
from tests.greylag.ltr.randomdata import random_data

INDEX = PositionalIndex.from_texts({"d1": "cat dog", "d2": "cat pig dog", "d3": "pig"})
EXTRACTOR = FeatureExtractor(INDEX, candidate_pool(("SD",)), FeatureParameters(mu=7.0))
RANKINGS = [Ranking(qid, "cat dog", ("d2", "d1", "d3"), np.zeros(3)) for qid in ("1", "2", "3")]
QRELS = {"1": {"d1": 2, "lost": 1, "d3": -1}, "2": {"d1": 0}, "3": {"d3": 1}}


def test_rankings_become_rows_with_their_origin() -> None:
    data = RankingData.from_rankings(RANKINGS, QRELS, EXTRACTOR)
    assert data.qids == ("1", "3")
    assert data.offsets.tolist() == [0, 3, 6]
    assert data.docids == ("d2", "d1", "d3") * 2
    assert data.grades.tolist() == [0, 2, -1, 0, 0, 1]
    assert [grades.tolist() for grades in data.relevant_grades] == [[2, 1], [1]]
    np.testing.assert_array_equal(data.features[:3], EXTRACTOR(RANKINGS[0]))
    assert data.specs == EXTRACTOR.specs
    assert data.origin == EXTRACTOR.origin
    assert data.origin.parameters.mu == 7.0
    assert data.origin.collection.documents == 3
    assert data.origin.fingerprint == INDEX.fingerprint


def test_selections_keep_the_origin() -> None:
    data = RankingData.from_rankings(RANKINGS, QRELS, EXTRACTOR)
    part = data.select_queries(["3", "unknown"]).select_features([4, 0])
    assert (part.qids, part.origin) == (("3",), data.origin)
    assert part.specs == (data.specs[4], data.specs[0])
    assert part.names == (data.names[4], data.names[0])
    np.testing.assert_array_equal(part.features, data.features[3:, [4, 0]])


def test_no_training_queries() -> None:
    with pytest.raises(ParameterError, match="none of the ranked queries has a relevant document"):
        RankingData.from_rankings(RANKINGS[1:2], QRELS, EXTRACTOR)
    with pytest.raises(ParameterError, match="none of the queries 7, 8 has training data"):
        random_data(1).select_queries(["7", "8"])


def test_invalid_features() -> None:
    data = random_data(1)
    with pytest.raises(ParameterError, match=r"for .* documents and 1 names"):
        replace(data, specs=("a",))
    broken = data.features.copy()
    broken[1, 2] = np.nan
    with pytest.raises(ParameterError, match=rf"feature f2 of document {data.docids[1]} is nan: .* must be finite"):
        replace(data, features=broken)
    broken[1, 2] = -1e200
    with pytest.raises(
        ParameterError, match=rf"feature f2 of document {data.docids[1]} is -1e\+200: .* at most 1e\+100"
    ):
        replace(data, features=broken)


def test_weighted_sums() -> None:
    data, weights = random_data(3, features=4), np.array([0.5, -2.0])
    np.testing.assert_allclose(linear_scores(data, [2, 0], weights), data.features[:, [2, 0]] @ weights)
    np.testing.assert_array_equal(weighted_sum(data.features[:, [2, 0]], weights), linear_scores(data, [2, 0], weights))


def test_trivial_and_duplicate_features_are_reported() -> None:
    data = random_data(4, features=4)
    shift = np.repeat(np.arange(len(data.qids)), np.diff(data.offsets)).astype(float)
    columns = np.stack([data.columns[0], shift, 3 * data.columns[0] + shift, data.columns[1], -data.columns[0]], axis=1)
    data = replace(data, specs=("a", "flat", "twin", "b", "minus"), features=columns)
    kept, dropped = distinct_features(data)
    assert kept == [0, 3, 4]
    assert dropped == {1: "flat is constant within every query", 2: "twin ranks as a does"}
