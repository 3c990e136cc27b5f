"""MMR selection against the formulas of the paper, limit cases and invariants."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from greylag.errors import ParameterError
from greylag.selection import InformationGainSelection, MMRFeatureSelection
from greylag.selection.gain import Occurrences, gain_of_events
from tests.greylag.selection.samples import gain_by_formula, newsgroups, random_words, words_of_equal_gain


def mmr_by_formula(X, y, n_features, relevance_weight):
    """The greedy choice, all values recomputed each time; ties within 1e-9 go by gain, then by column."""
    gain = [gain_by_formula(word, y) for word in X.T]
    chosen = []
    while len(chosen) < n_features:
        best = None
        for i in set(range(X.shape[1])) - set(chosen):
            redundancy = max((gain_by_formula(X[:, i] & X[:, j], y) for j in chosen), default=0.0)
            value = relevance_weight * gain[i] - (1 - relevance_weight) * redundancy
            key = (round(value, 9), round(gain[i], 9), -i)
            best = max(best or key, key)
        chosen.append(-best[2])
    return chosen


@pytest.mark.parametrize("relevance_weight", [0.0, 0.1, 0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_choice_is_the_papers(seed, relevance_weight):
    X, y = random_words(seed, n_documents=25, n_words=9, n_classes=2 + seed % 2)
    selector = MMRFeatureSelection(9, relevance_weight=relevance_weight).fit(X, y)
    assert selector.selected_.tolist() == mmr_by_formula(X, y, 9, relevance_weight)


def test_choice_is_that_of_the_full_matrix_of_pairs_on_text(data):
    X, y = newsgroups(data("rec_newsgroups"), every=8)
    candidates = InformationGainSelection(150).fit(X, y).selected_
    _, classes = np.unique(y, return_inverse=True)
    words = Occurrences(sparse.csr_array(X[:, candidates], dtype=np.int64), classes, np.bincount(classes))
    pairs = gain_of_events(words.pair_class_counts(), words.class_sizes)
    chosen = [0]
    while len(chosen) < 40:
        value = np.round(0.4 * pairs.diagonal() - 0.6 * pairs[:, chosen].max(axis=1), 9)
        chosen.append(max(set(range(150)) - set(chosen), key=lambda i: (value[i], -i)))
    selector = MMRFeatureSelection(40, relevance_weight=0.4, preselect=150).fit(X, y)
    assert selector.selected_.tolist() == candidates[chosen].tolist()
    assert set(chosen) != set(range(40))


@pytest.mark.parametrize("seed", range(5))
def test_relevance_alone_is_the_order_of_gain(seed):
    X, y = random_words(seed, n_words=20)
    np.testing.assert_array_equal(
        MMRFeatureSelection(20, relevance_weight=1.0).fit(X, y).selected_,
        InformationGainSelection(20).fit(X, y).selected_,
    )


def test_ties_go_to_the_lower_column_though_sums_are_rounded():
    assert MMRFeatureSelection(10, relevance_weight=1.0).fit(*words_of_equal_gain()).selected_.tolist() == list(
        range(10)
    )


@pytest.mark.parametrize("relevance_weight", [0.0, 0.5, 1.0])
def test_first_is_the_word_of_highest_gain_and_fewer_words_are_the_beginning(relevance_weight):
    X, y = random_words(7, n_words=20)
    selected = MMRFeatureSelection(20, relevance_weight=relevance_weight).fit(X, y).selected_
    assert selected[0] == InformationGainSelection(1).fit(X, y).selected_[0]
    for n in range(1, 20):
        np.testing.assert_array_equal(
            MMRFeatureSelection(n, relevance_weight=relevance_weight).fit(X, y).selected_, selected[:n]
        )


def test_redundant_word_waits_for_a_weaker_one():
    y = np.repeat([0, 1], 10)
    strong, weak = y == 1, np.isin(np.arange(20), [0, 1, 2, 3, 10])
    X = np.column_stack([weak, strong, strong])
    assert MMRFeatureSelection(3, relevance_weight=1.0).fit(X, y).selected_.tolist() == [1, 2, 0]
    assert MMRFeatureSelection(3, relevance_weight=0.5).fit(X, y).selected_.tolist() == [1, 0, 2]


def test_word_without_gain_is_worth_more_than_a_redundant_one_at_a_low_weight():
    y = np.repeat([0, 1], 10)
    X = np.column_stack([y, np.zeros(20), y])
    assert MMRFeatureSelection(2, relevance_weight=0.4).fit(X, y).selected_.tolist() == [0, 1]
    assert MMRFeatureSelection(2, relevance_weight=0.4, preselect=2).fit(X, y).selected_.tolist() == [0, 2]


def test_candidates_are_the_words_of_highest_gain():
    X, y = random_words(2, n_words=20)
    candidates = np.sort(InformationGainSelection(8).fit(X, y).selected_)
    among_all = MMRFeatureSelection(5, relevance_weight=0.2).fit(X, y).selected_
    among_eight = MMRFeatureSelection(5, relevance_weight=0.2, preselect=8).fit(X, y).selected_
    np.testing.assert_array_equal(
        among_eight, candidates[MMRFeatureSelection(5, relevance_weight=0.2).fit(X[:, candidates], y).selected_]
    )
    assert among_eight.tolist() != among_all.tolist()


@pytest.mark.parametrize("relevance_weight", [-0.1, 1.5, float("nan"), "0.5", None])
def test_relevance_weight_outside_its_domain_is_refused(relevance_weight):
    with pytest.raises(ParameterError, match="relevance_weight must be a number in"):
        MMRFeatureSelection(2, relevance_weight=relevance_weight).fit(*random_words(0))
