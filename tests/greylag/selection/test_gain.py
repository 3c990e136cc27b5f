"""Information gain against the formula of the paper, published values, scikit-learn and invariants."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_selection import mutual_info_classif

from greylag.errors import ParameterError
from greylag.selection import InformationGainSelection, information_gain
from greylag.selection.gain import Occurrences, gain_of_events
from tests.greylag.selection.samples import gain_by_formula, newsgroups, random_words, words_of_equal_gain


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


def test_ties_go_to_the_lower_column_though_sums_are_rounded():
    X, y = words_of_equal_gain()
    assert len(set(information_gain(X, y).tolist())) > 1
    assert InformationGainSelection(10).fit(X, y).selected_.tolist() == list(range(10))
