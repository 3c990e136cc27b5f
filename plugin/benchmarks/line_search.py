"""Exact line search at the size of TREC collections: 250 queries x 1000 documents x 70 relevant.

And with as few relevant documents as CACM has, where what is computed for each query and each search counts. Times are
CPU seconds of one thread, so that other work on the machine changes them less.
"""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Row
from greylag.learning import Objective, RankingData
from greylag.learning.linesearch.line_search import line_search, prepare

QUERIES, DOCUMENTS, RELEVANT, FEATURES = 250, 1000, 70, 26
FEW_QUERIES, FEW_RELEVANT = 52, 15
SINGLE_QUERIES = 200
OBJECTIVES = ("AP", "nDCG", "nDCG@10", "P@10", "RR", "ERR@20")


def rows() -> Iterator[Row]:
    """All rows of the line search."""
    data, _ = generated()
    for name in OBJECTIVES:
        ratio = ratio_to_sort(data, name)
        yield Row(f"{name}: line search / numpy's sort of as many numbers as there are crossings", ratio, "x", "0.4")
    few, _ = generated(FEW_QUERIES, FEW_RELEVANT)
    shape = f"{FEW_QUERIES} queries x {DOCUMENTS} documents x {FEW_RELEVANT} relevant"
    yield Row(f"AP: line search / sort, {shape}", ratio_to_sort(few, "AP"), "x")
    single, _ = generated(SINGLE_QUERIES, 1)
    for name in ("RR", "RR@10"):
        shape = f"{SINGLE_QUERIES} queries x {DOCUMENTS} documents x 1 relevant"
        yield Row(f"{name}: line search, {shape}", 1e3 * cpu_of_search(single, name), "ms", "at most 12")
    problem, lines = prepare(data, Objective.parse("ERR@20")), (data.columns[0], data.columns[FEATURES - 1])
    tracemalloc.start()
    line_search(problem, *lines)
    yield Row("memory of a line search beyond the data", tracemalloc.get_traced_memory()[1] / 1e6, "MB", "at most 64")
    tracemalloc.stop()


def ratio_to_sort(data: RankingData, name: str) -> float:
    """The time of a line search, in that of sorting as many numbers as there are crossings."""
    pairs = prepare(data, Objective.parse(name)).pairs
    crossings = np.random.default_rng(1).standard_normal(pairs)
    return cpu_of_search(data, name) / min(cpu(lambda: np.sort(crossings)) for _ in range(3))


def cpu_of_search(data: RankingData, name: str) -> float:
    """The least time of three line searches along the last feature, after one that compiles."""
    problem, lines = prepare(data, Objective.parse(name)), (data.columns[0], data.columns[FEATURES - 1])
    line_search(problem, *lines)
    return min(cpu(lambda: line_search(problem, *lines)) for _ in range(3))


def generated(queries: int = QUERIES, relevant: int = RELEVANT) -> tuple[RankingData, dict[str, dict[str, int]]]:
    """Features that are a document's relevance with more or less noise; a document is relevant by chance, the likelier
    the higher its relevance.
    """
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((queries, DOCUMENTS))
    grades = np.zeros((queries, DOCUMENTS), dtype=np.int64)
    for own, row in zip(latent, grades, strict=True):
        chance = np.exp(1.2 * own)
        row[rng.choice(DOCUMENTS, relevant, replace=False, p=chance / chance.sum())] = rng.integers(1, 3, relevant)
    signal = np.linspace(0.3, 1.0, FEATURES)
    features = latent[..., None] * signal + rng.standard_normal((queries, DOCUMENTS, FEATURES))
    docids = [f"d{i}" for i in range(DOCUMENTS)]
    data = RankingData(
        specs=tuple(f"f{i}" for i in range(FEATURES)),
        qids=tuple(f"q{i}" for i in range(queries)),
        offsets=np.arange(0, queries * DOCUMENTS + 1, DOCUMENTS),
        docids=tuple(docids * queries),
        features=features.reshape(-1, FEATURES),
        grades=grades.ravel(),
        relevant_grades=tuple(np.sort(row[row > 0])[::-1] for row in grades),
    )
    qrels = {f"q{q}": {d: int(g) for d, g in zip(docids, row, strict=True) if g} for q, row in enumerate(grades)}
    return data, qrels


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of this thread."""
    start = time.thread_time()
    work()
    return time.thread_time() - start
