"""Reciprocal rank fusion."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.fusion import reciprocal_rank_fusion
from greylag.ranking import Ranking


def ranking(docids: str, qid: str = "q") -> Ranking:
    return Ranking(qid, "tea", tuple(docids), np.arange(len(docids), 0.0, -1.0))


def test_by_hand() -> None:
    fused = reciprocal_rank_fusion([ranking("abcd"), ranking("cab"), ranking("ce")])
    expected = {
        "c": 1 / 63 + 1 / 61 + 1 / 61,
        "a": 1 / 61 + 1 / 62,
        "b": 1 / 62 + 1 / 63,
        "e": 1 / 62,
        "d": 1 / 64,
    }
    assert (fused.qid, fused.query, fused.docids) == ("q", "tea", tuple(expected))
    np.testing.assert_allclose(fused.scores, list(expected.values()), rtol=1e-15)


def test_equal_sums_go_to_the_earlier_ranking() -> None:
    assert reciprocal_rank_fusion([ranking("ab"), ranking("ba")]).docids == ("a", "b")
    assert reciprocal_rank_fusion([ranking("ba"), ranking("ab")]).docids == ("b", "a")
    assert reciprocal_rank_fusion([ranking("a"), ranking("b")]).docids == ("a", "b")


def test_sums_do_not_depend_on_the_order_of_the_rankings() -> None:
    """With a single rounding, equal sums stay equal in any order of the terms."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        rankings = [ranking("".join(rng.permutation(list("abcdefgh")))) for _ in range(4)]
        exact = {d: sum(Fraction(1 / (61 + one.docids.index(d))) for one in rankings) for d in "abcdefgh"}
        for order in permutations(rankings):
            fused = reciprocal_rank_fusion(order)
            assert dict(zip(fused.docids, fused.scores, strict=True)) == {d: float(score) for d, score in exact.items()}


def test_rankings_of_one_query() -> None:
    with pytest.raises(ParameterError, match="rankings of a single query, not of 'q', 'p'"):
        reciprocal_rank_fusion([ranking("ab"), ranking("ab", "p")])
    with pytest.raises(ParameterError, match="not of none"):
        reciprocal_rank_fusion([])
