"""Greedy selection and coordinate ascent against fastrank's coordinate ascent, on the same data in one run.

The data are those of the line search: with FULL, 250 queries, on which fastrank takes ten minutes; otherwise a tenth of
them. Times are CPU seconds of the process, since fastrank may use several threads.
"""

import time
from collections.abc import Iterator

import numpy as np

from greylag.ltr import CoordinateAscent, GreedySelection, Objective, RankingData
from greylag.ltr.learner import Learner, Selection
from greylag.trec import Qrels
from tests.benchmarks.harness import FULL, Row
from tests.benchmarks.line_search import QUERIES, generated

RESTARTS = 5


def rows() -> Iterator[Row]:
    """The comparison on generated data."""
    yield from compared(*generated(QUERIES if FULL else QUERIES // 10))


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
    from fastrank import CDataset, CQRel, TrainRequest

    owner = np.repeat(np.arange(len(data.qids)), np.diff(data.offsets)).astype(np.int64)
    features = data.features.astype(np.float32)
    dataset = CDataset.from_numpy(features, data.grades.astype(np.float64), owner)
    request = TrainRequest.coordinate_ascent()
    request.measure = "map"
    request.judgments = CQRel.from_dict(
        {str(i): {docid: float(grade) for docid, grade in qrels[qid].items()} for i, qid in enumerate(data.qids)}
    )
    request.params.num_restarts, request.params.quiet, request.params.seed = 5, True, 1
    start = time.process_time()
    model = dataset.train_model(request)
    spent = time.process_time() - start
    scores = np.asarray(model.predict_dense_scores(dataset), dtype=np.float64)
    return spent, float(np.mean(Objective("AP").evaluate(data, scores)))
