"""Features that are made from other features: products and normalised features, and what they are made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from greylag.errors import ParameterError
from greylag.features.feature import Feature, Function, Supplied, complete
from greylag.features.normalisation import Normalised, normalise, unnormalised
from greylag.ranking import FloatArray

PREFIX = "product:"


@dataclass(frozen=True)
class Product(Feature):
    """The product of features, spelt ``product:(A*B)``, with the factors in the order of their spellings.

    Factors should be normalised to [0, 1] (``product:(FI/term/LM@minmax*SD/ordered/LM-O-1@minmax)``), so that a product
    is high where all of them are. Products of logarithms mean little.

    Parameters
    ----------
    factors : tuple of Feature
        At least two. A factor that is a product is replaced by its own factors.

    Raises
    ------
    ParameterError
        If there are fewer than two factors, one is a normalised product, or a factor has a file name that makes the
        spelling ambiguous.
    """

    factors: tuple[Feature, ...]

    def __post_init__(self) -> None:
        flat = [own for factor in self.factors for own in (factor.factors if isinstance(factor, Product) else [factor])]
        object.__setattr__(self, "factors", tuple(sorted(flat, key=str)))
        if len(flat) < 2:
            raise ParameterError(f"feature {self} has {len(flat)} factors: a product needs at least two")
        if split_factors(str(self)) != [*map(str, self.factors)]:
            raise ParameterError(f"feature {self} cannot be read back: rename files with *, ( or ) in their names")

    def __str__(self) -> str:
        return f"{PREFIX}({'*'.join(map(str, self.factors))})"

    @property
    def uses_ranking(self) -> bool:  # type: ignore[override]
        """Whether one of the factors does."""
        return any(factor.uses_ranking for factor in self.factors)

    @property
    def needs_index(self) -> bool:  # type: ignore[override]
        """Whether one of the factors does."""
        return any(factor.needs_index for factor in self.factors)


def split_factors(text: str) -> list[str]:
    """The spellings of the factors of ``product:(A*B)``.

    Raises
    ------
    ParameterError
        If the text has another form.
    """
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
    base, _ = unnormalised(feature)
    if isinstance(base, Product):
        for factor in base.factors:
            yield from plain_features(factor)
    else:
        yield base


def derive(feature: Feature, values: Callable[[Feature], FloatArray]) -> FloatArray:
    """The values of a feature for one query's documents, shape (n,), from those of `plain_features`.

    Each factor is normalised, then completed by its least value where it has none, then multiplied.
    """
    base, method = unnormalised(feature)
    if isinstance(base, Product):
        raw: FloatArray = np.prod([derive(factor, values) for factor in base.factors], axis=0)
    else:
        raw = values(base)
    return complete(normalise(raw, method))


def rebuild(feature: Feature, change: Callable[[Feature], Feature]) -> Feature:
    """The feature with ``change(plain)`` in place of each of `plain_features`."""
    if isinstance(feature, Normalised):
        return replace(feature, feature=rebuild(feature.feature, change))
    if isinstance(feature, Product):
        return Product(tuple(rebuild(factor, change) for factor in feature.factors))
    return change(feature)


def supply(features: tuple[Feature, ...], functions: Mapping[str, Function]) -> tuple[Feature, ...]:
    """The features, with the functions for those of type `Supplied`, by name.

    Raises
    ------
    ParameterError
        If there is no feature of one of the names.
    """
    plain = [base for feature in features for base in plain_features(feature)]
    names = {base.name for base in plain if isinstance(base, Supplied)}
    for name in functions:
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            raise ParameterError(f"there is no feature python:{name}; the names of functions needed: {known}")

    def given(feature: Feature) -> Feature:
        if isinstance(feature, Supplied) and feature.name in functions:
            return Supplied(feature.name, functions[feature.name])
        return feature

    return tuple(rebuild(feature, given) for feature in features)
