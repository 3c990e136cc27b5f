"""The time of whole commands on a small run, and of processes that start what they need."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import greylag
from benchmarks.harness import Row

DEMO = Path(greylag.__file__).parent / "demo"
REPEATS = 5
JVM = "from greylag.index.lucene.jvm import java_class; java_class('java.lang.Object')"
ANSERINI = """
import sys
from greylag.index.lucene.jvm import java_class
searcher = java_class("io.anserini.search.SimpleSearcher")(sys.argv[1])
searcher.set_bm25(0.9, 0.4)
for line in open(sys.argv[2]):
    searcher.search(line.split("\\t")[1], 1000)
"""
"""Searches for topics by Anserini, and does nothing with what is found."""


def rows() -> Iterator[Row]:
    """CPU seconds of processes, each the least of some; the first of each, which compiles, is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        index, run, model, out = (str(Path(folder, name)) for name in ("index", "run", "model", "out"))
        topics, qrels = str(DEMO / "topics.tsv"), str(DEMO / "qrels.txt")
        given = ["--index", index, "--topics", topics]
        greylag_seconds("index", str(DEMO / "docs.jsonl"), "--out", index)
        greylag_seconds("search", *given, "--out", run)
        judged = ("--run", run, "--qrels", qrels)
        greylag_seconds("train", *given, *judged, "--model", "mrf", "--out", model)
        rerank = ("rerank", *given, "--run", run, "--out", out)
        why = ("explain", model, *given, "--qid", "1", "--docid", "demo-029", "--run", run)
        greylag_seconds(*rerank, "--model", model)
        commands = {
            "--help": (("--help",), ""),
            "explain": (why, "at most 0.6"),
            "search": (("search", *given, "--out", out), "at most 1.5"),
            "rerank by the general model": (rerank, "at most 1.2"),
            "rerank by a model": ((*rerank, "--model", model), "at most 1.2"),
            "rerank by MMR": ((*rerank, "--stage", "mmr"), "at most 0.8"),
            "evaluate": (("evaluate", "--qrels", qrels, run), "at most 0.5"),
            "fuse": (("fuse", "--run", run, "--run", out, "--out", str(Path(folder, "fused"))), "at most 0.6"),
        }
        processes = {"starts a JVM": ("-c", JVM), "searches by Anserini": ("-c", ANSERINI, index, topics)}
        processes |= {f"imports {name}": ("-c", f"import {name}") for name in ("numba", "scipy.sparse")}
        bare = {name: least(process_seconds, *arguments) for name, arguments in processes.items()}
        ours = {name: least(greylag_seconds, *words) for name, (words, _) in commands.items()}
        for name, spent in bare.items():
            yield Row(f"a process that {name}", spent, "CPU s")
        for name, spent in ours.items():
            yield Row(f"greylag {name}, 24 topics", spent, "CPU s", commands[name][1])
        numba = "imports numba"
        limits = [("search", "searches by Anserini", "1"), ("rerank by MMR", numba, "1.8"), ("evaluate", numba, "0.9")]
        limits += [(f"rerank by {model}", numba, "2.2") for model in ("the general model", "a model")]
        for name, limit, aim in limits:
            yield Row(f"greylag {name} / a process that {limit}", ours[name] / bare[limit], "x", f"at most {aim}")


def least(seconds: Callable[..., float], *arguments: str) -> float:
    """The least of some times, after one that may compile."""
    return min([seconds(*arguments) for _ in range(REPEATS + 1)][1:])


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
