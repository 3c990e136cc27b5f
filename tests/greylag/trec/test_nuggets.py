"""Judgements by nugget in JSON lines: FreshStack, the nuggetizer and CRUX."""

import json
from pathlib import Path
from typing import Any

import pytest

from greylag.errors import FormatError
from greylag.evaluation import evaluate_by_subtopic
from greylag.ranking import Ranking, Run
from greylag.trec import SubtopicQrels, read_subtopic_qrels


def nugget(name: str, relevant: list[str], others: list[str]) -> dict[str, Any]:
    return {"_id": name, "text": "a fact", "relevant_corpus_ids": relevant, "non_relevant_corpus_ids": others}


FRESHSTACK = [
    {"query_id": 7, "query_title": "geese", "query_text": "why in a wedge?", "nuggets": [nugget("7_0", ["a"], ["b"])]},
    {"query_id": "8", "nuggets": [nugget("8_0", [], ["a"]), nugget("8_1", [], []), nugget("8_2", ["c d"], [])]},
    {"query_id": "9", "nuggets": []},
]
ASSIGNED = [
    {"qid": "7", "docid": docid, "text": "geese", "nuggets": [{"text": "drag", "assignment": drag}, *others]}
    for docid, drag, others in (
        ("a", "support", [{"text": "sight", "importance": "okay", "assignment": "partial_support"}]),
        ("b", "not_support", []),
    )
]
RATED = [
    {"id": "7", "docid": "a", "rating": [5, 2]},
    {"example_id": "7", "pid": "b", "rating": [0, 3]},
]
BAD: list[tuple[list[dict[str, Any]], int, str]] = [
    ([{"id": "7", "contents": "a text"}], 1, "neither a query of FreshStack"),
    ([{"query_id": "7"}], 1, "nuggets is None: it must be a list of dict"),
    ([{"query_id": True, "nuggets": []}], 1, "query_id is True: it must be a string or an integer"),
    ([{"query_id": "7", "nuggets": [nugget("", [], [])]}], 1, "_id is ''"),
    ([{"query_id": "7", "nuggets": [nugget("n", ["a"], []), nugget("n", ["b"], [])]}], 1, "two nuggets of one _id"),
    ([{"query_id": "7", "nuggets": [{"_id": "n", "relevant_corpus_ids": "a", "non_relevant_corpus_ids": []}]}], 1,
     "relevant_corpus_ids is 'a': it must be a list of str"),
    ([*FRESHSTACK, {"query_id": "10", "nuggets": [nugget("n", ["a"], ["a"])]}], 4, "document 'a' is judged twice"),
    ([{"qid": "7", "nuggets": [{"text": "drag", "assignment": "support"}]}], 1, "not assigned to a document"),
    ([{"qid": "7", "docid": "a", "nuggets": [{"text": "drag", "importance": "vital"}]}], 1, "not assigned to a docu"),
    ([{"qid": "7", "docid": "a", "nuggets": [{"text": "drag", "assignment": "failed"}]}], 1, "assignment 'failed'"),
    ([*ASSIGNED, ASSIGNED[0]], 3, "document 'a' is judged twice for query '7' and subtopic 'drag'"),
    ([*RATED, {"id": "7", "docid": "c", "rating": [1]}], 3, "1 ratings, but 2 for other documents of query '7'"),
    ([{"id": "7", "docid": "c", "rating": [6]}], 1, "rating 6 is not from 0 to 5"),
    ([{"id": "7", "docid": "c", "rating": [4.5]}], 1, "rating is .* list of int"),
]  # fmt: skip


def read(tmp_path: Path, records: list[dict[str, Any]], *, lenient: bool = False) -> SubtopicQrels:
    path = tmp_path / "nuggets.jsonl"
    path.write_text("\n" + "".join(json.dumps(record) + "\n" for record in records))
    return read_subtopic_qrels(path, lenient=lenient)


def test_the_three_forms(tmp_path: Path) -> None:
    assert read(tmp_path, FRESHSTACK) == {
        "7": {"7_0": {"b": 0, "a": 1}},
        "8": {"8_0": {"a": 0}, "8_1": {}, "8_2": {"c d": 1}},
        "9": {},
    }
    assert read(tmp_path, ASSIGNED) == {"7": {"drag": {"a": 2, "b": 0}, "sight": {"a": 1}}}
    assert read(tmp_path, RATED) == {"7": {"1": {"a": 5, "b": 0}, "2": {"a": 0, "b": 3}}}


@pytest.mark.parametrize(("records", "line", "reason"), BAD)
def test_faults(records: list[dict[str, Any]], line: int, reason: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=rf"nuggets.jsonl:{line + 1}: .*{reason}"):
        read(tmp_path, records)


def test_lenient_reading_takes_the_judgement_that_freshstack_takes(tmp_path: Path) -> None:
    twice = [{"query_id": "7", "nuggets": [nugget("n", ["a", "b"], ["a"])]}]
    assert read(tmp_path, twice, lenient=True) == {"7": {"n": {"a": 0, "b": 1}}}


def test_scores_are_those_of_the_same_judgements_in_columns(tmp_path: Path) -> None:
    """alpha-nDCG and S-recall by nuggets as in TREC's format, where names have no white space."""
    columns = tmp_path / "qrels"
    columns.write_text("7 1 a 5\n7 1 b 0\n7 2 a 0\n7 2 b 3\n")
    run = Run((Ranking("7", "", ("x", "b", "a"), [3.0, 2.0, 1.0]),))
    measures = ["alpha-nDCG@10", "S-recall@2", "nDCG@10"]
    found = [
        evaluate_by_subtopic(run, qrels, measures).by_measure
        for qrels in (read(tmp_path, RATED), read_subtopic_qrels(columns))
    ]
    assert found[0] == found[1]
    assert found[0]["S-recall@2"] == 0.5
