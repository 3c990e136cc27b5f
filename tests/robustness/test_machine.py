"""A short run of everything that the machine may do wrong; `python -m tests.robustness.machine` runs on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.robustness import concurrency, damage, kills

ROOT = Path(__file__).parents[2]


def test_failing_writes() -> None:
    command = [sys.executable, "-m", "tests.robustness.faults", "0", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 wrong" in done.stdout


def test_damaged_files() -> None:
    counts = damage.run(0, 1)
    assert counts.wrong == []
    assert counts.tried > 100


def test_a_killed_process() -> None:
    assert kills.run(0, 1).wrong == []


def test_two_processes_at_one_place() -> None:
    assert concurrency.run(0, 1).wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("part", [damage, kills, concurrency])
def test_for_longer(part: object) -> None:
    assert part.run(60, 2).wrong == []  # type: ignore[attr-defined]
