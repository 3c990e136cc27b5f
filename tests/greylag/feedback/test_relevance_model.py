"""RM3 with judged documents, against a slow version with dictionaries."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features import FeatureParameters
from greylag.feedback import RelevanceModelRanker
from greylag.ranking import Ranking
from tests.greylag.feedback import samples
from tests.greylag.feedback.test_rocchio import words

INDEX = samples.index()
PARAMETERS = FeatureParameters(mu=20.0, fb_terms=8)


def probability(tf: Counter[int], term: int) -> float:
    cf = int(INDEX.collection_frequencies[term])
    return (tf[term] + PARAMETERS.mu * cf / INDEX.n_tokens) / (tf.total() + PARAMETERS.mu)


def slow_model(query: list[int], relevant: list[str]) -> dict[int, float]:
    model: Counter[int] = Counter()
    for docid in relevant:
        tf = words(INDEX, docid)
        likelihood = math.exp(sum(math.log(probability(tf, term)) for term in query) / len(query))
        for term, n in tf.items():
            if INDEX.document_frequencies[term] <= INDEX.n_documents / 10:
                model[term] += likelihood * n / tf.total()
    best = sorted(model, key=lambda term: (-model[term], term))[: PARAMETERS.fb_terms]
    total = sum(model[term] for term in best)
    return {term: model[term] / total for term in best}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_scores_are_those_of_the_formula(seed: int, weight: float) -> None:
    ranking, grades = samples.ranking(seed), samples.grades(seed)
    stage = RelevanceModelRanker(INDEX, {"q": grades}, query_weight=weight, parameters=PARAMETERS)
    query = INDEX.query_terms(ranking.query).tolist()
    model = slow_model(query, [docid for docid, grade in grades.items() if grade > 0])
    found = stage(ranking)
    for docid, score in zip(found.docids, found.scores, strict=True):
        tf = words(INDEX, docid)
        by_query = sum(math.log(probability(tf, term)) for term in query) / len(query)
        by_model = sum(p * math.log(probability(tf, term)) for term, p in model.items())
        assert score == pytest.approx(weight * by_query + (1 - weight) * by_model, abs=1e-12)
    assert set(found.docids) == set(ranking.docids)


def test_documents_judged_not_relevant_have_no_influence() -> None:
    ranking, grades = samples.ranking(2), samples.grades(2)
    relevant = {docid: grade for docid, grade in grades.items() if grade > 0}
    stages = [RelevanceModelRanker(INDEX, {"q": own}) for own in (grades, relevant)]
    assert stages[0](ranking) == stages[1](ranking)


def test_unknown_documents_keep_their_ranks_and_without_relevant_ones_the_ranking_is_kept() -> None:
    ranking = Ranking("q", "w9x", ("nowhere", "d1", "elsewhere", "d2"), np.zeros(4))
    assert RelevanceModelRanker(INDEX, {"q": {"d5": 1}})(ranking).docids[::2] == ("nowhere", "elsewhere")
    assert RelevanceModelRanker(INDEX, {"q": {"d5": 0}})(ranking) == ranking
    assert RelevanceModelRanker(INDEX, {"q": {"d5": 1}})(ranking.head(1)) == ranking.head(1)


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan])
def test_domain(weight: float) -> None:
    with pytest.raises(ParameterError, match="query_weight"):
        RelevanceModelRanker(INDEX, {}, query_weight=weight)
