"""What the benchmarks share: a row of the report, timing, and collections."""

import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("GREYLAG_DATA", Path(__file__).parents[3] / "shared" / "data"))
FULL = bool(os.environ.get("FULL"))
"""Whether to measure at sizes that take longer than a quarter of an hour in all."""

PINNED = "-r tests/interop-requirements.txt -r plugin/benchmarks/requirements.txt"
"""Where the versions of peers are."""


@dataclass(frozen=True)
class Row:
    """A figure: what it is, its value and unit, and what it should be ("" where it is for information)."""

    name: str
    value: float
    unit: str
    aim: str = ""


def seconds(work: Callable[[], Any], repeats: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """The median time of `work`, after one call that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return statistics.median(times)


def cpu_seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """The median CPU time of this thread for `work`, after one call that is not counted.

    Other processes disturb it less than `seconds`. Java's compiler and garbage collector have threads of their own.
    """
    return seconds(work, repeats, time.thread_time)


def once(work: Callable[[], Any]) -> float:
    """The time of a single call of `work`."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def installed(*packages: str) -> bool:
    """Whether packages are installed; the terminal names those that are not."""
    missing = [name for name in packages if importlib.util.find_spec(name.partition(".")[0]) is None]
    if missing:
        print(f"  without {', '.join(missing)}: pip install --no-deps {PINNED}", flush=True)
    return not missing
