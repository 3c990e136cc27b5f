"""Entries by document, compared with sorting the postings."""

from __future__ import annotations

import numpy as np

from greylag.index.arrays import document_sizes, offsets
from greylag.index.transpose import transpose


def test_entries_equal_sorting_the_postings() -> None:
    rng = np.random.default_rng(3)
    occurs = rng.random((30, 12)) < 0.3  # term, document
    terms, docs = np.nonzero(occurs)
    forward_terms, forward_postings = np.empty(len(docs), np.int32), np.empty(len(docs), np.int64)
    forward_offsets = offsets(document_sizes(docs.astype(np.int32), 12))
    transpose(offsets(occurs.sum(1)), docs.astype(np.int32), forward_offsets, forward_terms, forward_postings)
    expected = np.argsort(docs, kind="stable")
    assert forward_postings.tolist() == expected.tolist()
    assert forward_terms.tolist() == terms[expected].tolist()
    assert forward_offsets.tolist() == [0, *np.cumsum(occurs.sum(0))]
