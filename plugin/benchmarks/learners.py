"""Greedy selection and coordinate ascent against fastrank's coordinate ascent, on the same data in one run.

The data are those of the line search: with FULL, 250 queries, on which fastrank takes ten minutes; otherwise a tenth of
them. Times are CPU seconds of the process, since fastrank may use several threads.

The nested choice among learners is measured in a process of its own, for its memory: on queries with one relevant
document, 10,000 with FULL, otherwise 500.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import FULL, Row
from benchmarks.line_search import QUERIES, generated
from greylag.base import FloatArray
from greylag.evaluation import Qrels
from greylag.learning import CoordinateAscent, GreedySelection, Objective, RankingData
from greylag.learning.learner import Learner, Selection
from greylag.recipes import Automatic

RESTARTS = 5


def rows() -> Iterator[Row]:
    """The comparison on generated data."""
    yield from compared(*generated(QUERIES if FULL else QUERIES // 10))
    yield from chosen(10_000 if FULL else 500)


def compared(data: RankingData, qrels: Qrels) -> Iterator[Row]:
    """Times, ratios and training AP of the three learners, on one thread each."""
    per_query = (
        f"{len(data.docids) / len(data.qids):.0f} documents and {np.mean(list(map(len, data.relevant_grades))):.0f}"
    )
    yield Row(f"queries with {per_query} relevant ones, {len(data.names)} features", len(data.qids), "queries")
    theirs, reached = fastrank_fit(data, qrels)
    yield Row(f"fastrank's coordinate ascent, {RESTARTS} restarts", theirs, "CPU s")
    yield Row("fastrank: training AP", reached, "AP")
    greedy, ascent = GreedySelection("AP"), CoordinateAscent("AP", restarts=RESTARTS)
    for name, learner, aim in (("greedy selection", greedy, 20), ("coordinate ascent", ascent, 5)):
        ours, found = fit(learner, data)
        yield Row(name, ours, "CPU s")
        at_least = f"at least {reached:.4f}" if learner is ascent else ""
        yield Row(f"{name}: training AP", found.training_scores[-1], "AP", at_least)
        yield Row(f"fastrank's CPU time / that of {name}", theirs / ours, "x", f"at least {aim}")


def fit(learner: Learner, data: RankingData) -> tuple[float, Selection]:
    """The CPU time of learning on one thread, compiled before, and what is learned."""
    learner.fit(data.select_features([0, 1]))  # few queries would not compile all
    start = time.process_time()
    found = learner.fit(data, n_jobs=1)
    return time.process_time() - start, found


def fastrank_fit(data: RankingData, qrels: Qrels) -> tuple[float, float]:
    """The CPU time that fastrank takes, and its model's mean AP, unretrieved relevant documents counted."""
    spent, score = fastrank_model(data, "map", qrels)
    return spent, float(np.mean(Objective("AP").evaluate(data, score(data))))


def fastrank_model(
    data: RankingData, measure: str, qrels: Qrels | None = None
) -> tuple[float, Callable[[RankingData], FloatArray]]:
    """The CPU time that fastrank's coordinate ascent takes, and how its model scores documents."""
    from fastrank import CDataset, CQRel, TrainRequest

    def dataset(data: RankingData) -> CDataset:
        owner = np.repeat(np.arange(len(data.qids)), np.diff(data.offsets)).astype(np.int64)
        return CDataset.from_numpy(data.features.astype(np.float32), data.grades.astype(np.float64), owner)

    given, request = dataset(data), TrainRequest.coordinate_ascent()
    request.measure = measure
    if qrels is not None:
        numbered = {str(i): qrels[qid] for i, qid in enumerate(data.qids)}
        judged = {i: {docid: float(grade) for docid, grade in own.items()} for i, own in numbered.items()}
        request.judgments = CQRel.from_dict(judged)
    request.params.num_restarts, request.params.quiet, request.params.seed = RESTARTS, True, 1
    start = time.process_time()
    model = given.train_model(request)
    spent = time.process_time() - start
    return spent, lambda other: np.asarray(model.predict_dense_scores(dataset(other)), dtype=np.float64)


def chosen(queries: int) -> Iterator[Row]:
    """CPU time and memory of the automatic choice."""
    code = f"from benchmarks.learners import choose; choose({queries})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    minutes, gigabytes = map(float, done.stdout.split())
    name = f"automatic choice, {queries} queries with 100 documents and one relevant, 54 features"
    yield Row(name, minutes, "CPU minutes", "at most 10")
    yield Row(f"{name}: memory", gigabytes, "GB", "at most 4")


def choose(queries: int) -> None:
    """Print the CPU minutes of the automatic choice and the peak memory of this process in GB."""
    Automatic("nDCG@10").fit(one_relevant(10))  # loads what is compiled
    data, start = one_relevant(queries), time.process_time()
    Automatic("nDCG@10").fit(data, n_jobs=1)
    print((time.process_time() - start) / 60, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def one_relevant(queries: int, documents: int = 100, features: int = 54) -> RankingData:
    """Queries with one relevant document, that of the highest noisy sum of two features; many features are alike."""
    rng, n = np.random.default_rng(0), queries * documents
    values = rng.standard_normal((n, features))
    values[:, 1:30] += 2 * values[:, :1]
    noisy = values[:, 0] + 0.5 * values[:, 35] + 2.5 * rng.standard_normal(n)
    grades = np.zeros(n, dtype=np.int64)
    grades[np.arange(queries) * documents + noisy.reshape(queries, documents).argmax(axis=1)] = 1
    return RankingData(
        specs=tuple(map(str, range(features))),
        qids=tuple(map(str, range(queries))),
        offsets=np.arange(0, n + 1, documents),
        docids=tuple(map(str, range(documents))) * queries,
        features=values,
        grades=grades,
        relevant_grades=(np.array([1]),) * queries,
    )
