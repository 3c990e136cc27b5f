"""Crowding, by hand and against loops."""

import numpy as np
import pytest

from greylag.diversity import measure_crowding
from greylag.errors import ParameterError
from greylag.index.vectors import ArrayVectors
from greylag.ranking import Ranking, Run
from tests.greylag.diversity import samples


def test_by_hand() -> None:
    """Three in a chain, of which only neighbours are close, and two alone."""
    angles = np.radians([0, 90, 20, 40, 180])
    vectors = ArrayVectors([*"abcde"], np.stack([np.cos(angles), np.sin(angles)], axis=1) * 7)
    run = Run((Ranking("1", "", [*"abxcde"], np.arange(6.0, 0.0, -1.0)), Ranking("2", "", ["a"], [1.0])))
    found = measure_crowding(run, vectors=vectors, k=6, thresholds=[np.cos(np.radians(20)), 0.95, 0.5])
    assert (found.queries, found.k) == (1, 6)  # x has no vector, and one document is not crowded
    assert found.near_duplicates == pytest.approx((2 / 5, 0, 2 / 5))  # c by a, d by c; at 60 degrees, d by b, too
    assert found.crowded == (1, 0, 1)
    assert "0.400" in str(found)
    groups = {"a": "site", "b": "site", "x": "site", "d": "other", "e": "other"}.get
    assert measure_crowding(run, vectors=vectors, k=6, groups=groups).given_group == pytest.approx(2 / 5)  # not x
    assert (found.given_group, measure_crowding(run, vectors=vectors, groups={}).given_group) == (None, 1 / 5)


@pytest.mark.parametrize("seed", range(4))
def test_against_loops(seed: int) -> None:
    index, ranking = samples.index(seed, 15), samples.ranking(seed, 15)
    found = measure_crowding([ranking], index=index, k=8, thresholds=[0.6])
    frequencies = index.term_frequencies(index.documents(ranking.docids[:8])).toarray()
    weights = np.where(frequencies > 0, 1 + np.log(np.maximum(frequencies, 1)), 0) * index.idf
    lengths = np.linalg.norm(weights, axis=1)
    cosines = weights @ weights.T / np.maximum(np.outer(lengths, lengths), 1e-12)
    near = [any(cosines[i, j] >= 0.6 for j in range(i)) for i in range(8)]
    assert (found.near_duplicates, found.crowded) == ((np.mean(near),), (any(near),))


def test_what_cannot_be_measured() -> None:
    index, ranking = samples.index(1, 15), samples.ranking(1, 15)
    for options in ({"k": 1}, {"thresholds": []}, {"thresholds": [0.0]}, {"thresholds": [1.5]}):
        with pytest.raises(ParameterError, match="k is at least 2, and thresholds in"):
            measure_crowding([ranking], index=index, **options)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"two documents .*\b10\b"):
        measure_crowding([ranking.head(1)], index=index)
    with pytest.raises(ParameterError, match="crowding needs an index or vectors="):
        measure_crowding([ranking])
