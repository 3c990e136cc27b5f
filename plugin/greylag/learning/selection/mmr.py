"""MMR feature selection: informative words that are not redundant with those already selected.

Maximal marginal relevance with information gain as relevance and the gain of co-occurrence as redundancy, maximised by
the greedy loop that also diversifies documents.
"""

from __future__ import annotations

from numbers import Real

import numpy as np

from greylag.errors import ParameterError
from greylag.greedy import greedy_picks
from greylag.learning.selection.gain import TIE_DECIMALS, Occurrences, OccurrenceSelector, gain_of_events, preselected
from greylag.ranking import FloatArray, IntArray


class MMRFeatureSelection(OccurrenceSelector):
    """Select words one by one by maximal marginal relevance.

    The next word is the w_i outside the set S of selected words that maximises

        lambda IG(w_i; C) - (1 - lambda) max over w_j in S of IGpair(w_i; w_j | C)

    with a maximum of 0 over the empty set, so that the first word is that of highest gain for any lambda.

    Parameters
    ----------
    n_features : int in [1, V]
        Number of words to keep.
    relevance_weight : float in [0, 1]
        lambda. 1 is the order of `InformationGainSelection`; 0 considers redundancy alone.
    preselect : int >= n_features, default 1000
        The candidates are the `preselect` words with the highest information gain, or all words if there are fewer.

    Attributes
    ----------
    information_gain_ : array, shape (V,)
        The information gain of each word, in nats.
    selected_ : int array, shape (n_features,)
        The selected columns, in the order of selection. Ties (to 12 decimals) go to the word of higher gain, then to
        the lower column. A smaller selection is the beginning of a larger one.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> words = MMRFeatureSelection(25, relevance_weight=0.5)
    >>> make_pipeline(CountVectorizer(binary=True), words, MultinomialNB()).fit(texts, labels)  # doctest: +SKIP

    Notes
    -----
    `fit` uses only whether a value is above 0; `transform` keeps the values. Only pairs of a selected word and a
    candidate are counted, within the documents of the selected word.

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

    def _select(self, occurrences: Occurrences, best_first: IntArray) -> IntArray:
        if not (isinstance(self.relevance_weight, Real) and 0 <= self.relevance_weight <= 1):
            raise ParameterError(f"relevance_weight must be a number in [0, 1], not {self.relevance_weight!r}")
        candidates = preselected(best_first, self.preselect, self.n_features)
        words, gain = occurrences.restrict(candidates), self.information_gain_[candidates]
        return candidates[greedy_picks(MarginalInformation(words, gain, self.relevance_weight), self.n_features)]


class MarginalInformation:
    """The criterion of MMR as a `Gain` over words, given by decreasing information gain."""

    def __init__(self, words: Occurrences, gain: FloatArray, relevance_weight: float) -> None:
        self.words, self.gain, self.relevance_weight = words, gain, relevance_weight
        self.redundancy = np.zeros_like(gain)

    def gains(self) -> FloatArray:
        """Return the marginal relevance of each word, given the selected ones."""
        marginal = self.relevance_weight * self.gain - (1 - self.relevance_weight) * self.redundancy
        return np.round(marginal, TIE_DECIMALS)

    def add(self, candidate: int) -> None:
        """Select a word, and count its pairs in the documents that contain it."""
        with_word = self.words.class_counts(self.words.documents(candidate))
        self.redundancy = np.maximum(self.redundancy, gain_of_events(with_word, self.words.class_sizes))
