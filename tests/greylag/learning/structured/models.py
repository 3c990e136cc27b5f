"""Structured models small enough to enumerate all outputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from greylag.ranking import FloatArray

THOMSON = {2: 0.5, 4: 3.674235, 6: 9.985281, 12: 49.165253}
"""Known minima of the Coulomb energy of that many charges on the sphere in three dimensions."""


@dataclass(frozen=True)
class Table:
    """Inputs are tables of joint features with a row for each output; truths are the losses of the outputs."""

    nonnegative: tuple[int, ...] = field(default=(), kw_only=True)

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
    """The similarity of outputs decreases with the distance of their numbers."""

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
    """Examples for `Table`; the lowest loss is not always 0."""
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal((outputs, d)), rng.random(outputs)) for _ in range(n)]


def optimum_around(
    centre: FloatArray,
    examples: Sequence[tuple[FloatArray, FloatArray]],
    C: float,
    targets: Sequence[int],
    nonnegative: Sequence[int] = (),
) -> FloatArray:
    """The w that minimises ||w - centre||² / 2 + C times the mean hinge loss under all constraints, by SLSQP."""
    n, d = len(examples), len(centre)
    rows, bounds = [], []
    for i, ((x, truth), target) in enumerate(zip(examples, targets, strict=True)):
        for features, loss in zip(x, truth, strict=True):
            rows.append(np.concatenate([x[target] - features, np.eye(n)[i]]))
            bounds.append(loss)
    A, b, weight = np.array(rows), np.array(bounds), np.concatenate([np.zeros(d), np.full(n, C / n)])
    scale = max(1.0, C)
    least = np.full(d + n, -np.inf)
    least[list(nonnegative)] = 0.0
    found = minimize(
        lambda v: ((v[:d] - centre) @ (v[:d] - centre) / 2 + weight @ v) / scale,
        np.concatenate([np.maximum(centre, least[:d]), np.full(n, b.max() + np.abs(A).sum())]),
        jac=lambda v: (np.concatenate([v[:d] - centre, np.zeros(n)]) + weight) / scale,
        bounds=[(bound, None) for bound in least],
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert found.success or found.status == 8  # no step lowers the objective at this precision
    return np.asarray(found.x[:d])
