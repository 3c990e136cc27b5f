"""Vectors that a stage accepts, and TF-IDF vectors."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.diversity import MMR
from greylag.errors import ParameterError
from greylag.index import PositionalIndex
from greylag.manifold import ManifoldRanker
from greylag.vectors import ArrayVectors, TfidfVectors, Vectors, unit_rows, vectors_of

INDEX = PositionalIndex.from_texts({"a": "cat"})


def test_an_index_stands_for_its_tfidf_vectors() -> None:
    assert vectors_of("MMR", INDEX, None) == TfidfVectors(INDEX)
    given = ArrayVectors(["a"], [[1.0]])
    assert vectors_of("MMR", None, given) is given
    assert isinstance(given, Vectors)


@pytest.mark.parametrize("stage", [MMR, ManifoldRanker])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs an index or vectors=, and was given neither"),
        ({"index": INDEX, "vectors": TfidfVectors(INDEX)}, "and was given both"),
        ({"index": "index"}, "needs a PositionalIndex, not a str: make one with PositionalIndex.from_lucene"),
        ({"vectors": np.eye(2)}, r"not a ndarray: for an array, use ArrayVectors\(docids, array\)"),
    ],
)
def test_refuses_anything_else(stage, arguments, message):
    with pytest.raises(ParameterError, match=f"{stage.__name__} .*{message}"):
        stage(**arguments)


def test_unit_rows() -> None:
    rows = np.array([[3, 4], [0, 0], [0, -2]], dtype=np.float32)
    assert unit_rows(rows).tolist() == [[0.6, 0.8], [0, 0], [0, -1]]
    assert rows[0, 0] == 3


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-155, 1e155, 1e200, 1e307])
def test_unit_rows_of_huge_and_tiny_vectors(scale: float) -> None:
    rows = np.array([[3 * scale, -4 * scale], [0, 0], [3, 4]])
    assert unit_rows(rows) == pytest.approx(
        np.array([[0.6, -0.8], [0, 0], [0.6, 0.8]]), abs=1e-3 if scale < 1e-300 else 1e-15
    )


TEXTS = {"a": "cat dog dog", "b": "", "c": "cat hen"}


def test_are_those_of_the_index_for_documents_and_queries_alike() -> None:
    vectors = TfidfVectors(PositionalIndex.from_texts(TEXTS))
    assert vectors.knows(["c", "x"]).tolist() == [True, False]
    rows = vectors.documents(["c", "b", "a"]).toarray()
    np.testing.assert_allclose(np.square(rows).sum(axis=1), [1, 0, 1])
    np.testing.assert_array_equal(vectors.query("q", "dog cat dog unheard").toarray(), rows[2:])
    assert vectors.query("q", "unheard").nnz == 0
