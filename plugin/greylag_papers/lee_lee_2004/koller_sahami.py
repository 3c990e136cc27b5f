"""Feature selection of Koller & Sahami (1996): backward elimination by approximate Markov blankets.

A word is redundant if a small set of other words, its approximate Markov blanket, provides all of its information about
the class. With f the value (occurs or not) of word F_i, m the values of a set M of words, D(p || q) = sum p log(p/q),
and G the remaining words:

    gamma_ij       = sum over f_i, f_j of P(f_i, f_j) D(P(C | f_i, f_j) || P(C | f_j))
    M_i            = the K words F_j of G - {F_i} with the lowest gamma_ij (all if there are fewer)
    delta(F_i|M_i) = sum over m, f of P(m, f) D(P(C | m, f) || P(C | m))

The word with the lowest delta(F_i|M_i) is removed, until enough are left. gamma determines the blankets; it is low if
F_i adds little to what F_j says about the class. By definition, gamma_ij = delta(F_i|{F_j}) and delta(F_i|{}) is the
information gain IG(F_i; C), so that K = 0 keeps the words of highest gain.

For P words, N documents and |C| classes, gamma and its order take O(|C| P^2 + P^2 log P), and each delta
O(N + |C| 2^K). A removal changes only the delta of words whose blanket contained the removed word.

References
----------
Koller and Sahami, Toward optimal feature selection, ICML 1996.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_array
from scipy.special import xlogy

from greylag.base import FloatArray, IntArray

TIE_DECIMALS = 12  # rounding errors depend on the order of the classes, and must not decide between equal words


def eliminate(X: Any, classes: IntArray, n_features: int, conditioning_size: int) -> IntArray:
    """Return the columns of X, shape (N, P), binary and by decreasing gain, that are left after elimination, ascending.

    Of equal gamma, the word of higher gain joins the blanket; of equal delta, the word of lower gain is removed.
    """
    words = csc_array(X, dtype=np.int64)
    gamma = pairwise_cross_entropy(words, classes)
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
            delta[word] = np.round(expected_cross_entropy(words, classes, word, blanket), TIE_DECIMALS)
        # The last of equal ones, which has the lower gain.
        removed = n_words - 1 - int(np.argmin(delta[::-1]))
        left[removed], delta[removed] = False, np.inf
        # Only these lose a word of their blanket, and get the next nearest in its place.
        outdated = np.flatnonzero(in_blanket[:, removed] & left)
    return np.flatnonzero(left)


def expected_cross_entropy(words: csc_array, classes: IntArray, word: int, blanket: IntArray) -> float:
    """Compute delta(F|M): the information of a word about the class given the words of a blanket, in nats."""
    n_classes, n_states = classes.max() + 1, 2 ** len(blanket)
    cell = classes * (2 * n_states)
    for bit, known in enumerate((*blanket, word)):
        # The state of a document is a number whose bits mark the words that it has.
        cell[words.indices[slice(*words.indptr[known : known + 2])]] += 2**bit
    counts = np.bincount(cell, minlength=n_classes * 2 * n_states).reshape(n_classes, 2, n_states)
    return (_uncertainty(counts.sum(axis=1)) - _uncertainty(counts)) / len(cell)


def pairwise_cross_entropy(words: csc_array, classes: IntArray) -> FloatArray:
    """Compute gamma_ij = delta(F_i|{F_j}) of each pair of words, in nats; shape (P, P), 0 on the diagonal."""
    both: IntArray = np.zeros((), dtype=np.int64)
    within: FloatArray = np.zeros(())
    for c, size in enumerate(np.bincount(classes)):
        class_words = words[classes == c]
        # One class at a time: P x P for all classes at once may not fit in memory.
        pair = (class_words.T @ class_words).toarray()
        both = both + pair
        within = within + _n_log_n_of_pair(pair, size)
    uncertainty = _n_log_n_of_pair(both, len(classes)) - within
    return np.asarray((uncertainty.diagonal() - uncertainty) / len(classes))


def _uncertainty(counts: IntArray) -> float:
    """Compute N H(C | cell), from the number of documents of each class (first axis) in each cell."""
    total = counts.sum(axis=0)
    return float(xlogy(total, total).sum() - xlogy(counts, counts).sum())


def _n_log_n_of_pair(both: IntArray, size: int) -> FloatArray:
    """Sum n log n over the cells (both, first, second, neither) of each pair of words in `size` documents."""
    count = both.diagonal()
    first = count[:, np.newaxis] - both
    none = size - count[:, np.newaxis] - count + both
    first_alone = xlogy(first, first)
    return np.asarray(xlogy(both, both) + first_alone + first_alone.T + xlogy(none, none))
