"""Exact line search and greedy selection at the size of TREC collections: 250 queries x 1000 documents x 70 relevant.

Times are CPU seconds of one thread, so that other work on the machine changes them less.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from greylag.ltr import GreedySelection, Objective, RankingData
from greylag.ltr.line_search import line_search, prepare
from tests.benchmarks.harness import FULL, Row
from tests.benchmarks.spine import fastrank_fit

QUERIES, DOCUMENTS, RELEVANT, FEATURES = 250, 1000, 70, 26
OBJECTIVES = ("AP", "nDCG", "nDCG@10", "P@10", "RR", "ERR@20")


def rows() -> Iterator[Row]:
    """All rows of the line search."""
    data, qrels = generated()
    crossings = np.random.default_rng(1).standard_normal(QUERIES * DOCUMENTS * RELEVANT)
    for name in OBJECTIVES:
        problem = prepare(data, Objective.parse(name))
        lines = data.columns[0].copy(), data.columns[FEATURES - 1].copy()
        line_search(problem, *lines)  # compiles
        ours, sort = (min(cpu(work) for _ in range(3)) for work in (
            lambda p=problem, s=lines: line_search(p, *s), lambda: np.sort(crossings)
        ))  # fmt: skip
        yield Row(
            f"{name}: line search / numpy's sort of as many numbers as there are crossings", ours / sort, "x", "0.4"
        )
    tracemalloc.start()
    line_search(problem, *lines)
    yield Row("memory of a line search beyond the data", tracemalloc.get_traced_memory()[1] / 1e6, "MB", "at most 64")
    tracemalloc.stop()
    learner, found = GreedySelection("AP", max_features=5), []
    ours = wall(lambda: found.append(learner.fit(data)))
    size = f"{QUERIES} queries x {DOCUMENTS} documents x {RELEVANT} relevant, {FEATURES} features"
    yield Row(f"greedy selection of 5 features, one thread, {size}", ours, "s")
    yield Row("greedy selection: training AP", found[0].training_scores[-1], "AP")
    if FULL:
        yield from fastrank_rows(data, qrels, ours)


def fastrank_rows(data: RankingData, qrels: dict[str, dict[str, int]], ours: float) -> Iterator[Row]:
    """Ten minutes of fastrank's coordinate ascent on the same data."""
    theirs, reached = fastrank_fit(data, qrels)
    yield Row("fastrank's coordinate ascent, 5 restarts", theirs, "s")
    yield Row("fastrank: training AP", reached, "AP")
    yield Row("fastrank's time / greedy selection's", theirs / ours, "x", "at least 20")


def generated() -> tuple[RankingData, dict[str, dict[str, int]]]:
    """Features that are a document's relevance with more or less noise; a document is relevant by chance, the likelier
    the higher its relevance."""
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((QUERIES, DOCUMENTS))
    grades = np.zeros((QUERIES, DOCUMENTS), dtype=np.int64)
    for own, row in zip(latent, grades, strict=True):
        chance = np.exp(1.2 * own)
        row[rng.choice(DOCUMENTS, RELEVANT, replace=False, p=chance / chance.sum())] = rng.integers(1, 3, RELEVANT)
    signal = np.linspace(0.3, 1.0, FEATURES)
    features = latent[..., None] * signal + rng.standard_normal((QUERIES, DOCUMENTS, FEATURES))
    docids = [f"d{i}" for i in range(DOCUMENTS)]
    data = RankingData(
        specs=tuple(f"f{i}" for i in range(FEATURES)),
        qids=tuple(f"q{i}" for i in range(QUERIES)),
        offsets=np.arange(0, QUERIES * DOCUMENTS + 1, DOCUMENTS),
        docids=tuple(docids * QUERIES),
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


def wall(work: Callable[[], Any]) -> float:
    """Seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
