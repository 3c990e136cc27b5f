"""What the machine may do wrong: the counts of what was tried, and all of it together.

``python -m tests.robustness.machine SECONDS [SEED [PART ...]]`` tries on with new seeds. The parts that fork must be in
a process without a JVM.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from greylag.errors import GreylagError

FAST = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # flushing to it takes no time
FORKING = ("faults", "damage", "places", "attacks")
PARTS = (*FORKING, "kills", "concurrency")


@dataclass
class Counts:
    """What was tried, and how it ended."""

    tried: int = 0
    recovered: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ends = f"{self.recovered} recovered, {self.refused} refused in one line, {len(self.wrong)} wrong"
        return "\n  ".join([f"{self.tried} tried: {ends}", *self.wrong])

    def add(self, other: Counts) -> None:
        """Add the counts of another part."""
        self.tried += other.tried
        self.recovered += other.recovered
        self.refused += other.refused
        self.wrong += other.wrong

    def judge(self, name: str, case: Callable[[], bool]) -> None:
        """Try a case, which returns whether its outcome is right; a `GreylagError` of one line is a refusal."""
        self.tried += 1
        try:
            right = case()
        except GreylagError as error:
            if "\n" in str(error):
                self.wrong.append(f"{name}: {error!r}")
            else:
                self.refused += 1
        except Exception as error:
            self.wrong.append(f"{name}: {error!r}")
        else:
            self.recovered += right
            if not right:
                self.wrong.append(f"{name}: another outcome")


def snapshot(folder: Path) -> dict[str, bytes]:
    """The content of all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def rounds(seconds: float, seed: int) -> Iterator[tuple[int, Path]]:
    """Seeds and empty folders, until the time is over; at least one."""
    end = time.monotonic() + seconds
    while True:
        with tempfile.TemporaryDirectory(dir=FAST) as folder:
            yield seed, Path(folder)
        seed += 1
        if time.monotonic() > end:
            return


def run(seconds: float, seed: int, parts: Sequence[str] = PARTS) -> Counts:
    """Try everything, each part for its share of the time."""
    total = Counts()
    for part in parts:
        counts = import_module(f"tests.robustness.{part}").run(seconds / len(parts), seed)
        print(f"{part}: {counts}", flush=True)
        total.add(counts)
    return total


if __name__ == "__main__":
    budget = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    found = run(budget, int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time()), sys.argv[3:] or PARTS)
    print(found)
    sys.exit(len(found.wrong) > 0)
