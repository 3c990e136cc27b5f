"""The Coulomb structured SVM: training five members against training one, on SVM-div's problem of the paper's size."""

from __future__ import annotations

from collections.abc import Iterator

from greylag.structured import Coulomb, CuttingPlane
from greylag_papers.yue_joachims_2008.queries import synthetic_queries
from tests.benchmarks.harness import Row, seconds
from tests.benchmarks.svmdiv import DATA, training


def rows() -> Iterator[Row]:
    """For each C the times of both, and their ratio."""
    examples = training(synthetic_queries(DATA)[:12])
    for C in (1.0, 1000.0):
        times = [
            seconds(lambda: learner.fit(examples.model, examples.examples), 3)  # noqa: B023
            for learner in (CuttingPlane(C), Coulomb(M=5, C=C))
        ]
        yield Row(f"CSSVM: training 5 members, 12 queries, 45 documents, 300 words, C {C:g}", times[1], "s")
        yield Row(f"CSSVM: the same, by the time of one cutting plane, C {C:g}", times[1] / times[0], "x", "at most 10")
