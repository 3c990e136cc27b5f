"""A short run of everything that the machine may do wrong; `python -m tests.robustness.machine` runs on."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.robustness import concurrency, kills
from tests.robustness.machine import FORKING

ROOT = Path(__file__).parents[2]


def forked(seconds: int, seed: int) -> None:
    """Run the parts that fork; they print their counts."""
    command = [sys.executable, "-m", "tests.robustness.machine", str(seconds), str(seed), *FORKING]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    *parts, total = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in parts] == [*FORKING]
    assert total.endswith(" 0 wrong")
    assert int(total.split()[0]) > 200


def test_failing_writes_damaged_files_and_other_users() -> None:
    forked(0, 1)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kills.prepare(tmp_path_factory.mktemp("prepared"))


@pytest.mark.long
@pytest.mark.parametrize("name", kills.COMMANDS)
def test_a_killed_command(name: str, prepared: Path, tmp_path: Path) -> None:
    assert not kills.trial(name, tmp_path, prepared, 1)


def test_two_processes_at_one_place() -> None:
    assert concurrency.run(0, 1).wrong == []


@pytest.mark.slow
def test_for_longer() -> None:
    forked(90, 2)
    assert kills.run(60, 2).wrong == []
    assert concurrency.run(60, 2).wrong == []
