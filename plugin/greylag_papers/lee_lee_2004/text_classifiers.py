"""The classifiers of the categorisation study: two by Joachims (1997), two of Rainbow, the others from scikit-learn.

All take word counts, a sparse or dense matrix of documents by words, and follow scikit-learn's interface.
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

from greylag.base import FloatArray


class WordCountClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class: predicts the class with the highest value, the first one of equals."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the classifier."""
        counts, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        # Counts below 0 would give NaN in some formulas, and a number without sense in others.
        check_non_negative(counts, type(self).__name__)
        check_classification_targets(labels)
        self.classes_, number = np.unique(labels, return_inverse=True)
        members = csr_array((np.ones(len(number)), (number, np.arange(len(number)))))
        self._fit(csr_array(counts), members)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return predicted labels, shape (N,)."""
        highest = self._values(self._counts(X)).argmax(axis=1)
        return np.asarray(self.classes_[highest])

    def _counts(self, X: ArrayLike) -> csr_array:
        check_is_fitted(self)
        counts = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        check_non_negative(counts, type(self).__name__)
        return csr_array(counts)

    @abstractmethod
    def _fit(self, counts: csr_array, members: csr_array) -> None:
        """Fit to `counts`, shape (N, V), and `members`, shape (classes, N): 1 if the document is of the class."""

    @abstractmethod
    def _values(self, counts: csr_array) -> FloatArray:
        """Return the value of each document for each class, shape (N, classes)."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # scikit-learn's checks use data that are not word counts
        return tags


class Rocchio(WordCountClassifier):
    """The TFIDF classifier (Joachims, ICML 1997), after Rocchio's relevance feedback.

    Predicts the class whose prototype has the highest cosine with the document. A document vector d has the weights
    TF(w, d) log(N / DF(w)). The prototype of a class with n documents is

        c = max(0, 16 / n sum_{d in class} d / ||d|| - 4 / (N - n) sum_{d not in class} d / ||d||)

    The cosine with a null vector is 0.
    """

    def _fit(self, counts: csr_array, members: csr_array) -> None:
        n_documents = counts.shape[0]
        df = np.maximum(counts.count_nonzero(axis=0), 1)
        self.idf_ = np.log(n_documents / df)
        sums = members @ self._unit_vectors(counts)
        sizes = members.sum(axis=1)[:, np.newaxis]
        # All documents less those of the class, rather than a sum for each class.
        others = sums.sum(axis=0) - sums.toarray()
        prototypes = 16 * sums.toarray() / sizes - 4 * others / np.maximum(n_documents - sizes, 1)
        self.prototypes_ = normalize(np.maximum(prototypes, 0.0))

    def _values(self, counts: csr_array) -> FloatArray:
        return np.asarray(self._unit_vectors(counts) @ self.prototypes_.T)

    def _unit_vectors(self, counts: csr_array) -> csr_array:
        return normalize(counts @ diags_array(self.idf_))


class RainbowTFIDF(WordCountClassifier):
    """Rainbow's method ``tfidf`` with its default options: predicts the class with the highest cosine.

    A document has the weights log(1 + TF(w, d)) log2(N / DF(w)), a class the sums of its documents' weights. There are
    no negative examples, unlike in `Rocchio`. The formulas are those of bow's tfidf.c.
    """

    def _fit(self, counts: csr_array, members: csr_array) -> None:
        n_documents = counts.shape[0]
        df = counts.count_nonzero(axis=0)
        self.idf_ = np.where(df > 0, np.log2(n_documents / np.maximum(df, 1)), 0.0)
        self.prototypes_ = normalize((members @ self._weights(counts)).toarray())

    def _values(self, counts: csr_array) -> FloatArray:
        return np.asarray(normalize(self._weights(counts)) @ self.prototypes_.T)

    def _weights(self, counts: csr_array) -> csr_array:
        return counts.log1p() @ diags_array(self.idf_)


class PrTFIDF(WordCountClassifier):
    """The probabilistic TFIDF classifier (Joachims, ICML 1997): predicts the class with the highest Pr(C | d).

        Pr(C | d) = sum_w Pr(w | d) Pr(w | C) Pr(C) / sum_C' Pr(w | C') Pr(C')

    with Pr(w | d) = TF(w, d) / |d|, Pr(w | C) the mean of Pr(w | d) over the documents of the class, and Pr(C) the
    share of its documents. |d| counts the words of d that are columns of X; a document without any gets Pr(C), and so
    does the share of d's words that occur in no training document.
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
        """Return Pr(C | d), shape (N, classes); rows sum to 1."""
        return self._values(self._counts(X))

    def _values(self, counts: csr_array) -> FloatArray:
        probabilities: FloatArray = normalize(counts, "l1") @ self.word_posterior_.T
        probabilities[counts.sum(axis=1) == 0] = self.class_prior_
        return probabilities


class PrInd(WordCountClassifier):
    """Rainbow's method ``prind`` with its default options: predicts the class with the highest score.

        score(C) = sum_w TF(w, d) weight(w, C) / sum_w' weight(w', C)
        weight(w, C) = Pr(w | C) / Pr(w) n(w, C) log2(n(C) / n(w, C))

    Pr(w | C) and Pr(w) are shares of word occurrences, in all documents of the class together and in all documents;
    n(C) is the number of documents of the class, n(w, C) of those that contain w. A weight is 0 if n(w, C) is 0. There
    is no prior. A class without a positive weight has a score of 0.

    Rainbow (McCallum 1996) calls this method PrTFIDF, but it differs from `PrTFIDF`: documents of a class are pooled,
    so that long ones count for more; priors are uniform; and weights are scaled by the last factor, "Quinlan's
    FoilGain", and normalised to a sum of 1 for each class. Rainbow's options ``--prind-non-uniform-priors`` and
    ``--prind-no-foilgain-weight-scaling`` turn these off. The formulas are those of bow's prind.c and foilgain.c.
    """

    def _fit(self, counts: csr_array, members: csr_array) -> None:
        pooled, sizes = (members @ counts).toarray(), members.sum(axis=1)[:, np.newaxis]
        containing = (members @ (counts > 0).astype(np.float64)).toarray()
        totals, n_words = pooled.sum(axis=0), pooled.sum()
        in_class = pooled / np.maximum(pooled.sum(axis=1, keepdims=True), 1.0)
        overall = np.where(totals > 0, totals, 1.0) / max(n_words, 1.0)
        gain = containing * np.log2(sizes / np.where(containing > 0, containing, sizes))
        self.weights_ = normalize(in_class / overall * gain, "l1")

    def _values(self, counts: csr_array) -> FloatArray:
        return np.asarray(counts @ self.weights_.T)


# newton-cg converges some 40 times faster on all words than the default, lbfgs.
LEARNERS: dict[str, BaseEstimator] = {
    "naive Bayes": MultinomialNB(),
    "Rocchio": Rocchio(),
    "Rainbow tfidf": RainbowTFIDF(),
    "PrTFIDF": PrTFIDF(),
    "prind": PrInd(),
    "maximum entropy": LogisticRegression(solver="newton-cg", max_iter=1000),
}
"""The learners with which selectors are compared."""

SVM: BaseEstimator = make_pipeline(TfidfTransformer(), LinearSVC(random_state=0))
"""The linear support vector machine on unit TF-IDF vectors of all words."""
