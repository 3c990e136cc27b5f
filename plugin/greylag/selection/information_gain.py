"""Information gain of words and of pairs of words, and the selector that keeps the words of highest gain.

What the package's selectors share is here too: which words occur in which documents (`Occurrences`), the gain of an
event from its counts in each class, and the scikit-learn side (`OccurrenceSelector`). Everything is computed from
integer counts. "Word" and "document" stand for any column and row.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import xlogy
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from greylag.errors import ParameterError
from greylag.ranking import FloatArray, IntArray

# Values that agree to so many decimals are ties: the rounding of sums, which depends on the order of the classes, must
# not decide between words that are equal by the formula.
TIE_DECIMALS = 12


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Which of V words occur in which of N documents, and the documents' classes.

    Parameters
    ----------
    X : csr_array, int64, shape (N, V): 1 where the word occurs, nothing stored elsewhere.
    classes : shape (N,): each document's class, from 0.
    class_sizes : shape (n_classes,): documents in each class.
    """

    X: Any
    classes: IntArray
    class_sizes: IntArray

    def restrict(self, words: IntArray) -> Occurrences:
        """The same documents with these columns, in this order."""
        return Occurrences(self.X[:, words], self.classes, self.class_sizes)

    @cached_property
    def _by_word(self) -> Any:
        return self.X.tocsc()

    def documents(self, word: int) -> IntArray:
        """The documents in which a word occurs."""
        start, end = self._by_word.indptr[word : word + 2]
        documents: IntArray = self._by_word.indices[start:end]
        return documents

    def class_counts(self, documents: IntArray | slice = slice(None)) -> IntArray:
        """How many of `documents` are of class c and have word w; shape (n_classes, V)."""
        X, shape = self.X[documents], (len(self.class_sizes), self.X.shape[1])
        cell = np.repeat(self.classes[documents], np.diff(X.indptr)) * shape[1] + X.indices
        return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)

    def pair_class_counts(self) -> Iterator[IntArray]:
        """For each class, how many of its documents have both words; shape (V, V)."""
        for c in range(len(self.class_sizes)):
            X = self.X[self.classes == c]
            yield (X.T @ X).toarray()


def n_log_n(n: IntArray | np.int64) -> FloatArray:
    """Elementwise n log n, 0 for n = 0."""
    product: FloatArray = xlogy(n, n)
    return product


def gain_of_events(counts: Iterable[IntArray], class_sizes: IntArray) -> FloatArray:
    """The information gain of events from the number of documents of each class in which they hold.

    Written as H(e) - H(e|C), which equals H(C) - H(C|e), so that an event that always or never holds gets exactly 0.

    Parameters
    ----------
    counts : for each class an array of any one shape, an element an event.
    class_sizes : shape (n_classes,).

    Returns
    -------
    Array of that shape, in nats: at least 0, at most H(C) and log 2.
    """
    n = class_sizes.sum()
    total: IntArray = np.zeros((), dtype=np.int64)
    within: FloatArray = np.zeros(())
    for count, size in zip(counts, class_sizes, strict=True):
        total = total + count
        within = within + (n_log_n(count) + n_log_n(size - count) - n_log_n(size))
    overall = n_log_n(total) + n_log_n(n - total) - n_log_n(n)
    gain: FloatArray = np.maximum((within - overall) / n, 0.0)
    return gain


def information_gain(X: ArrayLike, y: ArrayLike) -> FloatArray:
    """The information gain of each word about the class.

    IG(w; C) = - sum_c P(c) log P(c) + P(w) sum_c P(c|w) log P(c|w) + P(not w) sum_c P(c|not w) log P(c|not w)

    with natural logarithms, probabilities as relative frequencies of documents, and 0 log 0 = 0.

    Parameters
    ----------
    X : array-like or sparse matrix, shape (N, V): above 0 where a word occurs in a document. Other values than 0 and 1
        are taken as 1, with a `DataConversionWarning`.
    y : array-like, shape (N,): class labels, two classes or more.

    Returns
    -------
    Array of shape (V,), in nats. A column that is constant has 0.

    Raises
    ------
    ParameterError
        For missing, infinite or negative values, one class, labels that are real numbers, and shapes that don't match.

    References
    ----------
    Lee and Lee, MMR-based feature selection for text categorization, HLT-NAACL 2004.
    """
    occurrences = _occurrences(check_X_y, X, y)
    return gain_of_events(occurrences.class_counts(), occurrences.class_sizes)


def pairwise_information_gain(X: ArrayLike, y: ArrayLike) -> FloatArray:
    """The information gain of the co-occurrence of each two words about the class.

    IGpair(w_i; w_j | C) is `information_gain`'s formula for the event that w_i and w_j both occur in a document, whose
    complement is that not both do. The diagonal is therefore IG(w_i; C).

    Parameters
    ----------
    X, y : as for `information_gain`.

    Returns
    -------
    Symmetric array of shape (V, V), in nats. Some 60 V^2 bytes of memory are needed.

    Raises
    ------
    ParameterError
        As `information_gain`.

    References
    ----------
    Lee and Lee, MMR-based feature selection for text categorization, HLT-NAACL 2004.
    """
    occurrences = _occurrences(check_X_y, X, y)
    return gain_of_events(occurrences.pair_class_counts(), occurrences.class_sizes)


class OccurrenceSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the selectors: `fit` reads X and y, a subclass's `_select` chooses `n_features` columns."""

    n_features: int

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose the columns; returns the selector itself.

        Parameters
        ----------
        X, y : as for `information_gain`.

        Raises
        ------
        ParameterError
            As `information_gain`, and for a parameter outside its domain.
        """
        occurrences = _occurrences(partial(validate_data, self), X, y)
        n_words = occurrences.X.shape[1]
        check_integer("n_features", self.n_features, 1, n_words, f"from 1 to {n_words}, the columns of X")
        self.information_gain_ = gain_of_events(occurrences.class_counts(), occurrences.class_sizes)
        best_first = np.argsort(-np.round(self.information_gain_, TIE_DECIMALS), kind="stable")
        self.selected_ = self._select(occurrences, best_first)
        return self

    @abstractmethod
    def _select(self, occurrences: Occurrences, best_first: IntArray) -> IntArray:
        """`n_features` columns, given all of them by falling gain."""

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.selected_] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


class InformationGainSelection(OccurrenceSelector):
    """Keeps the `n_features` words of highest information gain.

    Parameters
    ----------
    n_features : words to keep, 1 to V.

    Attributes
    ----------
    information_gain_ : shape (V,), in nats.
    selected_ : shape (n_features,): the columns kept, best first; of equal gain (to 12 decimals) the lower column is
        first.
    n_features_in_, feature_names_in_ : as scikit-learn has them.

    Notes
    -----
    `fit` looks only at whether a value is above 0; `transform` passes values on as they are.
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    def _select(self, occurrences: Occurrences, best_first: IntArray) -> IntArray:
        return best_first[: self.n_features]


def preselected(best_first: IntArray, preselect: int, n_features: int) -> IntArray:
    """The candidates: the first `preselect` words (all, where there are fewer), which must be `n_features` or more."""
    check_integer("preselect", preselect, n_features, np.inf, f"not below n_features = {n_features}")
    return best_first[:preselect]


def check_integer(name: str, value: object, least: int, most: float, domain: str) -> None:
    """Raise `ParameterError` unless `value` is an integer from `least` to `most`; `domain` says so in words."""
    if not (isinstance(value, (int, np.integer)) and least <= value <= most):
        raise ParameterError(f"{name} must be an integer {domain}; it is {value!r}")


def _occurrences(check: Callable[..., tuple[Any, Any]], X: ArrayLike, y: ArrayLike) -> Occurrences:
    """The `Occurrences` of raw input, with scikit-learn's `check` for shape and finiteness."""
    try:
        matrix, labels = check(X, y, accept_sparse="csr")
        check_classification_targets(labels)
    except ValueError as error:
        raise ParameterError(str(error).splitlines()[0]) from error
    values = matrix.data if issparse(matrix) else matrix
    if (values < 0).any():
        raise ParameterError(f"Negative values in data: X has {values.min()}, but a word occurs (above 0) or not (0)")
    if ((values != 0) & (values != 1)).any():
        message = "X has values other than 0 and 1; every value above 0 is taken to mean that the word occurs"
        warnings.warn(message, DataConversionWarning, stacklevel=3)
    names, classes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise ParameterError(f"y has one class, {names[0]!r}, about which no word can tell anything; give two or more")
    occurs = csr_array(matrix, dtype=bool, copy=True)
    occurs.sum_duplicates()
    occurs.eliminate_zeros()
    return Occurrences(occurs.astype(np.int64), classes, sizes)
