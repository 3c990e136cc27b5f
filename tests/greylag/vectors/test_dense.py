"""Vectors from arrays and functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.vectors import ArrayVectors, FunctionVectors

ROWS = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
IDS = ["d0", "d1", "d2", "d3"]


def test_rows_of_an_array_in_any_order() -> None:
    vectors = ArrayVectors(IDS, ROWS, queries={"q": ROWS[0]})
    assert vectors.knows(["d3", "x", "d0"]).tolist() == [True, False, True]
    np.testing.assert_array_equal(vectors.documents(["d3", "d0"]), ROWS[[3, 0]])
    assert vectors.documents([]).shape == (0, 3)
    np.testing.assert_array_equal(vectors.query("q", "any"), ROWS[:1])
    np.testing.assert_array_equal(ArrayVectors(IDS, ROWS, lambda text: ROWS[len(text)]).query("q", "ab"), ROWS[2:3])
    assert repr(vectors) == "ArrayVectors(4 documents, 3 dimensions)"


@pytest.mark.parametrize(("given", "used"), [("f8", "f8"), ("f4", "f4"), ("f2", "f4"), ("i8", "f4")])
def test_types(given: str, used: str) -> None:
    assert ArrayVectors(IDS, np.ones((4, 3), given)).documents(["d1"]).dtype == used


def test_a_memory_mapped_file_reads_the_rows_used(tmp_path: Path) -> None:
    rows = ROWS.copy()
    rows[2] = np.nan
    np.save(tmp_path / "v.npy", rows)
    vectors = ArrayVectors(IDS, np.load(tmp_path / "v.npy", mmap_mode="r"))
    assert isinstance(vectors.array, np.memmap)
    np.testing.assert_array_equal(vectors.documents(["d1"]), ROWS[1:2])
    with pytest.raises(ParameterError, match="a vector of the documents contains nan"):
        vectors.documents(["d1", "d2"])


@pytest.mark.parametrize(
    ("docids", "array", "message"),
    [
        (IDS, ROWS[:3], "4 docids for 3 vectors"),
        (["a", "b", "a", "c"], ROWS, "document 'a' has two vectors"),
        (IDS, ROWS[0], r"shape \(3,\)"),
        (IDS, [["a"]] * 4, "type <U1: give n x m numbers"),
    ],
)
def test_refuses_arrays_that_do_not_fit(docids, array, message):
    with pytest.raises(ParameterError, match=message):
        ArrayVectors(docids, array)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        (None, "have none for queries: give queries="),
        ({"other": ROWS[0]}, "query 'q' has no vector among the 1 in queries="),
        ({"q": [1.0, 2.0]}, r"of query 'q' have shape \(1, 2\), not \(1, 3\)"),
        (lambda text: [np.inf] * 3, "of query 'q' contains inf"),
    ],
)
def test_refuses_queries_without_a_vector(queries, message):
    with pytest.raises(ParameterError, match=message):
        ArrayVectors(IDS, ROWS, queries).query("q", "text")


def test_a_function_is_asked_once_and_tells_what_it_lacks() -> None:
    calls = []

    def look_up(docids: list[str]) -> np.ndarray:
        calls.append(docids)
        return np.array([ROWS[IDS.index(docid)] if docid in IDS else [np.nan] * 3 for docid in docids])

    vectors = FunctionVectors(look_up, queries={"q": [1, 2, 3]})
    assert vectors.knows(["d2", "x", "d1"]).tolist() == [True, False, True]
    np.testing.assert_array_equal(vectors.documents(["d1", "d2"]), ROWS[[1, 2]])
    assert calls == [["d2", "x", "d1"]]
    assert vectors.query("q", "").tolist() == [[1, 2, 3]]
    assert vectors.knows([]).shape == (0,)


@pytest.mark.parametrize("rows", [np.ones((1, 3)), np.ones(2), [["a"], ["b"]]])
def test_refuses_a_function_that_gives_no_rows(rows):
    with pytest.raises(ParameterError, match="must give one row of numbers for each"):
        FunctionVectors(lambda docids: rows).knows(["a", "b"])
