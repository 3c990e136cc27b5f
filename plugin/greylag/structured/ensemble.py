"""The result of ensemble learners: several weight vectors for one structured model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from greylag.ranking import FloatArray
from greylag.structured.electrostatics import mean_angle
from greylag.structured.model import Input, Output, StructuredModel, Truth


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The weights of M members that predict independently.

    Parameters
    ----------
    weights : array, shape (M, d)
        One weight vector for each member.
    epochs : int
        Passes over the examples (`Coulomb`) or rounds of assignment (`MultipleChoice`).
    converged : bool
        Whether the learner converged before its limit of epochs or rounds.
    """

    weights: FloatArray
    epochs: int
    converged: bool

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def mean_angle(self) -> float:
        """The mean angle between two members, in degrees; 0 for a single member."""
        return mean_angle(self.weights)

    def losses(
        self, model: StructuredModel[Input, Truth, Output], examples: Sequence[tuple[Input, Truth]]
    ) -> FloatArray:
        """The loss of the prediction of each member for each of n examples, shape (M, n)."""
        found = [[model.loss(truth, model.infer(x, member)) for x, truth in examples] for member in self.weights]
        return np.array(found).reshape(len(self), len(examples))
