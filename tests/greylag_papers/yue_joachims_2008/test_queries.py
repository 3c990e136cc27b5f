"""The queries of the studies, and their subtopics.

Tests `synthetic_subtopics`.
"""

from dataclasses import replace

import numpy as np
import pytest

from greylag import Run
from greylag.diversity import PRESETS
from greylag.evaluation import write_run
from greylag.features import FeatureExtractor, FeatureSpec
from greylag.studies import Context
from greylag_papers.yue_joachims_2008.queries import (
    CandidateSettings,
    first_split,
    folds,
    index_queries,
    open_candidates,
    rotations,
    synthetic_queries,
)
from greylag_papers.yue_joachims_2008.synthetic_subtopics import falling
from tests.greylag.diversity import samples
from tests.greylag.studies.samples import DEMO
from tests.greylag_papers.yue_joachims_2008.samples import SETS, queries


def test_irrelevant_documents_are_candidates_on_request_only():
    index, qrels = samples.index(1, 15), {"q": samples.judgements(0, 15), "none": {}}
    ranking = samples.ranking(2, 15)
    rankings = [ranking, samples.ranking(2, 15, "none")]
    (query,) = index_queries(index, rankings, qrels, relevant_only=False)
    (relevant,) = index_queries(index, rankings, qrels)
    assert 0 < len(relevant.relevance) < 15 == len(query.relevance)
    assert (np.diff(relevant.truth.coverage.indptr) > 0).all()
    assert relevant.truth.weights.tolist() == query.truth.weights.tolist()
    covering = np.flatnonzero(np.diff(query.truth.coverage.indptr))
    assert relevant.okapi.tolist() == query.okapi[covering].tolist()
    assert len(relevant.candidates["svmdiv2"]) == relevant.frequencies.shape[0] == len(relevant.relevance)
    bm25 = FeatureExtractor(index, (FeatureSpec("FI", "term", "BM25"),))
    assert query.okapi.tolist() == bm25(ranking)[:, 0].tolist()
    assert np.ptp(query.okapi) > 0
    (first,) = index_queries(index, [ranking.head(6)], qrels, relevant_only=False)
    counts = first.truth.coverage.toarray().sum(axis=0)  # of the candidates alone
    np.testing.assert_allclose(first.truth.weights, counts / counts.sum())


def test_synthetic_sets_become_queries():
    for number, (query, (frequencies, truth)) in enumerate(zip(synthetic_queries(SETS), SETS.draw(), strict=True)):
        assert query.qid == str(number)
        assert (query.frequencies != frequencies).nnz == 0
        assert query.truth.weights.tolist() == truth.weights.tolist()
        assert query.relevance.tolist() == [0.0] * 20
        assert set(query.candidates) == set(PRESETS)
        np.testing.assert_allclose(query.vectors.multiply(query.vectors).sum(axis=1), 1.0)
        # A word that occurs in every document has an idf of 0.
        everywhere = (frequencies.toarray() > 0).all(axis=0)
        assert not query.vectors.toarray()[:, everywhere].any()


def qids(split):
    return [" ".join(query.qid for query in part) for part in split]


def test_splits_by_hand():
    assert qids(first_split(queries(6), 3, 1)) == ["0 1 2", "3", "4 5"]
    alone = [qids(split) for split in rotations(queries(8), n_training=4, n_validation=2)]
    assert [test for *_, test in alone] == [str(number) for number in range(8)]
    assert alone[5] == ["6 7 0 1", "2 3", "5"]
    assert [qids(split) for split in rotations(queries(8), n_training=3, n_validation=2, n_splits=3)] == [
        ["3 4 5", "6 7", "0 1 2"],
        ["6 7 0", "1 2", "3 4 5"],
        ["0 1 2", "3 4", "6 7"],
    ]


@pytest.mark.parametrize(("n", "blocks"), [(44, [22, 22]), (25, [9, 8, 8]), (17, [1] * 17), (40, [20, 20])])
def test_folds_test_each_query_once_on_unseen_queries(n, blocks):
    splits = folds(queries(n), 12, 4)
    assert [len(split.test) for split in splits] == blocks
    assert [query.qid for split in splits for query in split.test] == [str(i) for i in range(n)]
    for split in splits:
        assert (len(split.training), len(split.validation)) == (12, 4)
        seen = [query.qid for part in split for query in part]
        assert len(set(seen)) == len(seen)


def test_candidates_come_from_bm25_or_from_a_run(tmp_path):
    settings = CandidateSettings(
        name="demo", docs="docs.jsonl", topics="topics.tsv", subtopic_qrels="qrels.subtopics.txt", depth=20,
        data_folder=DEMO,
    )  # fmt: skip
    found = open_candidates(settings, Context(tmp_path))
    assert max(len(ranking.docids) for ranking in found.rankings) == 20
    relevant, every = found.queries(), found.queries(relevant_only=False)
    assert [query.qid for query in relevant] == [query.qid for query in every]
    write_run(Run(tuple(found.rankings), "bm25"), tmp_path / "bm25.run")
    read = settings.model_copy(update={"run": str(tmp_path / "bm25.run"), "depth": 10})
    for first, second in zip(found.rankings, open_candidates(read, Context(tmp_path)).rankings, strict=True):
        assert second.docids == first.docids[:10]
        np.testing.assert_allclose(second.scores, first.scores[:10], rtol=1e-5)


def test_sets_have_the_documented_shape_and_depend_on_the_seed_alone():
    data = replace(SETS, n_sets=60, n_subtopics=10)
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
    for (first, _), (again, _), (other, _) in zip(data.draw(), data.draw(), replace(data, seed=4).draw(), strict=True):
        assert (first != again).nnz == 0 < (first != other).nnz


def test_documents_with_a_common_subtopic_share_more_words():
    alike, unlike = [], []
    for frequencies, truth in replace(SETS, n_words=300, per_document=1, concentration=20.0).draw():
        tf, covered = frequencies.toarray(), truth.coverage.toarray()
        tf /= np.linalg.norm(tf, axis=1, keepdims=True)
        cosines, same = tf @ tf.T, covered @ covered.T > 0
        alike.append(cosines[same & ~np.eye(20, dtype=bool)].mean())
        unlike.append(cosines[~same].mean())
    assert np.mean(alike) > 1.5 * np.mean(unlike)


def test_popularities_of_subtopics_and_words_fall_with_the_exponent():
    data = replace(SETS, n_sets=50, n_subtopics=2, per_document=1, n_words=500, concentration=1e6)
    for exponent, share in ((0.0, 1 / 2), (1.0, 1 / 3), (2.0, 1 / 5)):
        drawn = replace(data, exponent=exponent).draw()
        # The less popular subtopic is the second one if both occur.
        smaller = [truth.coverage.sum(axis=0).tolist()[0][-1] / 20 for _, truth in drawn if len(truth.weights) == 2]
        assert np.mean(smaller) == pytest.approx(share, abs=0.03)
        words = sum(frequencies.sum(axis=0) for frequencies, _ in drawn).A1
        assert words[0] / words.sum() == pytest.approx(falling(400, exponent)[0], rel=0.1)
    np.testing.assert_allclose(falling(3, 2.0), [36 / 49, 9 / 49, 4 / 49])
