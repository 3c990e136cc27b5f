"""Pyserini's dictionaries and searchers, in the shapes that its functions return."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from tests.greylag.passages.adapters.samples import Searcher, runs

from greylag.base import Hit, Query, Ranking
from greylag.passages import (
    PyseriniSource,
    qrels_from_pyserini,
    run_from_pyserini,
    run_to_pyserini,
    topics_from_pyserini,
)


def test_topics():
    topics = {301: {"title": "wing  flow", "description": "What?"}, "q-2": {"title": "cat", "description": ""}}
    assert topics_from_pyserini(topics) == {"301": "wing flow", "q-2": "cat"}
    assert topics_from_pyserini(topics, field="description") == {"301": "What?", "q-2": ""}


def test_judgements_have_strings_for_grades_and_integers_for_keys():
    assert qrels_from_pyserini({301: {12: "1", "d": "0"}, "q": {"d": -2}}) == {"301": {"12": 1, "d": 0}, "q": {"d": -2}}


@settings(max_examples=50, deadline=None)
@given(run=runs())
def test_hits_there_and_back(run):
    topics = {ranking.qid: ranking.query for ranking in run.rankings}
    assert run_from_pyserini(run_to_pyserini(run), topics=topics, tag=run.tag) == run


def test_hits_of_a_batch_search():
    found = [SimpleNamespace(docid="a", score=2.5, raw="{}"), SimpleNamespace(docid=12, score=np.float32(1))]
    run = run_from_pyserini({7: found, "8": []})
    rows = [(r.qid, r.docids, r.scores.tolist()) for r in run.rankings]
    assert rows == [("7", ("a", "12"), [2.5, 1.0]), ("8", (), [])]
    assert run_to_pyserini(run)["7"][0] == Hit("a", 2.5)


def test_a_searcher_is_a_source():
    source = PyseriniSource(Searcher(), k=3)
    assert source(Query("1", "cat")) == Ranking("1", "cat", ("cat0", "cat1", "cat2"), np.array([0.0, -1, -2]))
    assert [r.qid for r in source.run({301: "cat", 302: "dog"}).rankings] == ["301", "302"]
