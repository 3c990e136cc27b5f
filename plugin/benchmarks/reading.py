"""Large files: commands on runs, start included, against ten lines of Python that call pytrec_eval; LETOR text.

And what greylag, ranx and ir_measures take to read, evaluate, compare by a paired t-test and fuse by reciprocal ranks:
in a process whose loops are compiled, in one of a new environment, and again in the same process. Their means, p and
sums of fused scores are equal, or the benchmark stops.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.harness import FULL, Row, cpu_seconds, installed
from benchmarks.start import children_seconds
from greylag.learning import read_letor

SCRIPT = """
import sys
import pytrec_eval
run, qrels = {}, {}
for line in open(sys.argv[1]):
    qid, _, docid, _, score, _ = line.split()
    run.setdefault(qid, {})[docid] = float(score)
for line in open(sys.argv[2]):
    qid, _, docid, grade = line.split()
    qrels.setdefault(qid, {})[docid] = int(grade)
scores = pytrec_eval.RelevanceEvaluator(qrels, {"map", "P_10", "ndcg_cut_10"}).evaluate(run)
for name in ("map", "P_10", "ndcg_cut_10"):
    print(name, sum(of_query[name] for of_query in scores.values()) / len(scores))
"""
DEPTH, EVERY = 1000, 211
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
}
"""Of processes: one thread, and modules that are compiled once."""
SIZES = {10: "", 100: "at most 1.4", 1000: "at most 1", **({10_000: "at most 1"} if FULL else {})}
"""The aim of `evaluate`, by the number of topics."""
PEER_TOPICS = 1000 if FULL else 100
"""Peers are not measured on more: ranx takes minutes."""
CHILD = """
import json, sys, time
a, b, qrels = sys.argv[1:]
{imports}
def work():
    return {work}
found = work()
begun = time.process_time()
work()
print(json.dumps([time.process_time() - begun, found]))
"""
PEERS = {
    "greylag": {
        "imports": "from greylag.evaluation import compare, evaluate, fuse_runs, read_qrels, read_run",
        "evaluate": "[*map(float, evaluate(read_run(a), read_qrels(qrels), ['AP', 'P@10', 'nDCG@10']).means)]",
        "compare": "compare({'a': a, 'b': b}, qrels, ['AP'], baseline='a').significance.comparisons[0].p",
        "fuse": "sum(float(of.scores.sum()) for of in fuse_runs([read_run(a), read_run(b)]).rankings)",
    },
    "ranx": {
        "imports": """
from ranx import Qrels, Run, compare, evaluate, fuse
def run(path): return Run.from_file(path, kind="trec", name=path)
def judged(): return Qrels.from_file(qrels, kind="trec")
""",
        "evaluate": "[*map(float, evaluate(judged(), run(a), ['map', 'precision@10', 'ndcg@10']).values())]",
        "compare": "float(compare(judged(), [run(a), run(b)], ['map'], 'student').comparisons[a, b]['map']['p_value'])",
        "fuse": "sum(sum(of.values()) for of in fuse([run(a), run(b)], norm=None, method='rrf').to_dict().values())",
    },
    "ir_measures": {
        "imports": """
from ir_measures import AP, P, calc_aggregate, iter_calc, nDCG, read_trec_qrels, read_trec_run
from scipy.stats import ttest_rel
def judged(): return [*read_trec_qrels(qrels)]
def mean(): return calc_aggregate([AP, P@10, nDCG@10], judged(), read_trec_run(a))
def by_topic(path): return [one.value for one in sorted(iter_calc([AP], judged(), read_trec_run(path)))]
""",
        "evaluate": "[*map(mean().get, (AP, P@10, nDCG@10))]",
        "compare": "float(ttest_rel(by_topic(a), by_topic(b)).pvalue)",
    },
}
"""By package, what it imports and how it does each task; ir_measures fuses no runs."""


def rows() -> Iterator[Row]:
    """Ratios at 10^4 to 10^6 lines, with FULL=1 to 10^7, and peers to 10^5 or 10^6."""
    with TemporaryDirectory() as folder:
        runs, qrels = [Path(folder, name) for name in ("a.run", "b.run")], Path(folder, "qrels.txt")
        for topics, aim in SIZES.items():
            for seed, path in enumerate(runs):
                write_run(path, topics, np.random.default_rng(seed))
            write_qrels(qrels, runs)
            greylag, size = [sys.executable, "-m", "greylag"], f"{topics * DEPTH:.0e} lines"
            evaluate = [*greylag, "evaluate", runs[0], "--qrels", qrels]
            script = [sys.executable, "-c", SCRIPT, runs[0], qrels]
            cpu_of(evaluate)  # compiles
            ours, theirs = (min(cpu_of(command) for _ in range(3)) for command in (evaluate, script))
            yield Row(f"evaluate {size}", ours, "CPU s")
            yield Row(f"evaluate {size} / ten lines of Python", ours / theirs, "x", aim)
            fuse = [*greylag, "--jobs", "1", "fuse", "--run", runs[0], "--run", runs[1], "--out", Path(folder, "fused")]
            yield Row(f"fuse two runs of {size}", cpu_of(fuse), "CPU s", "40 at 1e+07 lines")
            if topics <= PEER_TOPICS:
                yield from peer_rows(size, [*runs, qrels], Path(folder, "compiled"))
        features = Path(folder, "features.txt")
        write_features(features, np.random.default_rng(0))
        spent = cpu_seconds(lambda: read_letor(features), 3)
        yield Row("LETOR text", features.stat().st_size / 1e6 / spent, "MB per CPU s", "at least 100")


def peer_rows(size: str, paths: list[Path], compiled: Path) -> Iterator[Row]:
    """CPU seconds of each task by each package, compiled and, the first time, in a new environment."""
    for task in ("evaluate", "compare", "fuse"):
        means, ours = None, (0.0, 0.0)
        for package, does in PEERS.items():
            if task not in does or not installed(package):
                continue
            child = [sys.executable, "-c", CHILD.format(imports=does["imports"], work=does[task]), *paths]
            cache = compiled / f"{task}-{package}"
            fresh = not cache.exists()
            cache.mkdir(parents=True, exist_ok=True)
            first, _ = answer(child, cache)  # compiles: greylag from some size on
            if fresh:
                yield Row(f"{task} {size}: {package}, a process of a new environment", first[0], "CPU s")
            spent, found = answer(child, cache)
            if means is None:
                means, ours = found, spent
            if not np.allclose(found, means, rtol=1e-6, atol=0):
                raise ValueError(f"{task} {size}: {package} has {found}, greylag {means}")
            for when, seconds, own in zip(("a process", "again in the process"), spent, ours, strict=True):
                yield Row(f"{task} {size}: {package}, {when}", seconds, "CPU s")
                if package != "greylag":
                    yield Row(f"{task} {size}: {package} / greylag, {when}", seconds / own, "x")


def answer(child: list[str | Path], cache: Path) -> tuple[tuple[float, float], Any]:
    """CPU seconds of a process that works once and of working again in it, and what it finds."""
    before = children_seconds()
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    again, found = json.loads(done.stdout.splitlines()[-1])
    return (children_seconds() - before - again, again), found


def write_qrels(path: Path, runs: list[Path]) -> None:
    """Judge every so many documents of each run, at other ranks for each topic."""
    with path.open("w") as out:
        for shift, run in enumerate(runs):
            with run.open() as lines:
                for number, line in enumerate(lines):
                    if (number + 50 * shift) % EVERY == 0:
                        qid, _, docid, *_ = line.split()
                        out.write(f"{qid} 0 {docid} {1 + number % 2}\n")


def write_run(path: Path, topics: int, rng: np.random.Generator) -> None:
    """Write a run of 1000 documents per topic, of 8.8 million."""
    with path.open("w") as out:
        for topic in range(topics):
            names = rng.choice(8_800_000, DEPTH, replace=False).tolist()
            ranked = enumerate(zip(names, np.sort(rng.gamma(2, 5, DEPTH))[::-1].tolist(), strict=True), 1)
            out.writelines(f"{topic} Q0 msmarco_doc_{name:08} {rank} {score:.6f} a\n" for rank, (name, score) in ranked)


def write_features(path: Path, rng: np.random.Generator) -> None:
    """Write 500 queries of 120 documents and 136 features, of which half are integers."""
    with path.open("w") as out:
        for query in range(500):
            for row in rng.gamma(1, 3, (120, 136)).tolist():
                cells = " ".join(f"{n}:{int(value) if n % 2 else f'{value:.6f}'}" for n, value in enumerate(row, 1))
                out.write(f"{int(row[0]) % 5} qid:{query} {cells}\n")


def cpu_of(command: list[str | Path]) -> float:
    """The CPU seconds of a process in one thread."""
    before = children_seconds()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    return children_seconds() - before
