"""Stages of relevance feedback, by the formulas."""

import math
from collections import Counter

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features import FeatureExtractor, FeatureParameters, FeatureSpec
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking
from greylag_papers.zhou_2003.feedback import RelevanceModelRanker, Rocchio, judged_documents

WORDS = [f"w{i}x" for i in range(60)]
N = 80


def random_index():
    """d0 to d79, of 5 to 25 words; low words are common."""
    rng = np.random.default_rng(5)
    shares = 1.0 / np.arange(4, len(WORDS) + 4)
    texts = {f"d{i}": " ".join(rng.choice(WORDS, rng.integers(5, 26), p=shares / shares.sum())) for i in range(N)}
    return PositionalIndex.from_texts(texts)


def random_ranking(seed, qid="q", n=40):
    """`n` of the documents, for a query of three words."""
    rng = np.random.default_rng(seed)
    docids = tuple(f"d{i}" for i in rng.permutation(N)[:n])
    return Ranking(qid, " ".join(rng.choice(WORDS[8:], 3)), docids, np.arange(n, 0.0, -1.0))


def random_grades(seed):
    """Grades from 0 to 2 of twelve documents, in the ranking or not, the first of which is relevant."""
    rng = np.random.default_rng(seed + 100)
    judged = [f"d{i}" for i in rng.permutation(N)[:12]]
    return dict(zip(judged, [1, *rng.integers(0, 3, 11).tolist()], strict=True))


INDEX = random_index()
BM25_PARAMETERS = FeatureParameters(k1=1.3, b=0.6)
LM_PARAMETERS = FeatureParameters(mu=20.0, fb_terms=8)


def test_judged_documents_are_those_of_the_index():
    feedback = {"q": {"d9": 2, "unknown": 1, "d3": 0, "d1": 1, "d2": -1}, "other": {"d4": 1}}
    assert judged_documents(INDEX, feedback, "q") == (["d1", "d9"], ["d2", "d3"])
    assert judged_documents(INDEX, feedback, "missing") == ([], [])


def words(docid):
    return Counter(INDEX.token_stream(int(INDEX.documents([docid])[0]))[0].tolist())


def slow_query(query, grades, beta, gamma, terms):
    counts = Counter(term for term in INDEX.query_terms(query).tolist() if term >= 0)
    length = math.sqrt(sum(n * n for n in counts.values()))
    weights = Counter({term: n / length for term, n in counts.items()})
    for sign, kind in ((beta, True), (-gamma, False)):
        judged = [docid for docid, grade in grades.items() if (grade > 0) == kind]
        for docid in judged:
            tf = {t: n for t, n in words(docid).items() if INDEX.document_frequencies[t] <= INDEX.n_documents / 10}
            norm = math.sqrt(sum(n * n for n in tf.values()))
            for term, n in tf.items():
                weights[term] += sign * n / norm / len(judged)
    kept = sorted(weights, key=lambda term: (-weights[term], term))[:terms]
    return {term: weights[term] for term in kept if weights[term] > 0}


def slow_score(docid, weights):
    tf, p = words(docid), BM25_PARAMETERS
    norm = p.k1 * (1 - p.b + p.b * tf.total() / INDEX.average_length)
    score = 0.0
    for term, weight in weights.items():
        df = int(INDEX.document_frequencies[term])
        idf = math.log(1 + (INDEX.n_documents - df + 0.5) / (df + 0.5))
        score += weight * idf * (p.k1 + 1) * tf[term] / (norm + tf[term])
    return score


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("beta", "gamma", "terms"), [(0.75, 0.15, 100), (3.0, 2.0, 7)])
def test_scores_are_those_of_the_formula(seed, beta, gamma, terms):
    ranking, grades = random_ranking(seed), random_grades(seed)
    stage = Rocchio(INDEX, {"q": grades}, beta=beta, gamma=gamma, terms=terms, parameters=BM25_PARAMETERS)
    weights = slow_query(ranking.query, grades, beta, gamma, terms)
    found = stage(ranking)
    assert found.scores.tolist() == pytest.approx([slow_score(d, weights) for d in found.docids], abs=1e-12)
    assert set(found.docids) == set(ranking.docids)
    assert found.docids != ranking.docids


def test_without_weight_on_judged_documents_it_is_bm25():
    ranking = random_ranking(3)
    found = Rocchio(INDEX, {"q": random_grades(3)}, beta=0.0, gamma=0.0, parameters=BM25_PARAMETERS)(ranking)
    extract = FeatureExtractor(INDEX, (FeatureSpec.parse("FI/term/BM25"),), BM25_PARAMETERS)
    n = math.sqrt(sum(count**2 for count in Counter(INDEX.query_terms(ranking.query).tolist()).values()))
    assert found.scores.tolist() == pytest.approx((extract(found)[:, 0] / n).tolist(), abs=1e-12)


def test_without_a_relevant_document_the_ranking_is_kept():
    ranking = random_ranking(1)
    assert Rocchio(INDEX, {})(ranking) == ranking
    assert Rocchio(INDEX, {"q": {"d1": 0, "unknown": 1}})(ranking) == ranking
    empty = Ranking("q", "w9x", (), np.empty(0))
    assert Rocchio(INDEX, {"q": {"d1": 1}})(empty) == empty


@pytest.mark.parametrize("wrong", [{"beta": -0.1}, {"gamma": math.nan}, {"beta": math.inf}, {"terms": 0}])
def test_domains(wrong):
    with pytest.raises(ParameterError):
        Rocchio(INDEX, {}, **wrong)  # type: ignore[arg-type]


def probability(tf, term):
    cf = int(INDEX.collection_frequencies[term])
    return (tf[term] + LM_PARAMETERS.mu * cf / INDEX.n_tokens) / (tf.total() + LM_PARAMETERS.mu)


def slow_model(query, relevant):
    model = Counter()
    for docid in relevant:
        tf = words(docid)
        likelihood = math.exp(sum(math.log(probability(tf, term)) for term in query) / len(query))
        for term, n in tf.items():
            if INDEX.document_frequencies[term] <= INDEX.n_documents / 10:
                model[term] += likelihood * n / tf.total()
    best = sorted(model, key=lambda term: (-model[term], term))[: LM_PARAMETERS.fb_terms]
    total = sum(model[term] for term in best)
    return {term: model[term] / total for term in best}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_scores_of_the_relevance_model_are_those_of_the_formula(seed, weight):
    ranking, grades = random_ranking(seed), random_grades(seed)
    stage = RelevanceModelRanker(INDEX, {"q": grades}, query_weight=weight, parameters=LM_PARAMETERS)
    query = INDEX.query_terms(ranking.query).tolist()
    model = slow_model(query, [docid for docid, grade in grades.items() if grade > 0])
    found = stage(ranking)
    for docid, score in zip(found.docids, found.scores, strict=True):
        tf = words(docid)
        by_query = sum(math.log(probability(tf, term)) for term in query) / len(query)
        by_model = sum(p * math.log(probability(tf, term)) for term, p in model.items())
        assert score == pytest.approx(weight * by_query + (1 - weight) * by_model, abs=1e-12)
    assert set(found.docids) == set(ranking.docids)


def test_documents_judged_not_relevant_have_no_influence():
    ranking, grades = random_ranking(2), random_grades(2)
    relevant = {docid: grade for docid, grade in grades.items() if grade > 0}
    stages = [RelevanceModelRanker(INDEX, {"q": own}) for own in (grades, relevant)]
    assert stages[0](ranking) == stages[1](ranking)


def test_unknown_documents_keep_their_ranks_and_without_relevant_ones_the_ranking_is_kept():
    ranking = Ranking("q", "w9x", ("nowhere", "d1", "elsewhere", "d2"), np.zeros(4))
    assert RelevanceModelRanker(INDEX, {"q": {"d5": 1}})(ranking).docids[::2] == ("nowhere", "elsewhere")
    assert RelevanceModelRanker(INDEX, {"q": {"d5": 0}})(ranking) == ranking
    assert RelevanceModelRanker(INDEX, {"q": {"d5": 1}})(ranking.head(1)) == ranking.head(1)
