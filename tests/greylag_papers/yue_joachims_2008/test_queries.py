from __future__ import annotations

import numpy as np

from greylag.diversity import PRESETS
from greylag.features import FeatureExtractor, FeatureSpec
from greylag_papers.yue_joachims_2008.queries import index_queries, synthetic_queries
from tests.greylag.diversity import samples
from tests.greylag_papers.yue_joachims_2008.samples import SETS


def test_irrelevant_documents_are_candidates_on_request_only() -> None:
    n, qrels = 15, {"q": samples.judgements(0, 15), "none": {}}
    index = samples.index(1, n)
    rankings = [samples.ranking(2, n), samples.ranking(2, n, "none")]
    (query,) = index_queries(index, rankings, qrels, relevant_only=False)
    (relevant,) = index_queries(index, rankings, qrels)
    assert 0 < len(relevant.relevance) < n == len(query.relevance)
    assert (np.diff(relevant.truth.coverage.indptr) > 0).all()
    assert relevant.truth.weights.tolist() == query.truth.weights.tolist()
    covering = np.flatnonzero(np.diff(query.truth.coverage.indptr))
    assert relevant.okapi.tolist() == query.okapi[covering].tolist()
    assert len(relevant.candidates["svmdiv2"]) == relevant.frequencies.shape[0] == len(relevant.relevance)


def test_synthetic_sets_become_queries() -> None:
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


def test_okapi_is_bm25_of_the_query() -> None:
    index, ranking = samples.index(1, 15), samples.ranking(2, 15)
    (query,) = index_queries(index, [ranking], {"q": samples.judgements(0, 15)}, relevant_only=False)
    extract = FeatureExtractor(index, (FeatureSpec("FI", "term", "BM25"),))
    assert query.okapi.tolist() == extract(ranking)[:, 0].tolist()
    assert np.ptp(query.okapi) > 0


def test_weights_count_the_candidates_alone() -> None:
    index, ranking, qrels = samples.index(1, 15), samples.ranking(2, 15).head(6), {"q": samples.judgements(0, 15)}
    (query,) = index_queries(index, [ranking], qrels, relevant_only=False)
    counts = query.truth.coverage.toarray().sum(axis=0)
    np.testing.assert_allclose(query.truth.weights, counts / counts.sum())
