"""A trained SVM-div model or ensemble: features, weights and provenance, with its file format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np

from greylag.base import ModelError, ParameterError, html_text
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage_model import PRESETS, CoverageFeatures
from greylag.features import FeatureParameters
from greylag.index import PositionalIndex
from greylag.learning import Provenance, SavedModel, check_collection


class _Layout(TypedDict):
    criteria: list[list[Any]]
    thresholds: list[float]
    levels: str
    document_features: list[str]
    k: int
    depth: int
    titles: bool
    weights: dict[str, list[float]]
    parameters: dict[str, Any]
    fingerprint: str
    provenance: Provenance


@dataclass(frozen=True, repr=False)
class DiversityModel(SavedModel):
    """The weights of SVM-div, or of the M members of an ensemble, with everything needed to apply them."""

    kind = "greylag diversity model"
    schema = 4
    command = "greylag train --model svmdiv"
    layout = _Layout
    runs, columns, searched = (), (), False  # unlike a model that ranks

    features: CoverageFeatures  # that the weights belong to
    weights: tuple[tuple[float, ...], ...]  # M vectors, each in the order of `features.names`
    k: int  # the size of the sets that it was trained to pick
    depth: int = 100  # the number of top documents that it was trained to pick from
    titles: bool = False  # whether it was trained with titles
    parameters: FeatureParameters = FeatureParameters()  # of the MRF features among the document features
    fingerprint: str = ""  # of the training collection; "" fits any
    provenance: Mapping[str, Any] = field(default_factory=dict)  # how it was trained: version, C, queries and so on

    def __post_init__(self) -> None:
        if not self.weights:
            raise ModelError("a diversity model needs at least one weight vector")
        for vector in self.weights:
            if len(vector) != self.features.n_features:
                needed = self.features.n_features
                raise ModelError(f"a diversity model with {needed} features cannot have {len(vector)} weights")
            if not np.isfinite(vector).all():
                raise ModelError("the weights of a diversity model must be finite")

    def __repr__(self) -> str:
        return f"<{self._outline()}>"

    def _repr_html_(self) -> str:
        return html_text(self.summary())

    def _outline(self) -> str:
        members = len(self.weights)
        name = "DiversityModel" if members == 1 else f"DiversityModel, an ensemble of {members} members,"
        return f"{name} of {self.features.n_features} features, to pick {self.k} of {self.depth} documents"

    def summary(self, largest: int = 5) -> str:
        """Describe the learner, its data, and the largest weights of the first member in a few lines."""
        names = ("method", "learner", "C", "alpha", "iterations", "gap", "greylag")
        known = [f"{name} {self.provenance[name]}" for name in names if name in self.provenance]
        lines = [self._outline(), f"features {self.preset or 'of no preset'}{', with titles' if self.titles else ''}"]
        lines.append(", ".join([f"learned from {len(self.provenance.get('queries', ()))} queries", *known]))
        lines.append(f"collection fingerprint {self.fingerprint[:12] or 'none'}")
        weights = np.array(self.weights[0])
        for number in np.argsort(-np.abs(weights), kind="stable")[:largest].tolist():
            lines.append(f"{weights[number]:+12.6g}  {self.features.names[number]}")
        return "\n".join(lines) + "\n"

    @property
    def stage_name(self) -> str:
        """The stage that applies it: "svmdiv", or "cssvm" for an ensemble."""
        return "svmdiv" if len(self.weights) == 1 else "cssvm"

    def with_files(self, files: Mapping[str, str]) -> DiversityModel:
        """Return the model, which names no files to be replaced."""
        if files:
            raise ParameterError("--file is for a model of features, not for one that diversifies")
        return self

    @property
    def members(self) -> tuple[DiversityModel, ...]:
        """M models with one weight vector each."""
        return tuple(replace(self, weights=(vector,)) for vector in self.weights)

    @property
    def preset(self) -> str:
        """The name in `PRESETS` of the features, ignoring document features; "" if there is none."""
        plain = replace(self.features, document_features=())
        return next((name for name, features in PRESETS.items() if features == plain), "")

    def maker(
        self,
        index: PositionalIndex,
        titles: Mapping[str, str | Mapping[str, Any]] | None = None,
        *,
        transfer: bool = False,
    ) -> CandidateMaker:
        """Return the maker of the candidates that the model expects.

        Titles, as in `CandidateMaker`, are required if the model was trained with them, and ignored if not; `transfer`
        allows another index than the training collection's.
        """
        check_collection(self.fingerprint, index, transfer=transfer)
        if self.titles and titles is None:
            raise ModelError("the model was trained with titles: pass the titles of the documents")
        used = titles if self.titles else None
        return CandidateMaker(index, self.features, titles=used, parameters=self.parameters, depth=self.depth)

    def as_dict(self) -> dict[str, Any]:
        """Return the entries of the model's file."""
        return {
            "preset": self.preset,  # for readers of the file: the criteria and thresholds decide
            "criteria": [list(criterion) for criterion in self.features.criteria],
            "thresholds": list(self.features.thresholds),
            "levels": self.features.levels,
            "document_features": list(self.features.document_features),
            "k": self.k,
            "depth": self.depth,
            "titles": self.titles,
            # By feature and then member, so that people can read what each feature is worth.
            "weights": dict(zip(self.features.names, zip(*self.weights, strict=True), strict=True)),
            "parameters": self.parameters.as_dict(),
            "fingerprint": self.fingerprint,
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> DiversityModel:
        """Make the model of a file's entries."""
        features = CoverageFeatures(
            content["criteria"],
            content["thresholds"],
            levels=content["levels"],
            document_features=content["document_features"],
        )
        if tuple(content["weights"]) != features.names:
            raise ModelError("the names of the weights do not match the criteria, thresholds and document features")
        if len({len(members) for members in content["weights"].values()}) > 1:
            raise ModelError("the features have weights for different numbers of models")
        return cls(
            features=features,
            weights=tuple(tuple(map(float, vector)) for vector in zip(*content["weights"].values(), strict=True)),
            parameters=FeatureParameters(**content["parameters"]),
            **{name: content[name] for name in ("k", "depth", "titles", "fingerprint", "provenance")},
        )
