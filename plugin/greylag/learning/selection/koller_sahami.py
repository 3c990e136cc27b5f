"""Feature selection of Koller & Sahami (1996): backward elimination by approximate Markov blankets.

A word is redundant if a small set of other words, its approximate Markov blanket, provides all of its information about
the class.
"""

from __future__ import annotations

import numpy as np

from greylag.learning.selection.gain import (
    TIE_DECIMALS,
    Occurrences,
    OccurrenceSelector,
    check_integer,
    n_log_n,
    preselected,
)
from greylag.ranking import FloatArray, IntArray

# With ten words, a blanket has 1,024 states, each with few of some thousand documents.
MAX_CONDITIONING_SIZE = 10


class KollerSahamiSelection(OccurrenceSelector):
    """Remove words one by one until `n_features` are left, each time the word best covered by its blanket.

    With f the value (occurs or not) of word F_i, m the values of a set M of words, D(p || q) = sum p log(p/q), and G
    the remaining words:

        gamma_ij       = sum over f_i, f_j of P(f_i, f_j) D(P(C | f_i, f_j) || P(C | f_j))
        M_i            = the K words F_j of G - {F_i} with the lowest gamma_ij (all if there are fewer)
        delta(F_i|M_i) = sum over m, f of P(m, f) D(P(C | m, f) || P(C | m))

    The word with the lowest delta(F_i|M_i) is removed. gamma determines the blankets; it is low if F_i adds little to
    what F_j says about the class. By definition, gamma_ij = delta(F_i|{F_j}) and delta(F_i|{}) = IG(F_i; C), so that
    K = 0 is `InformationGainSelection`.

    Parameters
    ----------
    n_features : int in [1, V]
        Number of words to keep.
    conditioning_size : int in [0, 10]
        K. The documents are divided among the 2^K states of a blanket.
    preselect : int >= n_features, default 1000
        The candidates are the `preselect` words with the highest information gain, or all words if there are fewer.

    Attributes
    ----------
    information_gain_ : array, shape (V,)
        The information gain of each word, in nats.
    selected_ : int array, shape (n_features,)
        The selected columns, by decreasing gain.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    `fit` uses only whether a value is above 0; `transform` keeps the values. Values that agree to 12 decimals tie: of
    equal gamma, the word of higher gain (then the lower column) joins the blanket; of equal delta, the word of lower
    gain (then the higher column) is removed.

    For P candidates, N documents and |C| classes, gamma and its order take O(|C| P^2 + P^2 log P), and each delta
    O(N + |C| 2^K). A removal changes only the delta of words whose blanket contained the removed word.

    References
    ----------
    Koller and Sahami, Toward optimal feature selection, ICML 1996.
    """

    def __init__(self, n_features: int, *, conditioning_size: int, preselect: int = 1000) -> None:
        self.n_features = n_features
        self.conditioning_size = conditioning_size
        self.preselect = preselect

    def _select(self, occurrences: Occurrences, best_first: IntArray) -> IntArray:
        most = MAX_CONDITIONING_SIZE
        check_integer("conditioning_size", self.conditioning_size, 0, most, f"from 0 to {most}")
        candidates = preselected(best_first, self.preselect, self.n_features)
        return candidates[eliminate(occurrences.restrict(candidates), self.n_features, self.conditioning_size)]


def eliminate(words: Occurrences, n_features: int, conditioning_size: int) -> IntArray:
    """Return the columns of `words`, sorted by decreasing gain, that remain after backward elimination."""
    gamma = pairwise_cross_entropy(words)
    np.fill_diagonal(gamma, np.inf)
    nearest = np.argsort(np.round(gamma, TIE_DECIMALS), axis=1, kind="stable")[:, :-1]
    n_words = len(gamma)
    left = np.ones(n_words, dtype=bool)
    in_blanket = np.zeros((n_words, n_words), dtype=bool)
    delta = np.full(n_words, np.inf)
    outdated = np.arange(n_words)
    for _ in range(n_words - n_features):
        for word in outdated.tolist():
            blanket = nearest[word][left[nearest[word]]][:conditioning_size]
            in_blanket[word, blanket] = True
            delta[word] = np.round(expected_cross_entropy(words, word, blanket), TIE_DECIMALS)
        # The last of equal ones, which has the lower gain.
        removed = n_words - 1 - int(np.argmin(delta[::-1]))
        left[removed], delta[removed] = False, np.inf
        # Only these lose a word of their blanket, and get the next nearest in its place.
        outdated = np.flatnonzero(in_blanket[:, removed] & left)
    return np.flatnonzero(left)


def expected_cross_entropy(words: Occurrences, word: int, blanket: IntArray) -> float:
    """Compute delta(F|M): the information of a word about the class given the words of a blanket, in nats."""
    n_classes, n_states = len(words.class_sizes), 2 ** len(blanket)
    cell = words.classes * (2 * n_states)
    for bit, known in enumerate((*blanket, word)):
        # The state of a document is a number whose bits mark the words that it has.
        cell[words.documents(known)] += 2**bit
    counts = np.bincount(cell, minlength=n_classes * 2 * n_states).reshape(n_classes, 2, n_states)
    return (_uncertainty(counts.sum(axis=1)) - _uncertainty(counts)) / len(cell)


def pairwise_cross_entropy(words: Occurrences) -> FloatArray:
    """Compute gamma_ij = delta(F_i|{F_j}) of each pair of words, in nats; shape (V, V), 0 on the diagonal."""
    counts, sizes = words.class_counts(), words.class_sizes
    both: IntArray = np.zeros((), dtype=np.int64)
    within: FloatArray = np.zeros(())
    for pair, count, size in zip(words.pair_class_counts(), counts, sizes, strict=True):
        both = both + pair
        within = within + _n_log_n_of_pair(pair, count, size)
    uncertainty = _n_log_n_of_pair(both, counts.sum(axis=0), sizes.sum()) - within
    gamma: FloatArray = (uncertainty.diagonal() - uncertainty) / sizes.sum()
    return gamma


def _uncertainty(counts: IntArray) -> float:
    """Compute N H(C | cell), from the number of documents of each class (first axis) in each cell."""
    return float(n_log_n(counts.sum(axis=0)).sum() - n_log_n(counts).sum())


def _n_log_n_of_pair(both: IntArray, count: IntArray, size: np.int64) -> FloatArray:
    """Sum n log n over the four cells (both words, first, second, neither) of each pair of words."""
    first_alone = n_log_n(count[:, np.newaxis] - both)
    none = size - count[:, np.newaxis] - count + both
    return n_log_n(both) + first_alone + first_alone.T + n_log_n(none)
