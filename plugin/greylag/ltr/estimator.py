"""A stage from any estimator with ``predict``: scikit-learn's regressors, LightGBM's rankers, and the like.

To train one, take its matrix, labels and group sizes from a `RankingData`: ``features``, ``grades`` and
``numpy.diff(offsets)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from greylag.errors import ModelError
from greylag.features.extract import FeatureExtractor
from greylag.ranking import FloatArray, Ranking, Stage


class Estimator(Protocol):
    """What scores documents: higher is better."""

    def predict(self, X: FloatArray, /) -> Any:
        """Scores, shape (n,), of documents with features X, shape (n, f)."""


@dataclass(frozen=True)
class EstimatorRanker(Stage):
    """A stage that ranks documents by an estimator's predictions; ties keep the order of the ranking that comes in.

    Parameters
    ----------
    estimator : a fitted estimator, trained on the same features in the same order.
    extract : computes them.

    Raises
    ------
    ModelError
        When called: where the estimator does not predict one finite score for each document.
    """

    estimator: Estimator
    extract: FeatureExtractor

    def __call__(self, ranking: Ranking) -> Ranking:
        """The ranking in the order of the predictions."""
        if not len(ranking):
            return ranking
        scores = np.asarray(self.estimator.predict(self.extract(ranking)), dtype=np.float64)
        if scores.shape != (len(ranking),) or not np.isfinite(scores).all():
            raise ModelError(
                f"{type(self.estimator).__name__}.predict gave an array of shape {scores.shape} with "
                f"{np.count_nonzero(np.isfinite(scores))} finite numbers: a ranker has to give one for each of the "
                f"{len(ranking)} documents of query {ranking.qid}"
            )
        return ranking.rescore(scores)
