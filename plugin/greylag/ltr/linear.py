"""The linear model: features, weights and where they come from; and the stage that ranks by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from greylag.errors import ModelError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import Feature, parse_feature
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.greedy import weighted_sum
from greylag.model_files import check_collection, model_content, write_model
from greylag.ranking import Ranking, Stage

SCHEMA = 1
KIND = "greylag linear model"


@dataclass(frozen=True)
class LinearModel:
    """A ranking function: the sum of weights times features (Metzler 2007, section 3).

    Parameters
    ----------
    features, weights : in the order in which they were selected.
    parameters : what the features were computed with.
    objective : what was maximised ("" for a model that was put together by hand).
    training_scores : the objective's mean on the training queries after each round.
    collection : N, |C| and average length of the collection that it was trained on.
    fingerprint : that collection's fingerprint.
    provenance : how it was made: version, seed, queries and the like.
    """

    features: tuple[Feature, ...]
    weights: tuple[float, ...]
    parameters: FeatureParameters = FeatureParameters()
    objective: str = ""
    training_scores: tuple[float, ...] = ()
    collection: Mapping[str, float] = field(default_factory=dict)
    fingerprint: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.features) != len(self.weights):
            raise ModelError(f"a linear model of {len(self.features)} features has {len(self.weights)} weights")
        if not np.isfinite(self.weights).all():
            raise ModelError(f"weights have to be finite, not {self.weights}")

    def for_collection(self, index: PositionalIndex) -> LinearModel:
        """The same model, marked as trained on that collection."""
        totals = {"documents": index.n_documents, "tokens": index.n_tokens, "average_length": index.average_length}
        return replace(self, collection=totals, fingerprint=index.fingerprint)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, atomically; the same model gives the same bytes."""
        scores = self.training_scores or [None] * len(self.weights)
        content = {
            "features": [
                {"feature": str(feature), "weight": weight, "training_score": score}
                for feature, weight, score in zip(self.features, self.weights, scores, strict=True)
            ],
            "objective": self.objective,
            "parameters": self.parameters.as_dict(),
            "collection": dict(self.collection),
            "fingerprint": self.fingerprint,
            "provenance": dict(self.provenance),
        }
        write_model(path, KIND, SCHEMA, content)

    @classmethod
    def load(cls, path: str | Path) -> LinearModel:
        """Read a model that `save` wrote.

        Raises
        ------
        ModelError
            Where the file is no such model, of another schema, or has a value outside its domain.
        """
        with model_content(path, KIND, SCHEMA, "greylag train", objective=str, collection=dict) as content:
            rows = content["features"]
            scores = tuple(row["training_score"] for row in rows)
            return cls(
                features=tuple(parse_feature(row["feature"]) for row in rows),
                weights=tuple(float(row["weight"]) for row in rows),
                parameters=FeatureParameters(**content["parameters"]),
                objective=content["objective"],
                training_scores=() if None in scores else scores,
                collection=content["collection"],
                fingerprint=content["fingerprint"],
                provenance=content["provenance"],
            )


@dataclass(frozen=True)
class MRFRanker(Stage):
    """A stage that ranks documents by a linear model; only the model's features are computed.

    Ties keep the order of the ranking that comes in.

    Parameters
    ----------
    model : the model.
    index : the collection.
    transfer : allow a model that was trained on another collection; features use this one's statistics.

    Raises
    ------
    ModelError
        Where the model was trained on another collection and `transfer` is not set.
    """

    model: LinearModel
    index: PositionalIndex
    transfer: bool = False
    _extract: FeatureExtractor = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_collection(self.model.fingerprint, self.index, transfer=self.transfer)
        extractor = FeatureExtractor(self.index, self.model.features, self.model.parameters)
        object.__setattr__(self, "_extract", extractor)

    def __call__(self, ranking: Ranking) -> Ranking:
        """The ranking's documents by the model's scores."""
        return ranking.rescore(weighted_sum(self._extract(ranking), np.array(self.model.weights)))
