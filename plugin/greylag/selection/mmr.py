"""MMR feature selection: words that tell much about the class and little that chosen words tell already.

Maximal marginal relevance with information gain as relevance and the gain of co-occurrence as redundancy; the greedy
loop is the one that diversifies documents.
"""

from __future__ import annotations

from numbers import Real

import numpy as np

from greylag.errors import ParameterError
from greylag.greedy import greedy
from greylag.ranking import FloatArray, IntArray
from greylag.selection.information_gain import (
    TIE_DECIMALS,
    Occurrences,
    OccurrenceSelector,
    gain_of_events,
    preselected,
)


class MMRFeatureSelection(OccurrenceSelector):
    """Chooses words one by one by maximal marginal relevance.

    The next word is the w_i not yet in the set S of chosen ones that maximises

        lambda IG(w_i; C) - (1 - lambda) max over w_j in S of IGpair(w_i; w_j | C)

    where the maximum over the empty set is 0: the first word is that of highest gain for every lambda.

    Parameters
    ----------
    n_features : words to keep, 1 to V.
    relevance_weight : lambda, 0 to 1. 1 is the order of `InformationGainSelection`; 0 heeds only redundancy.
    preselect : candidates, the words of highest information gain; n_features or more. All words where V is less.

    Attributes
    ----------
    information_gain_ : shape (V,), in nats.
    selected_ : shape (n_features,): the columns kept, in the order of choice. Equal values (to 12 decimals) go to the
        word of higher gain, then to the lower column. The choice of k words is the first k of the choice of more.
    n_features_in_, feature_names_in_ : as scikit-learn has them.

    Notes
    -----
    `fit` looks only at whether a value is above 0; `transform` passes values on as they are. Only the pairs of a chosen
    word and a candidate are ever counted, each in the documents of the chosen word.

    At a low lambda a word that never meets a chosen one is worth more (0 or a little above) than an informative but
    redundant one, even if its own gain is nothing. `preselect` is what keeps such words out.

    References
    ----------
    Lee and Lee, MMR-based feature selection for text categorization, HLT-NAACL 2004.
    """

    def __init__(self, n_features: int, relevance_weight: float, preselect: int = 1000) -> None:
        self.n_features = n_features
        self.relevance_weight = relevance_weight
        self.preselect = preselect

    def _select(self, occurrences: Occurrences, best_first: IntArray) -> IntArray:
        if not (isinstance(self.relevance_weight, Real) and 0 <= self.relevance_weight <= 1):
            raise ParameterError(f"relevance_weight must be a number from 0 to 1; it is {self.relevance_weight!r}")
        candidates = preselected(best_first, self.preselect, self.n_features)
        words, gain = occurrences.restrict(candidates), self.information_gain_[candidates]
        return candidates[greedy(MarginalInformation(words, gain, self.relevance_weight), self.n_features)]


class MarginalInformation:
    """What MMR maximises, as a `Gain` over words that stand by falling `gain`."""

    def __init__(self, words: Occurrences, gain: FloatArray, relevance_weight: float) -> None:
        self.words, self.gain, self.relevance_weight = words, gain, relevance_weight
        self.redundancy = np.zeros_like(gain)

    def gains(self) -> FloatArray:
        """Each word's value, given the words picked."""
        marginal = self.relevance_weight * self.gain - (1 - self.relevance_weight) * self.redundancy
        return np.round(marginal, TIE_DECIMALS)

    def add(self, candidate: int) -> None:
        """Pick a word: its pairs are counted in the documents that have it."""
        with_word = self.words.class_counts(self.words.documents(candidate))
        self.redundancy = np.maximum(self.redundancy, gain_of_events(with_word, self.words.class_sizes))
