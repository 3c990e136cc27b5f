"""Reading a shard."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.index.invert import invert
from greylag.index.shards import Shard

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
