"""Reading a shard, and damage to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greylag.errors import CollectionError
from greylag.index.invert import invert
from greylag.index.shard import Shard

TEXTS = {f"d{n}": "new york " + "city " * (n % 3) + f"w{n}x" for n in range(100)}


@pytest.fixture(scope="module")
def shard() -> Shard:
    return Shard(**invert(TEXTS))


def test_documents_and_terms_by_name(shard: Shard) -> None:
    assert [shard.docid(number) for number in range(100)] == list(TEXTS)
    assert shard.documents([b"d99", b"x", b"d0"]).tolist() == [99, -1, 0]
    numbers = shard.term_numbers([b"york", b"x", b"w7x"])
    assert [shard.term(number) for number in numbers[[0, 2]]] == ["york", "w7x"]
    assert numbers[1] == -1
    assert (shard.n_documents, shard.n_terms) == (100, 103)


def test_joint_documents_come_in_parts(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    new, york, city = shard.term_numbers([b"new", b"york", b"citi"])
    monkeypatch.setattr("greylag.index.shard._SHORTEST", 48)
    monkeypatch.setattr("greylag.index.shard._PART", 1)
    parts = list(shard.joint_documents(np.array([new, york]), 2))
    assert [len(part) for part in parts] == [48, 48, 4]
    assert np.concatenate(parts).tolist() == list(range(100))
    with_city = np.concatenate(list(shard.joint_documents(np.array([york, city]), 2))).tolist()
    assert with_city == [n for n in range(100) if n % 3]


@pytest.mark.parametrize(("place", "value"), [(3, -1), (3, 10**6), (4, 0), (4, 2**62)])
def test_names_outside_the_arrays_are_damage(shard: Shard, place: int, value: int) -> None:
    for name, use in (("docid_offsets", Shard.docid), ("term_offsets", Shard.term)):
        array = getattr(shard, name).copy()
        array[place] = value
        with pytest.raises(CollectionError, match="damaged: greylag doctor --index names the file"):
            use(replace(shard, **{name: array}), 3)
