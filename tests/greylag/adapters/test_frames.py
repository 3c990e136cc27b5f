"""Identifiers, grades, scores and texts that adapters accept, and frames of pandas and polars."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag import read_qrels, read_run, read_topics
from greylag.adapters import qrels_to_frame, run_to_frame, topics_to_frame
from greylag.core.tables import imported
from greylag.errors import DependencyError, ParameterError
from greylag.ranking import Run
from tests.greylag.adapters.samples import QRELS, TOPICS, runs


def test_a_missing_package():
    with pytest.raises(DependencyError, match="pip install no-such-package"):
        imported("no_such_package", "no-such-package")


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


@pytest.mark.parametrize(
    "names",
    [
        ("qid", "docno", "score"),
        ("query_id", "doc_id", "score"),
        ("q_id", "doc_id", "score"),
        ("qid", "docid", "score"),
    ],
)
def test_runs_by_the_names_of_other_packages(names):
    frame = pd.DataFrame([(1, 10, 0.5), (1, 11, 0.75), (2, 10, 1)], columns=names)
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


RUN = {"qid": ["q"], "docno": ["a"], "score": [1.0]}


@pytest.mark.parametrize(
    ("read", "columns", "message"),
    [
        (read_run, {"qid": ["q"], "doc": ["a"]}, "DataFrame is no run"),
        (read_run, RUN | {"qid": [1.5]}, "a query's identifier is float 1.5"),
        (read_run, RUN | {"qid": [True]}, "a query's identifier is bool"),
        (read_run, RUN | {"score": [True]}, "the score of document 'a' is bool"),
        (read_run, RUN | {"docno": [None]}, "a document's identifier is"),
        (read_run, RUN | {"score": ["high"]}, "the score of document 'a' is str 'high'"),
        (read_run, RUN | {"score": [float("nan")]}, "score nan is not finite"),
        (read_run, {"qid": ["q"] * 2, "docno": ["a"] * 2, "score": [1, 2]}, "document 'a' occurs twice"),
        (read_topics, {"qid": ["q", "q"], "query": ["a", "b"]}, "query q has two texts, 'a' and 'b'"),
        (read_topics, {"qid": ["q"], "title": ["a"]}, "no column query or text"),
        (
            read_qrels,
            {"qid": ["q"], "docno": ["a"], "label": ["1"]},
            "the grade of document 'a' for query q is str",
        ),
        (read_qrels, {"qid": ["q"] * 2, "docno": ["a"] * 2, "label": [1, 0]}, "document 'a' is judged twice"),
    ],
)
def test_refuses_frames_that_mean_nothing_or_two_things(read, columns, message, library):
    frame = pd.DataFrame(columns) if library == "pandas" else pytest.importorskip("polars").DataFrame(columns)
    with pytest.raises(ParameterError, match=message):
        read(frame)


def test_refuses_other_libraries():
    with pytest.raises(ParameterError, match=r"library .*'spark'.*'pandas' or 'polars'"):
        topics_to_frame({}, "spark")
