"""Rocchio's method, against a slow version with dictionaries."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features import FeatureExtractor, FeatureParameters, FeatureSpec
from greylag.feedback import Rocchio
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking
from tests.greylag.feedback import samples

INDEX = samples.index()
PARAMETERS = FeatureParameters(k1=1.3, b=0.6)


def words(index: PositionalIndex, docid: str) -> Counter[int]:
    return Counter(index.token_stream(int(index.documents([docid])[0]))[0].tolist())


def slow_query(
    index: PositionalIndex, query: str, grades: dict[str, int], beta: float, gamma: float, terms: int
) -> dict[int, float]:
    counts = Counter(term for term in index.query_terms(query).tolist() if term >= 0)
    length = math.sqrt(sum(n * n for n in counts.values()))
    weights = Counter({term: n / length for term, n in counts.items()})
    for sign, kind in ((beta, True), (-gamma, False)):
        judged = [docid for docid, grade in grades.items() if (grade > 0) == kind]
        for docid in judged:
            tf = {
                t: n for t, n in words(index, docid).items() if index.document_frequencies[t] <= index.n_documents / 10
            }
            norm = math.sqrt(sum(n * n for n in tf.values()))
            for term, n in tf.items():
                weights[term] += sign * n / norm / len(judged)
    kept = sorted(weights, key=lambda term: (-weights[term], term))[:terms]
    return {term: weights[term] for term in kept if weights[term] > 0}


def slow_score(index: PositionalIndex, docid: str, weights: dict[int, float]) -> float:
    tf, p = words(index, docid), PARAMETERS
    norm = p.k1 * (1 - p.b + p.b * tf.total() / index.average_length)
    score = 0.0
    for term, weight in weights.items():
        df = int(index.document_frequencies[term])
        idf = math.log(1 + (index.n_documents - df + 0.5) / (df + 0.5))
        score += weight * idf * (p.k1 + 1) * tf[term] / (norm + tf[term])
    return score


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("beta", "gamma", "terms"), [(0.75, 0.15, 100), (3.0, 2.0, 7)])
def test_scores_are_those_of_the_formula(seed: int, beta: float, gamma: float, terms: int) -> None:
    ranking, grades = samples.ranking(seed), samples.grades(seed)
    stage = Rocchio(INDEX, {"q": grades}, beta=beta, gamma=gamma, terms=terms, parameters=PARAMETERS)
    weights = slow_query(INDEX, ranking.query, grades, beta, gamma, terms)
    found = stage(ranking)
    assert found.scores.tolist() == pytest.approx([slow_score(INDEX, d, weights) for d in found.docids], abs=1e-12)
    assert set(found.docids) == set(ranking.docids)
    assert found.docids != ranking.docids


def test_without_weight_on_judged_documents_it_is_bm25() -> None:
    ranking = samples.ranking(3)
    found = Rocchio(INDEX, {"q": samples.grades(3)}, beta=0.0, gamma=0.0, parameters=PARAMETERS)(ranking)
    extract = FeatureExtractor(INDEX, (FeatureSpec.parse("FI/term/BM25"),), PARAMETERS)
    n = math.sqrt(sum(count**2 for count in Counter(INDEX.query_terms(ranking.query).tolist()).values()))
    assert found.scores.tolist() == pytest.approx((extract(found)[:, 0] / n).tolist(), abs=1e-12)


def test_without_a_relevant_document_the_ranking_is_kept() -> None:
    ranking = samples.ranking(1)
    assert Rocchio(INDEX, {})(ranking) == ranking
    assert Rocchio(INDEX, {"q": {"d1": 0, "unknown": 1}})(ranking) == ranking
    empty = Ranking("q", "w9x", (), np.empty(0))
    assert Rocchio(INDEX, {"q": {"d1": 1}})(empty) == empty


@pytest.mark.parametrize("wrong", [{"beta": -0.1}, {"gamma": math.nan}, {"beta": math.inf}, {"terms": 0}])
def test_domains(wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Rocchio(INDEX, {}, **wrong)  # type: ignore[arg-type]
