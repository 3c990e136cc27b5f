"""Training data, and its extraction for one set of parameters or many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import EXPANSION, candidate_pool
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.data import distinct_features, linear_scores, split_folds, weighted_sum
from greylag.ltr.extraction import CountedRankings, training_data
from greylag.ranking import Ranking
from tests.greylag.ltr.phrases import collection, rankings
from tests.greylag.ltr.randomdata import random_data

INDEX = PositionalIndex.from_texts({"d1": "cat dog", "d2": "cat pig dog", "d3": "pig"})
EXTRACTOR = FeatureExtractor(INDEX, candidate_pool("sd"), FeatureParameters(mu=7.0))
RANKINGS = [Ranking(qid, "cat dog", ("d2", "d1", "d3"), np.zeros(3)) for qid in ("1", "2", "3")]
QRELS = {"1": {"d1": 2, "lost": 1, "d3": -1}, "2": {"d1": 0}, "3": {"d3": 1}}


def test_rankings_become_rows_with_their_origin() -> None:
    data = training_data(RANKINGS, QRELS, EXTRACTOR)
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
    data = training_data(RANKINGS, QRELS, EXTRACTOR)
    part = data.select_queries(["3", "unknown"]).select_features([4, 0])
    assert (part.qids, part.origin) == (("3",), data.origin)
    assert part.specs == (data.specs[4], data.specs[0])
    assert part.names == (data.names[4], data.names[0])
    np.testing.assert_array_equal(part.features, data.features[3:, [4, 0]])


def test_no_training_queries() -> None:
    with pytest.raises(ParameterError, match="none of the ranked queries has a relevant document"):
        training_data(RANKINGS[1:2], QRELS, EXTRACTOR)
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


BASE = FeatureParameters()
SETTINGS = (
    BASE,
    replace(BASE, mu=3.0),
    replace(BASE, k1=0.0, b=1.0),
    replace(BASE, k1=2.5, b=0.0, idf="robertson"),
    replace(BASE, profile="galago"),
    replace(BASE, max_clique=2),
    replace(BASE, fb_docs=2, fb_terms=3),
)


def test_the_data_is_that_of_extraction() -> None:
    index = collection()
    ranked, qrels = rankings(index)
    ranked.append(Ranking("unjudged", "cat", ranked[0].docids, ranked[0].scores))
    ranked.append(Ranking("0b", "dog cat", ("d1", "lost", "d2"), np.array([3.0, 2.0, 1.0])))
    qrels["0b"] = {"d2": 1}
    features = (
        EXPANSION[1],
        *parse_features("score,FI/term/LM@z,FI/expansion/LM@rank"),
        *candidate_pool(),
        EXPANSION[0],
    )
    counted = CountedRankings(tuple(ranked), qrels, index, features)
    for parameters in (*SETTINGS, *SETTINGS[::-1]):
        found = counted.data(parameters)
        expected = training_data(ranked, qrels, FeatureExtractor(index, features, parameters))
        assert found.features.tobytes() == expected.features.tobytes(), parameters
        assert (found.specs, found.qids, found.docids, found.origin) == (
            expected.specs, expected.qids, expected.docids, expected.origin,
        )  # fmt: skip
        np.testing.assert_array_equal(found.grades, expected.grades)


@pytest.mark.parametrize(
    ("features", "counts"), [("SD/ordered/LM-O-1,FI/term/BM25", 3), ("FI/expansion/BM25", 5), ("FI/term/LM", 3)]
)
def test_only_what_changes_counts_is_counted_again(features: str, counts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    index = collection()
    ranked, qrels = rankings(index)
    made, count = [], FeatureExtractor.count
    monkeypatch.setattr(FeatureExtractor, "count", lambda self, given: made.append(self) or count(self, given))
    counted = CountedRankings(tuple(ranked), qrels, index, parse_features(features))
    for parameters in SETTINGS * 2:
        counted.data(parameters)
    assert len(made) == counts


def test_no_relevant_document() -> None:
    index = collection()
    with pytest.raises(ParameterError, match="none of the ranked queries has a relevant document"):
        CountedRankings(tuple(rankings(index)[0]), {}, index, EXPANSION)


def test_folds_partition_the_queries_evenly() -> None:
    qids = [str(i) for i in range(23)]
    folds = split_folds(qids, 5, seed=3)
    assert sorted(qid for fold in folds for qid in fold) == sorted(qids)
    assert {len(fold) for fold in folds} == {4, 5}
    assert split_folds(qids, 5, seed=3) == folds != split_folds(qids, 5, seed=4)
    with pytest.raises(ParameterError, match="23 queries cannot be split into 24 folds"):
        split_folds(qids, 24, seed=0)
