"""Features that are made from other features: normalised over the documents of a query (``score@z``), or products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from greylag.errors import ParameterError
from greylag.features.feature import Feature, Function, PythonFeature, complete
from greylag.ranking import FloatArray, unit_range

Normalisation = Literal["minmax", "z", "rank"]
PREFIX = "product:"


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


@dataclass(frozen=True)
class Product(Feature):
    """The product of features, spelt ``product:(A*B)``, with the factors in the order of their spellings.

    Factors should be normalised to [0, 1] (``product:(FI/term/LM@minmax*SD/ordered/LM-O-1@minmax)``), so that a product
    is high where all of them are. Products of logarithms mean little.

    Parameters
    ----------
    factors : tuple of Feature
        At least two. A factor that is a product is replaced by its own factors.
    """

    factors: tuple[Feature, ...]

    def __post_init__(self) -> None:
        flat = [part for factor in self.factors for part in getattr(factor, "factors", [factor])]
        object.__setattr__(self, "factors", tuple(sorted(flat, key=str)))
        if len(flat) < 2:
            raise ParameterError(f"feature {self} has {len(flat)} factors: a product needs at least two")
        if split_factors(str(self)) != [*map(str, self.factors)]:
            raise ParameterError(f"feature {self} cannot be read back: rename files with *, ( or ) in their names")

    def __str__(self) -> str:
        return f"{PREFIX}({'*'.join(map(str, self.factors))})"

    def files(self) -> list[str]:
        """Those of the factors."""
        return [file for factor in self.factors for file in factor.files()]

    def place_files(self, place: Callable[[str], str]) -> Product:
        """The product of the placed factors."""
        return Product(tuple(factor.place_files(place) for factor in self.factors))

    @property
    def uses_ranking(self) -> bool:  # type: ignore[override]
        """Whether one of the factors does."""
        return any(factor.uses_ranking for factor in self.factors)

    @property
    def needs_index(self) -> bool:  # type: ignore[override]
        """Whether one of the factors does."""
        return any(factor.needs_index for factor in self.factors)


def split_factors(text: str) -> list[str]:
    """The spellings of the factors of ``product:(A*B)``."""
    inside = text.removeprefix(PREFIX)
    if len(inside) < 2 or (inside[0], inside[-1]) != ("(", ")"):
        raise ParameterError(f"feature {text!r:.200} is not of the form {PREFIX}(FEATURE*FEATURE)")
    parts, depth = [""], 0
    for character in inside[1:-1]:
        depth += (character == "(") - (character == ")")
        if character == "*" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if nested := [part for part in parts if part.startswith(PREFIX)]:
        raise ParameterError(f"feature {text!r:.200} has the product {nested[0]!r:.80} as a factor: give its factors")
    return parts


def plain_features(feature: Feature) -> Iterator[Feature]:
    """The features that are neither products nor normalised and that `feature` is made from; itself if it is one."""
    if isinstance(feature, Normalised):
        yield from plain_features(feature.feature)
    elif isinstance(feature, Product):
        for factor in feature.factors:
            yield from plain_features(factor)
    else:
        yield feature


def derive(feature: Feature, values: Callable[[Feature], FloatArray]) -> FloatArray:
    """The values of a feature for one query's documents, shape (n,), from those of `plain_features`.

    Each factor is normalised, then completed by its least value where it has none, then multiplied.
    """
    base, method = (feature.feature, feature.method) if isinstance(feature, Normalised) else (feature, None)
    if isinstance(base, Product):
        raw: FloatArray = np.prod([derive(factor, values) for factor in base.factors], axis=0)
    else:
        raw = values(base)
    return complete(normalise(raw, method))


def supply(features: tuple[Feature, ...], functions: Mapping[str, Function]) -> tuple[Feature, ...]:
    """The features, with the functions for those of type `PythonFeature`, by name."""
    plain = [base for feature in features for base in plain_features(feature)]
    names = {base.name for base in plain if isinstance(base, PythonFeature)}
    for name in functions:
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            raise ParameterError(f"there is no feature python:{name}; the names of functions needed: {known}")

    def supplied(feature: Feature) -> Feature:
        if isinstance(feature, Normalised):
            return replace(feature, feature=supplied(feature.feature))
        if isinstance(feature, Product):
            return Product(tuple(map(supplied, feature.factors)))
        if isinstance(feature, PythonFeature) and feature.name in functions:
            return PythonFeature(feature.name, functions[feature.name])
        return feature

    return tuple(map(supplied, features))
