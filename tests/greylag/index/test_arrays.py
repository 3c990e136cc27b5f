"""The helper functions on arrays, compared with plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.errors import CollectionError
from greylag.index.arrays import (
    check_bounds,
    document_lengths,
    document_sizes,
    encode_docids,
    fingerprint,
    offsets,
    ranges,
)
from greylag.index.invert import invert

TEXTS = {"b": "new york new", "a": "york", "c": ""}


@pytest.mark.parametrize("counts", [[], [3], [0, 2, 0, 5]])
def test_offsets_are_cumulative_sums(counts: list[int]) -> None:
    found = offsets(counts)
    assert found.dtype == np.int64
    assert found.tolist() == [sum(counts[:i]) for i in range(len(counts) + 1)]


@pytest.mark.parametrize(("starts", "counts"), [([], []), ([5, 0, 9], [2, 0, 3]), ([7], [0])])
def test_ranges_are_concatenated(starts: list[int], counts: list[int]) -> None:
    expected = [number for start, count in zip(starts, counts, strict=True) for number in range(start, start + count)]
    assert ranges(np.array(starts, dtype=np.int64), np.array(counts, dtype=np.int64)).tolist() == expected


def test_docids_are_fixed_width_utf8() -> None:
    assert encode_docids(["é", "abc"]).tolist() == ["é".encode(), b"abc"]
    assert encode_docids([]).dtype == "S1"


def test_lengths_and_sizes_of_documents() -> None:
    arrays = invert(TEXTS)
    assert document_lengths(arrays["postings_docs"], arrays["postings_starts"], 3).tolist() == [3, 1, 0]
    assert document_sizes(arrays["postings_docs"], 3).tolist() == [2, 1, 0]


@pytest.mark.parametrize("values", [[-1], [0, 3], [1, -(2**40)], [2**40]])
def test_values_out_of_bounds_are_damage(values: list[int]) -> None:
    check_bounds(np.array([0, 2, 1]), 3)
    check_bounds(np.array([], dtype=np.int64), 0)
    with pytest.raises(CollectionError, match="damaged: greylag doctor --index names the file"):
        check_bounds(np.array(values), 3)


@pytest.mark.parametrize(("name", "value"), [("postings_docs", 3), ("postings_docs", -1), ("postings_starts", 99)])
def test_no_length_is_computed_from_damaged_arrays(name: str, value: int) -> None:
    arrays = {**invert(TEXTS)}
    arrays[name] = arrays[name].copy()
    arrays[name][1] = value
    with pytest.raises(CollectionError, match="damaged"):
        document_lengths(arrays["postings_docs"], arrays["postings_starts"], 3)


def test_lengths_and_sizes_are_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greylag.index.arrays._BLOCK", 1)
    test_lengths_and_sizes_of_documents()


def test_fingerprint_covers_docids_lengths_and_frequencies() -> None:
    def of(texts: dict[str, str]) -> str:
        return fingerprint(invert(texts))

    assert of(TEXTS) == of(dict(reversed(TEXTS.items())))
    others = [{**TEXTS, "c": "york"}, {**TEXTS, "d": ""}, {**TEXTS, "a": "lark"}, {**TEXTS, "a": "york york"}]
    assert len({of(texts) for texts in [TEXTS, *others]}) == 5
