"""The base classes of diversification stages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass

from greylag.errors import ParameterError
from greylag.greedy import Gain, greedy, picked_first
from greylag.ranking import Ranking, Stage


@dataclass(frozen=True)
class DiversityStage(Stage, ABC):
    """A stage that moves `k` of the top `depth` documents to the front.

    Parameters
    ----------
    depth : int >= 1, default 100
        The candidates are the top `depth` documents.
    k : int >= 1, default 20
        Number of candidates to pick; all if there are fewer. The first picks are the same for every `k`.

    Raises
    ------
    ParameterError
        If `depth` or `k` is below 1.
    """

    _: KW_ONLY
    depth: int = 100
    k: int = 20

    def __post_init__(self) -> None:
        if self.depth < 1 or self.k < 1:
            raise ParameterError(f"depth and k must be at least 1, not {self.depth} and {self.k}")

    def move_picks(self, ranking: Ranking, gain: Gain) -> Ranking:
        """Permute a ranking: the greedy picks, then all other documents in their original order.

        Scores are n, n - 1, ..., 1. Ties go to the better rank.
        """
        return ranking.permute(picked_first(greedy(gain, self.k), len(ranking)))


@dataclass(frozen=True)
class GreedyStage(DiversityStage):
    """A stage that picks documents greedily; subclasses are frozen dataclasses that define the gain.

    Parameters
    ----------
    depth, k : int
        See `DiversityStage`.
    """

    @abstractmethod
    def gain(self, candidates: Ranking) -> Gain:
        """The gain over the candidates, none of which is picked yet."""

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank the documents of one query."""
        return self.move_picks(ranking, self.gain(ranking.head(self.depth)))
