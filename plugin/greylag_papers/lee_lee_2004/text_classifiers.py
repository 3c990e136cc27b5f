"""The classifiers of the categorisation study: two after Joachims (1997), the others scikit-learn's.

All take word counts (documents by words, sparse or dense) and follow scikit-learn's interface. "Word" stands for any
column.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from greylag.ranking import FloatArray


class WordCountClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the two: a document goes to the class of its highest value, of equal ones to the first.

    Attributes
    ----------
    classes_ : the labels, in ascending order.
    n_features_in_, feature_names_in_ : as scikit-learn has them.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from documents; returns the classifier itself.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (N, V): counts, >= 0.
        y : array-like, shape (N,): labels.

        Raises
        ------
        ValueError
            For missing, infinite or negative counts, labels that are real numbers, and shapes that don't match.
        """
        counts, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_non_negative(counts, type(self).__name__)
        check_classification_targets(labels)
        self.classes_, number = np.unique(labels, return_inverse=True)
        members = csr_array((np.ones(len(number)), (number, np.arange(len(number)))))
        self._fit(csr_array(counts), members)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each document, shape (N,)."""
        highest = self._values(self._counts(X)).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[highest]
        return predicted

    def _counts(self, X: ArrayLike) -> csr_array:
        check_is_fitted(self)
        counts = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        check_non_negative(counts, type(self).__name__)
        return csr_array(counts)

    @abstractmethod
    def _fit(self, counts: csr_array, members: csr_array) -> None:
        """Learn from `counts` (N, V), with `members` (classes, N) 1 where a document is of a class."""

    @abstractmethod
    def _values(self, counts: csr_array) -> FloatArray:
        """Each document's value for each class, shape (N, classes)."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on scikit-learn's checks, whose data are not counts of words
        return tags


class Rocchio(WordCountClassifier):
    """The TFIDF classifier, after Rocchio's relevance feedback: the class whose prototype has the highest cosine.

    A document's vector d has TF(w, d) log(N / DF(w)) for word w, and a class of n documents the prototype

        c = max(0, alpha / n sum over its documents of d / ||d|| - beta / (N - n) sum over all others of d / ||d||)

    Parameters
    ----------
    alpha, beta : how much the class's own documents and the others count. By default 16 and 4.

    Notes
    -----
    The cosine with a null vector is 0. scikit-learn's `NearestCentroid` measures no cosine, and has no beta.

    References
    ----------
    Joachims, A probabilistic analysis of the Rocchio algorithm with TFIDF for text categorization, ICML 1997.
    """

    def __init__(self, alpha: float = 16.0, beta: float = 4.0) -> None:
        self.alpha = alpha
        self.beta = beta

    def _fit(self, counts: csr_array, members: csr_array) -> None:
        n_documents = counts.shape[0]
        df = np.maximum(counts.count_nonzero(axis=0), 1)
        self.idf_ = np.log(n_documents / df)
        own = members @ self._unit_vectors(counts)
        sizes = members.sum(axis=1)[:, np.newaxis]
        others = own.sum(axis=0) - own.toarray()
        prototypes = self.alpha * own.toarray() / sizes - self.beta * others / np.maximum(n_documents - sizes, 1)
        self.prototypes_ = normalize(np.maximum(prototypes, 0.0))

    def _values(self, counts: csr_array) -> FloatArray:
        values: FloatArray = self._unit_vectors(counts) @ self.prototypes_.T
        return values

    def _unit_vectors(self, counts: csr_array) -> csr_array:
        return normalize(counts @ diags_array(self.idf_))


class PrTFIDF(WordCountClassifier):
    """Joachims's probabilistic version of the TFIDF classifier: the class of highest Pr(C | d), where

        Pr(C | d) = sum over words w of Pr(w | d) Pr(w | C) Pr(C) / sum over classes C' of Pr(w | C') Pr(C')

    with Pr(w | d) = TF(w, d) / |d|, Pr(w | C) the mean of Pr(w | d) over the class's documents, and Pr(C) the class's
    share of documents.

    Attributes
    ----------
    class_prior_ : shape (classes,): Pr(C).
    word_posterior_ : shape (classes, V): Pr(C | w), the fraction above; Pr(C) for a word that no document had.

    Notes
    -----
    A document's length |d| is the number of its words among the V that the classifier is given. One without any gets
    Pr(C), and so does the part of a document that consists of words that no training document had.

    References
    ----------
    Joachims, A probabilistic analysis of the Rocchio algorithm with TFIDF for text categorization, ICML 1997.
    """

    def _fit(self, counts: csr_array, members: csr_array) -> None:
        sizes = members.sum(axis=1)
        self.class_prior_ = sizes / sizes.sum()
        joint = (members @ normalize(counts, "l1")).toarray()  # N Pr(w | C) Pr(C)
        total = joint.sum(axis=0)
        met = total > 0
        self.word_posterior_ = np.repeat(self.class_prior_[:, np.newaxis], len(total), axis=1)
        self.word_posterior_[:, met] = joint[:, met] / total[met]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Pr(C | d), shape (N, classes); rows sum to 1."""
        return self._values(self._counts(X))

    def _values(self, counts: csr_array) -> FloatArray:
        probabilities: FloatArray = normalize(counts, "l1") @ self.word_posterior_.T
        probabilities[counts.sum(axis=1) == 0] = self.class_prior_
        return probabilities


# newton-cg gets to the optimum of all words' weights some 40 times faster than the default, lbfgs.
LEARNERS: dict[str, BaseEstimator] = {
    "naive Bayes": MultinomialNB(),
    "Rocchio": Rocchio(),
    "PrTFIDF": PrTFIDF(),
    "maximum entropy": LogisticRegression(solver="newton-cg", max_iter=1000),
}
"""The learners that selectors are compared by."""

SVM: BaseEstimator = make_pipeline(TfidfTransformer(), LinearSVC(random_state=0))
"""The linear support vector machine, on unit TF-IDF vectors of all words."""
