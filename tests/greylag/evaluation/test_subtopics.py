"""Coverage, weights and loss of subtopics."""

import numpy as np
import pytest

from greylag.evaluation import Subtopics
from greylag.evaluation.diversity import subtopic_loss
from greylag.evaluation.subtopics import coverage, covered_columns, relevant_documents

JUDGEMENTS = {"1": {"a": 1, "c": 2}, "2": {"a": 0}, "3": {"b": 1, "a": 1}}


def test_coverage():
    relevant = relevant_documents(JUDGEMENTS)
    assert relevant == [{"a", "c"}, {"a", "b"}]
    assert coverage(("x", "a", "b"), relevant).tolist() == [[False, False], [True, True], [False, True]]
    assert coverage((), relevant).shape == (0, 2)
    assert coverage(("a",), []).shape == (1, 0)


def test_covered_columns():
    candidates = Subtopics.from_qrels(("x", "a", "b"), JUDGEMENTS).coverage
    assert covered_columns(candidates, [1, 2]).tolist() == [0, 1, 1]
    assert covered_columns(candidates, []).tolist() == []


@pytest.mark.parametrize("seed", range(20))
def test_loss_is_the_measure(seed):
    rng = np.random.default_rng(seed)
    docids = [f"d{i}" for i in range(14)]
    judgements = {f"s{s}": {docid: int(rng.random() < 0.25) for docid in docids} for s in range(5)}
    truth, relevant = Subtopics.from_qrels(docids[:10], judgements), relevant_documents(judgements)
    assert truth.weights.sum() == pytest.approx(1.0)
    for k in (0, 1, 3, 10):
        picked = rng.permutation(10)[:k]
        covered = coverage([docids[i] for i in picked], relevant)
        assert truth.loss(picked) == pytest.approx(subtopic_loss(covered, coverage(docids, relevant), k))


def test_weights_count_relevant_documents_outside_the_candidates():
    judgements = {"a": {"d1": 1}, "b": {"d2": 1, "d9": 2}, "c": {"d0": 1, "d8": 1, "d9": 1}, "none": {"d0": 0}}
    truth = Subtopics.from_qrels(["d0", "d1", "d2"], judgements)
    assert truth.weights.tolist() == pytest.approx([1 / 6, 2 / 6, 3 / 6])
    assert truth.loss(np.array([0])) == pytest.approx(3 / 6)


def test_weights_can_count_the_candidates_alone():
    judgements = {"a": {"d1": 1}, "b": {"d2": 1, "d9": 2}, "c": {"d0": 1, "d1": 1, "d9": 1}, "none": {"d8": 1}}
    truth = Subtopics.from_qrels(["d0", "d1", "d2"], judgements, candidates_only=True)
    assert truth.coverage.toarray().tolist() == [[0, 0, 1], [1, 0, 1], [0, 1, 0]]
    assert truth.weights.tolist() == [1 / 4, 1 / 4, 2 / 4]


def test_no_subtopics():
    nothing = Subtopics.from_qrels(["d0", "d1"], {"a": {"d0": 0}})
    assert nothing.coverage.shape == (2, 0)
    assert nothing.loss(np.array([0])) == 0.0
