"""``kill -9`` at random points of commands: the next run ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import greylag
from tests.robustness.machine import Counts, rounds, snapshot

DEMO = Path(greylag.__file__).parent / "demo"
DOCS, TOPICS = str(DEMO / "docs.jsonl"), str(DEMO / "topics.tsv")
WITH_INDEX = ("--index", "index", "--topics", TOPICS, "--jobs", "1")
_TEMPORARY = re.compile(r"\.greylag-([0-9a-f]{32}|lock|part|old|work)$")
# What is prepared, what is killed, and the output.
COMMANDS: dict[str, tuple[list[str], list[str], str]] = {
    "index": ([], ["index", DOCS, "--out", "index"], "index"),
    "search": (["index"], ["search", *WITH_INDEX, "--out", "a.run"], "a.run"),
    "rerank": (
        ["index", "search"],
        ["rerank", *WITH_INDEX, "--run", "a.run", "--method", "manifold", "--out", "b.run"],
        "b.run",
    ),
    "experiment": ([], ["experiment", str(DEMO / "demo.yaml"), "--out", "out", "--jobs", "1"], "out"),
}


def start(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start a command in a folder, with temporary files in another below it."""
    (folder / "tmp").mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-m", "greylag", *arguments],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The exit code of a command and what it printed."""
    printed, errors = process.communicate(timeout=300)
    return process.returncode, printed, errors


def result(folder: Path, output: str, printed: str) -> object:
    """What a command is for: a run, an experiment's runs, or the size of an index."""
    if output == "index":
        return printed
    path = folder / output
    if path.is_file():
        return path.read_bytes()
    return {name: content for name, content in snapshot(path).items() if name.endswith(".run")}


def strays(folder: Path) -> list[str]:
    """Temporary files and folders."""
    found = [path for path in folder.rglob("*") if _TEMPORARY.search(path.name) or path.parent.name == "tmp"]
    return list(map(str, found))


def try_kill(name: str, folder: Path, rng: random.Random, prepared: Path) -> str:
    """Kill a command at a random time and repeat it; what is wrong, or ""."""
    _, arguments, output = COMMANDS[name]
    began = time.monotonic()
    code, printed, errors = finish(start(arguments, prepared))
    if code:
        return f"exit code {code}: {errors}"
    expected, duration = result(prepared, output, printed), time.monotonic() - began
    process = start(arguments, folder)
    time.sleep(rng.uniform(0.1, 1.0) * duration)
    process.send_signal(signal.SIGKILL)
    finish(process)
    code, printed, errors = finish(start(arguments, folder))
    if code or result(folder, output, printed) != expected:
        return f"exit code {code}, or another outcome: {errors}"
    return f"left {strays(folder)}" if strays(folder) else ""


def run(seconds: float, seed: int) -> Counts:
    """Kill one command per round; at least one."""
    counts = Counts()
    for number, place in rounds(seconds, seed):
        name = list(COMMANDS)[(number - seed) % len(COMMANDS)]
        for folder in (place / "killed", place / "prepared"):
            folder.mkdir()
            for before in COMMANDS[name][0]:
                finish(start(COMMANDS[before][1], folder))

        wrong = try_kill(name, place / "killed", random.Random(number), place / "prepared")
        counts.tried += 1
        counts.recovered += not wrong
        counts.wrong += [f"{name}, seed {number}: {wrong}"] if wrong else []
    return counts
