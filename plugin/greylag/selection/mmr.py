"""MMR feature selection: words that tell much about the class and little that chosen words tell already.

Maximal marginal relevance with information gain as relevance and the gain of co-occurrence as redundancy.
"""

from __future__ import annotations

from numbers import Real

import numpy as np

from greylag.errors import ParameterError
from greylag.ranking import FloatArray, IntArray
from greylag.selection.information_gain import (
    TIE_DECIMALS,
    Occurrences,
    OccurrenceSelector,
    check_integer,
    gain_of_events,
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
    selected_ : shape (n_features,): the columns kept, in the order of choice, so that the choice of k words is the first
        k. Equal values (to 12 decimals) go to the word of higher gain, then to the lower column.
    n_features_in_, feature_names_in_ : as scikit-learn has them.

    Notes
    -----
    `fit` looks only at whether a value is above 0; `transform` passes values on as they are. Only the pairs of a chosen
    word and a candidate are ever counted, each in the documents of the chosen word.

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
            raise ParameterError(f"relevance_weight must be a number from 0 to 1, not {self.relevance_weight!r}")
        check_integer(
            "preselect", self.preselect, self.n_features, np.inf, f"of n_features = {self.n_features} or more"
        )
        candidates = best_first[: self.preselect]
        chosen = mmr_order(
            occurrences.restrict(candidates), self.information_gain_[candidates], self.n_features, self.relevance_weight
        )
        return candidates[chosen]


def mmr_order(words: Occurrences, gain: FloatArray, n_features: int, relevance_weight: float) -> list[int]:
    """The columns of `words`, which stand by falling `gain`, in the order in which MMR chooses them."""
    redundancy = np.zeros_like(gain)
    chosen: list[int] = []
    while len(chosen) < n_features:
        marginal = np.round(relevance_weight * gain - (1 - relevance_weight) * redundancy, TIE_DECIMALS)
        marginal[chosen] = -np.inf
        best = int(np.argmax(marginal))
        chosen.append(best)
        with_best = words.class_counts(words.documents(best))
        redundancy = np.maximum(redundancy, gain_of_events(with_best, words.class_sizes))
    return chosen
