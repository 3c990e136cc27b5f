"""Koller and Sahami's feature selection: backward elimination of the words that a few others make superfluous.

A word is superfluous if a small set of other words, its approximate Markov blanket, says about the class all that it
says itself.
"""

from __future__ import annotations

import numpy as np

from greylag.ranking import FloatArray, IntArray
from greylag.selection.information_gain import (
    TIE_DECIMALS,
    Occurrences,
    OccurrenceSelector,
    check_integer,
    n_log_n,
    preselected,
)

# A blanket of ten words has 1,024 states: of thousands of documents, a few in each.
MAX_CONDITIONING_SIZE = 10


class KollerSahamiSelection(OccurrenceSelector):
    """Removes words one by one until `n_features` are left, each time the one that its blanket covers best.

    With f the value (occurs or not) of word F_i, m the values of a set M of words, D(p || q) = sum p log(p/q), and G
    the words that are left:

        gamma_ij       = sum over f_i, f_j of P(f_i, f_j) D(P(C | f_i, f_j) || P(C | f_j))
        M_i            = the K words F_j of G - {F_i} of least gamma_ij (all, where there are fewer)
        delta(F_i|M_i) = sum over m, f of P(m, f) D(P(C | m, f) || P(C | m))

    and the word of least delta(F_i|M_i) goes. gamma is the correlation by which blankets are formed: small where F_j
    leaves F_i little to add about the class. By definition gamma_ij = delta(F_i|{F_j}) and delta(F_i|{}) = IG(F_i; C),
    so that K = 0 is `InformationGainSelection`.

    Parameters
    ----------
    n_features : words to keep, 1 to V.
    conditioning_size : K, 0 to 10. The blanket has 2^K states, among which the documents are divided.
    preselect : candidates, the words of highest information gain; n_features or more. All words where V is less.

    Attributes
    ----------
    information_gain_ : shape (V,), in nats.
    selected_ : shape (n_features,): the columns kept, by falling gain.
    n_features_in_, feature_names_in_ : as scikit-learn has them.

    Notes
    -----
    `fit` looks only at whether a value is above 0; `transform` passes values on as they are. Values that agree to 12
    decimals are ties: of equal gamma, the word of higher gain (then the lower column) is taken; of equal delta, the
    word of lower gain (then the higher column) goes.

    For P candidates, N documents and |C| classes: O(|C| P^2 + P^2 log P) for gamma and its order, O(N + |C| 2^K) for a
    delta. A delta changes only where the blanket loses a word, so that only these are computed again after a removal;
    the result is that of computing all of them.

    References
    ----------
    Koller and Sahami, Toward optimal feature selection, ICML 1996.
    """

    def __init__(self, n_features: int, conditioning_size: int, preselect: int = 1000) -> None:
        self.n_features = n_features
        self.conditioning_size = conditioning_size
        self.preselect = preselect

    def _select(self, occurrences: Occurrences, best_first: IntArray) -> IntArray:
        most = MAX_CONDITIONING_SIZE
        check_integer("conditioning_size", self.conditioning_size, 0, most, f"from 0 to {most}")
        candidates = preselected(best_first, self.preselect, self.n_features)
        return candidates[eliminate(occurrences.restrict(candidates), self.n_features, self.conditioning_size)]


def eliminate(words: Occurrences, n_features: int, conditioning_size: int) -> IntArray:
    """The columns of `words`, which stand by falling gain, that backward elimination leaves."""
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
        removed = n_words - 1 - int(np.argmin(delta[::-1]))
        left[removed], delta[removed] = False, np.inf
        outdated = np.flatnonzero(in_blanket[:, removed] & left)
    return np.flatnonzero(left)


def expected_cross_entropy(words: Occurrences, word: int, blanket: IntArray) -> float:
    """delta(F|M): what a word tells about the class, in nats, where the values of the blanket's words are known."""
    n_classes, n_states = len(words.class_sizes), 2 ** len(blanket)
    cell = words.classes * (2 * n_states)
    for bit, known in enumerate((*blanket, word)):
        cell[words.documents(known)] += 2**bit
    counts = np.bincount(cell, minlength=n_classes * 2 * n_states).reshape(n_classes, 2, n_states)
    return (_uncertainty(counts.sum(axis=1)) - _uncertainty(counts)) / len(cell)


def pairwise_cross_entropy(words: Occurrences) -> FloatArray:
    """gamma_ij = delta(F_i|{F_j}) of each two words, in nats; shape (V, V), 0 on the diagonal."""
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
    """N H(C | cell) from the number of documents of each class (first axis) in each cell."""
    return float(n_log_n(counts.sum(axis=0)).sum() - n_log_n(counts).sum())


def _n_log_n_of_pair(both: IntArray, count: IntArray, size: np.int64) -> FloatArray:
    """The sum of n log n over the four cells (both words, one, the other, none) of each two words."""
    one = n_log_n(count[:, np.newaxis] - both)
    none = size - count[:, np.newaxis] - count + both
    return n_log_n(both) + one + one.T + n_log_n(none)
