"""Rankings, runs and pipelines.

Tests `pipeline`.
"""

from collections import namedtuple

import numpy as np
import pandas as pd
import pytest
from tests.refusals import refuses

from greylag.base import ParameterError, Pipeline, Query, Ranking, Run, Stage
from greylag.base.doors.judgements import as_qrels
from greylag.base.doors.runs import as_run
from greylag.base.pipeline import Source, run_step
from greylag.base.ranking import SEEN, marked

TOPICS = {"1": "b a", "2": "c", "3": ""}


class Letters(Source):
    """Ranks the words of a query in alphabetical order."""

    def __call__(self, query, /):
        words = tuple(sorted(query.text.split()))
        return Ranking(query.qid, query.text, words, np.arange(len(words), 0.0, -1.0))


class Backwards(Stage):
    """Reverses a ranking."""

    def __call__(self, ranking, /):
        return ranking.permute(range(len(ranking))[::-1])


def first(ranking):
    return ranking.head(1)


def test_stages_compose_in_any_grouping_and_with_plain_functions():
    query = Query("1", "c a b")
    assert (Letters() >> Backwards() >> first)(query).docids == ("c",)
    assert (Letters() >> (Backwards() >> first))(query).docids == ("c",)
    assert (Letters() >> first >> Backwards())(query).docids == ("a",)
    assert (first >> Backwards())(Letters()(query)).docids == ("a",)
    assert len((Letters() >> (Backwards() >> first)).steps) == 3


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_a_pipeline_runs_all_queries_in_order(n_jobs):
    run = (Letters() >> Backwards()).run(TOPICS, n_jobs=n_jobs, tag="letters")
    assert list(run) == ["1", "2", "3"]
    assert run["1"].docids == ("b", "a")
    assert run["1"].query == "b a"
    assert len(run["3"]) == 0
    assert run.tag == "letters"
    assert run_step(Backwards(), run)["1"].docids == ("a", "b")


def test_from_hits():
    hit = namedtuple("hit", "docid score")
    ranking = Ranking.from_hits("1", "text", [hit("x", 2.5), hit("y", 1)])
    assert ranking == Ranking("1", "text", ("x", "y"), np.array([2.5, 1.0]))
    assert ranking != Ranking("1", "text", ("x", "y"), np.array([2.5, 0.0]))


def test_sorting_keeps_the_order_of_ties():
    ranking = Ranking.sort("1", "", ["a", "b", "c", "d"], [1, 3, 1, 3])
    assert ranking.docids == ("b", "d", "a", "c")
    assert ranking.rescore([0, 0, 0, 0]).docids is ranking.docids
    for scores in ([3, 3, 1, 1], [3, 1, 1, 2]):
        order = sorted(range(4), key=lambda place: -scores[place])
        again = Ranking.sort("1", "", ranking.docids, scores)
        assert again == Ranking("1", "", tuple(ranking.docids[place] for place in order), np.sort(scores)[::-1])


def test_a_ranking_is_a_value():
    scores = np.array([2.0, 1.0])
    ranking = Ranking("1", "", ("a", "b"), scores)
    scores[0] = 0
    assert ranking.scores.tolist() == [2, 1]
    with pytest.raises(ValueError, match="read-only"):
        ranking.scores[0] = 0
    with pytest.raises(TypeError):
        Letters() >> 3


def careless(ranking):
    return [1]


ONE = Ranking("1", "", ("a", "b", "c"), [3.0, 2, 1])


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: ONE.rescore(ONE.scores[:2]), "query 1|3"),
        (lambda: ONE.rescore([4.0, 3, 2, 1]), "query 1|3"),
        (lambda: ONE.rescore([1.0, np.nan, 2]), "query 1|nan"),
        (lambda: ONE.rescore([[1.0], [2.0], [3.0]]), "query 1|list [1.0]"),
        (lambda: ONE.rescore({"a": 1, "b": 2}), "scores: dict"),
        (lambda: ONE.permute([0, 1]), "query 1|3"),
        (lambda: ONE.permute([-1, 0, 1]), "query 1|3"),
        (lambda: ONE.permute([0, 0, 1]), "query 1|3"),
        (lambda: ONE.permute([0, 1, 3]), "query 1|3"),
        (lambda: ONE.permute({1, 0}), "order: set"),
        (lambda: ONE.head(-1), "query 1|-1"),
        (lambda: ONE.first({1, 0}), "picked: set"),
        (lambda: ONE.first([0, 0]), "query 1|3"),
        (lambda: ONE.first([-1]), "query 1|3"),
        (lambda: ONE.first([3]), "query 1|3"),
        (lambda: ONE.select(np.array([1, 0, 1])), "query 1|bool"),
        (lambda: ONE.select([True, False]), "query 1|bool"),
        (lambda: ONE.select({"a": True}), "chosen: dict"),
        (lambda: Ranking("7", "", ("a", "b"), {"a": 2.0, "b": 1.0}), "scores: dict"),
        (lambda: Ranking("7", "", ("a", "b"), [1.0]), "query 7|2|(1,)"),
        (lambda: Ranking("7", "", ("a", "a"), [2.0, 1.0]), "query 7|'a'"),
        (lambda: Ranking("7", "", ("a", "b"), [np.inf, 1.0]), "query 7|inf"),
        (lambda: Ranking("7", "", ("a", "b"), [np.nan, 1.0]), "query 7|nan"),
        (lambda: Ranking("7", "", ("a", "b"), [1.0, 2.0]), "query 7|rank 2"),
        (lambda: Ranking("7", "", {"a", "b"}, [2, 1]), "docids: set"),
        (lambda: Ranking("7", "", "ab", [2, 1]), "docids: str 'ab'"),
        (lambda: Ranking.sort("1", "", ["a", "b", "c"], [1.0, 2.0]), "query 1|3|(2,)"),
        (lambda: Ranking.sort("7", "", {"a": 1, "b": 2}, [2, 1]), "docids: dict"),
        (lambda: Ranking.from_hits("7", "", {("a", 1.0), ("b", 1.0)}), "hits: set"),
        (lambda: Ranking.from_hits("7", "", [("a", np.bool_(True))]), "query 7|docid"),
        (lambda: Run((ONE,)).select_queries("7"), "qids: str '7'"),
        (lambda: Pipeline(())(Query("1", "a")), "at least one step"),
        (lambda: (Letters() >> careless >> Backwards())(Query("1", "a")), "careless|list"),
        (lambda: (Letters() >> (lambda ranking: None))(Query("1", "a")), "<lambda>|NoneType"),
    ],
)
def test_refused(call, parts):
    refuses(call, ParameterError, parts, "|")


NO_NUMBERS = "5", b"5", True, np.True_, np.str_("5"), 1j, np.timedelta64(5), None, [5.0], 10**400, float("nan")


@pytest.mark.parametrize("score", NO_NUMBERS, ids=repr)
def test_scores_and_grades_that_are_no_numbers_are_refused_at_every_entry(score):
    for call in (
        lambda: Ranking("7", "", ("a", "b"), [2.0, score]),
        lambda: Ranking.sort("7", "", ["a", "b"], [2.0, score]),
        lambda: Ranking.sort("7", "", ["a", "b"], np.array([2.0, score], dtype=object)),
        lambda: Run.from_dict({"7": {"a": 2.0, "b": score}}),
        lambda: as_run({"7": [("a", 2.0), ("b", score)]}),
        lambda: as_run({"7": pd.Series({"a": 2.0, "b": score}, dtype=object)}),
        lambda: as_qrels({"7": {"a": 2, "b": score}}),
    ):
        refuses(call, ParameterError, "query 7|", "|")


def test_the_mark_of_training_topics_is_written_once():
    assert marked("a", "b") == "a"
    assert marked("a", f"b{SEEN}") == marked(f"a{SEEN}", f"b{SEEN}") == f"a{SEEN}"


def test_some_queries_of_a_run_in_its_order():
    run = Letters().run({"3": "ab", "1": "c", "2": "d"}, tag="letters")
    assert run.select_queries(["2", "3", "none"]) == Run((run["3"], run["2"]), "letters")


def test_integer_qids_become_strings():
    assert list(Letters().run({301: "a", np.int64(302): "b"})) == ["301", "302"]


def test_first():
    ranking = Ranking("1", "", tuple("abcde"), [5, 4, 3, 2, 2])
    assert ranking.first(np.array([3, 1])) == Ranking("1", "", tuple("dbace"), [5, 4, 3, 2, 1])
    assert ranking.first([]).docids == ranking.docids
