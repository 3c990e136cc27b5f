"""Baselines: models with a fixed set of features, computed and trained by the same code as learned models.

Sources: Metzler & Croft, A Markov random field model for term dependencies, SIGIR 2005 (SDM and MRF-LM); Metzler 2007,
section 5 (MRF-LM and MRF-BM25); `greylag.features.expansion` (RM3). `greylag.ltr.tune` chooses their parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from greylag.features.spec import FeatureSpec
from greylag.ltr.coordinate_ascent import coordinate_ascent
from greylag.ltr.data import RankingData, linear_scores
from greylag.ltr.objectives import Objective


@dataclass(frozen=True)
class Baseline:
    """A linear model with fixed features.

    Parameters
    ----------
    name : str
        Its name in the literature.
    features : tuple of FeatureSpec
    weights : tuple of float
        The weights, or the start of the search for them.
    tuned : tuple of str
        The feature parameters to be tuned, by their names in `FeatureParameters`.
    trained : bool, default False
        Whether the weights are learned, by coordinate ascent.
    """

    name: str
    features: tuple[FeatureSpec, ...]
    weights: tuple[float, ...]
    tuned: tuple[str, ...]
    trained: bool = False

    def fit(self, data: RankingData, objective: Objective) -> tuple[tuple[float, ...], float]:
        """Return the weights for `data`, which has exactly these features, and the mean of the objective."""
        columns, weights = list(range(len(self.features))), np.array(self.weights)
        if self.trained:
            weights = coordinate_ascent(data, objective, columns, weights)
        value = float(np.mean(objective.evaluate(data, linear_scores(data, columns, weights))))
        return tuple(weights.tolist()), value


def _features(text: str) -> tuple[FeatureSpec, ...]:
    return tuple(FeatureSpec.parse(part) for part in text.split())


SDM_WEIGHTS = (0.85, 0.10, 0.05)

LM = Baseline("LM", _features("FI/term/LM"), (1.0,), ("mu",))
"""Query likelihood with Dirichlet smoothing."""
BM25 = Baseline("BM25", _features("FI/term/BM25"), (1.0,), ("k1", "b"))
"""BM25 (Robertson et al. 1994)."""
SDM = Baseline("SDM", _features("FI/term/LM SD/ordered/LM-O-1 SD/unordered/LM-U-4"), SDM_WEIGHTS, ("mu",))
"""The sequential dependence model with its usual fixed weights."""
MRF_LM = Baseline(
    "MRF-LM", _features("FI/term/LM FD/ordered/LM-O-1 FD/unordered/LM-U-4"), SDM_WEIGHTS, ("mu",), trained=True
)
"""The full dependence model with learned weights."""
MRF_BM25 = Baseline(
    "MRF-BM25",
    _features("FI/term/BM25 FD/ordered/BM25-O-1 FD/unordered/BM25-U-4"),
    SDM_WEIGHTS,
    ("k1", "b"),
    trained=True,
)
"""The full dependence model with BM25 weighting and learned weights."""
RM3 = Baseline("RM3", _features("FI/term/BM25 FI/expansion/BM25"), (1.0, 1.0), ("fb_docs", "fb_terms"), trained=True)
"""BM25 interpolated with BM25 of a relevance model, with learned weights."""
