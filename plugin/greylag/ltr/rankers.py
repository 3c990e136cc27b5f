"""Reranking stages: by a linear model, or by any estimator with ``predict``, as in scikit-learn and LightGBM."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Protocol

import numpy as np

from greylag import missing_documents
from greylag.errors import ModelError
from greylag.features.extract import FeatureExtractor
from greylag.index.positional import PositionalIndex
from greylag.ltr.data import weighted_sum
from greylag.ltr.linear import LinearModel
from greylag.model_files import check_collection
from greylag.pipeline import Stage
from greylag.ranking import FloatArray, Ranking


@dataclass(frozen=True)
class MRFRanker(Stage):
    """Ranks documents by a linear model, computing only the features of the model. Ties keep the incoming order.

    Queries are shortened as those that the model was trained on (`LinearModel.query_form`); the ranking keeps its text.

    A document outside the index is given, in each feature, the known documents' value that adds least to the score. So
    it scores at most what the lowest known document does, and leaves the order of the known ones as it is.

    Parameters
    ----------
    model : LinearModel
    index : PositionalIndex
    transfer : bool, default False
        Whether to allow a model that was trained on another collection. Features use the statistics of `index`.

    Raises
    ------
    ModelError
        If the model was trained on another collection and `transfer` is false.
    """

    model: LinearModel
    index: PositionalIndex
    _: KW_ONLY
    transfer: bool = False
    _extractor: FeatureExtractor = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_collection(self.model.fingerprint, self.index, transfer=self.transfer)
        extractor = FeatureExtractor(self.index, self.model.features, self.model.parameters)
        object.__setattr__(self, "_extractor", extractor)

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rank the documents by the model."""
        values = self._extractor(self.model.query_form.apply(ranking), self.model.weights)
        return ranking.rescore(weighted_sum(values, np.array(self.model.weights)))


class Estimator(Protocol):
    """An object that scores documents; higher is better."""

    def predict(self, X: FloatArray, /) -> Any:
        """Scores, shape (n,), of documents with features X, shape (n, f)."""


@dataclass(frozen=True)
class EstimatorRanker(Stage):
    """Ranks documents by the predictions of an estimator. Ties keep the incoming order.

    A document outside the index is given the lowest prediction of the query's other documents, or 0 if there are none.

    To train one, use ``features``, ``grades`` and the group sizes ``numpy.diff(offsets)`` of a `RankingData`.

    Parameters
    ----------
    estimator : Estimator
        Fitted on the extractor's features, in the same order.
    extractor : FeatureExtractor

    Raises
    ------
    ModelError
        When called, if the estimator does not predict one finite score for each document.
    """

    estimator: Estimator
    extractor: FeatureExtractor

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rank the documents by the predictions."""
        known = self.extractor.knows(ranking.docids)
        scores = np.zeros(len(ranking))
        if known.any():
            scores[known] = self._predict(ranking.select(known))
            scores[~known] = scores[known].min()
        lost = [docid for docid, is_known in zip(ranking.docids, known, strict=True) if not is_known]
        missing_documents.report("they get the lowest prediction", ranking.qid, lost, len(ranking))
        return ranking.rescore(scores)

    def _predict(self, ranking: Ranking) -> FloatArray:
        scores = np.asarray(self.estimator.predict(self.extractor(ranking)), dtype=np.float64)
        if scores.shape != (len(ranking),) or not np.isfinite(scores).all():
            raise ModelError(
                f"{type(self.estimator).__name__}.predict gave an array of shape {scores.shape} with "
                f"{np.count_nonzero(np.isfinite(scores))} finite numbers: it must give one for each of the "
                f"{len(ranking)} documents of query {ranking.qid}"
            )
        return scores
