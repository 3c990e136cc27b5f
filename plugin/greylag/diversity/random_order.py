"""Random order: the baseline of any diversification method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from greylag.base import ModularGain, Ranking, check_non_negative
from greylag.diversity.stage import DiversityStage


@dataclass(frozen=True)
class RandomOrder(DiversityStage):
    """Pick documents at random; the order depends only on the seed and the qid.

    Parameters
    ----------
    seed : int >= 0, default 0
        The seed of the order.
    depth, k : int
        See `greylag.diversity.DiversityStage`.
    """

    diversifies = False  # a baseline: methods should be better than chance

    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_non_negative(seed=self.seed)

    def gain(self, candidates: Ranking) -> ModularGain:
        """Draw a random worth for each document."""
        # By qid, so that the order depends neither on the other queries of a run nor on workers.
        rng = np.random.default_rng([self.seed, *candidates.qid.encode()])
        return ModularGain(rng.random(len(candidates)))
