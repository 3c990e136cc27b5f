"""A structured model small enough to list all its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from greylag.ranking import FloatArray


@dataclass(frozen=True)
class Table:
    """Inputs are tables of joint features, one row for each output; truths are the outputs' losses."""

    def joint_feature(self, x: FloatArray, y: int) -> FloatArray:
        return x[y]

    def loss(self, truth: FloatArray, y: int) -> float:
        return float(truth[y])

    def target(self, x: FloatArray, truth: FloatArray) -> int:
        return int(np.argmin(truth))

    def infer(self, x: FloatArray, weights: FloatArray) -> int:
        return int(np.argmax(x @ weights))

    def infer_augmented(self, x: FloatArray, truth: FloatArray, weights: FloatArray) -> int:
        return int(np.argmax(x @ weights + truth))


@dataclass(frozen=True)
class ComparingTable(Table):
    """Outputs are as similar as their numbers are near."""

    outputs: int

    def similarity(self, y: int, other: int) -> float:
        return 1.0 - abs(y - other) / (self.outputs - 1)

    def infer_apart(
        self,
        x: FloatArray,
        truth: FloatArray,
        weights: FloatArray,
        others: Sequence[int],
        *,
        task: float,
        similarity: float,
    ) -> int:
        shared = [np.mean([self.similarity(y, other) for other in others]) for y in range(self.outputs)]
        return int(np.argmax(x @ weights + task * truth + similarity * np.array(shared)))


def random_tables(seed: int, n: int, outputs: int, d: int) -> list[tuple[FloatArray, FloatArray]]:
    """Examples for `Table`; the least loss is not always 0."""
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal((outputs, d)), rng.random(outputs)) for _ in range(n)]
