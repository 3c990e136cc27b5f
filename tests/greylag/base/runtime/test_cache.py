"""Values in a SQLite file: damage, locks, places that cannot be written, and work that goes on from there.

Tests `encoding`.
"""

import io
import os
import pickle
import random
import resource
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from tests.processes import python

from greylag.base import Ranking
from greylag.base.runtime import cache
from greylag.base.runtime.cache import Cache, WorkLog, beside, is_array, resuming
from greylag.base.runtime.encoding import decode, encode
from greylag.base.runtime.parallel import keeping, parallel_map
from greylag.base.runtime.reads import Reads
from greylag.features.spec import FeatureSpec
from greylag.index.positional import PositionalIndex
from greylag.rankers import RankingModel

COUNTS = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
KEYS = [bytes([number]) * 32 for number in range(40)]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(cache, "MIN_KEPT_SECONDS", 0.0)
    monkeypatch.setattr(cache, "interruptions", [])


@pytest.fixture
def store(tmp_path):
    store = Cache(tmp_path / "windows.sqlite")
    for number, key in enumerate(KEYS):
        store.save(key, COUNTS + number)
    return store


def loaded(store):
    """The counts of all keys, each of which is right or not there."""
    counts = [store.load(key) for key in KEYS]
    assert all(c is None or (c == COUNTS + number).all() for number, c in enumerate(counts))
    return counts


def edit(statement):
    def change(path):
        with closing(sqlite3.connect(path)) as database, database:
            database.executescript(statement)

    return change


class Other(NamedTuple):
    """Not a record of greylag."""

    value: int


@pytest.mark.parametrize(
    "value",
    [
        None,
        (1, 2.5, True, "\udcff é", float("inf"), 10**30),
        {("a", 1): [b"\n\0", {1, 2}], 3: frozenset("x")},
        Ranking("q", "york", ("a", "b"), np.array([0.1, 1e-300])),
        RankingModel((FeatureSpec.parse("SD/ordered/LM-O-4"),), (0.1,), provenance={"queries": ["1"]}),
    ],
)
def test_values_come_back_as_they_were(value):
    again = decode(encode(value))
    assert again == value
    assert type(again) is type(value)


def test_records_come_back_where_their_module_is_not_loaded():
    """As in a command that goes on from what another has kept."""
    content = encode(FeatureSpec.parse("SD/ordered/LM-O-4"))
    code = f"from greylag.base.runtime.encoding import decode; print(decode({content!r}))"
    assert python("-c", code, check=True).stdout == "SD/ordered/LM-O-4\n"


def test_arrays_come_back_in_their_layout():
    sparse = decode(encode(csr_matrix(np.eye(3, 4))))
    assert (sparse.toarray() == np.eye(3, 4)).all()
    arrays = [COUNTS, np.asfortranarray(np.eye(3)), np.float32(0.1), np.zeros((0, 4)), np.array(["a"]), np.array(5)]
    for array, again in zip(arrays, decode(encode(arrays)), strict=True):
        assert (again.dtype, again.shape, again.tolist()) == (array.dtype, array.shape, array.tolist())
        assert again.flags.f_contiguous == array.flags.f_contiguous


def test_arrays_are_decoded_in_threads():
    """Python 3.11 parses NumPy's headers in one thread at a time only."""
    content = encode([np.arange(number) for number in range(200)])

    def check(_):
        return all((array == np.arange(number)).all() for number, array in enumerate(decode(content)))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(check, range(16)))


@pytest.mark.parametrize("value", [Other(1), len, object(), np.array([object()]), PositionalIndex, Path("a")])
def test_what_is_not_data_is_refused(value):
    with pytest.raises(TypeError):
        encode([value])


def archive(text, *arrays):
    file = io.BytesIO()
    np.savez(file, np.frombuffer(text.encode(), np.uint8), *arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        pickle.dumps(1),
        archive("1")[:-9],
        archive('{"array": 0}', np.arange(9.0)).replace(b"(9,)", b"(8,)"),
        archive('{"array": 0}', np.array([print], dtype=object)),
        archive('{"array": 1}', np.arange(9.0)),
        archive('{"csr": {"list": [{"list": []}, {"list": []}, {"list": [0]}, {"tuple": [1e400, 1]}]}}'),
        archive('{"record": ["os", "system", {"command": "true"}]}'),
        archive('{"record": ["greylag.base.runtime.files", "write_text", {"path": "a", "text": "b"}]}'),
        archive('{"record": ["greylag.index.positional", "PositionalIndex", {}]}'),
        archive('{"record": ["greylag.base.ranking", "np", {}]}'),
        archive('{"pickle": "x"}'),
        archive('{"list": 5}'),
    ],
)
def test_nothing_but_data_is_decoded(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (whose words are of others)
        decode(content)


def test_values_are_found_by_their_keys(store, caplog):
    assert all(counts is not None for counts in loaded(Cache(store.path)))
    assert store.load(b"absent") is None
    assert Cache(store.path.with_name("absent")).load(KEYS[0]) is None
    assert not caplog.records


def test_a_search_reads_no_other_content(tmp_path):
    kept, large = Cache(tmp_path / "kept"), bytes(1 << 22)
    for key in KEYS[::5]:
        kept.save(key, large)

    def read():
        return int(Path("/proc/self/io").read_text("ascii").split()[1])

    before = read()
    assert [kept.load(key) for key in KEYS[1::5]] == [None] * 8
    assert read() - before < len(large)


DAMAGE = {
    "not a database": lambda path: path.write_bytes(b"not a database" * 999),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "truncated to a page": lambda path: path.write_bytes(path.read_bytes()[:4096]),
    "zeroed": lambda path: path.write_bytes(path.read_bytes()[:100] + bytes(path.stat().st_size - 100)),
    "zeros": edit("UPDATE kept SET content = zeroblob(length(content))"),
    "text": edit("UPDATE kept SET content = 'goose'"),
    "null": edit("UPDATE kept SET content = NULL"),
    "other rows": edit("UPDATE kept SET content = (SELECT max(content) FROM kept)"),
    "other columns": edit("DROP TABLE kept; CREATE TABLE kept (key, value)"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_dropped_with_one_warning(store, damage, caplog):
    DAMAGE[damage](store.path)
    assert any(counts is None for counts in loaded(store))
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"{store.path} is damaged (")
    for number, key in enumerate(KEYS):
        store.save(key, COUNTS + number)
    assert all(counts is not None for counts in loaded(store))
    assert len(caplog.messages) == 1


def test_any_flipped_bit_is_found_or_without_effect(store):
    content, rng = store.path.read_bytes(), random.Random(1)
    for _ in range(60):
        at = rng.randrange(len(content))
        store.path.write_bytes(content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :])
        loaded(store)
        store.save(KEYS[0], COUNTS)
        loaded(store)


def test_a_lock_held_elsewhere_costs_milliseconds(store, monkeypatch, caplog):
    """By the seconds that SQLite may wait, at most: those of a clock depend on what else the machine does."""
    waits, connect = list[float](), sqlite3.connect

    def counted(path, timeout=5.0):
        waits.append(timeout)
        return connect(path, timeout=timeout)

    with closing(connect(store.path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(sqlite3, "connect", counted)
        assert loaded(store) == [None] * len(KEYS)
        store.save(KEYS[0], COUNTS)
        assert 0 < sum(waits) < 0.5
    store._resume = 0.0
    assert all(counts is not None for counts in loaded(store))
    assert not caplog.records


def test_places_that_cannot_be_written(tmp_path, caplog):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "folder", tmp_path / "absent" / "windows.sqlite", tmp_path / "pipe"):
        store = Cache(place)
        store.save(KEYS[0], COUNTS)
        assert store.load(KEYS[0]) is None
    assert not caplog.records


def test_results_are_found_by_what_they_depend_on(tmp_path):
    log = WorkLog(tmp_path / "log", lambda: "settings", Reads())
    assert log.save_result("/1:run a:0", (7, {}))
    assert not log.save_result("/1:run a:1", len)
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    again, other = (
        WorkLog(tmp_path / "log", lambda: "settings", Reads()),
        WorkLog(tmp_path / "log", lambda: "others", Reads()),
    )
    assert again.load_result("/1:run a:0") == (7, {})
    assert again.load_result("/1:run a:1") is None
    assert other.load_result("/1:run a:0") is None


def writable(path):
    WorkLog(path, lambda: "", Reads()).save_result("/1:squares:0", (77, {}))
    path.chmod(0o666)


def linked(path):
    path.with_name("mine").touch(mode=0o600)
    path.hardlink_to(path.with_name("mine"))


@pytest.mark.parametrize(
    "make", [lambda path: path.write_text("mine\n" * 999), os.mkfifo, Path.mkdir, writable, linked]
)
def test_a_file_that_is_not_the_users_log_is_left_alone(tmp_path, make, caplog):
    path = tmp_path / "log"
    make(path)
    with resuming(path, lambda: ""):
        assert list(parallel_map(pow, range(3), 2, what="squares")) == [0, 1, 4]
    assert path.exists()
    assert make is not linked or path.read_bytes() == b""
    assert len(caplog.messages) == 1
    with resuming(tmp_path / "absent" / "log", lambda: ""):
        assert list(parallel_map(pow, range(3), 2, what="squares")) == [0, 1, 4]
    assert len(caplog.messages) == 1


def test_work_goes_on_and_the_file_goes(tmp_path):
    path, calls = beside(tmp_path / "a.run"), []
    assert path == tmp_path / ".a.run.greylag-work"

    def work(stop):
        def call(n):
            calls.append(n)
            if n == stop:
                raise KeyboardInterrupt
            return n * n

        with resuming(path, lambda: "settings"):
            return list(parallel_map(call, range(10), what="squares"))

    with pytest.raises(KeyboardInterrupt):
        work(7)
    assert cache.interruptions == [f"kept in {path}: squares (7); the same command goes on from there"]
    with pytest.raises(KeyboardInterrupt), resuming(path, lambda: "settings"):
        raise KeyboardInterrupt
    assert cache.interruptions[1:] == [f"kept in {path}: what was done before; the same command goes on from there"]
    calls.clear()
    assert work(None) == [n * n for n in range(10)]
    assert calls == [7, 8, 9]
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_costs_what_is_kept_only(tmp_path, caplog):
    def call(number):
        if number == 15:
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, hard))
        return bytes([number]) * 1000

    def work(count):
        return list(parallel_map(call, range(count), what="bytes"))

    limits, log = resource.getrlimit(resource.RLIMIT_FSIZE), WorkLog(tmp_path / "log", lambda: "settings", Reads())
    try:
        with keeping(log):
            assert work(40) == [bytes([number]) * 1000 for number in range(40)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert log.load_result("/1:bytes:3") == (bytes([3]) * 1000, {})
    assert [line.partition(": ")[0] for line in caplog.messages] == [f"{tmp_path / 'log'} cannot be written"]
    with resuming(tmp_path / "log", lambda: "settings"):
        assert work(15) == [bytes([number]) * 1000 for number in range(15)]
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_left_to_the_output(tmp_path, caplog):
    """The first row fits; the next one finds a file that may not grow, which SQLite reports as a full disk."""
    log = WorkLog(tmp_path / "log", lambda: "settings", Reads())
    assert log.save_result("/1:bytes:0", b"x")

    class Small(sqlite3.Connection):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.execute("PRAGMA max_page_count = 4")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", Small)
        assert not log.save_result("/1:bytes:1", b"x" * 100_000)
    assert not log.path.exists()
    assert not log.save_result("/1:bytes:2", b"x")
    assert log.summary() == ""
    assert [line.partition(" was ")[2].partition(":")[0] for line in caplog.messages] == [
        "removed, as the disk is full"
    ]


def test_short_work_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MIN_KEPT_SECONDS", 60.0)

    def work():
        with resuming(tmp_path / "log", lambda: pytest.fail("inputs are digested")):
            list(parallel_map(int, range(10), what="numbers"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert list(tmp_path.iterdir()) == []
    assert cache.interruptions == ["nothing is kept, as there was less than a second's work"]


def test_an_error_says_what_is_kept(tmp_path, caplog):
    caplog.set_level("INFO", "greylag")
    with pytest.raises(ValueError, match="'x'"), resuming(tmp_path / "log", lambda: ""):
        list(parallel_map(int, [*range(10), "x"], what="numbers"))
    assert caplog.messages == [f"kept in {tmp_path / 'log'}: numbers (10); the same command goes on from there"]


def test_what_a_file_holds_is_checked():
    right = [np.ones((2, 3)), np.zeros((2, 7)), np.empty((2, 0))]
    wrong = [
        *(np.ones(shape) for shape in ((3, 3), 2, (2, 3, 1))),
        *(np.full((2, 3), number) for number in (1.5, -0.5, np.nan)),
        np.ones((2, 3), dtype=np.float32),
        np.ones((2, 3), dtype=">f8"),
        np.ones((3, 2)).T,
        [[1.0, 1.0]] * 2,
    ]
    assert all(is_array(value, "float64", (2, None), 0, 1) for value in right)
    assert not any(is_array(value, "float64", (2, None), 0, 1) for value in wrong)
