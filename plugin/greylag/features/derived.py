"""Features that are normalised over the documents of a query, such as ``score@z``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from greylag.errors import ParameterError
from greylag.features.feature import Feature, Function, PythonFeature, complete
from greylag.ranking import FloatArray, unit_range

Normalisation = Literal["minmax", "z", "rank"]


def z_scores(values: FloatArray) -> FloatArray:
    """(x - mean) / standard deviation (of the population), shape (n,); all 0 if the values are equal."""
    spread = values.std() if np.ptp(values) > 0 else 0.0
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def rank_scores(values: FloatArray) -> FloatArray:
    """The share of the other values that are lower, an equal one counting as half, shape (n,); 0.5 for a sole value."""
    from scipy.stats import rankdata  # slow to import

    if len(values) < 2:
        return np.full(len(values), 0.5)
    shares: FloatArray = (rankdata(values) - 1) / (len(values) - 1)
    return shares


NORMALISATIONS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "minmax": unit_range,
    "z": z_scores,
    "rank": rank_scores,
}
"""The functions by name, from the values of a query's documents, shape (n,) with n >= 1, to as many others."""


@dataclass(frozen=True)
class Normalised(Feature):
    """A feature that is normalised over the documents ranked for the query, spelt ``FEATURE@METHOD``.

    Documents without a value have no part in it.

    Parameters
    ----------
    feature : Feature
        Any feature that is not normalised yet.
    method : "minmax", "z" or "rank"
        "minmax": scaled to [0, 1]; 0 if all values are equal. "z": less the mean and divided by the standard deviation
        (of the population); 0 if all values are equal. "rank": the share of the other documents with a lower value, an
        equal value counting as half.
    """

    form: ClassVar[str] = "{feature}@{method}"

    feature: Feature
    method: Normalisation

    def __post_init__(self) -> None:
        known = ", ".join(NORMALISATIONS)
        if self.method not in NORMALISATIONS:
            raise ParameterError(f"unknown normalisation {self.method!r} in feature {self}: use {known}")
        if isinstance(self.feature, Normalised):
            raise ParameterError(f"feature {self} is normalised twice: use one of {known}")

    @property
    def base(self) -> Feature:
        """The feature without its normalisation."""
        return self.feature

    def files(self) -> list[str]:
        """Those of the feature."""
        return self.feature.files()

    def place_files(self, place: Callable[[str], str]) -> Normalised:
        """Normalised in the same way."""
        return replace(self, feature=self.feature.place_files(place))


def split_method(text: str) -> tuple[str, str | None]:
    """A spelling without its normalisation, and the method; None if it has none."""
    base, _, method = text.rpartition("@")
    return (base, method) if base and method in NORMALISATIONS else (text, None)


def normalise(values: FloatArray, method: str | None) -> FloatArray:
    """Normalise the values that are not NaN, shape (n,); None leaves them as they are."""
    known = ~np.isnan(values)
    if method is None or not known.any():
        return values
    out = np.full(len(values), np.nan)
    out[known] = NORMALISATIONS[method](values[known])
    return out


def derive(feature: Feature, values: FloatArray) -> FloatArray:
    """The values of a feature for one query's documents, shape (n,), from those of its `base`; NaN is completed."""
    return complete(normalise(values, feature.method if isinstance(feature, Normalised) else None))


def supply(features: tuple[Feature, ...], functions: Mapping[str, Function]) -> tuple[Feature, ...]:
    """The features, with the functions for those of type `PythonFeature`, by name."""
    names = {feature.base.name for feature in features if isinstance(feature.base, PythonFeature)}
    for name in functions:
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            raise ParameterError(f"there is no feature python:{name}; the names of functions needed: {known}")

    def supplied(feature: Feature) -> Feature:
        if isinstance(feature, Normalised):
            return replace(feature, feature=supplied(feature.feature))
        if isinstance(feature, PythonFeature) and feature.name in functions:
            return PythonFeature(feature.name, functions[feature.name])
        return feature

    return tuple(map(supplied, features))
