"""The time of whole commands on a small run, and what it consists of."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import greylag
from benchmarks.harness import Row

DEMO = Path(greylag.__file__).parent / "demo"
REPEATS = 5
JVM = "from greylag.index.lucene.jvm import java_class; java_class('java.lang.Object')"


def rows() -> Iterator[Row]:
    """CPU seconds of processes, each the least of some; the first of each, which compiles, is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        index, run, model, out = (str(Path(folder, name)) for name in ("index", "run", "model", "out"))
        given = ["--index", index, "--topics", str(DEMO / "topics.tsv")]
        greylag_seconds("index", str(DEMO / "docs.jsonl"), "--out", index)
        greylag_seconds("search", *given, "--out", run)
        judged = ("--run", run, "--qrels", str(DEMO / "qrels.txt"))
        greylag_seconds("train", *given, *judged, "--model", "mrf", "--out", model)
        rerank = ("rerank", *given, "--run", run, "--model", model, "--out", out)
        whole = [greylag_seconds(*rerank) for _ in range(REPEATS + 1)]
        scored = ("evaluate", "--qrels", str(DEMO / "qrels.txt"), run)
        bare = min(process_seconds("-c", JVM) for _ in range(REPEATS))
        yield Row("a process that starts a JVM through pyjnius", bare, "CPU s")
        for part in ("numba", "scipy.sparse", "greylag.cli.rerank"):
            yield Row(
                f"a process that imports {part}", min(process_seconds("-c", f"import {part}") for _ in range(3)), "s"
            )
        search = ("search", *given, "--out", out)
        for name, command in (("--help", ("--help",)), ("evaluate", scored), ("search", search)):
            yield Row(f"greylag {name}", min(greylag_seconds(*command) for _ in range(3)), "CPU s")
        yield Row("greylag rerank, 24 queries", min(whole[1:]), "CPU s")
        yield Row("greylag rerank / a process that starts a JVM", min(whole[1:]) / bare, "x", "at most 1.5")


def greylag_seconds(*arguments: str) -> float:
    """CPU seconds of a command."""
    return process_seconds("-m", "greylag", *arguments)


def process_seconds(*arguments: str) -> float:
    """CPU seconds of Python with these arguments."""
    before = children_seconds()
    run_python(*arguments)
    return children_seconds() - before


def children_seconds() -> float:
    """CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_python(*arguments: str) -> str:
    """What Python prints with these arguments."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, env=environment, text=True
    ).stdout
