"""The Coulomb structured SVM: training five members against training one, and minimum cuts against scipy's."""

from collections.abc import Iterator
from typing import get_args

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from benchmarks.harness import Row, seconds
from benchmarks.svmdiv import DATA, training
from greylag.base import FloatArray, IntArray
from greylag.learning import CuttingPlane
from greylag_papers.schiegg_2016.coulomb import Coulomb
from greylag_papers.schiegg_2016.coulomb_solvers import Repulsion
from greylag_papers.schiegg_2016.potts import best_labels, neighbours
from greylag_papers.yue_joachims_2008.queries import synthetic_queries


def rows() -> Iterator[Row]:
    """For each C the times of both for each form of repulsion, and their ratio."""
    examples = training(synthetic_queries(DATA)[:12])
    for C in (1.0, 1000.0):
        alone = seconds(lambda: CuttingPlane(C).fit(examples.model, examples.examples), 3)  # noqa: B023
        for repulsion in get_args(Repulsion):
            learner = Coulomb(5, C=C, repulsion=repulsion)
            time = seconds(lambda: learner.fit(examples.model, examples.examples), 3)  # noqa: B023
            name = f"CSSVM: training 5 members by {repulsion}, 12 queries, 45 documents, 300 words, C {C:g}"
            yield Row(name, time, "s")
            yield Row(f"{name}: by the time of one cutting plane", time / alone, "x", "at most 10")
    yield cut_row()


def cut_row() -> Row:
    """The time of scipy's minimum cuts by that of ours, which find the same labels."""
    rng, shape = np.random.default_rng(0), (12, 16)
    pairs = neighbours(shape)
    problems = [(rng.normal(size=192), rng.random(pairs.shape[1])) for _ in range(50)]
    ours = [best_labels(shape, np.column_stack([np.zeros(192), unary]), edges) for unary, edges in problems]
    if not all(np.array_equal(y, scipy_labels(pairs, *problem)) for y, problem in zip(ours, problems, strict=True)):
        raise AssertionError("the cuts differ")
    time = seconds(lambda: [best_labels(shape, np.column_stack([np.zeros(192), u]), v) for u, v in problems], 3)
    peer = seconds(lambda: [scipy_labels(pairs, *problem) for problem in problems], 3)
    return Row("Minimum cuts of 12 x 16 superpixels: scipy's time by ours", peer / time, "x", "at least 3")


def scipy_labels(pairs: IntArray, unary: FloatArray, edges: FloatArray) -> IntArray:
    """The labels of the smallest source side, by `scipy.sparse.csgraph.maximum_flow` of 30 bits."""
    P, (first, second) = len(unary), pairs
    every, source, sink = np.arange(P), np.full(P, P), np.full(P, P + 1)
    capacities = np.concatenate([edges, edges, np.maximum(unary, 0.0), np.maximum(-unary, 0.0)])
    scaled = np.rint(capacities * (2**29 / capacities.sum())).astype(np.int32)
    places = np.concatenate([first, second, source, every]), np.concatenate([second, first, every, sink])
    graph = csr_matrix((scaled, places), shape=(P + 2, P + 2))
    residual = graph - maximum_flow(graph, P, P + 1).flow
    residual.eliminate_zeros()
    reached = np.zeros(P + 2, dtype=np.int64)
    reached[breadth_first_order(residual, P, return_predecessors=False)] = 1
    return reached[:P]
