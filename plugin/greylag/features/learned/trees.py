"""Regression trees over features, as a feature: what LambdaMART learns (`greylag.recipes.lambdamart`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import TypedDict

from greylag.errors import ModelError
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature, Values
from greylag.features.learned.base import LearnedFeature
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, IntArray
from greylag.runtime.compilation import compiled

LEAF = -1
_INTEGERS, _NUMBERS = ("roots", "split", "left", "right"), ("threshold", "value", "gains")
_jit = compiled()


class TreesLayout(TypedDict):
    """The entries of a file."""

    features: list[str]
    parameters: dict[str, Any]
    roots: list[int]
    split: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    value: list[float]
    gains: list[float]


@dataclass(frozen=True, eq=False, repr=False)
class Trees(LearnedFeature):
    """The sum of regression trees. The nodes of all trees are numbered, each after the one above it.

    A document's score is the sum over the trees of the value of its leaf less that of the root. So it is a sum of steps
    from node to node, and each step belongs to the feature that the upper node splits by (Saabas 2014).
    """

    kind: ClassVar[str] = "trees"

    features: tuple[Feature, ...]
    parameters: FeatureParameters  # of the features
    roots: IntArray  # (trees,)
    split: IntArray  # (nodes,): the number of the feature, or LEAF
    threshold: FloatArray  # (nodes,): values up to it go to the left
    left: IntArray  # (nodes,): 0 for a leaf
    right: IntArray
    value: FloatArray  # (nodes,)
    gains: FloatArray  # (features,): what the splits by each gained in training

    def __post_init__(self) -> None:
        nodes, inner = np.arange(len(self.split)), self.split != LEAF
        arrays = self.threshold, self.left, self.right, self.value
        finite = all(np.isfinite(numbers).all() for numbers in (self.threshold, self.value, self.gains))
        below = np.stack([self.left, self.right])[:, inner] if len(self.left) == len(self.right) == len(nodes) else None
        fits = (
            all(len(array) == len(nodes) for array in arrays) and len(self.gains) == len(self.features) and finite
            and below is not None and bool((below > nodes[inner]).all() and (below < len(nodes)).all())
            and bool((self.split[inner] >= 0).all() and (self.split < len(self.features)).all())
            and bool((self.roots >= 0).all() and (self.roots < len(nodes)).all())
        )  # fmt: skip
        if not fits:
            raise ModelError("the trees are damaged: train the model again")

    def contributions(self, values: FloatArray) -> FloatArray:
        """Compute each feature's contribution to the scores; features and result have shape (n, f)."""
        out = np.zeros(values.shape)
        _add_steps(values, self.roots, self.split, self.threshold, self.left, self.right, self.value, out)
        return out

    def scores(self, values: FloatArray) -> FloatArray:
        """Compute the scores, shape (n,), for features of shape (n, f)."""
        added: FloatArray = np.add.accumulate(self.contributions(values), axis=1)[:, -1]
        return added

    @property
    def uses_ranking(self) -> bool:  # type: ignore[override]
        """Whether one of the features does."""
        return any(feature.uses_ranking for feature in self.features)

    @property
    def needs_index(self) -> bool:  # type: ignore[override]
        """Whether one of the features does."""
        return any(feature.base.needs_index for feature in self.features)

    @property
    def reads_query(self) -> bool:  # type: ignore[override]
        """Whether one of the features does."""
        return any(feature.reads_query for feature in self.features)

    def bind(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """Bind the scores of a ranking's documents, from their features."""
        extractor = FeatureExtractor(index, self.features, self.parameters)
        return lambda ranking: self.scores(extractor(ranking))

    def parts(self) -> tuple[Feature, ...]:
        """Return the features."""
        return self.features

    def files(self) -> list[str]:
        """Return the files of the features."""
        return [file for feature in self.features for file in feature.files()]

    def place_files(self, place: Callable[[str], str]) -> Trees:
        """Return the trees over the placed features."""
        return replace(self, features=tuple(feature.place_files(place) for feature in self.features))

    def as_dict(self) -> dict[str, Any]:
        """Return the entries of a file."""
        arrays = {name: getattr(self, name).tolist() for name in (*_INTEGERS, *_NUMBERS)}
        return {"features": list(map(str, self.features)), "parameters": self.parameters.as_dict(), **arrays}

    @classmethod
    def from_dict(cls, content: TreesLayout, parse: Callable[[str], Feature]) -> Trees:
        """Return the trees of a file's entries."""
        entries: Mapping[str, Any] = content
        arrays: dict[str, Any] = {name: np.array(entries[name], dtype=np.int64) for name in _INTEGERS}
        arrays |= {name: np.array(entries[name], dtype=np.float64) for name in _NUMBERS}
        return cls(tuple(map(parse, content["features"])), FeatureParameters(**content["parameters"]), **arrays)

    def outline(self) -> list[str]:
        """Return the features that the trees split by, with their shares of the gain, largest first."""
        splits = np.bincount(self.split[self.split != LEAF], minlength=len(self.features))
        used = [int(place) for place in np.argsort(-self.gains, kind="stable") if splits[place]]
        shares = self.gains / (self.gains.sum() or 1.0)
        lines = [f"  {shares[f]:11.1%}  {self.features[f]}  {splits[f]} splits" for f in used]
        return [f"{len(self.roots)} trees; of the gain in training:", *lines]


@_jit
def _add_steps(
    values: FloatArray,
    roots: IntArray,
    split: IntArray,
    threshold: FloatArray,
    left: IntArray,
    right: IntArray,
    value: FloatArray,
    out: FloatArray,
) -> None:
    """Add the step from each node to the next to the column of the feature that the node splits by."""
    for row in range(len(values)):
        # By steps and not by leaves: the sum is the same, and each step says which feature it is due to.
        for root in roots:
            node = root
            while split[node] >= 0:
                below = left[node] if values[row, split[node]] <= threshold[node] else right[node]
                out[row, split[node]] += value[below] - value[node]
                node = below
