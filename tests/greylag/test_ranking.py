"""Rankings, runs and pipelines."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.ranking import Composable, Pipeline, Query, Ranking, Run, run_step

TOPICS = {"1": "b a", "2": "c", "3": ""}


class Letters(Composable):
    """A source that ranks a query's words in alphabetical order."""

    def __call__(self, query: Query) -> Ranking:
        words = tuple(sorted(query.text.split()))
        return Ranking(query.qid, query.text, words, np.arange(len(words), 0.0, -1.0))


class Backwards(Composable):
    """A stage that turns a ranking round."""

    def __call__(self, ranking: Ranking) -> Ranking:
        return ranking.permute(range(len(ranking))[::-1])


def first(ranking: Ranking) -> Ranking:
    return ranking.head(1)


def test_stages_compose_in_any_grouping_and_with_plain_functions() -> None:
    query = Query("1", "c a b")
    assert (Letters() >> Backwards() >> first)(query).docids == ("c",)
    assert (Letters() >> (Backwards() >> first))(query).docids == ("c",)
    assert (Letters() >> first >> Backwards())(query).docids == ("a",)
    assert (first >> Backwards())(Letters()(query)).docids == ("a",)
    assert len((Letters() >> (Backwards() >> first)).steps) == 3


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_a_pipeline_runs_every_query_in_order(n_jobs: int) -> None:
    run = (Letters() >> Backwards()).run(TOPICS, n_jobs=n_jobs, tag="letters")
    assert list(run) == ["1", "2", "3"]
    assert run["1"].docids == ("b", "a")
    assert run["1"].query == "b a"
    assert len(run["3"]) == 0
    assert run.tag == "letters"
    assert run_step(Backwards(), run)["1"].docids == ("a", "b")


def test_what_is_no_step_is_refused() -> None:
    with pytest.raises(TypeError, match="int is not a step"):
        Letters() >> 3  # type: ignore[operator]
    with pytest.raises(ParameterError, match="at least one step"):
        Pipeline(())(Query("1", "a"))


def test_from_hits() -> None:
    hit = namedtuple("hit", "docid score")
    ranking = Ranking.from_hits("1", "text", [hit("x", 2.5), hit("y", 1)])
    assert ranking == Ranking("1", "text", ("x", "y"), np.array([2.5, 1.0]))
    assert ranking != Ranking("1", "text", ("x", "y"), np.array([2.5, 0.0]))


def test_sort_keeps_the_order_of_ties() -> None:
    ranking = Ranking.sort("1", "", ["a", "b", "c", "d"], [1, 3, 1, 3])
    assert ranking.docids == ("b", "d", "a", "c")
    assert ranking.rescore([0, 0, 0, 0]).docids == ranking.docids


def test_a_ranking_is_a_value() -> None:
    scores = np.array([2.0, 1.0])
    ranking = Ranking("1", "", ("a", "b"), scores)
    scores[0] = 0
    assert ranking.scores.tolist() == [2, 1]
    with pytest.raises(ValueError, match="read-only"):
        ranking.scores[0] = 0


@pytest.mark.parametrize(
    ("docids", "scores", "reason"),
    [
        (("a", "b"), [1.0], "2 documents but scores of shape"),
        (("a", "a"), [2.0, 1.0], "document 'a' is ranked twice"),
        (("a", "b"), [np.inf, 1.0], "score inf is not finite"),
        (("a", "b"), [np.nan, 1.0], "score nan is not finite"),
        (("a", "b"), [1.0, 2.0], "scores increase at rank 2"),
    ],
)
def test_bad_rankings(docids: tuple[str, ...], scores: list[float], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        Ranking("7", "", docids, np.array(scores))


def test_a_run_has_one_ranking_a_query() -> None:
    ranking = Ranking("7", "", ("a",), np.array([1.0]))
    with pytest.raises(ParameterError, match="query '7' has two rankings"):
        Run((ranking, ranking))
