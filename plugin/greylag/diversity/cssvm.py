"""An ensemble of SVM-div models as a stage: one ranking for each member, or their fusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage_model import word_coverage
from greylag.diversity.model import DiversityModel
from greylag.diversity.stage import DiversityStage
from greylag.fusion import reciprocal_rank_fusion
from greylag.index.positional import PositionalIndex
from greylag.missing_documents import rerank_known
from greylag.ranking import BoolArray, Ranking, Run
from greylag.runtime.parallel import parallel_map


@dataclass(frozen=True)
class CSSVM(DiversityStage):
    """Diversify by each of the M members of an ensemble as `SVMDiv` does, and fuse the rankings by reciprocal ranks.

    Ties of the fused scores keep the incoming order.

    Parameters
    ----------
    model : DiversityModel
        The ensemble, such as one trained by `greylag.structured.Coulomb`.
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
        If the model was trained on another collection without `transfer`, or if it needs titles that are not given.

    References
    ----------
    Schiegg, Diego and Hamprecht, Learning diverse models: the Coulomb structured support vector machine, ECCV 2016.
    """

    model: DiversityModel
    index: PositionalIndex
    _: KW_ONLY
    titles: Mapping[str, str] | None = None
    transfer: bool = False
    _make: CandidateMaker = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_make", self.model.maker(self.index, self.titles, transfer=self.transfer))

    def member_rankings(self, ranking: Ranking) -> tuple[Ranking, ...]:
        """The documents of one query as diversified by each member."""
        known = self.knows(ranking.docids)
        members = iter(self._members(ranking.select(known)))
        return tuple(
            rerank_known(ranking, known, lambda _: next(members), stage=type(self).__name__) for _ in self.model.weights
        )

    def member_runs(self, run: Run, *, n_jobs: int | None = None, tag: str = "cssvm") -> tuple[Run, ...]:
        """One run for each member.

        Parameters
        ----------
        run : Run
            The rankings to diversify.
        n_jobs : int, optional
            Number of workers; the result does not depend on it.
        tag : str, default "cssvm"
            Member m is tagged ``tag-m``, from 1.
        """
        found = list(parallel_map(self.member_rankings, run.rankings, what=f"run {tag}", n_jobs=n_jobs))
        members = range(len(self.model.weights))
        return tuple(Run(tuple(rankings[m] for rankings in found), f"{tag}-{m + 1}") for m in members)

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Which documents are in the index."""
        return self.index.knows(docids)

    def diversify(self, ranking: Ranking) -> Ranking:
        """Fuse the members' rankings."""
        fused = reciprocal_rank_fusion(self._members(ranking))
        scores = dict(zip(fused.docids, fused.scores, strict=True))
        return ranking.rescore([scores[docid] for docid in ranking.docids])

    def _members(self, ranking: Ranking) -> tuple[Ranking, ...]:
        x = self._make(ranking.head(self.depth))
        return tuple(self.move_picks(ranking, word_coverage(x, np.array(vector))) for vector in self.model.weights)
