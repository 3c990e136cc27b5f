"""Places that refuse: a store of counts that may not grow, and an export that belongs to another user."""

import logging
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from greylag.runtime.cache import Cache
from tests.robustness.machine import Counts, rounds
from tests.robustness.source import TEXTS, MemorySource, outcome

NOBODY = 65534
COUNTS = np.arange(4000).reshape(2, 20, 100)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no write of this process, by whatever library, make a file larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def try_limit(path: Path, size: int, *, filled: bool) -> bool:
    """Whether a store that may not grow beyond `size` finds what is right or nothing, and works again afterwards."""
    store = Cache(path)
    if filled:
        store.save(b"first", COUNTS)
    with largest_file(size):
        store.save(b"second", COUNTS + 1)
        seen = store.load(b"second")
    if seen is not None and not np.array_equal(seen, COUNTS + 1):
        return False
    again = Cache(path)
    again.save(b"third", COUNTS + 2)
    first, third = again.load(b"first"), again.load(b"third")
    return np.array_equal(third, COUNTS + 2) and (np.array_equal(first, COUNTS) if filled else first is None)


def try_another_user(place: Path, expected: list[bytes]) -> bool:
    """Whether a user who may only read an export uses it as it is, in a process of its own."""
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os._exit(outcome(MemorySource(place / "index", TEXTS, write=False).open()) != expected)
        finally:
            os._exit(2)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return ended == 0 and before == {path: path.stat().st_mtime_ns for path in place.rglob("*")}


def run(seconds: float, seed: int) -> Counts:
    """Try limits of many sizes, or all at which SQLite writes; as root also another user."""
    logging.getLogger("greylag").setLevel(logging.CRITICAL)
    counts = Counts()
    for number, place in rounds(0, seed):
        for size in range(number % 512, 90_000, 512 if seconds else 8192):
            for filled in (False, True):
                path = place / f"{size}-{filled}"
                case = partial(try_limit, path, size, filled=filled)
                counts.judge(f"store of at most {size} bytes, filled {filled}", case)
                path.unlink(missing_ok=True)
        if os.geteuid() == 0:
            place.chmod(0o755)
            export = place / "export"
            export.mkdir()
            expected = outcome(MemorySource(export / "index", TEXTS).open())
            counts.judge("another user", partial(try_another_user, export, expected))
            shutil.rmtree(export)
    return counts
