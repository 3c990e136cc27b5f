"""Models whose features people chose: baselines of learned selection, over the same features and by the same code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from greylag.features.spec import FeatureSpec
from greylag.ltr.data import RankingData
from greylag.ltr.greedy import coordinate_ascent, linear_scores
from greylag.ltr.objectives import Objective


@dataclass(frozen=True)
class HandPicked:
    """A linear model's features, and what of it is left to training.

    Parameters
    ----------
    name : what the literature calls it.
    features : in the order of `weights`.
    weights : the model's weights, or where the search for them starts.
    tuned : the feature parameters that matter to it, which are to be chosen from a grid.
    trained : whether the weights are learned, by coordinate ascent.
    """

    name: str
    features: tuple[FeatureSpec, ...]
    weights: tuple[float, ...]
    tuned: tuple[str, ...]
    trained: bool = False

    def fit(self, data: RankingData, objective: Objective) -> tuple[tuple[float, ...], float]:
        """The weights for `data`, which has these features and no others, and the objective's mean that they give."""
        columns, weights = list(range(len(self.features))), np.array(self.weights)
        if self.trained:
            weights = coordinate_ascent(data, objective, columns, weights)
        value = float(np.mean(objective.evaluate(data, linear_scores(data, columns, weights))))
        return tuple(weights.tolist()), value


def _features(text: str) -> tuple[FeatureSpec, ...]:
    return tuple(FeatureSpec.parse(part) for part in text.split())


SDM_WEIGHTS = (0.85, 0.10, 0.05)

LM = HandPicked("LM", _features("FI/term/LM"), (1.0,), ("mu",))
"""Query likelihood with Dirichlet smoothing."""
BM25 = HandPicked("BM25", _features("FI/term/BM25"), (1.0,), ("k1", "b"))
SDM = HandPicked("SDM", _features("FI/term/LM SD/ordered/LM-O-1 SD/unordered/LM-U-4"), SDM_WEIGHTS, ("mu",))
"""The sequential dependence model (Metzler & Croft, SIGIR 2005) with the usual fixed weights."""
MRF_LM = HandPicked(
    "MRF-LM", _features("FI/term/LM FD/ordered/LM-O-1 FD/unordered/LM-U-4"), SDM_WEIGHTS, ("mu",), trained=True
)
"""The full dependence model (Metzler & Croft, SIGIR 2005), its weights learned."""
MRF_BM25 = HandPicked(
    "MRF-BM25",
    _features("FI/term/BM25 FD/ordered/BM25-O-1 FD/unordered/BM25-U-4"),
    SDM_WEIGHTS,
    ("k1", "b"),
    trained=True,
)
RM3 = HandPicked("RM3", _features("FI/term/BM25 FI/expansion/BM25"), (1.0, 1.0), ("fb_docs", "fb_terms"), trained=True)
"""BM25 interpolated with BM25 of a relevance model (see `greylag.features.expansion`)."""
