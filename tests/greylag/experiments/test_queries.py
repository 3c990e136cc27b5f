"""Queries before and after reranking."""

from __future__ import annotations

import numpy as np
import pytest

from greylag import Ranking, Run
from greylag.evaluation import Scores, parse_measure
from greylag.experiments import query_changes
from greylag.experiments.queries import Place


def run(tag: str, **rankings: str) -> Run:
    made = (Ranking(qid, f"text of {qid}", tuple(ids), np.arange(len(ids), 0.0, -1.0)) for qid, ids in rankings.items())
    return Run(tuple(made), tag)


def scores(*values: float) -> Scores:
    return Scores((parse_measure("AP"),), ("q1", "q2", "q3")[: len(values)], np.array(values)[:, None], (), ())


def test_documents_with_their_moves_and_reasons() -> None:
    before, after = run("old", q1="abcd", q2="ab", unjudged="ab"), run("new", q1="caxb", q2="ab", unjudged="ba")
    qrels = {"q1": {"c": 2, "a": 0}, "q2": {"b": 1}, "q3": {"z": 1}}
    seen: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []

    def why(qid, old, new):  # type: ignore[no-untyped-def]
        seen.append((qid, tuple(old), tuple(new)))
        return [f"{qid} {docid}" for docid in new]

    by_tag = {"old": scores(0.25, 0.5, 0.0), "new": scores(1.0, 0.5, 0.0)}
    found = query_changes("caption", before, after, by_tag, qrels, top=3, why=why)
    assert (found.caption, found.measure, found.names) == ("caption", "AP", ("old", "new"))
    first, second = found.queries
    assert (first.qid, first.text, first.before, first.after, first.change) == ("q1", "text of q1", 0.25, 1.0, 0.75)
    assert first.left == (Place(1, "a", 0, "down to 2"), Place(2, "b", None, "down to 4"), Place(3, "c", 2, "up to 1"))
    assert first.right == (
        Place(1, "c", 2, "up from 3", "q1 c"),
        Place(2, "a", 0, "down from 1", "q1 a"),
        Place(3, "x", None, "was not ranked", "q1 x"),
    )
    assert [place.moved for place in second.left + second.right] == [""] * 4
    assert seen == [("q1", ("a", "b", "c"), ("c", "a", "x")), ("q2", ("a", "b"), ("a", "b"))]


def test_a_query_that_retrieves_nothing() -> None:
    def why(qid, old, new):  # type: ignore[no-untyped-def]
        raise AssertionError("nothing to explain")

    by_tag = {"old": scores(0.0), "new": scores(0.0)}
    found = query_changes("c", run("old", q1=""), run("new", q1=""), by_tag, {"q1": {"a": 1}}, why=why)
    assert (found.queries[0].left, found.queries[0].right) == ((), ())


@pytest.mark.parametrize("top", [1, 2])
def test_a_document_that_is_dropped(top: int) -> None:
    found = query_changes(
        "c", run("old", q1="ab"), run("new", q1="b"), {"old": scores(0.5), "new": scores(1.0)}, {"q1": {}}, top=top
    )
    assert found.queries[0].left[0] == Place(1, "a", None, "not ranked any more")
    assert found.queries[0].right == (Place(1, "b", None, "up from 2"),)
