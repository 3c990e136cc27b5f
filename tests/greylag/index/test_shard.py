"""Reading a shard."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.index.invert import invert
from greylag.index.shard import Shard

TEXTS = {f"d{n}": "new york " + "city " * (n % 3) + f"w{n}x" for n in range(100)}


@pytest.fixture(scope="module")
def shard() -> Shard:
    return Shard(**invert(TEXTS))


def test_joint_documents_come_in_parts(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    new, york, city = shard.term_numbers([b"new", b"york", b"citi"])
    monkeypatch.setattr("greylag.index.shard._SHORTEST", 48)
    monkeypatch.setattr("greylag.index.shard._PART", 1)
    parts = list(shard.joint_documents(np.array([new, york]), 2))
    assert [len(part) for part in parts] == [48, 48, 4]
    assert np.concatenate(parts).tolist() == list(range(100))
    with_city = np.concatenate(list(shard.joint_documents(np.array([york, city]), 2))).tolist()
    assert with_city == [n for n in range(100) if n % 3]
