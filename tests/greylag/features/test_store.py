"""Window counts in a SQLite file: damage, locks and places that cannot be written."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from greylag.features.store import CountStore

SHAPE = (2, 3, 4)
COUNTS = np.arange(24, dtype=np.int64).reshape(SHAPE)
KEYS = [bytes([number]) * 32 for number in range(40)]


@pytest.fixture
def store(tmp_path: Path) -> CountStore:
    store = CountStore(tmp_path / "windows.sqlite")
    for number, key in enumerate(KEYS):
        store.save(key, COUNTS + number)
    return store


def loaded(store: CountStore) -> list[np.ndarray | None]:
    """The counts of all keys, each of which is right or not there."""
    found = [store.load(key, SHAPE) for key in KEYS]
    for number, counts in enumerate(found):
        assert counts is None or (counts == COUNTS + number).all()
    return found


def edit(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database, database:
            database.executescript(statement)

    return change


def test_counts_are_found_by_their_keys(store: CountStore, caplog: pytest.LogCaptureFixture) -> None:
    assert all(counts is not None for counts in loaded(CountStore(store.path)))
    assert store.load(b"absent", SHAPE) is None
    assert CountStore(store.path.with_name("absent")).load(KEYS[0], SHAPE) is None
    assert not caplog.records


DAMAGE: dict[str, Callable[[Path], object]] = {
    "not a database": lambda path: path.write_bytes(b"not a database" * 999),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "truncated to a page": lambda path: path.write_bytes(path.read_bytes()[:4096]),
    "zeroed": lambda path: path.write_bytes(path.read_bytes()[:100] + bytes(path.stat().st_size - 100)),
    "zero counts": edit("UPDATE windows SET counts = zeroblob(length(counts))"),
    "short counts": edit("UPDATE windows SET counts = x'00'"),
    "text": edit("UPDATE windows SET counts = 'goose'"),
    "null": edit("UPDATE windows SET counts = NULL"),
    "numbers": edit("UPDATE windows SET counts = 7"),
    "other rows": edit("UPDATE windows SET counts = (SELECT max(counts) FROM windows)"),
    "other columns": edit("DROP TABLE windows; CREATE TABLE windows (key, value)"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_dropped_with_one_warning(
    store: CountStore, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    DAMAGE[damage](store.path)
    assert any(counts is None for counts in loaded(store))
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"{store.path} is damaged (")
    for number, key in enumerate(KEYS):
        store.save(key, COUNTS + number)
    assert all(counts is not None for counts in loaded(store))
    assert len(caplog.messages) == 1


def test_damage_is_found_when_counts_are_stored(store: CountStore, caplog: pytest.LogCaptureFixture) -> None:
    store.path.write_bytes(b"x" * 9999)
    store.save(KEYS[0], COUNTS)
    store.save(KEYS[0], COUNTS)
    assert len(caplog.messages) == 1
    assert store.load(KEYS[0], SHAPE) is not None


def test_any_flipped_bit_is_found_or_without_effect(store: CountStore) -> None:
    content, rng = store.path.read_bytes(), random.Random(1)
    for _ in range(60):
        at = rng.randrange(len(content))
        store.path.write_bytes(content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :])
        loaded(store)
        store.save(KEYS[0], COUNTS)
        loaded(store)


def test_a_lock_held_elsewhere_costs_milliseconds(store: CountStore, caplog: pytest.LogCaptureFixture) -> None:
    with closing(sqlite3.connect(store.path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        start = time.monotonic()
        assert loaded(store) == [None] * len(KEYS)
        store.save(KEYS[0], COUNTS)
        assert time.monotonic() - start < 0.5
    store._resume = 0.0
    assert all(counts is not None for counts in loaded(store))
    assert not caplog.records


def test_places_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "folder", tmp_path / "absent" / "windows.sqlite"):
        store = CountStore(place)
        store.save(KEYS[0], COUNTS)
        assert store.load(KEYS[0], SHAPE) is None
    assert not caplog.records


def test_a_damaged_file_that_cannot_be_deleted_is_not_used(
    store: CountStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    store.path.write_bytes(b"x" * 9999)
    assert loaded(store) == [None] * len(KEYS)
    assert len(caplog.messages) == 1
