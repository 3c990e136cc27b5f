"""Koller & Sahami's elimination, against its definition and scikit-learn's mutual information."""

import math

import numpy as np
import pytest
from scipy.sparse import csc_array
from sklearn.metrics import mutual_info_score

from greylag.learning import MMRFeatureSelection
from greylag_papers.lee_lee_2004.koller_sahami import eliminate, expected_cross_entropy
from tests.greylag.learning.words import gain_by_formula, random_words


def delta_by_definition(X, y, word, blanket):
    """The expected Kullback-Leibler divergence, summed over the values that occur."""
    states = [tuple(row) for row in X[:, blanket]]
    delta = 0.0
    for state in set(states):
        of_state = np.array([s == state for s in states])
        for value in (False, True):
            both = of_state & (X[:, word] == value)
            for c in set(y[both].tolist()):
                p, q = np.mean(y[both] == c), np.mean(y[of_state] == c)
                delta += np.mean(both) * p * math.log(p / q)
    return delta


def eliminate_by_definition(X, y, n_features, k):
    """The remaining words, with every blanket and delta recomputed in each round; ties within 1e-9."""
    n_words = X.shape[1]
    gain = [round(gain_by_formula(word, y), 9) for word in X.T]
    gamma = [[round(delta_by_definition(X, y, i, [j]), 9) for j in range(n_words)] for i in range(n_words)]
    left = set(range(n_words))
    while len(left) > n_features:
        keys = []
        for i in left:
            blanket = sorted(left - {i}, key=lambda j: (gamma[i][j], -gain[j], j))[:k]
            keys.append((round(delta_by_definition(X, y, i, blanket), 9), gain[i], -i))
        left.remove(-min(keys)[2])
    return sorted(left)


def left(X, y, n_features, k):
    """The columns that elimination leaves, as it is applied by the study: to words by decreasing gain."""
    order = MMRFeatureSelection(X.shape[1], relevance_weight=1.0).fit(X, y).selected_
    return sorted(order[eliminate(X[:, order], y, n_features, k)].tolist())


@pytest.mark.parametrize("k", [0, 1, 2, 3, 5, 10])  # 10 are more than what is left
@pytest.mark.parametrize("seed", range(4))
def test_words_left_are_those_of_the_definition(seed, k):
    X, y = random_words(seed, n_documents=30, n_words=9, n_classes=2 + seed % 2)
    for n_features in (1, 3, 6):
        assert left(X, y, n_features, k) == eliminate_by_definition(X, y, n_features, k)


@pytest.mark.parametrize("seed", [98, 191, 218, 231])
def test_equal_correlations_are_ties_though_sums_are_rounded(seed):
    # Few documents, so that different words have equal gamma by the formula; in these draws blankets depend on it.
    X, y = random_words(seed, n_documents=16, n_words=9, n_classes=2)
    assert left(X, y, 3, 2) == eliminate_by_definition(X, y, 3, 2)


@pytest.mark.parametrize("blanket", [[], [4], [4, 7], [8, 3, 5, 6]])
def test_delta_is_conditional_mutual_information(blanket):
    X, y = random_words(5, n_documents=200)
    state = X[:, blanket] @ (1 << np.arange(len(blanket)))
    for word in (1, 2, 9):
        expected = mutual_info_score(y, 2 * state + X[:, word]) - mutual_info_score(y, state)
        delta = expected_cross_entropy(csc_array(X.astype(int)), y, word, np.array(blanket, dtype=np.int64))
        assert delta == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("seed", range(20))
def test_choice_does_not_depend_on_the_order_of_the_classes(seed):
    X, y = random_words(seed, n_documents=30)
    X[:, 8] = ~X[:, 3]
    for names in ([1, 2, 0], [2, 1, 0], [0, 2, 1]):
        assert left(X, np.array(names)[y], 4, 2) == left(X, y, 4, 2)
