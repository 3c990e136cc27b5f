"""CombSUM."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.fusion import comb_sum
from greylag.ranking import Ranking


def test_by_hand() -> None:
    one = Ranking("q", "tea", ("a", "b", "c"), [10.0, 5.0, 0.0])
    two = Ranking("q", "tea", ("d", "b", "a"), [-1.0, -2.0, -5.0])
    fused = comb_sum([one, two])
    assert (fused.qid, fused.query, fused.docids) == ("q", "tea", ("b", "a", "d", "c"))
    assert fused.scores.tolist() == [0.5 + 0.75, 1.0 + 0.0, 1.0, 0.0]


def test_scale_and_order_of_the_rankings_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    rankings = [Ranking.sort("q", "", list("abcdef"), rng.integers(0, 64, 6)) for _ in range(4)]
    scaled = [Ranking("q", "", r.docids, 2.0 * r.scores - 8.0) for r in rankings]
    expected = dict(zip(comb_sum(rankings).docids, comb_sum(rankings).scores, strict=True))
    for order in permutations(scaled):
        fused = comb_sum(order)
        assert dict(zip(fused.docids, fused.scores, strict=True)) == expected


def test_equal_scores_add_nothing_and_one_query_is_needed() -> None:
    assert comb_sum([Ranking("q", "", ("a", "b"), [3.0, 3.0])]).scores.tolist() == [0.0, 0.0]
    with pytest.raises(ParameterError, match="rankings of a single query, not of 'q', 'p'"):
        comb_sum([Ranking("q", "", (), []), Ranking("p", "", (), [])])
