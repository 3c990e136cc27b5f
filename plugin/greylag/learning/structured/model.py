"""The interface between structured models and learners, and the risk that learners minimise.

A model predicts, for an input x, the output y that maximises w' Psi(x, y), with weights w and joint features Psi. The
truth t of an input in training may be more than an output: for sets of documents, it is the subtopics that each
document covers. Inputs, truths and outputs are opaque to learners, which only pass them between methods of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from greylag.base import FloatArray, IntArray, ModelError, ParameterError

Input = TypeVar("Input")
Truth = TypeVar("Truth")
Output = TypeVar("Output")
Input_contra = TypeVar("Input_contra", contravariant=True)
Truth_contra = TypeVar("Truth_contra", contravariant=True)


class StructuredModel(Protocol[Input_contra, Truth_contra, Output]):
    """A model of outputs given inputs, with a loss.

    If it has an attribute ``nonnegative``, positions in [-d, d) of weights, every learner keeps these weights at 0 or
    above. Submodular pairwise terms are the common case: an exact minimum cut needs weights that are non-negative.
    """

    def joint_feature(self, x: Input_contra, y: Output) -> FloatArray:
        """Compute Psi(x, y), shape (d,), with d the same for all x and y."""

    def loss(self, truth: Truth_contra, y: Output) -> float:
        """Compute Delta(t, y) >= 0."""

    def target(self, x: Input_contra, truth: Truth_contra) -> Output:
        """Return the output to train towards: one of minimal loss, exactly or approximately."""

    def infer(self, x: Input_contra, weights: FloatArray) -> Output:
        """Find the y that maximises w' Psi(x, y), exactly or approximately."""

    def infer_augmented(self, x: Input_contra, truth: Truth_contra, weights: FloatArray) -> Output:
        """Find the y that maximises w' Psi(x, y) + Delta(t, y), exactly or approximately."""


def task_losses(
    model: StructuredModel[Input, Truth, Output], examples: Sequence[tuple[Input, Truth]], weights: FloatArray
) -> FloatArray:
    """Compute Delta(t_i, y), shape (M, n), of the prediction y for each example by each row of weights, (M, d)."""
    losses = [[model.loss(truth, model.infer(x, member)) for x, truth in examples] for member in weights]
    return np.array(losses).reshape(len(weights), len(examples))


def inner(vectors: FloatArray, weights: FloatArray) -> FloatArray:
    """Compute inner products over the last axis, by einsum: BLAS results depend on the number of threads."""
    return np.asarray(np.einsum("...d,d->...", vectors, weights))


class Constraint(NamedTuple):
    """w' normal >= loss - xi, with normal = Psi(x, target) - Psi(x, y), shape (d,), and loss = Delta(t, y)."""

    normal: FloatArray
    loss: float

    def violation(self, weights: FloatArray) -> float:
        """Return the xi that the constraint requires: loss - w' normal."""
        return self.loss - float(inner(self.normal, weights))


@dataclass(frozen=True, eq=False)
class TrainingSet(Generic[Input, Truth, Output]):
    """A model with n >= 1 training examples, pairs of input and truth, whose targets are computed once."""

    model: StructuredModel[Input, Truth, Output]
    examples: Sequence[tuple[Input, Truth]]

    def __post_init__(self) -> None:
        methods = (name for name in dir(StructuredModel) if not name.startswith("_"))
        if missing := [name for name in methods if not callable(getattr(self.model, name, None))]:
            raise ParameterError(f"{type(self.model).__name__} is no structured model: missing {', '.join(missing)}")
        if not len(self.examples):
            raise ParameterError("there are no examples to train on")

    @cached_property
    def targets(self) -> tuple[Output, ...]:
        """The target of each example."""
        return tuple(self.model.target(x, truth) for x, truth in self.examples)

    @cached_property
    def target_losses(self) -> FloatArray:
        """Delta(t, target), shape (n,), the lowest attainable losses."""
        pairs = zip(self.examples, self.targets, strict=True)
        return np.array([self.model.loss(truth, target) for (_, truth), target in pairs])

    @cached_property
    def target_features(self) -> FloatArray:
        """Psi(x, target), shape (n, d)."""
        pairs = zip(self.examples, self.targets, strict=True)
        features = [self.model.joint_feature(x, target) for (x, _), target in pairs]
        sizes = sorted({len(row) for row in features})
        if len(sizes) > 1:
            raise ModelError(
                f"examples have from {sizes[0]} to {sizes[-1]} joint features; all must have the same number"
            )
        if not np.isfinite(features).all():
            example, feature = np.argwhere(~np.isfinite(features))[0]
            raise ModelError(
                f"joint feature {feature} of example {example} is {features[example][feature]}, not finite"
            )
        return np.array(features)

    @cached_property
    def nonnegative(self) -> IntArray:
        """Ascending positions of the weights that must be at least 0; empty if the model declares none."""
        signed, d = np.array(getattr(self.model, "nonnegative", ()), dtype=np.int64), self.target_features.shape[1]
        for number in signed[(signed < -d) | (signed >= d)]:
            raise ModelError(f"nonnegative weight {number} does not exist: the model has {d} joint features")
        return np.unique(signed % d)

    def project(self, weights: FloatArray) -> FloatArray:
        """Find the closest feasible weights, shape (..., d): negative weights that must be at least 0 become 0."""
        projected = weights.copy()
        projected[..., self.nonnegative] = np.maximum(projected[..., self.nonnegative], 0.0)
        return projected

    def most_violated(self, example: int, weights: FloatArray) -> Constraint:
        """Find the most violated constraint by inference, or that of the target if it is violated more."""
        x, truth = self.examples[example]
        y = self.model.infer_augmented(x, truth, weights)
        normal = self.target_features[example] - self.model.joint_feature(x, y)
        constraint = Constraint(normal, self.model.loss(truth, y))
        # Approximate inference may miss even the target, whose hinge is its own loss.
        target = Constraint(np.zeros_like(constraint.normal), float(self.target_losses[example]))
        return constraint if constraint.violation(weights) >= target.loss else target

    def hinge_losses(self, weights: FloatArray) -> FloatArray:
        """Compute, shape (n,): max over y of w' Psi(x, y) + Delta(t, y), minus w' Psi(x, target)."""
        return np.array([self.most_violated(i, weights).violation(weights) for i in range(len(self.examples))])

    def objective(self, weights: FloatArray, C: float) -> float:
        """Compute ||w||² / 2 + C / n times the sum of the hinge losses."""
        return float(inner(weights, weights) / 2 + C * self.hinge_losses(weights).mean())
