"""TF-IDF vectors of documents and queries."""

from __future__ import annotations

import numpy as np

from greylag.index import PositionalIndex
from greylag.vectors import TfidfVectors

TEXTS = {"a": "cat dog dog", "b": "", "c": "cat hen"}


def test_are_those_of_the_index_for_documents_and_queries_alike() -> None:
    vectors = TfidfVectors(PositionalIndex.from_texts(TEXTS))
    assert vectors.knows(["c", "x"]).tolist() == [True, False]
    rows = vectors.documents(["c", "b", "a"]).toarray()
    np.testing.assert_allclose(np.square(rows).sum(axis=1), [1, 0, 1])
    np.testing.assert_array_equal(vectors.query("q", "dog cat dog unheard").toarray(), rows[2:])
    assert vectors.query("q", "unheard").nnz == 0
