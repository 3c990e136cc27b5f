"""CombMNZ."""

from __future__ import annotations

import pytest

from greylag.errors import ParameterError
from greylag.fusion import comb_mnz, comb_sum
from greylag.ranking import Ranking


def test_by_hand() -> None:
    one = Ranking("q", "tea", ("a", "b", "c"), [10.0, 5.0, 0.0])
    two = Ranking("q", "tea", ("d", "b", "a"), [-1.0, -2.0, -5.0])
    fused = comb_mnz([one, two])
    assert fused.docids == ("b", "a", "d", "c")
    assert fused.scores.tolist() == [2 * (0.5 + 0.75), 2 * 1.0, 1.0, 0.0]


def test_one_ranking_is_as_with_comb_sum() -> None:
    ranking = Ranking("q", "tea", ("a", "b", "c"), [10.0, 6.0, 0.0])
    assert comb_mnz([ranking]) == comb_sum([ranking])
    assert comb_mnz([ranking] * 3).scores.tolist() == [9.0, 9 * 0.6, 0.0]
    with pytest.raises(ParameterError, match="not of none"):
        comb_mnz([])
