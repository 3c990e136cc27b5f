"""Reading a shard, and several by the collection's numbers of terms and documents."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.index.invert import invert
from greylag.index.shards import Part, Shard, locate
from tests.greylag.index.shards import from_shards

TEXTS = {f"d{n}": "new york " + "city " * (n % 3) + f"w{n}x" for n in range(100)}


@pytest.fixture(scope="module")
def shard() -> Shard:
    return Shard(**invert(TEXTS))


def test_joint_documents_come_in_parts(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    new, york, city = shard.find_terms([b"new", b"york", b"citi"])
    monkeypatch.setattr("greylag.index.shards._SHORTEST", 48)
    monkeypatch.setattr("greylag.index.shards._PART", 1)
    parts = list(shard.locate_jointly(np.array([new, york]), 2))
    assert [part.sole.tolist() for part in parts] == [[[0] * n, [1] * n] for n in (48, 48, 4)]
    with_city = np.concatenate([part.sole for part in shard.locate_jointly(np.array([york, city]), 2)], axis=1)
    assert sorted(with_city.T.tolist()) == sorted([1, 2 if n % 3 == 1 else -1] for n in range(100) if n % 3)


@pytest.mark.parametrize("numbers", [None, [0, 2, 3], [0, 1, 4]])
def test_terms_that_a_shard_lacks(numbers: list[int] | None) -> None:
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


def test_located_terms_of_several_shards() -> None:
    index = from_shards([{"a": "york new york", "b": "new"}, {}, {"c": "york"}, {"d": "city", "e": "new york"}])
    terms = np.append(index.term_numbers(["new", "york"]), -1)
    located = locate(index.parts, terms, np.array([0, 2, 4]))
    found = {
        (t, d): located.positions[located.starts[posting] : located.starts[posting + 1]].tolist()
        for (t, d), posting in np.ndenumerate(located.postings)
        if posting >= 0
    }
    assert found == {(0, 0): [1], (0, 2): [0], (1, 0): [0, 2], (1, 1): [0], (1, 2): [1]}
    own = [located.having[a:b].tolist() for a, b in zip(located.offsets[:-1], located.offsets[1:], strict=True)]
    assert own == [[0, 2], [0, 1, 2], []]
    assert located.sole.tolist() == [[1, -2, 0], [-1, 0, 1], [-2] * 3]
