"""Induced features: products of features, generated from data, for a learner to select from.

Metzler (2007, section 6) proposes, as future work, to "automatically induce new features that can then be automatically
selected into a model using our algorithm", by genetic programming. A product of two features that a selection found
useful is the simplest crossover of two such individuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from greylag.errors import ParameterError
from greylag.features.derived import Normalised, Product, normalise
from greylag.features.feature import Feature
from greylag.ltr.data import RankingData
from greylag.ranking import FloatArray


def add_products(data: RankingData, columns: Sequence[int]) -> RankingData:
    """Add the product of every pair of some features, each scaled to [0, 1] over the documents of the query.

    The new columns have the values, to the bit, that a `FeatureExtractor` computes for the features ``product:(...)``
    of a model.

    Parameters
    ----------
    data : RankingData
        Of features that can be computed, not those of a file.
    columns : sequence of int
        The columns of the features to multiply, such as those of a `Selection`. Features that are normalised or
        products themselves are left out.

    Returns
    -------
    RankingData
        The columns of `data`, then one for each pair that `data` does not have.

    Raises
    ------
    ParameterError
        If a feature is known by its name only.
    """
    factors: dict[Feature, FloatArray] = {}
    for column in columns:
        spec = data.specs[column]
        if isinstance(spec, str):
            raise ParameterError(f"feature {spec!r} is known by name only: a product of it could not be computed")
        if not isinstance(spec, Normalised | Product):
            factors[Normalised(spec, "minmax")] = _scaled(data, column)
    products = {Product(pair): factors[pair[0]] * factors[pair[1]] for pair in combinations(factors, 2)}
    new = {product: values for product, values in products.items() if product not in data.specs}
    return replace(data, specs=(*data.specs, *new), features=np.column_stack([data.features, *new.values()]))


def _scaled(data: RankingData, column: int) -> FloatArray:
    parts = [
        normalise(data.features[first:end, column], "minmax")
        for first, end in zip(data.offsets[:-1], data.offsets[1:], strict=True)
    ]
    return np.concatenate([np.empty(0), *parts])
