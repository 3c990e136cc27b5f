"""Learning to rank at the size of the web's collections: 30,000 queries x 120 documents x 136 features, five grades.

Without FULL, a hundredth of the queries. Reading and selection run in a process of their own, whose peak memory is
measured. LightGBM is measured where it is installed, on as many threads and the same data.
"""

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness import FULL, Row
from greylag.base import FloatArray, IntArray
from greylag.learning import GreedySelection, Objective, RankingData, read_letor

QUERIES = 30_000 if FULL else 300
TESTED = 300  # queries
DOCUMENTS, FEATURES = 120, 136
GRADES = 0.06, 1.15, 2.0, 2.6  # thresholds on relevance with noise: 52, 31, 12, 3 and 2 per cent of the documents
BLOCK = 100  # queries written at once
THREADS = 2
TREES = 100


class Spent(NamedTuple):
    """CPU seconds and seconds of reading and of learning, peak memory in GB, and nDCG@10 on new queries."""

    reading: tuple[float, float]
    learning: tuple[float, float]
    memory: float
    score: float


def rows() -> Iterator[Row]:
    """Reading, selection, and LightGBM."""
    with tempfile.TemporaryDirectory() as folder:
        path, tested = Path(folder, "train.txt"), Path(folder, "test.txt")
        write(path, QUERIES, seed=0)
        write(tested, TESTED, seed=1)
        size = path.stat().st_size / 1e6
        name = f"{QUERIES} queries x {DOCUMENTS} documents x {FEATURES} features"
        ours = alone(select, path, tested)
        yield Row(f"{name}: reading {size:.0f} MB of LETOR text", size / ours.reading[0], "MB/CPU s", "at least 100")
        yield Row(f"{name}: selecting five features, CPU time of {THREADS} threads", ours.learning[0], "s")
        aim = "at most 600" if FULL else ""
        yield Row(f"{name}: selecting five features on {THREADS} threads", ours.learning[1], "s", aim)
        yield Row(f"{name}: peak memory", ours.memory, "GB", "at most 5" if FULL else "")
        yield Row(f"{name}: nDCG@10 of five features on new queries", ours.score, "nDCG@10")
        if find_spec("lightgbm"):
            theirs = alone(boost, path, tested)
            yield Row(f"LightGBM, {TREES} trees, {THREADS} threads", theirs.learning[1], "s")
            yield Row("LightGBM: CPU time", theirs.learning[0], "s")
            yield Row("LightGBM: peak memory", theirs.memory, "GB")
            yield Row("LightGBM: nDCG@10 on new queries", theirs.score, "nDCG@10")
            yield Row("selection's CPU time / LightGBM's", ours.learning[0] / theirs.learning[0], "x")


def write(path: Path, queries: int, seed: int) -> None:
    """Write features that are a document's relevance with more or less noise, with six digits."""
    rng, numbers = np.random.default_rng(seed), range(1, FEATURES + 1)
    form = "%d qid:%d " + " ".join(f"{number}:%.6f" for number in numbers) + "\n"
    signal = np.linspace(0.0, 0.8, FEATURES)
    with path.open("w") as file:
        for first in range(0, queries, BLOCK):
            n = min(BLOCK, queries - first) * DOCUMENTS
            relevance = rng.standard_normal(n)
            grades = np.digitize(relevance + 0.7 * rng.standard_normal(n), GRADES)
            values = relevance[:, None] * signal + rng.standard_normal((n, FEATURES))
            qids = first + np.arange(n) // DOCUMENTS
            file.writelines(
                form % (grade, qid, *row) for grade, qid, row in zip(grades, qids, values.tolist(), strict=True)
            )


def alone(work: object, path: Path, tested: Path) -> Spent:
    """What `work` returns in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, path, tested).result()  # type: ignore[arg-type, no-any-return]


def clocks() -> FloatArray:
    """CPU time and time."""
    return np.array([time.process_time(), time.perf_counter()])


def memory() -> float:
    """The peak memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def select(path: Path, tested: Path) -> Spent:
    """Read and select, compiled before."""
    learner, test = GreedySelection("nDCG@10"), read_letor(tested)
    learner.fit(test.select_queries(test.qids[:30]).select_features(range(3)))
    start = clocks()
    data = read_letor(path)
    read = clocks()
    found = learner.fit(data, n_jobs=THREADS)
    end, peak = clocks(), memory()
    scores = test.features[:, list(found.columns)] @ np.array(found.weights)
    return Spent(tuple(read - start), tuple(end - read), peak, ndcg(test, scores))


def boost(path: Path, tested: Path) -> Spent:
    """Read, and learn with LightGBM."""
    import lightgbm

    data, test = read_letor(path), read_letor(tested)
    start = clocks()
    settings = {
        "objective": "lambdarank", "label_gain": list(range(5)), "num_threads": THREADS,
        "verbose": -1, "lambdarank_truncation_level": 13,
    }  # fmt: skip
    train = lightgbm.Dataset(data.features, label=data.grades, group=sizes(data), params=settings)
    model = lightgbm.train(settings, train, num_boost_round=TREES)
    spent, peak = clocks() - start, memory()
    return Spent((0.0, 0.0), tuple(spent), peak, ndcg(test, np.asarray(model.predict(test.features))))


def sizes(data: RankingData) -> IntArray:
    """The number of documents of each query."""
    return np.diff(data.offsets)


def ndcg(data: RankingData, scores: FloatArray) -> float:
    """The mean nDCG@10."""
    return float(np.mean(Objective.parse("nDCG@10").evaluate(data, scores)))
