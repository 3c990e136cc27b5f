"""Pyserini's dictionaries and searchers, in the shapes that its functions return."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

from greylag.adapters import (
    PyseriniSource,
    qrels_from_pyserini,
    run_from_pyserini,
    run_to_pyserini,
    topics_from_pyserini,
)
from greylag.errors import ParameterError
from greylag.ranking import Hit, Query, Ranking
from tests.greylag.adapters.samples import runs

TOPICS = {301: {"title": "wing  flow", "description": "What flows?"}, "q-2": {"title": "cat", "description": ""}}


@pytest.mark.parametrize(("field", "first"), [("title", "wing flow"), ("description", "What flows?")])
def test_topics(field, first):
    topics = topics_from_pyserini(TOPICS, field=field)
    assert list(topics) == ["301", "q-2"]
    assert topics["301"] == first


def test_judgements_have_strings_for_grades_and_integers_for_keys():
    assert qrels_from_pyserini({301: {12: "1", "d": "0"}, "q": {"d": -2}}) == {"301": {"12": 1, "d": 0}, "q": {"d": -2}}


@settings(max_examples=50, deadline=None)
@given(run=runs())
def test_hits_there_and_back(run):
    topics = {ranking.qid: ranking.query for ranking in run.rankings}
    assert run_from_pyserini(run_to_pyserini(run), topics=topics, tag=run.tag) == run


def test_hits_of_a_batch_search():
    hits = {
        7: [SimpleNamespace(docid="a", score=2.5, raw="{}"), SimpleNamespace(docid=12, score=np.float32(1))],
        "8": [],
    }
    run = run_from_pyserini(hits)
    assert [(r.qid, r.docids, r.scores.tolist()) for r in run.rankings] == [
        ("7", ("a", "12"), [2.5, 1.0]),
        ("8", (), []),
    ]
    assert run_to_pyserini(run)["7"][0] == Hit("a", 2.5)


class Searcher:
    """As ``LuceneSearcher`` and ``FaissSearcher`` are called."""

    def search(self, query, k=10):
        return [SimpleNamespace(docid=f"{query}{rank}", score=-rank) for rank in range(k)]


def test_a_searcher_is_a_source():
    source = PyseriniSource(Searcher(), k=3)
    assert source(Query("1", "cat")) == Ranking("1", "cat", ("cat0", "cat1", "cat2"), np.array([0.0, -1, -2]))
    assert [r.qid for r in source.run({301: "cat", 302: "dog"}).rankings] == ["301", "302"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: topics_from_pyserini(TOPICS, field="narrative"),
            "topic 301 has no field 'narrative', only title, desc",
        ),
        (lambda: topics_from_pyserini({"1": "cat"}), "topic 1 has no field 'title', only str 'cat'"),
        (lambda: topics_from_pyserini(["cat"]), "is not what get_topics returns"),
        (lambda: topics_from_pyserini({1: {"title": "a"}, "1": {"title": "b"}}), "topic '1' occurs twice"),
        (lambda: qrels_from_pyserini({1: {"d": "high"}}), "the grade of document 'd' for query 1 is str 'high'"),
        (lambda: qrels_from_pyserini({1: {"d": 0.5}}), "the grade of document 'd' for query 1 is float 0.5"),
        (lambda: run_from_pyserini([Hit("a", 1.0)]), "use Ranking.from_hits"),
        (lambda: run_from_pyserini({"1": ["a"]}), "query 1: str 'a' is not a hit of Pyserini"),
        (lambda: run_from_pyserini({"1": {Hit("a", 1.0), Hit("b", 1.0)}}), "hits: set"),
        (lambda: run_from_pyserini({"1": [Hit("a", 1.0)] * 2}), "duplicate document 'a'"),
        (lambda: run_from_pyserini({"1": []}, topics={"2": "cat"}), "query '1' is not among the topics, such as '2'"),
        (lambda: PyseriniSource("index"), "str 'index' is not a searcher of Pyserini"),
        (lambda: PyseriniSource(Searcher(), k=0), "k must be an integer of at least 1, not 0"),
    ],
)
def test_refuses_what_means_something_else(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
