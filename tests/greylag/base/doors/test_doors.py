"""What all doors have in common: nothing is an empty value, and what has no right meaning is refused.

Tests `greylag.base.core.labels`, `greylag.base.doors.groups`, `greylag.base.doors.judgements`,
`greylag.base.doors.passages`, `greylag.base.doors.runs`, `greylag.base.doors.topics` and `greylag.base.doors.vectors`.
"""

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.refusals import refuses

from greylag.base import ParameterError, Query, Run
from greylag.base.core.labels import one_each
from greylag.base.doors.groups import as_groups
from greylag.base.doors.judgements import as_qrels, as_subtopic_qrels
from greylag.base.doors.passages import Passage, as_passages, as_texts
from greylag.base.doors.runs import as_run
from greylag.base.doors.topics import as_topics
from greylag.base.doors.vectors import as_query_vectors, as_vectors

SERIES = pd.Series([1.0, 2.0], index=["a", "b"])
ROWS = np.eye(2)


@pytest.mark.parametrize(
    "nothing", [{}, [], (), pd.Series(dtype=object), iter(())], ids=lambda value: type(value).__name__
)
def test_nothing_is_empty(nothing):
    if not isinstance(nothing, pd.Series):
        assert as_run(nothing) == Run(())
        assert as_topics(nothing) == {}
        assert as_passages(nothing) == []
    if isinstance(nothing, dict):
        assert as_qrels(nothing) == as_subtopic_qrels(nothing) == as_groups(nothing, "group") == {}
    if isinstance(nothing, dict | list | pd.Series):
        assert as_vectors(nothing, []).shape[0] == 0
        assert one_each(nothing, [], "scores") == []


def test_of_several_rounds_the_highest_grade_counts():
    rounds = [ir_measures.Qrel("1", "a", grade, str(number)) for number, grade in enumerate((0, 2, 1))]
    assert as_qrels(rounds) == {"1": {"a": 2}}


def test_missing_names_are_no_groups():
    given = {"a": None, "b": "", "c": float("nan"), "d": pd.NA, "e": "x", "f": 0}
    assert as_groups(given, "group") == {"e": "x", "f": "0"}


def test_a_label_counts_and_a_place_does_not():
    assert one_each(SERIES, ["b", "a"], "scores") == [2.0, 1.0]
    assert one_each(pd.Series([1.0, 2.0], index=[1, 0]), [0, 1], "scores") == [2.0, 1.0]
    assert one_each({1: "x", "2": "y"}, ["2", "1"], "names") == ["y", "x"]
    assert one_each(pl.Series([1.0, 2.0]), ["b", "a"], "scores") == [1.0, 2.0]
    assert as_vectors(pd.DataFrame(ROWS, index=["b", "a"]), ["a", "b"]).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: as_qrels({"1": {"a": True}}), "grade 'a' bool True whole"),
        (lambda: as_qrels({"1": {"a": "1"}}), "grade 'a' str whole"),
        (lambda: as_qrels({"1": {"a": 0.5}}), "grade 'a' 0.5 before"),
        (lambda: as_qrels({"1": {"a": 2**53 + 1}}), f"grade 'a' {2**53}"),
        (lambda: as_qrels({"1": {"a": -1e99}}), f"grade 'a' -{2**53}"),
        (lambda: as_qrels({"1": SERIES / 4}), "grade 'a' 0.25"),
        (lambda: as_qrels({"1": ["a"]}), "query 1 list mapping"),
        (lambda: as_qrels({1: {}, "1": {}}), "query '1' twice"),
        (lambda: as_qrels(7), "judgements int mapping"),
        (lambda: as_subtopic_qrels({"1": ["a"]}), "query 1 list subtopic"),
        (lambda: as_subtopic_qrels({"1": {"s": {"a": 0.5}}}), "grade 'a' query 1 subtopic s"),
        (lambda: as_subtopic_qrels([]), "judgements subtopic list"),
        (lambda: as_run({1.0: {"a": 1.0}}), "query's identifier float 1.0"),
        (lambda: as_run({"1": {"a": float("nan")}}), "query 1 nan"),
        (lambda: as_run({"1": "cat"}), "dict query 1 str 'cat'"),
        (lambda: as_run({"1": {"a": 1.0}}, {"2": "cat"}), "1 queries '1' '2'"),
        (lambda: as_topics([Query("1", "cat"), Query("1", "dog")]), "query '1' twice"),
        (lambda: as_topics({"1": 5}), "topic '1' int 5 strings"),
        (lambda: as_passages({"a": 5}), "passage a int 5"),
        (lambda: as_passages([{"id": ["a"], "text": "x"}]), "id list ['a']"),
        (lambda: as_passages([("a", "x"), ("a", "y")]), "passage 'a' twice"),
        (lambda: as_passages("cat"), "passages str list"),
        (lambda: as_passages(5), "passages int 5"),
        (lambda: as_texts({"a": "x", 1.5: "y"}), "docid float 1.5"),
        (lambda: as_vectors(pd.DataFrame(ROWS), ["a", "b"]), "different identifiers to_numpy()"),
        (lambda: as_vectors(pd.DataFrame(ROWS, index=["a", "a"]), ["a", "b"]), "frame label twice"),
        (lambda: as_vectors({"a": [1.0], "c": [1.0]}, ["a", "b"]), "documents vectors different"),
        (lambda: as_vectors({"a": [1.0], "b": [1.0, 2.0]}, ["a", "b"]), "vectors lengths"),
        (lambda: as_vectors(SERIES, ["a", "b"]), "shape (2,)"),
        (lambda: as_vectors([["x"], ["y"]], ["a", "b"]), "type <U1"),
        (lambda: as_vectors(ROWS, ["a"]), "1 docids for 2"),
        (lambda: as_vectors("ab", ["a", "b"]), "vectors str sequence"),
        (lambda: as_query_vectors(ROWS), "queries mapping qid function"),
        (lambda: as_groups(["x"], "category"), "category list identifier"),
        (lambda: as_groups({"a": 1.5}, "category"), "category 'a' float 1.5"),
        (lambda: as_groups({"a": ("x", "y")}, "team"), "team 'a' tuple"),
        (lambda: one_each([1.0], ["a", "b"], "scores"), "2 passages 1 scores"),
        (lambda: one_each({"a", "b"}, ["a", "b"], "scores"), "scores set sequence"),
        (lambda: one_each(pd.Series([1.0, 2.0], index=["a", "a"]), ["a", "b"], "scores"), "passage 'a' twice"),
    ],
)
def test_what_is_refused(call, parts):
    refuses(call, ParameterError, parts)


@pytest.mark.parametrize("name", ["id", "docno", "docid", "doc_id", "_id"])
def test_an_id_has_the_names_that_columns_have(name):
    fields = {name: "a", "n": 1} if name == "_id" else {name: "a", "n": 1, "_id": 2}
    expected = [Passage("a", "x", {key: value for key, value in fields.items() if key != name})]
    assert as_passages([fields | {"text": "x"}]) == expected
    assert as_passages({"a": fields | {"text": "x"}})[0].fields == (expected[0].fields if name == "id" else fields)
