"""Learned fusion: its cost against reading the runs, and its gain over the best run and over reciprocal ranks."""

import tempfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.growth import greylag_process
from benchmarks.harness import DATA, FULL, Row, cpu_seconds
from greylag.fusion import LEARNED
from greylag.rankers import FusionRanker
from greylag.recipes.learned_fusion import learn_fusion
from greylag.trec import read_qrels, read_run, write_rankings
from greylag.trec.runs import JoinedRuns, RunFile

RUNS = DATA / "trec_covid_runs"
SIZES = [(2, 10), (2, 200), (14, 30), (50, 10), *([(2, 10_000), (50, 200)] if FULL else [])]
"""Numbers of runs and of topics."""
DOCUMENTS, POOL, RELEVANT = 1000, 4000, 50


def rows() -> Iterator[Row]:
    """All rows of fusion."""
    for runs, topics in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            yield from cost_rows(Path(folder), runs, topics)
    yield from quality_rows()


def cost_rows(folder: Path, runs: int, topics: int) -> Iterator[Row]:
    """CPU time of learning, with folds and without, and of writing the run, against reading; memory of the command."""
    write_runs(folder, runs, topics)
    paths = [folder / f"r{number}.run" for number in range(runs)]
    opened, qrels = {path.stem: RunFile(path) for path in paths}, read_qrels(folder / "qrels")
    reading = cpu_seconds(lambda: sum(len(ranking) for run in opened.values() for ranking in run.rankings), 3)
    shape = f"{runs} runs of {topics} topics x {DOCUMENTS} documents"
    for label, folds in (("learned", None), ("learned, five folds", 5)):

        def fuse() -> None:
            learned = learn_fusion(opened, qrels, folds=folds)  # noqa: B023
            fusion = learned.held_out or FusionRanker(learned.model)
            write_rankings(fusion, JoinedRuns(tuple(opened.values())), folder / "fused.run", tag="fused", n_jobs=1)

        yield Row(f"{shape}, {label} and written / reading", cpu_seconds(fuse, 1) / reading, "x", "at most 10")
    words = [word for path in paths for word in ("--run", path.name)]
    spent = greylag_process(folder, "fuse", *words, "--qrels", "qrels", "--out", "fused.run", "--folds", "5", jobs=1)
    yield Row(f"{shape}, the command with five folds", spent.cpu, "CPU s")
    yield Row(f"{shape}, the command with five folds, memory", spent.memory / 1e6, "MB", "at most 2000")


def write_runs(folder: Path, runs: int, topics: int) -> None:
    """Runs that see a document's relevance through more or less noise, and judgements of the most relevant."""
    rng = np.random.default_rng(0)
    files = [(folder / f"r{number}.run").open("w") for number in range(runs)]
    with (folder / "qrels").open("w") as qrels:
        for topic in range(topics):
            latent, names = rng.standard_normal(POOL), rng.choice(10**6, POOL, replace=False).tolist()
            relevant = np.argsort(-latent - 0.5 * rng.standard_normal(POOL))[:RELEVANT]
            qrels.writelines(f"t{topic} 0 d{names[d]} {rng.integers(1, 3)}\n" for d in relevant)
            for number, file in enumerate(files):
                scores = latent + (1 + number / runs) * rng.standard_normal(POOL)
                ranked = enumerate(np.argsort(-scores)[:DOCUMENTS].tolist(), 1)
                file.writelines(f"t{topic} Q0 d{names[d]} {rank} {scores[d]:.5f} run{number}\n" for rank, d in ranked)
    for file in files:
        file.close()


def quality_rows() -> Iterator[Row]:
    """Held-out nDCG@10 of TREC-COVID's pairs and sets of eight runs, less the best run's and less that of RRF."""
    runs = {path.name.removesuffix(".run.gz"): read_run(path) for path in sorted((RUNS / "runs").glob("*.gz"))}
    qrels, rng = read_qrels(RUNS / "qrels.txt.gz"), np.random.default_rng(0)
    eights = [tuple(sorted(rng.choice(sorted(runs), 8, replace=False).tolist())) for _ in range(16)]
    for label, sets in (("91 pairs", [*combinations(runs, 2)]), ("16 sets of eight", eights)):
        gains = []
        for names in sets:
            learned = learn_fusion({name: runs[name] for name in names}, qrels, folds=5)
            means = {name: float(scores.means[0]) for name, scores in learned.scores.items()}
            gains.append((means[LEARNED] - means[learned.best_run], means[LEARNED] - means["rrf"]))
        above_best, above_rrf = np.mean(gains, axis=0)
        yield Row(f"TREC-COVID, {label}: learned less the best run, nDCG@10", above_best, "", "at least 0.015")
        yield Row(f"TREC-COVID, {label}: learned less RRF, nDCG@10", above_rrf, "", "at least 0.025")
