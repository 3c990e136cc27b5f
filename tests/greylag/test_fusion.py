"""Fusion of rankings, and unions of first stages."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.fusion import (
    FUSIONS,
    Fusion,
    GivenRun,
    PooledSources,
    comb_mnz,
    comb_sum,
    fuse_runs,
    reciprocal_rank_fusion,
)
from greylag.ranking import Query, Ranking, Run

ONE = Run((Ranking("1", "tea", ("a", "b"), [2.0, 1.0]), Ranking("2", "mud", ("a",), [1.0])), "one")
TWO = Run((Ranking("1", "", ("c", "b"), [9.0, 8.0]), Ranking("3", "", ("d",), [1.0])), "two")


def ranking(docids: str) -> Ranking:
    return Ranking("q", "tea", tuple(docids), np.arange(len(docids), 0.0, -1.0))


def by_docid(fused: Ranking) -> dict[str, float]:
    return dict(zip(fused.docids, fused.scores, strict=True))


def test_reciprocal_ranks_by_hand() -> None:
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


def test_sums_of_scores_by_hand() -> None:
    one = Ranking("q", "tea", ("a", "b", "c"), [10.0, 5.0, 0.0])
    two = Ranking("q", "tea", ("d", "b", "a"), [-1.0, -2.0, -5.0])
    assert comb_sum([one, two]) == Ranking("q", "tea", ("b", "a", "d", "c"), [0.5 + 0.75, 1.0 + 0.0, 1.0, 0.0])
    assert comb_mnz([one, two]) == Ranking("q", "tea", ("b", "a", "d", "c"), [2 * (0.5 + 0.75), 2 * 1.0, 1.0, 0.0])
    assert comb_mnz([one]) == comb_sum([one])


def test_ties_go_to_the_earlier_ranking_and_equal_scores_add_nothing() -> None:
    assert reciprocal_rank_fusion([ranking("ab"), ranking("ba")]).docids == ("a", "b")
    assert reciprocal_rank_fusion([ranking("ba"), ranking("ab")]).docids == ("b", "a")
    assert reciprocal_rank_fusion([ranking("a"), ranking("b")]).docids == ("a", "b")
    assert comb_sum([Ranking("q", "", ("a", "b"), [3.0, 3.0])]).scores.tolist() == [0.0, 0.0]


def test_order_and_scale_of_the_rankings_do_not_matter() -> None:
    """With a single rounding, equal sums stay equal in any order of the terms."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        rankings = [ranking("".join(rng.permutation(list("abcdefgh")))) for _ in range(4)]
        exact = {d: sum(Fraction(1 / (61 + one.docids.index(d))) for one in rankings) for d in "abcdefgh"}
        for order in permutations(rankings):
            assert by_docid(reciprocal_rank_fusion(order)) == {d: float(score) for d, score in exact.items()}
    rankings = [Ranking.sort("q", "", list("abcdef"), rng.integers(0, 64, 6)) for _ in range(4)]
    scaled = [Ranking("q", "", r.docids, 2.0 * r.scores - 8.0) for r in rankings]
    for order in permutations(scaled):
        assert by_docid(comb_sum(order)) == by_docid(comb_sum(rankings))


@pytest.mark.parametrize("fuse", FUSIONS.values())
def test_rankings_of_one_query_are_needed(fuse: Fusion) -> None:
    with pytest.raises(ParameterError, match="not of 'q', 'p'"):
        fuse([Ranking("q", "", (), []), Ranking("p", "", (), [])])
    with pytest.raises(ParameterError, match="not of none"):
        fuse([])


def test_a_union_has_the_documents_of_all_sources() -> None:
    union = PooledSources((GivenRun(ONE), GivenRun(TWO)))
    fused = union(Query("1", "tea"))
    assert fused == reciprocal_rank_fusion([ONE["1"], Ranking("1", "tea", ("c", "b"), [9.0, 8.0])])
    assert set(fused.docids) == {"a", "b", "c"}
    assert PooledSources(union.sources, k=2)(Query("1", "tea")) == fused.head(2)
    assert union(Query("9", "none")).docids == ()
    assert [len(ranking) for ranking in union.run({"1": "tea", "2": "mud"}).values()] == [3, 1]


@pytest.mark.parametrize("method", FUSIONS)
def test_runs_with_different_queries(method: str) -> None:
    fused = fuse_runs([ONE, TWO], method)
    assert fused.tag == method
    assert {qid: (ranking.query, sorted(ranking.docids)) for qid, ranking in fused.items()} == {
        "1": ("tea", ["a", "b", "c"]),
        "2": ("mud", ["a"]),
        "3": ("", ["d"]),
    }
    assert fuse_runs([ONE, TWO], method, k=1, tag="top").rankings[0] == fused["1"].head(1)


def test_bad_arguments() -> None:
    with pytest.raises(ParameterError, match="at least one source"):
        PooledSources(())
    with pytest.raises(ParameterError, match=r"'borda'.*rrf, combsum, combmnz"):
        fuse_runs([ONE], "borda")
    with pytest.raises(ParameterError, match="k must be an integer of at least 1, not 0"):
        PooledSources((GivenRun(ONE),), k=0)
