"""RM3 as a stage."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features import FeatureExtractor, FeatureParameters, parse_features, relevance_model
from greylag.ltr import RM3
from greylag.ranking import Ranking
from tests.greylag.diversity import samples

INDEX = samples.index(1, 15)
RANKING = samples.ranking(2, 15)


def test_scores_are_those_of_the_expanded_query() -> None:
    parameters = FeatureParameters(k1=1.4, b=0.3, fb_docs=3, fb_terms=4, mu=50.0)
    stage = RM3(INDEX, original_weight=0.3, k1=1.4, b=0.3, fb_docs=3, fb_terms=4, mu=50.0)
    terms, probabilities = relevance_model(INDEX, RANKING, parameters)
    model = dict.fromkeys(INDEX.query_terms(RANKING.query).tolist(), 0.0)
    for term in INDEX.query_terms(RANKING.query).tolist():
        model[term] += 0.3 / len(INDEX.query_terms(RANKING.query))
    for term, probability in zip(terms.tolist(), probabilities.tolist(), strict=True):
        model[term] = model.get(term, 0.0) + 0.7 * probability
    scores = np.zeros(len(RANKING))
    for term, weight in model.items():
        if term >= 0:
            one = Ranking("q", INDEX.term(term), RANKING.docids, RANKING.scores)
            scores += weight * FeatureExtractor(INDEX, parse_features("FI/term/BM25"), parameters)(one)[:, 0]
    ranked = stage(RANKING)
    found = dict(zip(ranked.docids, ranked.scores.tolist(), strict=True))
    assert [found[docid] for docid in RANKING.docids] == pytest.approx(scores.tolist())


def test_the_query_alone_is_bm25() -> None:
    bm25 = FeatureExtractor(INDEX, parse_features("FI/term/BM25"))(RANKING)[:, 0]
    assert RM3(INDEX, original_weight=1.0)(RANKING).docids == RANKING.rescore(bm25).docids
    assert RM3(INDEX, original_weight=0.0)(RANKING).docids != RANKING.rescore(bm25).docids


def test_bad_options() -> None:
    with pytest.raises(ParameterError, match=r"original_weight must be in \[0, 1\], not 2"):
        RM3(INDEX, original_weight=2)
    with pytest.raises(ParameterError, match="fb_docs"):
        RM3(INDEX, fb_docs=0)
