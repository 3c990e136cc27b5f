"""Regression trees over features, as a feature: what LightGBM learns, read from its text and written as such.

`greylag.features.learned.xgboost_trees` reads those of XGBoost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import comb
from typing import Any, ClassVar, TypedDict

import numpy as np

from greylag.base import BoolArray, DependencyError, FloatArray, IntArray, ModelError, ParameterError, compiled
from greylag.features.column import Column, as_feature
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature, Values
from greylag.features.learned.base import LearnedFeature
from greylag.features.weighting import FeatureParameters
from greylag.index import PositionalIndex

LEAF = -1
ZERO = 1e-35  # LightGBM's kZeroThreshold
BELOW_ZERO = float(np.nextafter(-(2.0**-150), -1))  # the largest float64 that is rounded to a float32 below 0
_INTEGERS = "roots", "split", "left", "right", "counts", "decision"
_NUMBERS = "threshold", "value", "gains"
# The bits of LightGBM's decision type; without `_ZERO_IS_MISSING` and `NAN_IS_MISSING`, NaN counts as 0.
_CATEGORICAL, DEFAULT_LEFT, _ZERO_IS_MISSING, NAN_IS_MISSING = 1, 2, 4, 8
OF_XGBOOST = 16  # a bit of its own: tiny values are not 0, and what a line of text leaves out is NaN
LEAVES_AT_ONCE = 512  # whose Shapley values are computed together
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
    counts: list[float]
    decision: list[int]


@dataclass(frozen=True, eq=False, repr=False)
class Trees(LearnedFeature):
    """The sum of regression trees. The nodes of all trees are numbered, each after the one above it.

    A document's score is the sum over the trees of the value of its leaf, as LightGBM's raw prediction or XGBoost's
    margin. NaN is a missing value.
    """

    kind: ClassVar[str] = "trees"

    features: tuple[Feature, ...]
    parameters: FeatureParameters  # of the features
    roots: IntArray  # (trees,)
    split: IntArray  # (nodes,): the number of the feature, or LEAF
    threshold: FloatArray  # (nodes,): values up to it go to the left
    left: IntArray  # (nodes,): 0 for a leaf
    right: IntArray
    value: FloatArray  # (nodes,): of leaves
    gains: FloatArray  # (features,): what the splits by each gained in training
    counts: IntArray | FloatArray  # (nodes,): training documents, of XGBoost their Hessians
    decision: IntArray  # (nodes,): LightGBM's decision type, which says where a value that is missing goes

    def __post_init__(self) -> None:
        nodes, inner = np.arange(len(self.split)), self.split != LEAF
        arrays = self.threshold, self.left, self.right, self.value, self.counts, self.decision
        numbers = self.threshold, self.value, self.gains, self.counts
        finite = all(np.isfinite(values).all() for values in numbers) and bool((self.counts >= 0).all())
        below = np.stack([self.left, self.right])[:, inner] if len(self.left) == len(self.right) == len(nodes) else None
        fits = (
            all(len(array) == len(nodes) for array in arrays) and len(self.gains) == len(self.features) and finite
            and below is not None and bool((below > nodes[inner]).all() and (below < len(nodes)).all())
            and bool((self.split[inner] >= 0).all() and (self.split < len(self.features)).all())
            and bool((self.roots >= 0).all() and (self.roots < len(nodes)).all())
        )  # fmt: skip
        if not fits:
            raise ModelError("the trees are damaged: train the model again")

    @cached_property
    def uses_ranking(self) -> bool:  # type: ignore[override]
        """Whether a feature does."""
        return any(feature.uses_ranking for feature in self.features)

    @cached_property
    def reads_query(self) -> bool:  # type: ignore[override]
        """Whether a feature does."""
        return any(feature.reads_query for feature in self.features)

    @cached_property
    def needs_index(self) -> bool:  # type: ignore[override]
        """Whether a feature does, before it is normalised."""
        return any(feature.base.needs_index for feature in self.features)

    @classmethod
    def from_lightgbm(
        cls, text: str, features: Sequence[Feature] | None = None, parameters: FeatureParameters | None = None
    ) -> Trees:
        """Read what ``booster.save_model`` writes, over these features or over columns with the file's names.

        `ModelError` if it is damaged, of several classes, averaged (``boosting=rf``), linear in its leaves, split by
        categories, or trained with ``zero_as_missing``.
        """
        header, *trees = (
            dict(re.findall(r"^(\w+)(?:=(.*))?$", part, re.MULTILINE))
            for part in text.partition("\nend of trees")[0].split("\nTree=")
        )
        try:
            names = header["feature_names"].split() if features is None else features
            if header["num_tree_per_iteration"] != "1" or "average_output" in header:
                raise ModelError("the LightGBM model has several classes, or averages trees: greylag has sums of trees")
            nodes, gains, first = [], np.zeros(len(names)), 0
            for tree in trees:
                nodes.append(_nodes(tree, first, gains))
                first += len(nodes[-1]["split"])
            arrays: dict[str, Any] = {name: np.concatenate([part[name] for part in nodes]) for name in nodes[0]}
            columns = tuple(map(as_feature, names))
            return cls(columns, parameters or FeatureParameters(), **arrays, gains=gains)
        except (KeyError, ValueError, IndexError, ArithmeticError) as error:
            raise ModelError(f"LightGBM's text is damaged ({type(error).__name__}: {error}): save it again") from None

    def without_unused(self) -> Trees:
        """Leave out the features that no tree splits by."""
        used = np.flatnonzero(self._splits)
        split = np.where(self.split == LEAF, LEAF, np.searchsorted(used, self.split))
        return replace(self, features=tuple(self.features[f] for f in used), split=split, gains=self.gains[used])

    def missing_left(self) -> BoolArray:
        """Return the nodes, shape (nodes,), where a document without a value goes to the left: as 0, or as trained."""
        learned, by_default = self.decision & NAN_IS_MISSING > 0, self.decision & DEFAULT_LEFT > 0
        return np.where(learned, by_default, self.threshold >= 0)

    def missing_as_zero(self) -> Trees:
        """Take what is missing as 0, wherever such values went in training."""
        return replace(self, decision=self.decision & ~NAN_IS_MISSING)

    @property
    def root_of(self) -> IntArray:
        """The root of each node's tree, shape (nodes,)."""
        return np.repeat(self.roots, np.diff([*self.roots.tolist(), len(self.split)]))

    @property
    def of_xgboost(self) -> bool:
        """Whether XGBoost grew them."""
        return bool((self.decision & OF_XGBOOST).any())

    def as_lightgbm(self, columns: Sequence[str] | None = None) -> str:
        """Write the trees in LightGBM's text, as a model of these columns, or of the features alone."""
        own = [str(feature).removeprefix("column:") for feature in self.features]
        names = own if columns is None else columns
        place, splits, counts = np.array([names.index(name) for name in own]), self._splits, self.counts
        if self.of_xgboost:
            tiny = (np.abs(self.threshold) <= ZERO) & (self.threshold != BELOW_ZERO)
            if tiny[self.split != LEAF].any():
                raise ParameterError("XGBoost's trees split values within 1e-35 of 0, which LightGBM reads as 0")
            # Whole numbers instead of Hessians: contributions need their ratios alone.
            counts = np.maximum(1, np.rint(counts / np.maximum(counts[self.root_of], 1e-300) * 2**30)).astype(int)
        lines = [
            "tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0",
            f"max_feature_idx={len(names) - 1}", "objective=lambdarank",
            "feature_names=" + " ".join(re.sub(r"\s", "_", name) for name in names),
            f"feature_infos={' '.join(['none'] * len(names))}", "",
        ]  # fmt: skip
        for number, (first, end) in enumerate(pairwise([*self.roots.tolist(), len(self.split)])):
            nodes = np.arange(first, end)
            inner, leaves = nodes[self.split[first:end] != LEAF], nodes[self.split[first:end] == LEAF]
            # Inner nodes are numbered from 0 on, and leaves from -1 down.
            link, split = np.empty(end - first, dtype=np.int64), self.split[inner]
            link[inner - first], link[leaves - first] = np.arange(len(inner)), -1 - np.arange(len(leaves))
            arrays = {
                "split_feature": place[split], "split_gain": self.gains[split] / splits[split],
                "threshold": self.threshold[inner], "decision_type": self.decision[inner] & ~OF_XGBOOST,
                "left_child": link[self.left[inner] - first], "right_child": link[self.right[inner] - first],
                "leaf_value": self.value[leaves], "leaf_weight": self.counts[leaves],
                "leaf_count": counts[leaves], "internal_value": np.zeros(len(inner)),
                "internal_weight": self.counts[inner], "internal_count": counts[inner],
            }  # fmt: skip
            lines += [f"Tree={number}", f"num_leaves={len(leaves)}", "num_cat=0"]
            lines += [f"{name}={' '.join(map(repr, array.tolist()))}" for name, array in arrays.items()]
            lines += ["is_linear=0", "shrinkage=1", "", ""]
        return "\n".join([*lines, "end of trees", ""])

    def contributions(self, values: FloatArray) -> FloatArray:
        """Compute the features' contributions and, last, the mean in training, shape (n, f + 1).

        These are the Shapley values of features that are absent as in training: a split by one sends a document both
        ways, by the shares of training documents (Lundberg et al. 2020, algorithm 1), as ``pred_contrib`` of LightGBM
        and ``pred_contribs`` of XGBoost. They add up to the score.
        """
        if not self.counts.any():
            raise ModelError("the trees were saved by an earlier version, without numbers of documents: train again")
        out, went_left = np.zeros((len(values), len(self.features) + 1)), np.zeros((len(values), len(self.split)), bool)
        inner = self.split != LEAF
        read = self._read(values)[:, self.split[inner]]
        went_left[:, inner] = np.where(np.isnan(read), self.missing_left()[inner], read <= self.threshold[inner])
        for number, by_feature in enumerate(out):
            for leaves in self._leaves:
                _add_contributions(leaves, went_left[number], by_feature)
        return out

    @cached_property
    def _leaves(self) -> list[_Leaves]:
        """The paths to all leaves, some leaves at once."""
        nodes, leaves = np.arange(len(self.split)), np.flatnonzero(self.split == LEAF)
        above, is_left = np.full(len(nodes), LEAF), np.zeros(len(nodes), dtype=np.bool_)
        inner = nodes[self.split != LEAF]
        above[self.left[inner]] = above[self.right[inner]] = inner
        is_left[self.left[inner]] = True
        both = np.zeros(len(nodes))
        both[inner] = self.counts[self.left[inner]] + self.counts[self.right[inner]]
        reached = np.divide(
            self.counts, both[above], out=np.full(len(nodes), 0.5), where=(above >= 0) & (both[above] > 0)
        )
        paths = []
        for first in range(0, len(leaves), LEAVES_AT_ONCE):
            at = leaves[first : first + LEAVES_AT_ONCE]
            value, row, steps = self.value[at], np.arange(len(at)), [np.empty((2, 0), dtype=np.int64)]
            while (on := above[at] >= 0).any():  # a step up for all that are below a root
                at, row = at[on], row[on]
                steps.append(np.stack([row, at]))
                at = above[at]
            row, below = np.concatenate(steps, axis=1)
            paths.append(_Leaves.of(value, row, self.split[above[below]], above[below], is_left[below], reached[below]))
        return paths

    def scores(self, values: FloatArray) -> FloatArray:
        """Compute the scores, shape (n,), for features of shape (n, f), NaN where a value is missing."""
        out = np.zeros(len(values))
        _add_leaves(
            self._read(values), self.roots, self.split, self.threshold, self.left, self.right, self.missing_left(),
            self.value, out,
        )  # fmt: skip
        return out

    def _read(self, values: FloatArray) -> FloatArray:
        """Change values as LightGBM does: infinite ones are not above an infinite threshold, and tiny ones are 0."""
        largest = np.finfo(np.float64).max
        return np.clip(values if self.of_xgboost else np.where(np.abs(values) <= ZERO, 0.0, values), -largest, largest)

    @property
    def _splits(self) -> IntArray:
        """The number of splits by each feature, shape (f,)."""
        return np.bincount(self.split[self.split != LEAF], minlength=len(self.features))

    def bind(self, index: PositionalIndex) -> Values:
        """Bind the scores of a ranking's documents, from their features."""
        values = self.bind_values(index)
        return lambda ranking: self.scores(values(ranking))

    def bind_values(self, index: PositionalIndex | None) -> Values:
        """Bind the values of the features, shape (n, f): of columns of a file as they are, with NaN."""
        if all(isinstance(feature, Column) for feature in self.features):
            columns = [feature.bind(index) for feature in self.features if isinstance(feature, Column)]
            return lambda ranking: np.array([column(ranking) for column in columns]).reshape(-1, len(ranking)).T
        return FeatureExtractor(index, self.features, self.parameters)

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
        counts: list[float] = content["counts"]
        arrays: dict[str, Any] = {name: np.array(entries[name], dtype=np.int64) for name in _INTEGERS}
        arrays["counts"] = np.array(counts, dtype=np.int64 if {*map(type, counts)} == {int} else np.float64)
        arrays |= {name: np.array(entries[name], dtype=np.float64) for name in _NUMBERS}
        return cls(tuple(map(parse, content["features"])), FeatureParameters(**content["parameters"]), **arrays)

    def outline(self) -> list[str]:
        """Return the features that the trees split by, with their shares of the gain, largest first."""
        splits = self._splits
        used = [int(place) for place in np.argsort(-self.gains, kind="stable") if splits[place]]
        shares = self.gains / (self.gains.sum() or 1.0)
        lines = [f"  {shares[f]:11.1%}  {self.features[f]}  {splits[f]} splits" for f in used]
        return [f"{len(self.roots)} trees; of the gain in training:", *lines]


def lightgbm() -> Any:
    """Import LightGBM, which grows trees."""
    try:
        import lightgbm
    except ImportError as error:
        raise DependencyError(f"LightGBM is needed to grow trees ({error}): pip install 'lightgbm>=4'") from None
    return lightgbm


def _nodes(tree: Mapping[str, str], first: int, gains: FloatArray) -> dict[str, Any]:
    """Read the nodes of a tree of LightGBM's text, numbered from `first`; adds to the features' gains."""

    def read(name: str, kind: type) -> Any:
        return np.array(tree[name].split() if leaves > 1 or name == "leaf_value" else [], dtype=kind)

    leaves = len(tree["leaf_value"].split())
    split, decision, links = read("split_feature", int), read("decision_type", int), ("left_child", "right_child")
    if tree.get("is_linear", "0") != "0" or (decision & (_CATEGORICAL | _ZERO_IS_MISSING)).any():
        raise ModelError(
            "the LightGBM model has linear leaves, splits by categories, or takes 0 as missing, which greylag does "
            "not: train it without linear_tree, categorical_feature and zero_as_missing"
        )
    np.add.at(gains, split, read("split_gain", float))
    # A link below 0 is one to the leaf -1 - link; leaves follow the inner nodes.
    left, right = (first + np.where(link >= 0, link, leaves - 2 - link) for link in (read(name, int) for name in links))
    counts = np.append(read("internal_count", int), read("leaf_count", int)) if leaves > 1 else np.ones(1, dtype=int)
    none = np.zeros(leaves, dtype=int)
    # It is infinite where missing values are split from all others: the largest number does the same, also in JSON.
    threshold = np.minimum(read("threshold", float), np.finfo(np.float64).max)
    return {
        "roots": np.array([first]), "split": np.append(split, none + LEAF), "left": np.append(left, none),
        "right": np.append(right, none), "threshold": np.append(threshold, none.astype(float)),
        "value": np.append(np.zeros(leaves - 1), read("leaf_value", float)), "counts": counts,
        "decision": np.append(decision, none),
    }  # fmt: skip


@dataclass(frozen=True)
class _Leaves:
    """The paths to leaves, as features that decide together whether a document reaches them."""

    value: FloatArray  # (leaves,)
    leaf: IntArray  # (players,): a player is a feature that some splits above a leaf are by
    place: IntArray  # (players,): among those of the leaf
    feature: IntArray  # (players,)
    share: FloatArray  # (players,): of the training documents that these splits let pass
    player: IntArray  # (steps,)
    node: IntArray  # (steps,): the inner node
    is_left: BoolArray  # (steps,): whether the path goes to its left

    @classmethod
    def of(
        cls, value: FloatArray, leaf: IntArray, feature: IntArray, node: IntArray, is_left: BoolArray, taken: FloatArray
    ) -> _Leaves:
        """Collect the steps from each leaf up; `taken` is the share of the documents at the node that take it."""
        pairs, player = np.unique(np.stack([leaf, feature]), axis=1, return_inverse=True)
        share = np.ones(pairs.shape[1])
        np.multiply.at(share, player, taken)
        place = np.arange(pairs.shape[1]) - np.searchsorted(pairs[0], pairs[0])
        return cls(value, pairs[0], place, pairs[1], share, player, node, is_left)


def _add_contributions(leaves: _Leaves, went_left: BoolArray, out: FloatArray) -> None:
    """Add the contributions of the paths to leaves for a document, shape (f + 1,), with the mean as the last.

    A leaf is reached by the product over players k of o_k if k is in the coalition, else z_k: whether the document
    passes its splits, and the share that does. So the coefficients of prod (z_k + o_k x) add up coalitions by size.
    """
    passes = np.ones(len(leaves.share))
    np.multiply.at(passes, leaves.player, went_left[leaves.node] == leaves.is_left)
    most = int(leaves.place.max(initial=-1)) + 1
    # A player that all documents pass changes nothing: it fills up the rows of leaves with fewer.
    z, o = np.ones((2, len(leaves.value), most))
    z[leaves.leaf, leaves.place], o[leaves.leaf, leaves.place] = leaves.share, passes
    others = np.zeros((len(leaves.value), most, most))  # the polynomial of all players but each
    others[:, :, :1] = 1.0
    for k in range(most):
        rest = np.arange(most) != k
        before = others[:, rest]
        others[:, rest] *= z[:, k, None, None]
        others[:, rest, 1:] += o[:, k, None, None] * before[:, :, :-1]
    sizes = np.array([1.0 / (most * comb(most - 1, size)) for size in range(most)])
    shares = leaves.value[:, None] * (o - z) * np.einsum("ljs,s->lj", others, sizes)
    np.add.at(out, leaves.feature, shares[leaves.leaf, leaves.place])
    out[-1] += leaves.value @ z.prod(axis=1)


@_jit
def _add_leaves(
    values: FloatArray,
    roots: IntArray,
    split: IntArray,
    threshold: FloatArray,
    left: IntArray,
    right: IntArray,
    missing_left: BoolArray,
    value: FloatArray,
    out: FloatArray,
) -> None:
    """Add the value of each tree's leaf to the scores, tree by tree, as LightGBM does."""
    for row in range(len(values)):
        for node in roots:
            while split[node] >= 0:
                one = values[row, split[node]]
                is_left = missing_left[node] if np.isnan(one) else one <= threshold[node]
                node = left[node] if is_left else right[node]  # noqa: PLW2901
            out[row] += value[node]
