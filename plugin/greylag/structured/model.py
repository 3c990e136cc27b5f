"""The interface between structured models and their learners, and the risk that learners minimise.

A model predicts the output y of an input x that maximises w' Psi(x, y), for weights w and a joint feature map Psi. What
is known about x in training, its truth t, may be more than an output: of a set of documents, which subtopics each one
covers. Inputs, truths and outputs mean nothing to a learner, which hands them from one method of the model to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from greylag.errors import ModelError, ParameterError
from greylag.ranking import FloatArray

Input = TypeVar("Input")
Truth = TypeVar("Truth")
Output = TypeVar("Output")
Input_contra = TypeVar("Input_contra", contravariant=True)
Truth_contra = TypeVar("Truth_contra", contravariant=True)


class StructuredModel(Protocol[Input_contra, Truth_contra, Output]):
    """What is predicted, from what, at which loss."""

    def joint_feature(self, x: Input_contra, y: Output) -> FloatArray:
        """Psi(x, y), shape (d,); d is the same for all x and y."""

    def loss(self, truth: Truth_contra, y: Output) -> float:
        """Delta(t, y) >= 0."""

    def target(self, x: Input_contra, truth: Truth_contra) -> Output:
        """The output to train towards: one of least loss, or the best that can be found."""

    def infer(self, x: Input_contra, weights: FloatArray) -> Output:
        """The y of largest w' Psi(x, y), or the best that can be found."""

    def infer_augmented(self, x: Input_contra, truth: Truth_contra, weights: FloatArray) -> Output:
        """The y of largest w' Psi(x, y) + Delta(t, y), or the best that can be found."""


def inner(vectors: FloatArray, weights: FloatArray) -> FloatArray:
    """Inner products over the last axis; unlike BLAS's, they do not depend on the number of threads."""
    return np.asarray(np.einsum("...d,d->...", vectors, weights))


class Constraint(NamedTuple):
    """w' normal >= loss - xi, with normal = Psi(x, target) - Psi(x, y), shape (d,), and loss = Delta(t, y)."""

    normal: FloatArray
    loss: float

    def violation(self, weights: FloatArray) -> float:
        """The xi that the constraint needs: loss - w' normal."""
        return self.loss - float(inner(self.normal, weights))


@dataclass(frozen=True, eq=False)
class TrainingSet(Generic[Input, Truth, Output]):
    """A model with the n examples that it is trained on; their targets are found once.

    Parameters
    ----------
    model : the model.
    examples : pairs of input and truth, at least one.

    Raises
    ------
    ParameterError
        Where there is no example.
    """

    model: StructuredModel[Input, Truth, Output]
    examples: Sequence[tuple[Input, Truth]]

    def __post_init__(self) -> None:
        if not len(self.examples):
            raise ParameterError("there is no example to train on")

    @cached_property
    def targets(self) -> tuple[Output, ...]:
        """The examples' targets."""
        return tuple(self.model.target(x, truth) for x, truth in self.examples)

    @cached_property
    def target_losses(self) -> FloatArray:
        """Delta(t, target), shape (n,): no loss goes below that."""
        pairs = zip(self.examples, self.targets, strict=True)
        return np.array([self.model.loss(truth, target) for (_, truth), target in pairs])

    @cached_property
    def target_features(self) -> FloatArray:
        """Psi(x, target), shape (n, d).

        Raises
        ------
        ModelError
            Where the model's features differ in number, or are not finite.
        """
        pairs = zip(self.examples, self.targets, strict=True)
        features = [self.model.joint_feature(x, target) for (x, _), target in pairs]
        sizes = sorted({len(row) for row in features})
        if len(sizes) > 1:
            raise ModelError(f"examples have from {sizes[0]} to {sizes[-1]} joint features; all need the same")
        if not np.isfinite(features).all():
            example, feature = np.argwhere(~np.isfinite(features))[0]
            raise ModelError(
                f"joint feature {feature} of example {example} is {features[example][feature]}, not finite"
            )
        return np.array(features)

    def most_violated(self, example: int, weights: FloatArray) -> Constraint:
        """The constraint that `weights` violate most, as far as inference finds it; it may be the target's."""
        x, truth = self.examples[example]
        y = self.model.infer_augmented(x, truth, weights)
        found = Constraint(self.target_features[example] - self.model.joint_feature(x, y), self.model.loss(truth, y))
        target = Constraint(np.zeros_like(found.normal), float(self.target_losses[example]))
        return found if found.violation(weights) >= target.loss else target

    def hinge_losses(self, weights: FloatArray) -> FloatArray:
        """Shape (n,): max over y of w' Psi(x, y) + Delta(t, y), minus w' Psi(x, target).

        An upper bound of the prediction's loss where inference is exact. Where it is not, this is what was found.
        """
        return np.array([self.most_violated(i, weights).violation(weights) for i in range(len(self.examples))])

    def objective(self, weights: FloatArray, C: float) -> float:
        """||w||² / 2 + C / n times the sum of the hinge losses."""
        return float(inner(weights, weights) / 2 + C * self.hinge_losses(weights).mean())
