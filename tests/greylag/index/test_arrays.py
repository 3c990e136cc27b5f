"""The helper functions on arrays, compared with plain Python."""

from __future__ import annotations

import hashlib
from itertools import accumulate

import numpy as np
import pytest

from greylag.index import analysis
from greylag.index.invert import invert
from greylag.index.tables import fingerprint, join, offsets, ranges

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


def test_texts_are_joined() -> None:
    text, starts = join(["é".encode(), b"", b"abc"])
    assert bytes(text) == "éabc".encode()
    assert starts.tolist() == [0, 2, 2, 5]
    assert [part.tolist() for part in join([])] == [[], [0]]


def test_fingerprint_covers_docids_lengths_and_frequencies() -> None:
    def of(texts: dict[str, str]) -> str:
        return fingerprint(invert(texts))

    assert of(TEXTS) == of(dict(reversed(TEXTS.items())))
    others = [{**TEXTS, "c": "york"}, {**TEXTS, "d": ""}, {**TEXTS, "a": "lark"}, {**TEXTS, "a": "york york"}]
    assert len({of(texts) for texts in [TEXTS, *others]}) == 5


def plain_fingerprint(texts: dict[str, str]) -> str:
    """The definition of the fingerprint, over Python's own sets and counts."""
    tokens = {docid: [term for term, _ in analysis.tokens(text)] for docid, text in texts.items()}
    docids = sorted(texts, key=str.encode)
    width = max([1, *(len(docid.encode()) for docid in docids)])
    terms = sorted({term.encode() for words in tokens.values() for term in words})
    df = [sum(term.decode() in words for words in tokens.values()) for term in terms]
    cf = [sum(words.count(term.decode()) for words in tokens.values()) for term in terms]
    ends = [0, *accumulate(map(len, terms))]
    parts = [b"".join(docid.encode().ljust(width, b"\0") for docid in docids), [len(tokens[d]) for d in docids]]
    content = [
        part if isinstance(part, bytes) else np.array(part, dtype=np.int64).tobytes()
        for part in (*parts, b"".join(terms), ends, df, cf)
    ]
    return hashlib.sha256(b"".join(content)).hexdigest()


@pytest.mark.parametrize("texts", [{}, {"a": ""}, TEXTS, {"é-12345": "x y", "b": "y", "": "z"}])
def test_fingerprint_equals_its_definition(texts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {docid or "c": text for docid, text in texts.items()}
    assert fingerprint(invert(texts)) == plain_fingerprint(texts)
    monkeypatch.setattr("greylag.index.tables._BLOCK", 1)
    assert fingerprint(invert(texts)) == plain_fingerprint(texts)
