"""SVM-div: training, the rotated study and prediction against their aims, and how the time grows."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.harness import FULL, Row, once, seconds
from greylag.base import IntArray
from greylag.diversity import PRESETS, Candidates, CoverageModel, candidates_from_counts
from greylag.evaluation import Subtopics
from greylag.learning import CuttingPlane
from greylag.learning.structured.model import TrainingSet
from greylag.recipes import C_GRID
from greylag_papers.yue_joachims_2008.comparison import measure_losses
from greylag_papers.yue_joachims_2008.queries import StudyQuery, rotations, synthetic_queries
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics

SPACE = "svmdiv"
DATA = SyntheticSubtopics(n_sets=17, n_documents=45)  # 300 words a document


def rows() -> Iterator[Row]:
    """All rows of SVM-div."""
    queries = synthetic_queries(DATA)
    for C in (1.0, 1000.0):
        fit = training(queries[:12])
        spent = seconds(lambda: CuttingPlane(C).fit(fit.model, fit.examples), 3)  # noqa: B023
        yield Row(f"SVM-div: training, 12 queries, 45 documents, 300 words, C {C:g}", spent, "s", "at most 2")
    splits = rotations(queries)
    spent = once(lambda: measure_losses(splits, [5], spaces=[SPACE], n_jobs=2))
    yield Row(f"SVM-div: {len(splits)} rotations, {len(C_GRID)} values of C, 2 processes", spent, "s", "at most 120")
    if FULL:
        large = rotations(synthetic_queries(replace(DATA, n_sets=132, n_documents=100)))
        spent = once(lambda: measure_losses(large, [5], spaces=[SPACE], n_jobs=2))
        name = f"SVM-div: {len(large)} rotations, 100 documents, {len(C_GRID)} values of C, 2 processes"
        yield Row(name, spent, "s", "at most 300")
    yield from map(prediction_row, (100, 1000))
    yield from growth_rows()


def training(queries: list[StudyQuery]) -> TrainingSet[Candidates, Subtopics, IntArray]:
    """The queries as a training set."""
    return TrainingSet(CoverageModel(), [(query.candidates[SPACE], query.truth) for query in queries])


def prediction_row(depth: int) -> Row:
    """Picking 20 documents with weights that a training on rankings of 100 gave."""
    trained = synthetic_queries(replace(DATA, n_documents=100))[:12]
    tested = synthetic_queries(replace(DATA, n_sets=4, n_documents=depth))
    fit = training(trained)
    weights = CuttingPlane().fit(fit.model, fit.examples).weights
    model, candidates = CoverageModel(20), [query.candidates[SPACE] for query in tested]
    spent = seconds(lambda: [model.infer(x, weights) for x in candidates]) / len(candidates)
    return Row(f"SVM-div: picking 20 of {depth}", 1e3 * spent, "ms", "at most 5")


def growth_rows() -> Iterator[Row]:
    """The work that training repeats, asking for each query's most violated constraint, on four times as much."""
    large = replace(DATA, n_sets=4, n_documents=720)  # where documents, not calls, take the time
    for name, few, many in (
        ("queries", DATA, replace(DATA, n_sets=4 * DATA.n_sets)),
        ("documents", large, replace(large, n_documents=4 * large.n_documents)),
    ):
        growth = pass_seconds(many) / pass_seconds(few)
        yield Row(f"SVM-div: a pass over the queries, time for 4 times the {name}", growth, "x", "about 4 at most")
    few, many = (replace(large, n_documents=times * large.n_documents) for times in (1, 4))
    growth = prediction_seconds(many) / prediction_seconds(few)
    yield Row("SVM-div: picking 20, time for 4 times the documents", growth, "x", "about 4 at most")


def prediction_seconds(data: SyntheticSubtopics) -> float:
    """The time of picking 20 documents of each set with random weights, a feature space's values included."""
    sets = [frequencies for frequencies, _ in data.draw()]
    weights = np.random.default_rng(0).standard_normal(PRESETS[SPACE].n_features)

    def predict() -> None:
        for counts in sets:
            n, n_words = counts.shape
            titles = {"title": csr_matrix(counts.shape)}
            x = candidates_from_counts(PRESETS[SPACE], counts, np.ones(n_words), titles, np.zeros((n, 0)))
            CoverageModel(20).infer(x, weights)

    return seconds(predict)


def pass_seconds(data: SyntheticSubtopics) -> float:
    """The time of one pass over the queries with random weights."""
    examples = training(synthetic_queries(data))
    weights = np.random.default_rng(0).standard_normal(examples.target_features.shape[1])
    return seconds(lambda: examples.hinge_losses(weights))
