"""Selectors of features, against the papers' formulas, published values and other implementations.

Tests `gain`, `koller_sahami` and `mmr`.
"""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_selection import mutual_info_classif
from sklearn.metrics import mutual_info_score

from greylag.errors import ParameterError
from greylag.learning.selection import (
    InformationGainSelection,
    KollerSahamiSelection,
    MMRFeatureSelection,
    information_gain,
)
from greylag.learning.selection.gain import Occurrences, gain_of_events
from greylag.learning.selection.koller_sahami import expected_cross_entropy, pairwise_cross_entropy
from tests.greylag.learning.selection.samples import gain_by_formula, newsgroups, random_words, words_of_equal_gain


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_gain_is_the_papers_formula(seed, n_classes):
    X, y = random_words(seed, n_classes=n_classes)
    expected = [gain_by_formula(word, y) for word in X.T]
    np.testing.assert_allclose(information_gain(X, y), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_gain_of_pairs_is_the_papers_formula(seed, n_classes):
    X, y = random_words(seed, n_classes=n_classes)
    expected = [[gain_by_formula(one & other, y) for other in X.T] for one in X.T]
    words = Occurrences(sparse.csr_array(X.astype(np.int64)), y, np.bincount(y))
    pairs = gain_of_events(words.pair_class_counts(), words.class_sizes)
    np.testing.assert_allclose(pairs, expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(pairs.diagonal(), information_gain(X, y))


def test_published_gains():
    # Mitchell, Machine Learning (1997), section 3.4: 9 positive and 5 negative days; humidity high 3+ 4-, wind strong
    # 3+ 3-.
    y = np.array([1] * 9 + [0] * 5)
    humidity = np.array([1] * 3 + [0] * 6 + [1] * 4 + [0] * 1)
    wind = np.array([1] * 3 + [0] * 6 + [1] * 3 + [0] * 2)
    bits = information_gain(np.column_stack([humidity, wind]), y) / math.log(2)
    assert bits == pytest.approx([0.151, 0.048], abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_gain_equals_scikit_learns_mutual_information(seed):
    X, y = random_words(seed, n_documents=97, n_classes=4)
    expected = mutual_info_classif(X, y, discrete_features=True)
    np.testing.assert_allclose(information_gain(X, y), expected, rtol=0, atol=1e-13)


def test_gain_equals_scikit_learns_on_text(data):
    X, y = newsgroups(data("rec_newsgroups"), every=4)
    some = np.random.default_rng(0).choice(X.shape[1], 200, replace=False)
    expected = mutual_info_classif(X[:, some].toarray(), y, discrete_features=True)
    np.testing.assert_allclose(information_gain(X, y)[some], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_gain_is_bounded_and_the_same_for_a_words_absence(seed):
    X, y = random_words(seed, n_classes=4)
    gain = information_gain(X, y)
    assert (gain >= 0).all()
    assert (gain <= math.log(2)).all()
    np.testing.assert_array_equal(information_gain(~X, y), gain)


def test_gain_of_constant_and_of_determining_words():
    y = np.array(["no", "no", "yes", "yes"])
    X = np.column_stack([np.zeros(4), np.ones(4), y == "yes", [1, 0, 1, 0]]).astype(int)
    np.testing.assert_array_equal(information_gain(X, y)[[0, 1, 3]], 0)
    assert information_gain(X, y)[2] == pytest.approx(math.log(2), abs=1e-15)


def test_matrices_in_any_form_give_the_same_and_stay_as_they_are():
    X, y = random_words(0)
    gain = information_gain(X, y)
    dense = X.astype(float)
    csr = sparse.csr_array(dense)
    stored_zero = sparse.csr_array((np.r_[csr.data, 0.0], np.r_[csr.indices, 0], np.r_[csr.indptr[:-1], csr.nnz + 1]))
    twice = sparse.csr_array((np.repeat(csr.data, 2), np.repeat(csr.indices, 2), 2 * csr.indptr), csr.shape)
    unsorted = sparse.csr_array(dense[:, ::-1])[:, ::-1]
    assert not unsorted.has_sorted_indices
    for array in (unsorted.data, unsorted.indices, unsorted.indptr):
        array.flags.writeable = False
    for matrix in (dense.tolist(), csr, csr.astype(bool), csr.tocsc(), csr.tocoo(), stored_zero, twice, unsorted):
        np.testing.assert_array_equal(information_gain(matrix, y), gain)


def test_counts_are_binarised_with_a_warning():
    X, y = random_words(1)
    counts = X * np.random.default_rng(1).integers(1, 5, X.shape)
    with pytest.warns(DataConversionWarning, match="other than 0 and 1"):
        gain = information_gain(sparse.csr_array(counts), y)
    np.testing.assert_array_equal(gain, information_gain(X, y))
    with pytest.warns(DataConversionWarning):
        np.testing.assert_array_equal(information_gain(X * 0.3, y), gain)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        information_gain(X.astype(float), y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1, 0], [0, np.nan]], [0, 1], "NaN"),
        ([[1, 0], [0, np.inf]], [0, 1], "infinity"),
        ([[1, 0], [0, -2]], [0, 1], "X contains -2"),
        ([[1, 0], [0, 1]], [1, 1], "one class"),
        ([[1, 0], [0, 1]], [0.5, 1.7], "continuous"),
        ([[1, 0], [0, 1]], [0, 1, 1], "inconsistent numbers of samples"),
        ([[1, 0], [0, 1]], [[0, 1], [1, 0]], "1d array"),
        ([1, 0], [0, 1], "Expected 2D array"),
        (np.ones((0, 2)), [], "0 sample"),
    ],
)
def test_bad_input_is_refused_in_one_line(X, y, message):
    with pytest.raises(ParameterError, match=message) as error:
        information_gain(X, y)
    assert "\n" not in str(error.value)


def test_selection_keeps_the_words_of_highest_gain():
    X, y = random_words(3)
    gain = np.array([gain_by_formula(word, y) for word in X.T])
    selector = InformationGainSelection(5).fit(X, y)
    np.testing.assert_allclose(gain[selector.selected_], np.sort(gain)[::-1][:5], rtol=0, atol=1e-14)
    np.testing.assert_array_equal(selector.get_support(indices=True), np.sort(selector.selected_))
    np.testing.assert_allclose(selector.information_gain_, gain, rtol=0, atol=1e-14)


@pytest.mark.parametrize("selector", [InformationGainSelection(10), MMRFeatureSelection(10, relevance_weight=1.0)])
def test_ties_go_to_the_lower_column_though_sums_are_rounded(selector):
    X, y = words_of_equal_gain()
    assert len(set(information_gain(X, y).tolist())) > 1
    assert selector.fit(X, y).selected_.tolist() == list(range(10))


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


def occurrences(X, y):
    return Occurrences(sparse.csr_array(X.astype(np.int64)), y, np.bincount(y))


@pytest.mark.parametrize("k", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_words_left_are_those_of_the_definition(seed, k):
    X, y = random_words(seed, n_documents=30, n_words=9, n_classes=2 + seed % 2)
    for n_features in (1, 3, 6):
        selector = KollerSahamiSelection(n_features, conditioning_size=k).fit(X, y)
        assert selector.get_support(indices=True).tolist() == eliminate_by_definition(X, y, n_features, k)


@pytest.mark.parametrize("seed", [98, 191, 218, 231])
def test_equal_correlations_are_ties_though_sums_are_rounded(seed):
    # Few documents, so that different words have equal gamma by the formula; in these draws blankets depend on it.
    X, y = random_words(seed, n_documents=16, n_words=9, n_classes=2)
    selector = KollerSahamiSelection(3, conditioning_size=2).fit(X, y)
    assert selector.get_support(indices=True).tolist() == eliminate_by_definition(X, y, 3, 2)


@pytest.mark.parametrize("seed", range(4))
def test_gamma_is_the_delta_of_a_blanket_of_one(seed):
    X, y = random_words(seed)
    expected = [[delta_by_definition(X, y, i, [j]) for j in range(12)] for i in range(12)]
    np.testing.assert_allclose(pairwise_cross_entropy(occurrences(X, y)), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("blanket", [[], [4], [4, 7], [8, 3, 5, 6]])
def test_delta_is_conditional_mutual_information(blanket):
    X, y = random_words(5, n_documents=200)
    state = X[:, blanket] @ (1 << np.arange(len(blanket)))
    for word in (1, 2, 9):
        expected = mutual_info_score(y, 2 * state + X[:, word]) - mutual_info_score(y, state)
        delta = expected_cross_entropy(occurrences(X, y), word, np.array(blanket, dtype=np.int64))
        assert delta == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_empty_blankets_give_the_words_of_highest_gain(seed):
    X, y = random_words(seed, n_words=20)
    for n_features in (1, 7, 20):
        np.testing.assert_array_equal(
            KollerSahamiSelection(n_features, conditioning_size=0).fit(X, y).selected_,
            InformationGainSelection(n_features).fit(X, y).selected_,
        )


def test_copy_of_a_strong_word_goes_before_a_weak_word():
    y = np.repeat([0, 1], 10)
    strong, weak = np.arange(20) >= 9, np.isin(np.arange(20), [0, 1, 2, 3, 10])
    X = np.column_stack([weak, strong, strong])
    assert InformationGainSelection(2).fit(X, y).selected_.tolist() == [1, 2]
    assert KollerSahamiSelection(2, conditioning_size=1).fit(X, y).selected_.tolist() == [1, 0]


def test_blanket_may_be_larger_than_what_is_left():
    X, y = random_words(1, n_words=6)
    assert KollerSahamiSelection(1, conditioning_size=10).fit(X, y).selected_.tolist() == eliminate_by_definition(
        X, y, 1, 10
    )


@pytest.mark.parametrize("seed", range(20))
def test_choice_does_not_depend_on_the_order_of_the_classes(seed):
    X, y = random_words(seed, n_documents=30)
    X[:, 8] = ~X[:, 3]
    selected = KollerSahamiSelection(4, conditioning_size=2).fit(X, y).selected_
    for names in ([1, 2, 0], [2, 1, 0], [0, 2, 1]):
        np.testing.assert_array_equal(
            KollerSahamiSelection(4, conditioning_size=2).fit(X, np.array(names)[y]).selected_, selected
        )


def test_candidates_are_the_words_of_highest_gain():
    X, y = random_words(2, n_words=20)
    candidates = np.sort(InformationGainSelection(8).fit(X, y).selected_)
    np.testing.assert_array_equal(
        KollerSahamiSelection(5, conditioning_size=2, preselect=8).fit(X, y).selected_,
        candidates[KollerSahamiSelection(5, conditioning_size=2).fit(X[:, candidates], y).selected_],
    )


@pytest.mark.parametrize("k", [-1, 11, 1.0, None])
def test_conditioning_size_outside_its_domain_is_refused(k):
    with pytest.raises(ParameterError, match=r"conditioning_size .*\b10\b"):
        KollerSahamiSelection(2, conditioning_size=k).fit(*random_words(0))


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


def test_candidates_are_the_words_of_highest_gain_of_mmr():
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
