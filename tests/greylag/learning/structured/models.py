"""Structured models small enough to enumerate all outputs."""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

THOMSON = {2: 0.5, 4: 3.674235, 6: 9.985281, 12: 49.165253}
"""Known minima of the Coulomb energy of that many charges on the sphere in three dimensions."""


@dataclass(frozen=True)
class Table:
    """Inputs are tables of joint features with a row for each output; truths are the losses of the outputs."""

    nonnegative: tuple[int, ...] = field(default=(), kw_only=True)

    def joint_feature(self, x, y):
        return x[y]

    def loss(self, truth, y):
        return float(truth[y])

    def target(self, x, truth):
        return int(np.argmin(truth))

    def infer(self, x, weights):
        return int(np.argmax(x @ weights))

    def infer_augmented(self, x, truth, weights):
        return int(np.argmax(x @ weights + truth))


@dataclass(frozen=True)
class ComparingTable(Table):
    """The similarity of outputs decreases with the distance of their numbers."""

    outputs: int

    def similarity(self, y, other):
        return 1.0 - abs(y - other) / (self.outputs - 1)

    def infer_apart(self, x, truth, weights, others, *, task, similarity):
        shared = [np.mean([self.similarity(y, other) for other in others]) for y in range(self.outputs)]
        return int(np.argmax(x @ weights + task * truth + similarity * np.array(shared)))


def random_tables(seed, n, outputs, d):
    """Examples for `Table`; the lowest loss is not always 0."""
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal((outputs, d)), rng.random(outputs)) for _ in range(n)]


def optimum_around(centre, examples, C, targets, nonnegative=()):
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
