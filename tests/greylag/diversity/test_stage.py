"""The base classes of diversification stages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from greylag.diversity import GreedyStage
from greylag.errors import ParameterError
from greylag.greedy import ModularGain
from greylag.ranking import Ranking


@dataclass(frozen=True)
class Backwards(GreedyStage):
    """Prefers the last candidate."""

    def gain(self, candidates: Ranking) -> ModularGain:
        return ModularGain(np.arange(len(candidates), dtype=np.float64))


RANKING = Ranking("q", "tea", tuple("abcdef"), np.array([9.0, 8.0, 7.0, 7.0, 7.0, 1.0]))


@pytest.mark.parametrize(
    ("depth", "k", "expected"), [(1, 1, "abcdef"), (4, 2, "dcabef"), (4, 9, "dcbaef"), (100, 3, "fedabc")]
)
def test_picks_come_first_and_the_rest_keeps_its_order(depth: int, k: int, expected: str) -> None:
    result = Backwards(depth=depth, k=k)(RANKING)
    assert (result.qid, result.query, "".join(result.docids)) == ("q", "tea", expected)
    assert result.scores.tolist() == [6, 5, 4, 3, 2, 1]


def test_20_of_100_candidates_are_picked_by_default() -> None:
    ranking = Ranking("q", "", tuple(map(str, range(120))), np.arange(120.0, 0.0, -1.0))
    rows = [int(docid) for docid in Backwards()(ranking).docids]
    assert rows == [*range(99, 79, -1), *range(80), *range(100, 120)]


@pytest.mark.parametrize("options", [{"k": 0}, {"depth": 0}])
def test_bad_sizes(options: dict[str, int]) -> None:
    with pytest.raises(ParameterError, match="depth and k must be at least 1"):
        Backwards(**options)
