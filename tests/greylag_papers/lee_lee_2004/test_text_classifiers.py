"""Joachims's two classifiers and Rainbow's against their formulas, computed word by word."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from greylag_papers.lee_lee_2004.text_classifiers import PrInd, PrTFIDF, RainbowTFIDF, Rocchio


def random_counts(seed, n_documents=30, n_words=12, n_classes=3):
    """Counts with empty documents, words in no document, and words in only one class."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_documents) % n_classes)
    X = rng.poisson(rng.gamma(0.3, 2.0, (n_classes, n_words))[y])
    X[:, 0] = 0
    X[:, 1] = y == 1
    X[rng.integers(n_documents)] = 0
    return X, np.array(["north", "east", "south"])[y]


def test_rainbow_tfidf_equals_the_formula():
    X, y = random_counts(1)
    df = (X > 0).sum(axis=0)
    idf = [math.log2(len(X) / n) if n else 0 for n in df]

    def weights(document):
        return [math.log(1 + tf) * rarity for tf, rarity in zip(document, idf, strict=True)]

    classes = sorted(set(y))
    sums = {c: np.sum([weights(d) for d, label in zip(X, y, strict=True) if label == c], axis=0) for c in classes}
    classifier = RainbowTFIDF().fit(X, y)
    for document in X[X.sum(axis=1) > 0]:
        cosines = [np.dot(weights(document), sums[c]) / np.linalg.norm(sums[c]) for c in classes]
        assert classifier.predict([document])[0] == classes[int(np.argmax(cosines))]


@pytest.mark.parametrize("seed", range(5))
def test_prtfidf_equals_the_formula(seed):
    X, y = random_counts(seed)
    documents = X[(X.sum(axis=1) > 0)]
    P = X / np.maximum(X.sum(axis=1, keepdims=True), 1)
    joint = np.array([P[y == c].mean(axis=0) * np.mean(y == c) for c in sorted(set(y))])  # Pr(w | C) Pr(C)
    share = joint / np.maximum(joint.sum(axis=0), 1e-300)
    expected = [share @ document / document.sum() for document in documents]
    found = PrTFIDF().fit(X, y)
    np.testing.assert_allclose(found.predict_proba(documents), expected, atol=1e-14)
    np.testing.assert_array_equal(found.predict(documents), found.classes_[np.argmax(expected, axis=1)])


def test_prtfidf_uses_the_prior_for_unknown_words():
    X, y = [[2, 0, 0], [1, 1, 0], [0, 3, 0], [1, 0, 0]], ["a", "a", "b", "a"]
    classifier = PrTFIDF().fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba([[0, 0, 4], [0, 0, 0]]), [[0.75, 0.25]] * 2)
    half = classifier.predict_proba([[1, 0, 1]])
    np.testing.assert_allclose(half, classifier.predict_proba([[1, 0, 0]]) / 2 + [0.375, 0.125])


@pytest.mark.parametrize("seed", range(5))
def test_rocchio_equals_the_formula(seed):
    X, y = random_counts(seed)
    df = (X > 0).sum(axis=0)
    vectors = X * [math.log(len(X) / n) if n else 0.0 for n in df]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    expected = []
    for c in sorted(set(y)):
        prototype = np.maximum(0.0, 16 * vectors[y == c].mean(axis=0) - 4 * vectors[y != c].mean(axis=0))
        expected.append(vectors @ prototype / (np.linalg.norm(prototype) or 1.0))
    expected = np.transpose(expected)
    found = Rocchio().fit(X, y)
    np.testing.assert_allclose(found._values(sparse.csr_array(X.astype(float))), expected, atol=1e-14)
    np.testing.assert_array_equal(found.predict(X), found.classes_[np.argmax(expected, axis=1)])


@pytest.mark.parametrize("seed", range(5))
def test_prind_equals_the_formula(seed):
    X, y = random_counts(seed)
    weights = []
    for c in sorted(set(y)):
        inside = X[y == c]
        own = np.zeros(X.shape[1])
        for w in np.flatnonzero(inside.sum(axis=0)):
            containing = np.count_nonzero(inside[:, w])
            ratio = (inside[:, w].sum() / inside.sum()) / (X[:, w].sum() / X.sum())
            own[w] = ratio * containing * math.log2(len(inside) / containing)
        weights.append(own / own.sum())
    found = PrInd().fit(X, y)
    np.testing.assert_allclose(found.weights_, weights, atol=1e-14)
    np.testing.assert_array_equal(found.predict(X), found.classes_[np.argmax(X @ np.transpose(weights), axis=1)])


@pytest.mark.parametrize("classifier", [Rocchio(), PrTFIDF(), PrInd()])
def test_sparse_and_dense_input_agree(classifier):
    X, y = random_counts(7)
    dense = clone(classifier).fit(X, y).predict(X)
    np.testing.assert_array_equal(clone(classifier).fit(sparse.csc_matrix(X), y).predict(sparse.csr_array(X)), dense)
    assert np.mean(dense == y) > 0.5


@parametrize_with_checks([Rocchio(), PrTFIDF(), PrInd()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
