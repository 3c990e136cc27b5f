"""The studies' data and tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greylag.diversity import Coverage, EssentialPages, SubtopicOracle
from greylag.errors import ParameterError
from greylag.structured import CuttingPlane
from greylag_papers.yue_joachims_2008.comparison import (
    BASELINES,
    Split,
    baseline_losses,
    index_queries,
    rotations,
    study,
    svmdiv_losses,
    synthetic_queries,
)
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics
from tests.greylag.diversity import samples

SMALL = SyntheticSubtopics(n_sets=8, n_documents=20, n_subtopics=6, n_words=60, n_vocabulary=400, seed=3)


def test_synthetic_sets_are_as_described() -> None:
    data = replace(SMALL, n_sets=60, n_subtopics=10)
    sizes = []
    for frequencies, truth in data.draw():
        assert frequencies.shape == (20, 400)
        assert frequencies.sum(axis=1).ravel().tolist() == [[60.0] * 20]
        covered = truth.coverage.toarray()
        assert set(np.unique(covered)) == {0.0, 1.0}
        assert covered.any(axis=0).all()
        assert set(covered.sum(axis=1)) <= {1.0, 2.0, 3.0, 4.0}
        np.testing.assert_allclose(truth.weights, covered.sum(axis=0) / covered.sum())
        sizes.append(covered.shape[1])
    assert min(sizes) <= 2
    assert 8 < max(sizes) <= 10


def test_synthetic_documents_share_words_as_they_share_subtopics() -> None:
    alike, unlike = [], []
    for frequencies, truth in replace(SMALL, n_words=300, per_document=1, concentration=20.0).draw():
        tf, covered = frequencies.toarray(), truth.coverage.toarray()
        tf /= np.linalg.norm(tf, axis=1, keepdims=True)
        cosines, same = tf @ tf.T, covered @ covered.T > 0
        alike.append(cosines[same & ~np.eye(20, dtype=bool)].mean())
        unlike.append(cosines[~same].mean())
    assert np.mean(alike) > 1.5 * np.mean(unlike)


def test_synthetic_sets_depend_on_the_seed_alone() -> None:
    first, again, other = SMALL.draw(), SMALL.draw(), replace(SMALL, seed=4).draw()
    assert all((a != b).nnz == 0 for (a, _), (b, _) in zip(first, again, strict=True))
    assert all((a != b).nnz > 0 for (a, _), (b, _) in zip(first, other, strict=True))


@pytest.mark.parametrize("options", [{"n_subtopics": 1}, {"n_words": 0}, {"concentration": 0.0}, {"seed": -1}])
def test_bad_sizes(options: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        replace(SMALL, **options)  # type: ignore[arg-type]


def test_rotations_test_each_query_once() -> None:
    queries = synthetic_queries(SMALL)
    splits = rotations(queries, n_training=4, n_validation=2)
    assert [split.test[0].qid for split in splits] == [query.qid for query in queries]
    for split in splits:
        assert (len(split.training), len(split.validation), len(split.test)) == (4, 2, 1)
        assert len({query.qid for part in split for query in part}) == 7
    with pytest.raises(ParameterError, match="8 queries cannot be split into 6"):
        rotations(queries, n_training=6, n_validation=2)


def test_baselines_are_the_stages() -> None:
    n, qrels = 15, {"q": samples.judgements(0, 15), "none": {}}
    index, ranking = samples.index(1, n), samples.ranking(2, n)
    rankings = [ranking, samples.ranking(2, n, "none")]
    (query,) = index_queries(index, rankings, qrels, relevant_only=False)
    losses = {row.method: row.loss for row in baseline_losses(query, 4)}
    assert set(losses) == {"random", *BASELINES}
    stages = {
        "coverage": Coverage(index, k=4),
        "essential-pages": EssentialPages(index, k=4),
        "known-subtopics": SubtopicOracle(qrels, k=4),
    }
    for name, stage in stages.items():
        order = [ranking.docids.index(docid) for docid in stage(ranking).docids[:4]]
        assert losses[name] == query.truth.loss(np.array(order))
    assert losses["first-stage"] == query.truth.loss(np.arange(4))
    assert losses["known-subtopics"] < losses["random"] < 1.0
    (relevant,) = index_queries(index, rankings, qrels)
    assert 0 < len(relevant.relevance) < n
    assert (np.diff(relevant.truth.coverage.indptr) > 0).all()
    assert relevant.truth.weights.tolist() == query.truth.weights.tolist()
    assert len(relevant.candidates["svmdiv2"]) == relevant.frequencies.shape[0] == len(relevant.relevance)


def test_the_table_is_complete_and_the_same_on_any_number_of_processes() -> None:
    splits = rotations(synthetic_queries(SMALL), n_training=3, n_validation=2)
    grid = (1.0, 100.0)
    table = study(splits, [1, 3], spaces=["svmdiv"], grid=grid)
    assert table == study(splits, [1, 3], spaces=["svmdiv"], grid=grid, n_jobs=2)
    qids = [str(i) for i in range(8)]
    for k in (1, 3):
        for method in ("random", *BASELINES, "svmdiv"):
            assert list(table.losses(method, k)) == qids
            assert table.mean("known-subtopics", k) <= table.mean(method, k) + 1e-12
        by_cost = [table.losses("svmdiv", k, C) for C in grid]
        chosen = table.losses("svmdiv", k)
        assert all(chosen[qid] in [losses[qid] for losses in by_cost] for qid in qids)
    with pytest.raises(ParameterError, match=r"no losses of 'svmdiv' at k = 2"):
        table.losses("svmdiv", 2)


def test_the_chosen_cost_is_validations_best() -> None:
    queries = tuple(synthetic_queries(SMALL))
    rows = svmdiv_losses(Split(queries[:3], queries[3:], queries[3:]), "svmdiv", 2, (1e-3, 1.0, 1e3), CuttingPlane())
    means = {C: np.mean([row.loss for row in rows if row.C == C]) for C in (None, 1e-3, 1.0, 1e3)}
    chosen = means.pop(None)
    assert chosen == min(means.values()) < means[1e3]


def test_learning_beats_essential_pages_on_synthetic_sets() -> None:
    queries = tuple(synthetic_queries(replace(SMALL, n_sets=40, n_documents=40, n_words=200, n_vocabulary=2000)))
    split = Split(queries[:10], queries[10:15], queries[15:])
    for k in (1, 3):
        learned = [row.loss for row in svmdiv_losses(split, "svmdiv", k, (1.0, 100.0), CuttingPlane()) if row.C is None]
        losses = [row for query in split.test for row in baseline_losses(query, k)]
        for method in ("essential-pages", "random"):
            assert np.mean(learned) < np.mean([row.loss for row in losses if row.method == method])
