"""Arrays of an index and of its shards, compared with plain Python."""

import hashlib
from dataclasses import replace
from itertools import accumulate, chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from greylag.base import CollectionError
from greylag.index import analysis
from greylag.index.invert import invert
from greylag.index.shards import Part, Shard
from greylag.index.tables import DTYPES, drop_empty_columns, find, fingerprint, join, numbered, offsets
from tests.greylag.index.samples import from_shards

TEXTS = {"b": "new york new", "a": "york", "c": ""}


def plain_fingerprint(texts):
    """The definition of the fingerprint, over Python's own sets and counts."""
    tokens = {docid: analysis.analyze(text) for docid, text in texts.items()}
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
def test_fingerprint_equals_its_definition(texts, monkeypatch):
    texts = {docid or "c": text for docid, text in texts.items()}
    assert fingerprint(invert(texts)) == plain_fingerprint(texts)
    monkeypatch.setattr("greylag.index.tables._BLOCK_DOCUMENTS", 1)
    assert fingerprint(invert(texts)) == plain_fingerprint(texts)


@settings(deadline=None)
@given(st.sets(st.binary(max_size=5)), st.lists(st.binary(max_size=5)), st.randoms(use_true_random=False))
def test_texts_are_found(texts, more, rng):
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
def tables():
    return Shard(**invert(NUMBERED))


@pytest.mark.parametrize(("place", "value"), [(3, -1), (3, 10**6), (4, 0), (4, 2**62)])
def test_names_outside_the_arrays_are_damage(tables, place, value):
    uses = {
        "docid_offsets": lambda tables: tables.docids_of(np.array([3])),
        "term_offsets": lambda tables: tables.terms_of(np.array([3])),
    }
    for name, use in uses.items():
        array = getattr(tables, name).copy()
        array[place] = value
        with pytest.raises(CollectionError, match="greylag doctor --index"):
            use(replace(tables, **{name: array}))


def test_arrays_of_a_small_collection():
    arrays = invert({"2": "york, new york", "1": "new"})
    assert (bytes(arrays.pop("docids")), bytes(arrays.pop("terms"))) == (b"21", b"newyork")
    assert arrays.pop("fingerprint") == fingerprint(invert({"1": "new", "2": "york new york"}))
    assert {name: array.tolist() for name, array in arrays.items()} == {
        "docid_offsets": [0, 1, 2], "docid_order": [1, 0], "document_lengths": [3, 1], "term_offsets": [0, 3, 7],
        "collection_frequencies": [2, 2], "postings_offsets": [0, 2, 3], "postings_docs": [0, 1, 0],
        "block_places": [0], "positions": [2, 0, 1, 2, 2],  # new: at 1, at 0; york: twice, at 0 and 2
        "forward_offsets": [0, 3, 4], "forward": [0, 3, 2, 0],  # new, york twice; new
    }  # fmt: skip


@pytest.mark.parametrize("texts", [{}, {"1": "the"}, {"1": "goose"}])
def test_types_do_not_depend_on_the_texts(texts):
    arrays = invert(texts)
    assert {name: str(arrays[name].dtype) for name in DTYPES} == DTYPES
    assert not any(arrays[name].flags.writeable for name in DTYPES)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, -2.0]), min_size=130, max_size=130), min_size=1, max_size=3))
def test_empty_columns_are_dropped(rows):
    dense = np.array(rows)
    found = drop_empty_columns(csr_matrix(dense))
    kept = dense[:, (dense != 0).any(axis=0)]
    assert found.toarray().tolist() == (kept if kept.shape[1] else np.zeros((len(rows), 1))).tolist()


def test_joint_documents_come_in_parts(tables, monkeypatch):
    new, york, city = tables.find_terms([b"new", b"york", b"citi"])
    monkeypatch.setattr("greylag.index.shards._MIN_SCANNED", 48)
    monkeypatch.setattr("greylag.index.shards._BLOCK_DOCUMENTS", 1)
    parts = list(tables.locate_jointly(np.array([new, york]), 2))
    assert [part.sole.tolist() for part in parts] == [[[0] * n, [1] * n] for n in (48, 48, 4)]
    with_city = np.concatenate([part.sole for part in tables.locate_jointly(np.array([york, city]), 2)], axis=1)
    assert sorted(with_city.T.tolist()) == sorted([1, 2 if n % 3 == 1 else -1] for n in range(100) if n % 3)


@pytest.mark.parametrize("numbers", [None, [0, 2, 3], [0, 1, 4]])
def test_terms_that_a_shard_lacks(numbers):
    shard = Shard(**invert({"1": "apple city york"}))
    part = Part(shard, 5, None if numbers is None else np.array(numbers, np.int32))
    asked = np.array([[-2, -1, 0], [2, 3, 1]])
    found = part.shard_terms(asked)
    if numbers is None:
        assert found.tolist() == asked.tolist()
    else:
        own = [[numbers.index(term) if term in numbers else min(term, -1) for term in row] for row in asked.tolist()]
        assert found.tolist() == own
    assert part.has(np.array([-1, 4, 5, 6])).tolist() == [False, False, True, False]


def test_located_terms_of_several_shards():
    index = from_shards([{"a": "york new york", "b": "new"}, {}, {"c": "york"}, {"d": "city", "e": "new york"}])
    terms = np.append(index.term_numbers(["new", "york"]), -1)
    located = index.parts.locate(terms, np.array([0, 2, 4]))
    found = {
        (t, d): located.positions[located.starts[posting] : located.starts[posting + 1]].tolist()
        for (t, d), posting in np.ndenumerate(located.postings)
        if posting >= 0
    }
    assert found == {(0, 0): [1], (0, 2): [0], (1, 0): [0, 2], (1, 1): [0], (1, 2): [1]}
    own = [located.having[a:b].tolist() for a, b in zip(located.offsets[:-1], located.offsets[1:], strict=True)]
    assert own == [[0, 2], [0, 1, 2], []]
    assert located.sole.tolist() == [[1, -2, 0], [-1, 0, 1], [-2] * 3]


@given(st.lists(st.lists(st.integers(0, 40).map(lambda n: 64 * n))), st.randoms())
def test_different_entries_are_told_apart_by_more_than_their_last_bits(rows, random):
    """Also where the rows are not in their order in the array."""
    order = random.sample(range(len(rows)), len(rows))
    ends = offsets([len(rows[row]) for row in order])
    entries = np.array([*chain.from_iterable(rows[row] for row in order)], dtype=np.int32)
    places = np.argsort(order)
    different, numbers = numbered(64 * 41, np.array([ends[places], ends[places + 1]]), entries)
    in_order = [*chain.from_iterable(rows)]
    assert different.tolist() == [*dict.fromkeys(in_order)]
    assert different[numbers].tolist() == in_order
