"""The Coulomb structured SVM: training five members against training one, on SVM-div's problem of the paper's size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from greylag.structured import Coulomb, CuttingPlane, Repulsion
from greylag_papers.yue_joachims_2008.queries import synthetic_queries
from tests.benchmarks.harness import Row, seconds
from tests.benchmarks.svmdiv import DATA, training


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
