"""SVM-div (Yue & Joachims 2008) as a stage, and the fusion of an ensemble of such models."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np

from greylag.base import ModelError, Ranking
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage import CoverageGain
from greylag.diversity.coverage_model import word_coverage
from greylag.diversity.model import DiversityModel
from greylag.diversity.stage import DiversityStage
from greylag.evaluation import RRF, read_fields
from greylag.features import parse_feature
from greylag.index import PositionalIndex

_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class _LearnedStage(DiversityStage):
    """A stage with a trained model, and the maker of the model's input."""

    needs = frozenset({"index"})
    readers: ClassVar = {"model": DiversityModel.load, "titles": read_fields}

    model: DiversityModel
    index: PositionalIndex
    _: KW_ONLY
    titles: Mapping[str, str | Mapping[str, Any]] | None = None
    transfer: bool = False
    depth: int | None = None  # type: ignore[assignment]  # an int from __post_init__ on
    _make: CandidateMaker = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The shares of candidates that have a word depend on how many there are.
        trained = self.model.depth
        if self.depth is None:
            object.__setattr__(self, "depth", trained)
        elif self.depth != trained:
            _log.warning("the model was trained on the top %d documents, and is to diversify %d", trained, self.depth)
        super().__post_init__()
        object.__setattr__(self, "_make", self.model.maker(self.index, self.titles, transfer=self.transfer))

    @property
    def reads_query(self) -> bool:  # type: ignore[override]
        """True if one of the model's document features reads the query."""
        return any(parse_feature(text).reads_query for text in self.model.features.document_features)


@dataclass(frozen=True)
class SVMDiv(_LearnedStage):
    """Pick the documents whose words are most worth covering according to a trained model.

    The picked set y maximises w' Psi(x, y) greedily; see `greylag.diversity.coverage_model` for Psi.

    Parameters
    ----------
    model : DiversityModel
        With one weight vector.
    index, titles, transfer
        See `DiversityModel.maker`. A document that the index lacks keeps its rank.
    depth : int >= 1, optional
        The candidates are the top `depth` documents; by default as many as in training. A warning tells of others.
    k : int >= 1, default 20
        Number of candidates to pick.
    """

    learned_by = "svmdiv(preset=svmdiv2,validate=true)"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.model.weights) > 1:
            raise ModelError(
                f"the model is an ensemble of {len(self.model.weights)}: use all of it (CSSVM, --stage cssvm), or one "
                f"of its models, member=1 to {len(self.model.weights)} (model.members)"
            )

    def gain(self, candidates: Ranking) -> CoverageGain:
        """Return the gain in w' Psi."""
        return word_coverage(self._make(candidates), np.array(self.model.weights[0]))


@dataclass(frozen=True)
class CSSVM(_LearnedStage):
    """Diversify by each of the M members of an ensemble as `SVMDiv` does, and fuse the rankings by reciprocal ranks.

    Ties of the fused scores keep the incoming order. `model.members` are single models, for a ranking by each.

    Parameters
    ----------
    model : DiversityModel
        The ensemble, such as ``greylag train --model cssvm`` learns.
    index, titles, transfer, depth, k
        See `SVMDiv`.

    References
    ----------
    Schiegg, Diego and Hamprecht, Learning diverse models: the Coulomb structured support vector machine, ECCV 2016.
    """

    def diversify(self, ranking: Ranking) -> Ranking:
        """Fuse the members' rankings."""
        # Reciprocal ranks, since the members' values are on no common scale.
        x = self._make(self.candidates(ranking))  # once for all members
        coverages = (word_coverage(x, np.array(weights)) for weights in self.model.weights)
        fused = RRF()([self.move_picks(ranking, coverage) for coverage in coverages])
        scores = dict(zip(fused.docids, fused.scores, strict=True))
        return ranking.rescore([scores[docid] for docid in ranking.docids])

    def scored(self, ranking: Ranking) -> Ranking:
        """Return the top `depth` documents, as ranked."""
        assert self.depth is not None
        return self(ranking).head(self.depth)
