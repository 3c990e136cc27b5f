"""Queries, ROC areas and their means, against slow and obvious versions."""

from itertools import combinations, islice

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from greylag.rankers import spread_iterates
from greylag_papers.zhou_2003.by_example import areas_by_step, connecting, roc_areas
from tests.greylag_papers.zhou_2003.oracles import roc_area


@pytest.mark.parametrize("seed", range(5))
def test_roc_areas_equal_shares_of_ordered_pairs(seed):
    rng = np.random.default_rng(seed)
    classes = rng.permutation([0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
    scores = rng.integers(4, size=(12, 3)).astype(float)
    queries = [int(np.flatnonzero(classes == 1)[0]), np.flatnonzero(classes == 0)[:3], np.flatnonzero(classes == 2)[:1]]
    expected = []
    for column, own in zip(scores.T, queries, strict=True):
        others = np.setdiff1d(np.arange(12), own)
        expected.append(roc_area(column[others], classes[others] == classes[np.ravel(own)[0]]))
    np.testing.assert_allclose(roc_areas(scores, classes, queries), expected)


def test_areas_by_step_are_those_of_the_iterates():
    rng = np.random.default_rng(0)
    W = rng.random((12, 12))
    W += W.T
    classes, queries = np.repeat([0, 1], 6), np.array([[0, 3], [7, 9]])
    found = areas_by_step(W, classes, queries, (1, 4), 0.9)
    assert list(found) == [1, 4]
    for i, j in np.ndindex(2, 2):
        f = next(islice(spread_iterates(W, np.eye(12)[queries[i, j]], alpha=0.9), 4, None))
        others = np.arange(12) != queries[i, j]
        assert found[4][i, j] == pytest.approx(roc_area(f[others], classes[others] == i))


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_joined_in_ascending_order_until_all_are_connected(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((40, 12)) * (rng.random((40, 12)) < 0.5)
    distances, joined = cdist(X, X), np.zeros((40, 40))
    for i, j in sorted(combinations(range(40), 2), key=lambda pair: distances[pair]):
        joined[i, j] = joined[j, i] = 1
        if connected_components(joined)[0] == 1:
            break
    np.testing.assert_array_equal(connecting(distances), joined)


def test_every_pair_up_to_the_longest_edge_is_joined():
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert np.argwhere(np.triu(connecting(cdist(square, square)))).tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]
