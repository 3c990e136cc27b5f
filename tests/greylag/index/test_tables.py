"""The arrays of an index and their helpers, compared with plain Python; documents and terms by name and number."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.errors import CollectionError
from greylag.index import analysis
from greylag.index.invert import invert
from greylag.index.shards import Shard
from greylag.index.tables import Tables, find, fingerprint, join, offsets, ranges

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


@settings(deadline=None)
@given(st.sets(st.binary(max_size=5)), st.lists(st.binary(max_size=5)), st.randoms(use_true_random=False))
def test_texts_are_found(texts: set[bytes], more: list[bytes], rng: Any) -> None:
    table, wanted = list(texts), [*texts, *more]
    rng.shuffle(table)
    order = np.array(sorted(range(len(table)), key=table.__getitem__), dtype=np.int32)
    numbers = [table.index(text) if text in texts else -1 for text in wanted]
    assert find(*join(table), order, *join(wanted)).tolist() == numbers
    ascending = sorted(table)
    numbers = [ascending.index(text) if text in texts else -1 for text in wanted]
    assert find(*join(ascending), order[:0], *join(wanted)).tolist() == numbers


NUMBERED = {f"d{n}": "new york " + "city " * (n % 3) + f"w{n}x" for n in range(100)}


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Shard(**invert(NUMBERED))


def test_documents_and_terms_by_name(tables: Tables) -> None:
    assert [tables.docid(number) for number in range(100)] == list(NUMBERED)
    assert tables.find_docids([b"d99", b"x", b"d0"]).tolist() == [99, -1, 0]
    numbers = tables.find_terms([b"york", b"x", b"w7x"])
    assert [tables.term(number) for number in numbers[[0, 2]]] == ["york", "w7x"]
    assert numbers[1] == -1
    assert (tables.n_documents, tables.n_terms) == (100, 103)


@pytest.mark.parametrize(("place", "value"), [(3, -1), (3, 10**6), (4, 0), (4, 2**62)])
def test_names_outside_the_arrays_are_damage(tables: Tables, place: int, value: int) -> None:
    for name, use in (("docid_offsets", Tables.docid), ("term_offsets", Tables.term)):
        array = getattr(tables, name).copy()
        array[place] = value
        with pytest.raises(CollectionError, match="damaged: greylag doctor --index names the file"):
            use(replace(tables, **{name: array}), 3)
