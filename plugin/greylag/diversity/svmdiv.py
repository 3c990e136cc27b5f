"""SVM-div as a stage (Yue & Joachims 2008, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage import CoverageGain
from greylag.diversity.coverage_model import word_coverage
from greylag.diversity.model import DiversityModel
from greylag.diversity.stage import GreedyStage
from greylag.errors import ModelError
from greylag.index.positional import PositionalIndex
from greylag.ranking import BoolArray, Ranking


@dataclass(frozen=True)
class SVMDiv(GreedyStage):
    """Pick the documents whose words are most worth covering according to a trained model.

    The picked set y maximises w' Psi(x, y) greedily; see `greylag.diversity.coverage_model` for Psi.

    Parameters
    ----------
    model : DiversityModel
        A model with one weight vector.
    index : PositionalIndex
        The collection. A document that it lacks keeps its rank.
    titles : mapping, optional
        Titles by docid. Required if the model was trained with titles, ignored if not.
    transfer : bool, default False
        Whether to allow a model that was trained on another collection.
    depth, k : int
        See `greylag.diversity.DiversityStage`.

    Raises
    ------
    ModelError
        If the model is an ensemble, if it was trained on another collection without `transfer`, or if it needs titles
        that are not given.
    """

    model: DiversityModel
    index: PositionalIndex
    _: KW_ONLY
    titles: Mapping[str, str] | None = None
    transfer: bool = False
    _make: CandidateMaker = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.model.weights) > 1:
            raise ModelError(
                f"the model is an ensemble of {len(self.model.weights)}: use all of it (CSSVM, --method cssvm), or one "
                "of model.members"
            )
        object.__setattr__(self, "_make", self.model.maker(self.index, self.titles, transfer=self.transfer))

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Which documents are in the index."""
        return self.index.knows(docids)

    def gain(self, candidates: Ranking) -> CoverageGain:
        """The gain in w' Psi."""
        return word_coverage(self._make(candidates), np.array(self.model.weights[0]))
