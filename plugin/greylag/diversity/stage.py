"""The base class of diversifiers: candidates, greedy picks by a gain, and documents that a stage does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from greylag.base import (
    BoolArray,
    Gain,
    Ranking,
    Stage,
    check_counts,
    check_fractions,
    greedy_path,
    greedy_picks,
    unit_range,
)


@dataclass(frozen=True)
class DiversityStage(Stage):
    """A stage that greedily moves `k` of the top `depth` documents to the front.

    Subclasses are frozen dataclasses that define `gain`, or `diversify` and `scored` in its place. Each pick is the
    candidate of the highest gain, given the picks before it; ties go to the better rank. Unknown documents, those that
    `knows` denies, keep their ranks, and the others are ranked as if they were not there.

    Parameters
    ----------
    depth : int >= 1, default 100
        The candidates are the top `depth` documents.
    k : int >= 1, default 20
        Number of candidates to pick; all if there are fewer. The first picks are the same for every `k`.
    min_relevance : float in [0, 1], default 0
        Documents whose score, scaled to [0, 1] over the top `depth`, is lower are no candidates: they are not moved up.
    """

    reads_query = False
    diversifies = True

    _: KW_ONLY
    depth: int = 100
    k: int = 20
    min_relevance: float = 0.0

    def __post_init__(self) -> None:
        check_counts(depth=self.depth, k=self.k)
        strength = {} if self.strength is None else {self.strength: getattr(self, self.strength)}
        check_fractions(min_relevance=self.min_relevance, **strength)

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank the documents of one query."""
        return self.rerank_known(ranking, self.knows(ranking.docids), self.diversify)

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Return which documents the stage can compare, shape (len(docids),): the index's if it needs one, or all."""
        # By `needs`: an optional index beside vectors or scores does not decide.
        index = vars(self)["index"] if "index" in self.needs else None
        return np.ones(len(docids), dtype=bool) if index is None else index.knows(docids)

    def candidates(self, ranking: Ranking) -> Ranking:
        """Return the documents to pick from, best first."""
        top = ranking.head(self.depth)
        if not self.min_relevance or not len(top):
            return top
        relevance = unit_range(top.scores)
        # The best is a candidate, though equal scores are all scaled to 0.5.
        return top.head(int(np.count_nonzero(relevance >= min(self.min_relevance, relevance[0]))))

    def gain(self, candidates: Ranking) -> Gain:
        """Return the gain over the candidates; no candidate is picked yet."""
        raise NotImplementedError(f"{type(self).__name__} defines neither gain nor diversify and scored")

    def diversify(self, ranking: Ranking) -> Ranking:
        """Pick `k` of the top `depth` documents; all are known."""
        return self.move_picks(ranking, self.gain(self.candidates(ranking)))

    def scored(self, ranking: Ranking) -> Ranking:
        """Return the candidates, scored by the gain that each is picked with."""
        candidates = self.candidates(ranking)
        # All of them, not k: a feature needs a value for each.
        picked, gains = greedy_path(self.gain(candidates), len(ranking), len(candidates))
        # By rank first, so that `Ranking.sort`, which is stable, breaks ties of the gain in the incoming order.
        order = np.argsort(picked)
        return Ranking.sort(ranking.qid, ranking.query, [ranking.docids[i] for i in picked[order]], gains[order])

    def move_picks(self, ranking: Ranking, gain: Gain) -> Ranking:
        """Permute a ranking: the greedy picks, then all other documents in their original order.

        Scores are n, n - 1, ..., 1. Ties go to the better rank.
        """
        return ranking.first(greedy_picks(gain, self.k, len(self.candidates(ranking))))
