"""Identifiers, grades, scores and texts that adapters accept, and frames of pandas and polars."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.greylag.passages.adapters.samples import QRELS, TOPICS, runs

from greylag import read_qrels, read_run, read_topics
from greylag.base import Run
from greylag.passages import qrels_to_frame, run_to_frame, topics_to_frame


@pytest.fixture(params=["pandas", "polars"])
def library(request):
    pytest.importorskip(request.param)
    return request.param


@settings(max_examples=50, deadline=None)
@given(run=runs(), topics=TOPICS, qrels=QRELS, library=st.sampled_from(["pandas", "polars"]))
def test_nothing_is_lost_on_the_way(run, topics, qrels, library):
    pytest.importorskip(library)
    assert read_run(run_to_frame(run, library)).rankings == run.rankings
    assert read_topics(topics_to_frame(topics, library)) == topics
    assert read_qrels(qrels_to_frame(qrels, library)) == qrels


def test_frames_have_pyterriers_columns_even_without_rows(library):
    assert list(run_to_frame(Run(()), library).columns) == ["qid", "query", "docno", "score", "rank"]
    assert list(topics_to_frame({}, library).columns) == ["qid", "query"]
    assert list(qrels_to_frame({}, library).columns) == ["qid", "docno", "label"]
    assert read_run(run_to_frame(Run(()), library)) == Run(())


@pytest.mark.parametrize("names", ["qid docno score", "query_id doc_id score", "q_id doc_id score", "qid docid score"])
def test_runs_by_the_names_of_other_packages(names):
    frame = pd.DataFrame([(1, 10, 0.5), (1, 11, 0.75), (2, 10, 1)], columns=names.split())
    run = read_run(frame, topics={"1": "one", "2": "two"})
    assert [(r.qid, r.query, r.docids, r.scores.tolist()) for r in run.rankings] == [
        ("1", "one", ("11", "10"), [0.75, 0.5]),
        ("2", "two", ("10",), [1.0]),
    ]


def test_the_text_of_a_hit_is_no_query_and_given_topics_come_first():
    frame = pd.DataFrame({"qid": ["1"], "docno": ["a"], "score": [1.0], "text": ["of the document"]})
    assert read_run(frame)["1"].query == ""
    assert read_run(frame, {"1": "cat"})["1"].query == read_run(frame.assign(query="dog"), {"1": "cat"})["1"].query
    assert read_run(frame.assign(query="dog"))["1"].query == "dog"
    assert read_run(frame.assign(query=[None]), {"1": "cat"})["1"].query == "cat"
