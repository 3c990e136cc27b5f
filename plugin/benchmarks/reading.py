"""Large files: commands on runs, start included, against ten lines of Python that call pytrec_eval; LETOR text."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.harness import FULL, Row, cpu_seconds
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
DEPTH, JUDGED = 1000, (3, 17, 90, 400, 800)


def rows() -> Iterator[Row]:
    """Ratios at 10^6 lines, or at 10^7 with FULL=1."""
    topics = 10_000 if FULL else 1000
    with TemporaryDirectory() as folder:
        runs, qrels = [Path(folder, name) for name in ("a.run", "b.run")], Path(folder, "qrels.txt")
        for seed, path in enumerate(runs):
            write_run(path, topics, np.random.default_rng(seed))
        with runs[0].open() as lines, qrels.open("w") as out:
            for number, line in enumerate(lines):
                if number % DEPTH in JUDGED:
                    qid, _, docid, *_ = line.split()
                    out.write(f"{qid} 0 {docid} {1 + number % 2}\n")
        greylag = [sys.executable, "-m", "greylag"]
        evaluate = [*greylag, "evaluate", runs[0], "--qrels", qrels]
        script = [sys.executable, "-c", SCRIPT, runs[0], qrels]
        cpu_of(evaluate)  # compiles
        ratio = cpu_of(evaluate) / cpu_of(script)
        yield Row(f"evaluate {topics * DEPTH:.0e} lines / ten lines of Python", ratio, "x", "at most 1")
        fuse = [*greylag, "--jobs", "1", "fuse", "--run", runs[0], "--run", runs[1], "--out", Path(folder, "fused")]
        yield Row(f"fuse two runs of {topics * DEPTH:.0e} lines", cpu_of(fuse), "s", "40 at 1e+07 lines")
        features = Path(folder, "features.txt")
        write_features(features, np.random.default_rng(0))
        spent = cpu_seconds(lambda: read_letor(features), 3)
        yield Row("LETOR text", features.stat().st_size / 1e6 / spent, "MB per CPU s", "at least 100")


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
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
