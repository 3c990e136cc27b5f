"""Features that leave the pool by rule, held against the features' values."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.features.cliques import redundant_features
from greylag.features.extract import FeatureExtractor
from greylag.features.prior import Prior
from greylag.features.spec import EXPANSION, candidate_pool
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking

POOL = candidate_pool()


@pytest.mark.parametrize("max_size", [2, 3, 4])
@pytest.mark.parametrize("lengths", [(), (1, 1), (2, 1), (3,), (0, 2, 5)])
def test_what_goes_has_the_values_of_what_stays(lengths: tuple[int, ...], max_size: int) -> None:
    rng = np.random.default_rng(max_size)
    words = ["cat", "cow", "dog", "pig", "hen"]
    index = PositionalIndex.from_texts({f"d{i}": " ".join(rng.choice(words, size=15)) for i in range(12)})
    extract = FeatureExtractor(index, POOL, FeatureParameters(max_clique=max_size))
    queries = [" ".join(rng.choice(words, size=n)) for n in lengths]
    tables = [extract(Ranking("q", query, tuple(f"d{i}" for i in range(12)), np.zeros(12))) for query in queries]
    values = np.concatenate([*tables, np.empty((0, len(POOL)))])
    redundant = redundant_features(POOL, lengths, max_size)
    places = {str(spec): place for place, spec in enumerate(POOL)}
    for feature, reason in redundant.items():
        name, _, rest = reason.partition(" has ")
        assert name == str(feature)
        if rest.startswith("no clique"):
            assert not values[:, places[name]].any()
        else:
            twin = rest.split()[3]
            assert places[twin] < places[name]
            assert twin not in map(str, redundant)
            np.testing.assert_array_equal(values[:, places[name]], values[:, places[twin]])
    kept = len(POOL) - len(redundant)  # 26 for each of SD and FD, or only the 14 of FD whose cliques are not all SD's
    assert kept == {0: 0, 1: 2, 2: 2 + 26}.get(max(lengths, default=0), 2 + 52 - 12 * (max_size == 2))


def test_features_without_query_cliques_are_left_alone() -> None:
    assert not redundant_features((Prior("file"), *EXPANSION), (0,), 3)
