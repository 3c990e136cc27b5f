"""Trees that XGBoost saved as JSON.

XGBoost compares float32 by ``<``; `Trees` compare float64 by ``<=``. Each threshold becomes the largest float64 that is
rounded to a float32 below XGBoost's, so that every value goes the same way.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from greylag.base import FloatArray, ModelError
from greylag.features.column import Column
from greylag.features.learned.trees import DEFAULT_LEFT, LEAF, NAN_IS_MISSING, OF_XGBOOST, Trees
from greylag.features.weighting import FeatureParameters

MAX_FEATURES = 100_000
LOGISTIC = {"reg:logistic", "binary:logistic"}
LOGARITHMIC = {"count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"}
"""The objectives whose base score is no margin, but its logistic function or its exponential."""
_log = logging.getLogger("greylag")


@np.errstate(over="ignore")  # what is infinite is refused
def read_xgboost(content: Mapping[str, Any]) -> Trees:
    """Make the trees of what ``booster.save_model("model.json")`` writes, over columns with its names, or f0, f1, ...

    The base score is a tree of one leaf, the first. Of a model that stopped early, the rounds up to the best are read,
    as ``XGBRanker.predict`` uses them. `ModelError` if the file is damaged, of several classes or targets, linear
    (``gblinear``) or split by categories.
    """
    try:
        learner = content["learner"]
        parameters, booster = learner["learner_model_param"], learner["gradient_booster"]
        kind = booster["name"]
        if kind not in ("gbtree", "dart"):
            raise ModelError(
                f"the XGBoost model is of the kind {kind!r:.20}, and greylag has trees: train gbtree or dart"
            )
        if int(parameters["num_class"]) > 1 or int(parameters.get("num_target", 1)) > 1:
            raise ModelError("the XGBoost model has several classes or targets: train it for one, as rank:ndcg does")
        model = booster["gbtree"]["model"] if kind == "dart" else booster["model"]
        trees = model["trees"]
        factors = booster["weight_drop"] if kind == "dart" else [1.0] * len(trees)
        if (width := int(parameters["num_feature"])) > MAX_FEATURES:
            raise ModelError(f"the XGBoost model has {width:.3g} features, and a feature file at most {MAX_FEATURES}")
        names = list(map(str, learner.get("feature_names") or [f"f{number}" for number in range(width)]))
        if len({*names}) < len(names):
            raise ValueError("two features have one name")
        gains = np.zeros(len(names))
        nodes = [_constant(_margin(learner["objective"]["name"], str(parameters["base_score"])))]
        for tree, factor in [*zip(trees, factors, strict=True)][: _rounds(learner, model)]:
            nodes.append(_nodes(tree, factor, sum(len(part["split"]) for part in nodes), gains))
        arrays: dict[str, Any] = {name: np.concatenate([part[name] for part in nodes]) for name in nodes[0]}
        return Trees(tuple(map(Column, names)), FeatureParameters(), **arrays, gains=gains)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ModelError(f"XGBoost's JSON is damaged ({type(error).__name__}: {error}): save it again") from None


def _rounds(learner: Mapping[str, Any], model: Mapping[str, Any]) -> int:
    """Return the number of trees up to the best round, or of all."""
    number = len(model["trees"])
    if (best := learner.get("attributes", {}).get("best_iteration")) is None:
        return number
    rounds, parallel = int(best) + 1, int(model["gbtree_model_param"].get("num_parallel_tree", 1))
    if min(rounds, parallel) < 1:
        raise ValueError(f"the best of {number} trees is in round {best} with {parallel} trees each")
    if rounds * parallel < number:
        _log.warning(
            f"training stopped early: {rounds} of {number // parallel} rounds are used, the best, as by "
            "XGBRanker.predict; Booster.predict would use all"
        )
    return min(number, rounds * parallel)


def _margin(objective: str, base_score: str) -> float:
    """Return the base score as what the leaves are added to."""
    score = float(np.float32(base_score.strip("[]")))
    if objective in LOGISTIC:
        return math.log(score / (1 - score))
    return math.log(score) if objective in LOGARITHMIC else score


def _constant(value: float) -> dict[str, Any]:
    """Return a tree of one leaf, the first."""
    one, none = np.zeros(1), np.zeros(1, dtype=int)
    arrays = {"roots": none, "split": none + LEAF, "left": none, "right": none, "decision": none}
    return {**arrays, "threshold": one, "value": one + value, "counts": one + 1.0}


def _nodes(tree: Mapping[str, Any], factor: float, first: int, gains: FloatArray) -> dict[str, Any]:
    """Read the nodes of a tree, numbered from `first`; adds to the features' gains."""
    left, right, split, kinds, by_default = (
        _integers(tree[name])
        for name in ("left_children", "right_children", "split_indices", "split_type", "default_left")
    )
    inner, number = left >= 0, len(left)
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1 or kinds[inner].any():
        raise ModelError(
            "the XGBoost model has splits by categories or leaves of several targets, which greylag does not: train it "
            "on numbers (enable_categorical=False, multi_strategy='one_output_per_tree')"
        )
    ways = split[inner], by_default[inner], 1 - by_default[inner]
    if not np.array_equal(inner, right >= 0) or min(values.min(initial=0) for values in ways) < 0:
        raise ValueError("a split has one side, or no feature or default")
    conditions, changes = (np.array(tree[name], dtype=np.float32) for name in ("split_conditions", "loss_changes"))
    np.add.at(gains, split[inner], changes[inner].astype(np.float64))
    # Nodes that pruning deleted have no parent and no documents; children may come before their parent.
    order = _downwards(left, right)
    place = np.empty(number, dtype=int)
    place[order] = first + np.arange(len(order))
    arrays = {
        "split": np.where(inner, split, LEAF),
        "left": np.where(inner, place[left], 0),
        "right": np.where(inner, place[right], 0),
        "threshold": np.where(inner, largest_below(conditions), 0.0),
        "value": np.where(inner, 0.0, (np.float32(factor) * conditions).astype(np.float64)),
        "counts": np.array(tree["sum_hessian"], dtype=np.float64),
        "decision": np.where(inner, OF_XGBOOST | NAN_IS_MISSING | DEFAULT_LEFT * by_default, 0),
    }
    return {"roots": np.array([first]), **{name: array[order] for name, array in arrays.items()}}


def _integers(values: list[int]) -> Any:
    """Return an array of integers, which nothing is rounded to."""
    array = np.array(values)
    if array.dtype.kind not in "ib":
        raise ValueError("a number is no integer")
    return array.astype(int)


def _downwards(left: Any, right: Any) -> list[int]:
    """Order the nodes that the root leads to, each after the one above it."""
    order = [0]
    for node in order:
        order += [int(side) for side in (left[node], right[node]) if side >= 0]
        if len(order) > len(left):
            raise ValueError("a node has two parents")
    return order


def largest_below(limits: Any) -> FloatArray:
    """Return the largest float64 that each is rounded from to a float32 below the limit."""
    largest = np.finfo(np.float64).max
    middle = (limits.astype(np.float64) + np.nextafter(limits, np.float32(-np.inf)).astype(np.float64)) / 2
    # Halfway, float32 has the neighbour whose last bit is 0.
    below = np.where(middle.astype(np.float32) < limits, middle, np.nextafter(middle, -np.inf))
    return np.asarray(np.clip(below, -largest, largest))
