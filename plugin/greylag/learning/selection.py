"""MMR feature selection: informative binary features that are not redundant with those already selected.

Maximal marginal relevance with information gain as relevance and the gain of co-occurrence as redundancy, maximised by
the greedy loop that also diversifies documents. "Word" and "document" stand for any column and row.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import xlogy
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from greylag.base import FloatArray, IntArray, ParameterError, greedy_picks

TIE_DECIMALS = 12  # to which values tie: rounding errors, by the order of classes, must not decide between equal words


class MMRFeatureSelection(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Select words one by one by maximal marginal relevance, as a scikit-learn transformer.

    The next word is the w_i outside the set S of selected words that maximises

        lambda IG(w_i; C) - (1 - lambda) max over w_j in S of IGpair(w_i; w_j | C)

    with a maximum of 0 over the empty set, so that the first word is that of highest gain for any lambda. IG is the
    information gain of a word about the class, and IGpair that of the event that both words occur:

        IG(w; C) = - sum_c P(c) log P(c) + P(w) sum_c P(c|w) log P(c|w) + P(not w) sum_c P(c|not w) log P(c|not w)

    with natural logarithms, relative document frequencies as probabilities, and 0 log 0 = 0.

    Parameters
    ----------
    n_features : int in [1, V]
        Number of words to keep.
    relevance_weight : float in [0, 1]
        lambda. 1 is the order of information gain; 0 considers redundancy alone.
    preselect : int >= n_features, default 1000
        The candidates are the `preselect` words with the highest information gain, or all words if there are fewer.

    Attributes
    ----------
    information_gain_ : array, shape (V,)
        The information gain of each word, in nats; 0 for constant columns.
    selected_ : int array, shape (n_features,)
        The selected columns, in the order of selection. Ties (to 12 decimals) go to the word of higher gain, then to
        the lower column. A smaller selection is the beginning of a larger one.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    `fit` uses only whether a value is above 0; `transform` keeps the values.

    At a low lambda, a word that never occurs with a selected one scores higher (0 or slightly above) than an
    informative but redundant one, even if its own gain is 0. `preselect` excludes such words.

    References
    ----------
    Lee and Lee, MMR-based feature selection for text categorization, HLT-NAACL 2004.
    """

    def __init__(self, n_features: int, *, relevance_weight: float, preselect: int = 1000) -> None:
        self.n_features = n_features
        self.relevance_weight = relevance_weight
        self.preselect = preselect

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Select the words by X, dense or sparse, shape (N, V), and labels y of at least two classes, shape (N,).

        A word occurs where X is above 0. Values other than 0 and 1 count as 1, with a `DataConversionWarning`.
        """
        occurrences = self._occurrences(X, y)
        n_words, n = occurrences.X.shape[1], self.n_features
        _check_integer("n_features", n, 1, n_words, f"from 1 to {n_words}, the number of columns of X")
        if not (isinstance(self.relevance_weight, Real) and 0 <= self.relevance_weight <= 1):
            raise ParameterError(f"relevance_weight must be a number in [0, 1], not {self.relevance_weight!r}")
        _check_integer("preselect", self.preselect, n, np.inf, f"of at least n_features = {n}")
        self.information_gain_ = gain_of_events(occurrences.class_counts(), occurrences.class_sizes)
        # Rounded and stable, so that equal gains are in the order of columns.
        best_first = np.argsort(-np.round(self.information_gain_, TIE_DECIMALS), kind="stable")
        candidates = best_first[: self.preselect]
        words = Occurrences(occurrences.X[:, candidates], occurrences.classes, occurrences.class_sizes)
        criterion = MarginalInformation(words, self.information_gain_[candidates], self.relevance_weight)
        self.selected_: IntArray = candidates[greedy_picks(criterion, n)]
        return self

    def _occurrences(self, X: ArrayLike, y: ArrayLike) -> Occurrences:
        """Validate raw input as scikit-learn does, and convert it."""
        try:
            matrix, labels = validate_data(self, X, y, accept_sparse="csr")
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
        # Sparse matrices may have a cell twice, or store zeros: both would be counted.
        occurs.sum_duplicates()
        occurs.eliminate_zeros()
        return Occurrences(occurs.astype(np.int64), classes, sizes)

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


@dataclass(frozen=True, eq=False)
class Occurrences:
    """The occurrences of V words in N documents, and the classes of the documents."""

    X: Any  # csr_array of int64, shape (N, V): 1 where a word occurs, no explicit zeros
    classes: IntArray  # shape (N,), from 0
    class_sizes: IntArray  # shape (n_classes,): the number of documents in each class

    def class_counts(self, documents: IntArray | slice = slice(None)) -> IntArray:
        """Count the `documents` of each class that contain each word, shape (n_classes, V)."""
        X, shape = self.X[documents], (len(self.class_sizes), self.X.shape[1])
        # A cell for each class and word, so that one pass counts all.
        cell = np.repeat(self.classes[documents], np.diff(X.indptr)) * shape[1] + X.indices
        return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)


def gain_of_events(counts: Iterable[IntArray], class_sizes: IntArray) -> FloatArray:
    """Compute the information gain in nats of events, given in how many documents of each class each event holds."""
    # H(e) - H(e|C) equals H(C) - H(C|e), and gives constant events exactly 0.
    n = class_sizes.sum()
    total: IntArray = np.zeros((), dtype=np.int64)
    within: FloatArray = np.zeros(())
    for count, size in zip(counts, class_sizes, strict=True):
        total = total + count
        within = within + (xlogy(count, count) + xlogy(size - count, size - count) - xlogy(size, size))
    overall = xlogy(total, total) + xlogy(n - total, n - total) - xlogy(n, n)
    return np.asarray(np.maximum((within - overall) / n, 0.0))


class MarginalInformation:
    """The criterion of MMR as a `Gain` over words, given by decreasing information gain."""

    def __init__(self, words: Occurrences, gain: FloatArray, relevance_weight: float) -> None:
        self.words, self.gain, self.relevance_weight = words, gain, relevance_weight
        self.by_word = words.X.tocsc()
        self.redundancy = np.zeros_like(gain)

    def gains(self) -> FloatArray:
        """Return the marginal relevance of each word beside those that are selected."""
        marginal = self.relevance_weight * self.gain - (1 - self.relevance_weight) * self.redundancy
        return np.round(marginal, TIE_DECIMALS)

    def add(self, candidate: int) -> None:
        """Select a word, and count its pairs in the documents that contain it."""
        first, end = self.by_word.indptr[candidate : candidate + 2]
        with_word = self.words.class_counts(self.by_word.indices[first:end])
        self.redundancy = np.maximum(self.redundancy, gain_of_events(with_word, self.words.class_sizes))


def _check_integer(name: str, value: object, least: int, most: float, domain: str) -> None:
    if not (isinstance(value, (int, np.integer)) and least <= value <= most):
        raise ParameterError(f"{name} must be an integer {domain}, not {value!r}")
