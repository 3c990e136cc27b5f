"""Arrays from texts."""

from __future__ import annotations

import pytest

from greylag.errors import ParameterError
from greylag.index.invert import invert
from greylag.index.tables import DTYPES, fingerprint


def test_arrays_of_a_small_collection() -> None:
    arrays = invert({"2": "york, new york", "1": "new"})
    assert bytes(arrays["docids"]) == b"21"
    assert arrays["docid_offsets"].tolist() == [0, 1, 2]
    assert arrays["docid_order"].tolist() == [1, 0]
    assert arrays["document_lengths"].tolist() == [3, 1]
    assert bytes(arrays["terms"]) == b"newyork"
    assert arrays["term_offsets"].tolist() == [0, 3, 7]
    assert arrays["collection_frequencies"].tolist() == [2, 2]
    assert arrays["postings_offsets"].tolist() == [0, 2, 3]
    assert arrays["postings_docs"].tolist() == [0, 1, 0]
    assert arrays["block_places"].tolist() == [0]
    assert arrays["positions"].tolist() == [2, 0, 1, 2, 2]  # new: at 1, at 0; york: twice, at 0 and 2
    assert arrays["forward_offsets"].tolist() == [0, 3, 4]
    assert arrays["forward"].tolist() == [0, 3, 2, 0]  # new, york twice; new
    assert arrays["fingerprint"] == fingerprint(arrays)


@pytest.mark.parametrize("texts", [{}, {"1": "the"}, {"1": "goose"}])
def test_types_do_not_depend_on_the_texts(texts: dict[str, str]) -> None:
    arrays = invert(texts)
    assert {name: str(arrays[name].dtype) for name in DTYPES} == DTYPES
    assert not any(arrays[name].flags.writeable for name in DTYPES)


def test_an_empty_docid_is_refused() -> None:
    with pytest.raises(ParameterError, match="empty docid"):
        invert({"": "x"})
