"""The linear model: features, weights and where they come from; and the stage that ranks by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from greylag.errors import ModelError, ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import FeatureSpec
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.greedy import weighted_sum
from greylag.ranking import Composable, Ranking
from greylag.trec.text import write_text

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

    features: tuple[FeatureSpec, ...]
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

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, atomically; the same model gives the same bytes."""
        content = {
            "kind": KIND,
            "schema": SCHEMA,
            "features": [
                {"feature": str(spec), "weight": weight, "training_score": score}
                for spec, weight, score in zip(
                    self.features, self.weights, self.training_scores or [None] * len(self.weights), strict=True
                )
            ],
            "objective": self.objective,
            "parameters": self.parameters.as_dict(),
            "collection": dict(self.collection),
            "fingerprint": self.fingerprint,
            "provenance": dict(self.provenance),
        }
        write_text(path, json.dumps(content, indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> LinearModel:
        """Read a model that `save` wrote.

        Raises
        ------
        ModelError
            Where the file is no such model, of another schema, or has a value outside its domain.
        """
        try:
            content = json.loads(Path(path).read_text())
        except FileNotFoundError:
            raise ModelError(f"{path}: no such model file") from None
        except ValueError as error:
            raise ModelError(f"{path}: not a model file: {error}") from None
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise ModelError(f"{path}: not a {KIND}; train one with `greylag train`")
        if content.get("schema") != SCHEMA:
            raise ModelError(f"{path}: schema {content.get('schema')}, but this version reads {SCHEMA}: train it again")
        try:
            rows = content["features"]
            scores = tuple(row["training_score"] for row in rows)
            return cls(
                features=tuple(FeatureSpec.parse(row["feature"]) for row in rows),
                weights=tuple(float(row["weight"]) for row in rows),
                parameters=FeatureParameters(**content["parameters"]),
                objective=content["objective"],
                training_scores=() if None in scores else scores,
                collection=content["collection"],
                fingerprint=content["fingerprint"],
                provenance=content["provenance"],
            )
        except KeyError as error:
            raise ModelError(f"{path}: the model lacks {error}") from None
        except (TypeError, ParameterError, ModelError) as error:
            raise ModelError(f"{path}: {error}") from None


@dataclass(frozen=True)
class MRFRanker(Composable):
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
        trained_on = self.model.fingerprint
        if trained_on and trained_on != self.index.fingerprint and not self.transfer:
            raise ModelError(
                f"the model was trained on another collection (fingerprint {trained_on[:12]}, this index has "
                f"{self.index.fingerprint[:12]}): train it on this one, or ask for a transfer"
            )
        extractor = FeatureExtractor(self.index, self.model.features, self.model.parameters)
        object.__setattr__(self, "_extract", extractor)

    def __call__(self, ranking: Ranking) -> Ranking:
        """The ranking's documents by the model's scores."""
        return ranking.rescore(weighted_sum(self._extract(ranking), np.array(self.model.weights)))
