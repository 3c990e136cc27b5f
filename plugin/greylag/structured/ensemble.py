"""Several weight vectors for one structured model: what the learners of ensembles give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from greylag.ranking import FloatArray
from greylag.structured.electrostatics import mean_angle
from greylag.structured.model import Input, Output, StructuredModel, Truth


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The weights of M members, each of which predicts on its own.

    Parameters
    ----------
    weights : shape (M, d).
    epochs : passes over the examples (Coulomb), or rounds of assigning them (multiple choice).
    converged : whether the learner came to rest; False where it stopped at its limit of these.
    """

    weights: FloatArray
    epochs: int
    converged: bool

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def mean_angle(self) -> float:
        """The mean angle between two members, in degrees; 0 where there is but one."""
        return mean_angle(self.weights)

    def losses(
        self, model: StructuredModel[Input, Truth, Output], examples: Sequence[tuple[Input, Truth]]
    ) -> FloatArray:
        """Delta of each member's prediction for each of n examples, shape (M, n)."""
        found = [[model.loss(truth, model.infer(x, member)) for x, truth in examples] for member in self.weights]
        return np.array(found).reshape(len(self), len(examples))
