"""Counted rankings: the same data as extraction for every set of parameters, from one count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import EXPANSION, candidate_pool, parse_features
from greylag.features.weighting import FeatureParameters
from greylag.ltr.counted import CountedRankings
from greylag.ltr.data import RankingData
from greylag.ranking import Ranking
from tests.greylag.ltr.phrases import collection, rankings

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
        expected = RankingData.from_rankings(ranked, qrels, FeatureExtractor(index, features, parameters))
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
