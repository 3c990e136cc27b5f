"""What learns models that diversify: weights of a `CoverageModel`, from candidates and their subtopics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from greylag.diversity.coverage_model import Candidates, CoverageModel
from greylag.evaluation import Subtopics

Example = tuple[Candidates, Subtopics]


class DiversityLearner(Protocol):
    """Learns weights of a `CoverageModel`; a frozen dataclass, whose fields are options and provenance.

    A learner that has a method ``fit_path(model, examples, grid)``, as `CuttingPlane` has, is fitted to a grid of C by
    that.
    """

    @property
    def C(self) -> float:  # noqa: N802 - the paper's symbol
        """The cost of the loss, which validation chooses."""

    def fit(self, model: CoverageModel, examples: Sequence[Example]) -> Any:
        """Learn from candidates and their subtopics; the result has `weights`, shape (d,), or (M, d) of an ensemble."""
