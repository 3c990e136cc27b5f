"""Learned fusion: its cost against reading the runs, and its gain over the best run and over reciprocal ranks."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from benchmarks.growth import greylag_process
from benchmarks.harness import DATA, FULL, Row, cpu_seconds
from greylag.base import FloatArray, Ranking, Run
from greylag.evaluation import SIGNIFICANCE_LEVEL, evaluate, paired_test, read_qrels, read_run, write_rankings
from greylag.evaluation.fusion import FUSIONS
from greylag.evaluation.scoring.folds import split_folds, without
from greylag.evaluation.trec.runs import JoinedRuns, RunFile
from greylag.learning.data import Judgements
from greylag.rankers import FusionRanker
from greylag.recipes.fused import FusionRecipe
from greylag.recipes.learned_fusion import learn_fusion
from greylag.recipes.union import FusionWeights

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
    """The tables of the page on fusion: nDCG@10 less that of the best single run, over sets of TREC-COVID's runs."""
    runs = {path.name.removesuffix(".run.gz"): read_run(path) for path in sorted((RUNS / "runs").glob("*.gz"))}
    qrels, rng = read_qrels(RUNS / "qrels.txt.gz"), np.random.default_rng(0)
    sets = {"91 pairs": [*combinations(runs, 2)]}
    for size in (3, 4, 8):
        sets[f"16 sets of {size}"] = [
            tuple(sorted(rng.choice([*runs], size, replace=False).tolist())) for _ in range(16)
        ]
    sets["all fourteen"] = [tuple(runs)]
    for label, of_size in sets.items():
        found = [set_gains({name: runs[name] for name in names}, qrels, 1 + (len(names) == 2)) for names in of_size]
        yield from gain_rows(label, [gains for gains, _ in found])
        if label == "91 pairs":
            for low, high in pairwise((0.0, 0.6, 0.8, 0.95, 1.01)):
                within = [gains for gains, ratio in found if low <= ratio < high]
                yield from gain_rows(f"{len(within)} pairs, worse / better from {low:g}", within)


def gain_rows(label: str, found: list[dict[str, FloatArray]]) -> Iterator[Row]:
    """The mean over sets of each column of the table, and how many sets are significantly below and above 0."""
    for column in found[0]:
        gains = [of_set[column] for of_set in found]
        sides = [np.sign(gain.mean()) * (paired_test(gain)[1] < SIGNIFICANCE_LEVEL) for gain in gains]
        mean, below, above = float(np.mean([gain.mean() for gain in gains])), sides.count(-1), sides.count(1)
        yield Row(f"TREC-COVID, {label}, {column}; {below} significantly below, {above} above", mean, "nDCG@10")


def set_gains(runs: Mapping[str, Run], qrels: Judgements, splits: int) -> tuple[dict[str, FloatArray], float]:
    """By column, each topic's gain over the best single run; and the worst run's mean divided by the best one's."""
    recipe, judged, data = FusionRecipe(runs, FusionWeights("nDCG@10")).read_runs(qrels)
    joined = JoinedRuns(tuple(runs.values()))
    rankings = {of_topic[0].qid: of_topic for of_topic in joined.rankings}
    qids, known = list(judged), data.qids  # without topics that no run has a relevant document of

    def scores(fused: Iterable[Ranking]) -> FloatArray:
        by_query = evaluate(Run(tuple(fused)), {qid: qrels[qid] for qid in qids}, ["nDCG@10"]).by_query
        return np.array([by_query[qid] for qid in qids])

    alone = [scores(run[qid] for qid in qids) for run in runs.values()]
    means = [float(of_run.mean()) for of_run in alone]
    best = alone[int(np.argmax(means))]
    gains = {name: scores(FUSIONS[name](rankings[qid]) for qid in qids) - best for name in ("rrf", "combsum")}
    for size in (5, 10, 25, 32):
        gains[f"{size} topics"] = np.zeros(len(qids))
        for seed in range(splits):
            held_out = dict[str, Ranking]()
            for part in split_folds(qids, 5, seed):
                others = np.random.default_rng(seed).permutation(without(known, part))[:size].tolist()
                fuse = FusionRanker(recipe.learn(data, others).model)
                held_out |= {qid: fuse(rankings[qid]) for qid in part}
            gains[f"{size} topics"] += (scores(held_out[qid] for qid in qids) - best) / splits
    return gains, min(means) / max(means)
