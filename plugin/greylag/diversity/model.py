"""A trained SVM-div, or an ensemble of them: features, weights and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from greylag.diversity.coverage import PRESETS, CoverageFeatures
from greylag.errors import ModelError
from greylag.features.weighting import FeatureParameters
from greylag.model_files import model_content, write_model

SCHEMA = 2
KIND = "greylag diversity model"


@dataclass(frozen=True)
class DiversityModel:
    """SVM-div's weights, or those of the M members of an ensemble, with all that is needed to use them.

    Parameters
    ----------
    features : what the weights are of.
    weights : M >= 1 vectors, each in the order of ``features.names``.
    k : the size of the sets that it was trained to pick.
    titles : whether it was trained with titles.
    parameters : what MRF features among the document features were computed with.
    fingerprint : of the collection that it was trained on.
    provenance : how it was made: version, C, queries and the like.

    Raises
    ------
    ModelError
        No weights, or weights that are not finite, or not as many as the features.
    """

    features: CoverageFeatures
    weights: tuple[tuple[float, ...], ...]
    k: int
    titles: bool = False
    parameters: FeatureParameters = FeatureParameters()
    fingerprint: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.weights:
            raise ModelError("a diversity model needs one vector of weights or more")
        for vector in self.weights:
            if len(vector) != self.features.n_features:
                needed = self.features.n_features
                raise ModelError(f"a diversity model of {needed} features has {len(vector)} weights")
            if not np.isfinite(vector).all():
                raise ModelError("a diversity model's weights have to be finite")

    @property
    def members(self) -> tuple[DiversityModel, ...]:
        """M models with one vector of weights each."""
        return tuple(replace(self, weights=(vector,)) for vector in self.weights)

    @property
    def preset(self) -> str:
        """The name in `PRESETS` of its features, document features aside; "" where they are none of these."""
        plain = replace(self.features, document_features=())
        return next((name for name, features in PRESETS.items() if features == plain), "")

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, atomically; the same model gives the same bytes."""
        content = {
            "preset": self.preset,
            "criteria": [list(criterion) for criterion in self.features.criteria],
            "thresholds": list(self.features.thresholds),
            "document_features": list(self.features.document_features),
            "k": self.k,
            "titles": self.titles,
            "weights": dict(zip(self.features.names, zip(*self.weights, strict=True), strict=True)),
            "parameters": self.parameters.as_dict(),
            "fingerprint": self.fingerprint,
            "provenance": dict(self.provenance),
        }
        write_model(path, KIND, SCHEMA, content)

    @classmethod
    def load(cls, path: str | Path) -> DiversityModel:
        """Read a model that `save` wrote.

        Raises
        ------
        ModelError
            Where the file is no such model, of another schema, or has a value outside its domain.
        """
        with model_content(path, KIND, SCHEMA, "greylag train-diversity", k=int, titles=bool) as content:
            features = CoverageFeatures(content["criteria"], content["thresholds"], content["document_features"])
            if tuple(content["weights"]) != features.names:
                raise ModelError("its weights are not those of its criteria, thresholds and document features")
            if len({len(own) for own in content["weights"].values()}) > 1:
                raise ModelError("its features' weights are not all of the same number of models")
            vectors = zip(*content["weights"].values(), strict=True)
            return cls(
                features=features,
                weights=tuple(tuple(float(weight) for weight in vector) for vector in vectors),
                k=content["k"],
                titles=content["titles"],
                parameters=FeatureParameters(**content["parameters"]),
                fingerprint=content["fingerprint"],
                provenance=content["provenance"],
            )
