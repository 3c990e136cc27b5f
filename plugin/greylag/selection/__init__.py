"""Selection of binary features by what they tell about a class, as scikit-learn selectors: text categorisation."""

from greylag.selection.information_gain import InformationGainSelection, information_gain, pairwise_information_gain
from greylag.selection.koller_sahami import KollerSahamiSelection
from greylag.selection.mmr import MMRFeatureSelection

__all__ = [
    "InformationGainSelection",
    "KollerSahamiSelection",
    "MMRFeatureSelection",
    "information_gain",
    "pairwise_information_gain",
]
