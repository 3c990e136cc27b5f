"""Runs, judgements and topics of other packages are taken wherever greylag's own are."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.refusals import refuses

from greylag import GeneralRanker, PositionalIndex, evaluate, fuse_runs, learn_fusion, read_run, read_topics, train
from greylag.base import ParameterError, Ranking, Run
from greylag.base.doors.runs import as_run
from greylag.base.doors.topics import as_topics
from greylag.index.bm25 import PositionalBM25

TEXTS = {"d1": "a cat sat", "d2": "a cat sat down", "d3": "a dog ran"}
TOPICS = {"1": "cat", "2": "dog"}
RUN = Run((Ranking("1", "cat", ("d1", "d2"), np.array([2.0, 1.0])), Ranking("2", "dog", ("d3",), np.array([1.0]))))
SCORES = {"1": {"d2": 1.0, "d1": 2.0}, "2": {"d3": 1.0}}
QRELS = {"1": {"d1": 1}, "2": {"d3": 2}}


class ScoredDoc(NamedTuple):  # as that of ir_measures
    query_id: str
    doc_id: str
    score: float


class Qrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


class Column(list[Any]):
    def to_list(self):
        return list(self)


class Frame:
    """What is asked of a data frame."""

    def __init__(self, **columns):
        self._values, self.columns = columns, list(columns)

    def __getitem__(self, name):
        return Column(self._values[name])


def of_ranx(kind, table):
    made = type(kind, (), {"to_dict": lambda _: table, "name": "theirs"})
    made.__module__ = "ranx.data_structures"
    return made()


SCORED = [ScoredDoc(qid, docid, score) for qid, of in SCORES.items() for docid, score in of.items()]
JUDGED = [Qrel(qid, docid, grade) for qid, of in QRELS.items() for docid, grade in of.items()]
RESULTS = Frame(qid=["1", "1", "2"], docid=[0, 1, 2], docno=["d2", "d1", "d3"], score=[1.0, 2.0, 1.0])


def test_a_frame_of_pyterrier_has_numbers_and_names_of_documents():
    assert as_run(RESULTS).to_dict() == SCORES
    assert [ranking.docids for ranking in as_run(RESULTS).rankings] == [("d1", "d2"), ("d3",)]


def test_integers_are_identifiers():
    scores, pairs = {1: {5: 1.0, 7: 2.0}}, {np.int64(1): [(7, 2.0), (np.int64(5), 1.0)]}
    for given in (scores, pairs):
        assert read_run(given, {1: "cat"}).rankings == (Ranking("1", "cat", ("7", "5"), np.array([2.0, 1.0])),)
        assert (
            evaluate(given, {1: {5: 1}}).by_measure == evaluate({"1": {"5": 1.0, "7": 2.0}}, {"1": {"5": 1}}).by_measure
        )
    assert fuse_runs([scores, pairs])["1"].docids == ("7", "5")
    assert fuse_runs([pairs[1], pairs[1]])["query"].docids == ("7", "5")
    assert Run.from_dict(scores, {1: "cat"})["1"].query == "cat"


def test_texts_come_with_a_frame_or_with_topics(tmp_path):
    texts = Frame(**{name: RESULTS[name] for name in RESULTS.columns}, query=["cat", "cat", "dog"])
    (tmp_path / "topics.tsv").write_text("1\tcat\n2\tdog\n")
    index = PositionalIndex.from_texts(TEXTS)
    for given in (texts, read_run(RESULTS, TOPICS), read_run(SCORES, tmp_path / "topics.tsv")):
        assert GeneralRanker(index).run(given) == GeneralRanker(index).run(RUN)
        assert str(train(given, JUDGED, index, "bm25")) == str(train(RUN, QRELS, index, "bm25"))  # type: ignore[arg-type]
    topics = Frame(qid=["1", "2"], query=["cat", "dog"])
    assert dict(as_topics(topics)) == read_topics(topics) == read_topics(TOPICS) == TOPICS
    assert PositionalBM25(index).run(topics) == PositionalBM25(index).run(TOPICS)  # type: ignore[call-overload]


def test_equal_scores_of_a_frame_go_by_rank():
    frame = Frame(qid=["1", "1", "1"], docno=["a", "b", "c"], score=[1.0, 1.0, 2.0], rank=[2, 1, 0])
    assert as_run(frame)["1"].docids == ("c", "b", "a")


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: evaluate(JUDGED, SCORED), "list run before"),
        (lambda: evaluate(of_ranx("Qrels", QRELS), of_ranx("Run", SCORES)), "Qrels run before"),
        (lambda: evaluate(QRELS, {"1": {"d1": 1.5}}), "grade whole run before"),
        (lambda: evaluate(Frame(qid=["1"], docno=["a"], label=[1]), RESULTS), "frame score"),
        (lambda: evaluate({"1": None}, QRELS), "dict run"),
        (lambda: Run.from_dict({"1": None}), "query 1 NoneType qid docid"),  # type: ignore[dict-item]
        (lambda: evaluate({1: SCORES["1"], "1": {}}, QRELS), "query '1' twice"),
        (lambda: evaluate([*SCORED, ("3", "a", 1.0)], QRELS), "[3] tuple doc_id ScoredDoc"),
        (lambda: evaluate(SCORES, [*JUDGED, None]), "[2] NoneType relevance Qrel"),
        (lambda: evaluate([ScoredDoc("1", "a", 1.0)] * 2, QRELS), "1: 'a' twice"),
        (lambda: read_run(7), "int Run"),
        (lambda: read_topics({301: {"title": "cat"}}), "dict topics_from_pyserini"),
        (lambda: read_topics([("1", "cat")]), "list path, qid"),
        (lambda: train(RUN, QRELS, None, object()), "object --model"),  # type: ignore[arg-type]
        (lambda: learn_fusion({"a": SCORES, "b": SCORED}, iter(JUDGED)), "topics"),  # type: ignore[dict-item, arg-type]
    ],
)
def test_what_is_neither_is_refused(call, parts):
    refuses(call, ParameterError, parts)
