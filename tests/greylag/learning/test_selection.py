"""MMR feature selection and information gain, against the paper's formulas, published values and scikit-learn."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import mutual_info_classif
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from greylag.base import ParameterError
from greylag.learning.selection import MMRFeatureSelection, gain_of_events
from tests.greylag.learning.words import gain_by_formula, newsgroups, random_words, words_of_equal_gain
from tests.refusals import refuses

SELECTOR = MMRFeatureSelection(n_features=3, relevance_weight=0.5)


def by_gain(n):
    return MMRFeatureSelection(n, relevance_weight=1.0)


def information_gain(X, y):
    return by_gain(1).fit(X, y).information_gain_


def gain_of_pairs(X, y):
    by_class = [X[y == c].astype(int) for c in range(y.max() + 1)]
    return gain_of_events([of_class.T @ of_class for of_class in by_class], np.bincount(y))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_gain_is_the_papers_formula_and_scikit_learns_mutual_information(seed, n_classes):
    X, y = random_words(seed, n_classes=n_classes)
    gain, pairs = information_gain(X, y), gain_of_pairs(X, y)
    np.testing.assert_allclose(gain, [gain_by_formula(word, y) for word in X.T], rtol=0, atol=1e-14)
    np.testing.assert_allclose(gain, mutual_info_classif(X, y, discrete_features=True), rtol=0, atol=1e-13)
    expected = [[gain_by_formula(one & other, y) for other in X.T] for one in X.T]
    np.testing.assert_allclose(pairs, expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(pairs.diagonal(), gain)
    np.testing.assert_array_equal(information_gain(~X, y), gain)
    assert (gain >= 0).all()
    assert (gain <= math.log(2)).all()


def test_published_gains():
    # Mitchell, Machine Learning (1997), section 3.4: 9 positive and 5 negative days; humidity high 3+ 4-, wind strong
    # 3+ 3-.
    y = np.array([1] * 9 + [0] * 5)
    humidity = np.array([1] * 3 + [0] * 6 + [1] * 4 + [0] * 1)
    wind = np.array([1] * 3 + [0] * 6 + [1] * 3 + [0] * 2)
    bits = information_gain(np.column_stack([humidity, wind]), y) / math.log(2)
    assert bits == pytest.approx([0.151, 0.048], abs=1e-3)


def test_matrices_in_any_form_give_the_same_and_stay_as_they_are():
    X, y = random_words(0)
    gain, chosen = information_gain(X, y), clone(SELECTOR).fit(X, y).selected_.tolist()
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
        assert clone(SELECTOR).fit(matrix, y).selected_.tolist() == chosen


def test_counts_are_binarised_with_a_warning():
    X, y = random_words(1)
    counts = X * np.random.default_rng(1).integers(1, 5, X.shape)
    with pytest.warns(DataConversionWarning):
        gain = information_gain(sparse.csr_array(counts), y)
    np.testing.assert_array_equal(gain, information_gain(X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        information_gain(X.astype(float), y)


@pytest.mark.parametrize(
    ("X", "y", "options", "parts"),
    [
        ([[1, 0], [0, np.nan]], [0, 1], {}, ["NaN"]),
        ([[1, 0], [0, np.inf]], [0, 1], {}, ["infinity"]),
        ([[1, 0], [0, -2]], [0, 1], {}, ["-2"]),
        (-np.ones((4, 3)), [0, 1, 0, 1], {}, ["-1.0"]),
        ([[1, 0], [0, 1]], [1, 1], {}, ["one class", "1"]),
        (np.ones((4, 3)), ["a"] * 4, {}, ["one class", "'a'"]),
        ([[1, 0], [0, 1]], [0.5, 1.7], {}, ["continuous"]),
        ([[1, 0], [0, 1]], [0, 1, 1], {}, ["samples"]),
        ([[1, 0], [0, 1]], [[0, 1], [1, 0]], {}, ["1d"]),
        ([1, 0], [0, 1], {}, ["2D"]),
        (np.ones((0, 2)), [], {}, ["0 sample"]),
        (np.ones((4, 3)), None, {}, ["y"]),
        *((*random_words(0), {"n_features": n}, ["n_features", "12", f"not {n}"]) for n in (0, 13, 2.0, None)),
        *((*random_words(0), {"preselect": n}, ["preselect", "3", f"not {n}"]) for n in (2, 5.5)),
        *(
            (*random_words(0), {"relevance_weight": weight}, ["relevance_weight", f"not {weight!r}"])
            for weight in (-0.1, 1.5, float("nan"), "0.5", None)
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(X, y, options, parts):
    refuses(lambda: clone(SELECTOR).set_params(**options).fit(X, y), ParameterError, "|".join(parts), "|")


def test_ties_go_to_the_lower_column_though_sums_are_rounded():
    X, y = words_of_equal_gain()
    assert len(set(information_gain(X, y).tolist())) > 1
    assert by_gain(10).fit(X, y).selected_.tolist() == list(range(10))


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
    candidates = by_gain(150).fit(X, y).selected_
    _, classes = np.unique(y, return_inverse=True)
    pairs = gain_of_pairs(X[:, candidates].toarray(), classes)
    chosen = [0]
    while len(chosen) < 40:
        value = np.round(0.4 * pairs.diagonal() - 0.6 * pairs[:, chosen].max(axis=1), 9)
        chosen.append(max(set(range(150)) - set(chosen), key=lambda i: (value[i], -i)))
    selector = MMRFeatureSelection(40, relevance_weight=0.4, preselect=150).fit(X, y)
    assert selector.selected_.tolist() == candidates[chosen].tolist()
    assert set(chosen) != set(range(40))


def test_candidates_are_the_words_of_highest_gain():
    X, y = random_words(2, n_words=20)
    candidates = np.sort(by_gain(8).fit(X, y).selected_)
    among_all = MMRFeatureSelection(5, relevance_weight=0.2).fit(X, y).selected_
    among_eight = MMRFeatureSelection(5, relevance_weight=0.2, preselect=8).fit(X, y).selected_
    np.testing.assert_array_equal(
        among_eight, candidates[MMRFeatureSelection(5, relevance_weight=0.2).fit(X[:, candidates], y).selected_]
    )
    assert among_eight.tolist() != among_all.tolist()


# With n_features = 1, because some checks fit one or two columns, of which three cannot be kept. None is excluded; that
# of array-API input skips itself unless SCIPY_ARRAY_API is set.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks([MMRFeatureSelection(n_features=1, relevance_weight=0.5)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_pipeline_keeps_names_and_counts():
    texts = ["red apple", "green apple", "red wine", "fast red car car", "green car", "fast car race"]
    pipeline = make_pipeline(CountVectorizer(), clone(SELECTOR))
    with pytest.warns(DataConversionWarning):
        kept = pipeline.fit_transform(texts, ["food"] * 3 + ["cars"] * 3)
    counts = pipeline[0].transform(texts)
    names = pipeline[0].get_feature_names_out()
    assert sparse.issparse(kept)
    np.testing.assert_array_equal(kept.toarray(), counts.toarray()[:, np.sort(pipeline[1].selected_)])
    assert kept.max() == 2  # "car car": selection sees booleans, the next step still sees counts
    assert pipeline.get_feature_names_out().tolist() == names[np.sort(pipeline[1].selected_)].tolist()
    assert "car" in pipeline.get_feature_names_out()
