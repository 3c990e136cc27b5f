"""The result of ensemble learners: several weight vectors for one structured model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from greylag.base import FloatArray
from greylag.learning import StructuredModel, task_losses
from greylag_papers.schiegg_2016.electrostatics import directions, lengths, mean_angle

PERTURBATION = 0.1  # length of the perturbations of a start relative to its own


def perturbations(weights: FloatArray, M: int, rng: np.random.Generator) -> FloatArray:
    """Draw M random vectors, shape (M, d), a tenth as long as the weights, shape (d,); of length 0.1 if these are 0."""
    reach = PERTURBATION * (float(lengths(weights)) or 1.0)
    return np.asarray(reach * directions(rng.standard_normal((M, len(weights)))))


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The weights of M members that predict independently."""

    weights: FloatArray  # shape (M, d)
    epochs: int  # passes over the examples
    converged: bool  # before the limit of epochs or rounds
    objectives: tuple[float, ...] = ()  # after each epoch, if the learner tracks it

    @property
    def mean_angle(self) -> float:
        """The mean angle between two members, in degrees; 0 for a single member."""
        return mean_angle(self.weights)

    def losses(self, model: StructuredModel[Any, Any, Any], examples: Sequence[tuple[Any, Any]]) -> FloatArray:
        """Return the task loss of the prediction of each member for each of n examples, shape (M, n)."""
        return task_losses(model, examples, self.weights)
