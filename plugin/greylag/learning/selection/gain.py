"""Information gain of words and pairs of words, and the base class of selectors.

All quantities are computed from integer counts of `Occurrences`. "Word" and "document" stand for any column and row.
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

# Values that agree to this many decimals tie. Rounding errors depend on the order of the classes and must not decide
# between words that are equal by the formula.
TIE_DECIMALS = 12


@dataclass(frozen=True, eq=False)
class Occurrences:
    """The occurrences of V words in N documents, and the classes of the documents."""

    X: Any  # csr_array of int64, shape (N, V): 1 where a word occurs, no explicit zeros
    classes: IntArray  # shape (N,), from 0
    class_sizes: IntArray  # shape (n_classes,): the number of documents in each class

    def restrict(self, words: IntArray) -> Occurrences:
        """Keep these words only, in this order."""
        return Occurrences(self.X[:, words], self.classes, self.class_sizes)

    @cached_property
    def _by_word(self) -> Any:
        return self.X.tocsc()

    def documents(self, word: int) -> IntArray:
        """Return the documents that contain a word."""
        start, end = self._by_word.indptr[word : word + 2]
        documents: IntArray = self._by_word.indices[start:end]
        return documents

    def class_counts(self, documents: IntArray | slice = slice(None)) -> IntArray:
        """Count the `documents` of each class that contain each word, shape (n_classes, V)."""
        X, shape = self.X[documents], (len(self.class_sizes), self.X.shape[1])
        # A cell for each class and word, so that one pass counts all.
        cell = np.repeat(self.classes[documents], np.diff(X.indptr)) * shape[1] + X.indices
        return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)

    def pair_class_counts(self) -> Iterator[IntArray]:
        """Count, for each class, its documents that contain both words of each pair, shape (V, V)."""
        for c in range(len(self.class_sizes)):
            X = self.X[self.classes == c]
            # One class at a time: V x V for all classes at once may not fit in memory.
            yield (X.T @ X).toarray()


def n_log_n(n: IntArray | np.int64) -> FloatArray:
    """Compute n log n elementwise, with 0 log 0 = 0."""
    product: FloatArray = xlogy(n, n)
    return product


def gain_of_events(counts: Iterable[IntArray], class_sizes: IntArray) -> FloatArray:
    """Compute the information gain in nats of events, given in how many documents of each class each event holds."""
    # H(e) - H(e|C) equals H(C) - H(C|e), and gives constant events exactly 0.
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
    """Return the information gain of each word about the class (Lee & Lee 2004).

    IG(w; C) = - sum_c P(c) log P(c) + P(w) sum_c P(c|w) log P(c|w) + P(not w) sum_c P(c|not w) log P(c|not w)

    with natural logarithms, relative document frequencies as probabilities, and 0 log 0 = 0.

    Parameters
    ----------
    X : array-like or sparse matrix, shape (N, V)
        Above 0 where a word occurs in a document. Values other than 0 and 1 count as 1, with a `DataConversionWarning`.
    y : array-like, shape (N,)
        Labels of at least two classes.

    Returns
    -------
    array, shape (V,)
        In nats; 0 for constant columns.

    References
    ----------
    Lee and Lee, MMR-based feature selection for text categorization, HLT-NAACL 2004.
    """
    occurrences = _occurrences(check_X_y, X, y)
    return gain_of_events(occurrences.class_counts(), occurrences.class_sizes)


class OccurrenceSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of selectors, which define `_select`."""

    n_features: int

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Select the words, from X and y as in `information_gain`; returns the selector itself."""
        occurrences = _occurrences(partial(validate_data, self), X, y)
        n_words = occurrences.X.shape[1]
        check_integer("n_features", self.n_features, 1, n_words, f"from 1 to {n_words}, the number of columns of X")
        self.information_gain_ = gain_of_events(occurrences.class_counts(), occurrences.class_sizes)
        best_first = np.argsort(-np.round(self.information_gain_, TIE_DECIMALS), kind="stable")
        self.selected_ = self._select(occurrences, best_first)
        return self

    @abstractmethod
    def _select(self, occurrences: Occurrences, best_first: IntArray) -> IntArray:
        """Select `n_features` columns, given all columns by decreasing gain."""

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
    """Select the words with the highest information gain.

    Parameters
    ----------
    n_features : int in [1, V]
        Number of words to keep.

    Attributes
    ----------
    information_gain_ : array, shape (V,)
        The information gain of each word, in nats.
    selected_ : int array, shape (n_features,)
        The selected columns, best first. Ties (to 12 decimals) go to the lower column.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    `fit` uses only whether a value is above 0; `transform` keeps the values.
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    def _select(self, occurrences: Occurrences, best_first: IntArray) -> IntArray:
        return best_first[: self.n_features]


def preselected(best_first: IntArray, preselect: int, n_features: int) -> IntArray:
    """Return the top `preselect` words, or all if there are fewer; `preselect` must be at least `n_features`."""
    check_integer("preselect", preselect, n_features, np.inf, f"of at least n_features = {n_features}")
    return best_first[:preselect]


def check_integer(name: str, value: object, least: int, most: float, domain: str) -> None:
    """Raise `ParameterError` unless `value` is an integer in [least, most], which `domain` describes."""
    if not (isinstance(value, (int, np.integer)) and least <= value <= most):
        raise ParameterError(f"{name} must be an integer {domain}, not {value!r}")


def _occurrences(check: Callable[..., tuple[Any, Any]], X: ArrayLike, y: ArrayLike) -> Occurrences:
    """Validate raw input by `check` from scikit-learn, and convert it to `Occurrences`."""
    try:
        matrix, labels = check(X, y, accept_sparse="csr")
        check_classification_targets(labels)
    except ValueError as error:
        raise ParameterError(str(error).splitlines()[0]) from error
    values = matrix.data if issparse(matrix) else matrix
    if (values < 0).any():
        raise ParameterError(f"Negative values in data: X contains {values.min()}; use 0 or a positive value")
    if ((values != 0) & (values != 1)).any():
        message = "X has values other than 0 and 1; every value above 0 counts as an occurrence"
        warnings.warn(message, DataConversionWarning, stacklevel=3)
    names, classes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise ParameterError(f"y has one class, {names[0]!r}; at least two are needed")
    occurs = csr_array(matrix, dtype=bool, copy=True)
    occurs.sum_duplicates()
    occurs.eliminate_zeros()
    return Occurrences(occurs.astype(np.int64), classes, sizes)
