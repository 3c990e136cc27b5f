"""Unions of first stages."""

from __future__ import annotations

import pytest

from greylag.errors import ParameterError
from greylag.fusion import FUSIONS, GivenRun, Union, fuse_runs, reciprocal_rank_fusion
from greylag.ranking import Query, Ranking, Run

ONE = Run((Ranking("1", "tea", ("a", "b"), [2.0, 1.0]), Ranking("2", "mud", ("a",), [1.0])), "one")
TWO = Run((Ranking("1", "", ("c", "b"), [9.0, 8.0]), Ranking("3", "", ("d",), [1.0])), "two")


def test_a_union_has_the_documents_of_all_sources() -> None:
    union = Union((GivenRun(ONE), GivenRun(TWO)))
    found = union(Query("1", "tea"))
    assert found == reciprocal_rank_fusion([ONE["1"], Ranking("1", "tea", ("c", "b"), [9.0, 8.0])])
    assert set(found.docids) == {"a", "b", "c"}
    assert Union(union.sources, k=2)(Query("1", "tea")) == found.head(2)
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
        Union(())
    with pytest.raises(ParameterError, match="unknown method 'borda' of fusion: use rrf, combsum, combmnz"):
        fuse_runs([ONE], "borda")
    with pytest.raises(ParameterError, match="k is 0"):
        Union((GivenRun(ONE),), k=0)
