"""Documents and terms by name and number, and damage to their tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from greylag.errors import CollectionError
from greylag.index.invert import invert
from greylag.index.shards import Shard
from greylag.index.tables import Tables

TEXTS = {f"d{n}": "new york " + "city " * (n % 3) + f"w{n}x" for n in range(100)}


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Shard(**invert(TEXTS))


def test_documents_and_terms_by_name(tables: Tables) -> None:
    assert [tables.docid(number) for number in range(100)] == list(TEXTS)
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
