"""Relevance models and the features of their terms, compared with the formulas over plain strings."""

from __future__ import annotations

from collections import Counter
from math import exp, log

import numpy as np
import pytest

from greylag.features.expansion import relevance_model
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import EXPANSION, candidate_pool
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.linear import LinearModel
from greylag.ltr.rankers import MRFRanker
from greylag.ranking import Ranking

RNG = np.random.default_rng(3)
WORDS = [f"w{i}x" for i in range(60)]
POPULARITY = 1 / np.arange(5, 65)
DOCUMENTS = [RNG.choice(WORDS, size=RNG.integers(1, 12), p=POPULARITY / POPULARITY.sum()).tolist() for _ in range(80)]
INDEX = PositionalIndex.from_texts({f"d{i}": " ".join(words) for i, words in enumerate(DOCUMENTS)})
CF = Counter(word for words in DOCUMENTS for word in words)
DF = Counter(word for words in DOCUMENTS for word in set(words))
TOKENS = sum(CF.values())
QUERIES = ["w3x", "w1x w20x", "w7x w7x unknown w40x w2x", "unknown"]


def ranked(query: str, seed: int = 0, size: int = 30) -> tuple[Ranking, list[int]]:
    order = np.random.default_rng(seed).permutation(len(DOCUMENTS))[:size].tolist()
    return Ranking("q", query, tuple(f"d{i}" for i in order), np.zeros(size)), order


def by_hand(query: str, feedback: list[int], p: FeatureParameters) -> dict[str, float]:
    """RM1, from its definition."""
    terms = [word for word in query.split() if word in CF]
    total: Counter[str] = Counter()
    for d in feedback[: p.fb_docs]:
        words = Counter(DOCUMENTS[d])
        length = len(DOCUMENTS[d])
        logs = [log((words[word] + p.mu * CF[word] / TOKENS) / (length + p.mu)) for word in terms]
        for word, tf in words.items():
            total[word] += exp(sum(logs) / max(1, len(terms))) * tf / length
    rare = {word: share for word, share in total.items() if DF[word] <= len(DOCUMENTS) / 10}
    best = dict(sorted(rare.items(), key=lambda item: (-item[1], item[0]))[: p.fb_terms])
    return {word: share / sum(best.values()) for word, share in best.items()}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    "parameters", [FeatureParameters(), FeatureParameters(mu=7.0, fb_docs=3, fb_terms=5), FeatureParameters(fb_docs=99)]
)
def test_is_rm1(query: str, parameters: FeatureParameters) -> None:
    ranking, order = ranked(query)
    terms, probabilities = relevance_model(INDEX, ranking, parameters)
    expected = by_hand(query, order, parameters)
    found = {INDEX.term(int(term)): p for term, p in zip(terms, probabilities, strict=True)}
    assert found == pytest.approx(expected, rel=1e-9)
    assert probabilities.sum() == pytest.approx(1.0)
    assert (np.diff(terms) > 0).all()


@pytest.mark.parametrize("query", QUERIES)
def test_features_are_the_weighted_sums(query: str) -> None:
    p = FeatureParameters(mu=30.0, k1=1.3, b=0.6, fb_docs=6, fb_terms=8)
    ranking, order = ranked(query)
    model = by_hand(query, order, p)
    expected = np.zeros((len(order), 2))
    for row, d in enumerate(order):
        words, length = Counter(DOCUMENTS[d]), len(DOCUMENTS[d])
        for word, share in model.items():
            tf, n = words[word], len(DOCUMENTS)
            idf = log(1 + (n - DF[word] + 0.5) / (DF[word] + 0.5))
            relative = length / (TOKENS / n)
            expected[row, 0] += share * log((tf + p.mu * CF[word] / TOKENS) / (length + p.mu))
            expected[row, 1] += share * idf * (p.k1 + 1) * tf / (p.k1 * (1 - p.b + p.b * relative) + tf)
    np.testing.assert_allclose(FeatureExtractor(INDEX, EXPANSION, p)(ranking), expected, rtol=1e-11)


@pytest.mark.parametrize("query", QUERIES)
def test_other_features_are_unaffected(query: str) -> None:
    ranking, _ = ranked(query)
    pool = candidate_pool()
    mixed = (*pool[:10], EXPANSION[1], *pool[10:], EXPANSION[0])
    values = FeatureExtractor(INDEX, mixed)(ranking)
    columns = [mixed.index(spec) for spec in pool]
    np.testing.assert_array_equal(values[:, columns], FeatureExtractor(INDEX, pool)(ranking))


def test_only_the_top_documents_matter() -> None:
    ranking, order = ranked("w1x w20x")
    p = FeatureParameters(fb_docs=10)
    swapped = Ranking("q", ranking.query, (*ranking.docids[:10], *ranking.docids[:9:-1]), np.zeros(len(order)))
    first = dict(zip(ranking.docids, FeatureExtractor(INDEX, EXPANSION, p)(ranking).tolist(), strict=True))
    second = dict(zip(swapped.docids, FeatureExtractor(INDEX, EXPANSION, p)(swapped).tolist(), strict=True))
    assert first == second
    other, _ = ranked("w1x w20x", seed=1)
    assert relevance_model(INDEX, ranking, p)[0].tolist() != relevance_model(INDEX, other, p)[0].tolist()


def test_two_weights_are_rm3() -> None:
    """Of a query without repeated words: (1 - l) P(w|Q) + l P(w|R) over all words, with P(w|Q) = 1 / |Q|."""
    ranking, order = ranked("w1x w20x w30x")
    p, share = FeatureParameters(mu=50.0), 0.3
    query = ranking.query.split()
    mixed = Counter({word: (1 - share) / len(query) for word in query})
    for word, probability in by_hand(ranking.query, order, p).items():
        mixed[word] += share * probability
    model = LinearModel(parse_features("FI/term/LM,FI/expansion/LM"), ((1 - share) / len(query), share), p)
    expected = [
        sum(
            q * log((DOCUMENTS[d].count(w) + p.mu * CF[w] / TOKENS) / (len(DOCUMENTS[d]) + p.mu))
            for w, q in mixed.items()
        )
        for d in order
    ]
    result = MRFRanker(model, INDEX)(ranking)
    assert dict(zip(result.docids, result.scores, strict=True)) == pytest.approx(
        dict(zip(ranking.docids, expected, strict=True)), rel=1e-11
    )


def test_documents_outside_the_index_take_no_place() -> None:
    two = FeatureParameters(fb_docs=2)
    mixed = relevance_model(INDEX, Ranking("q", "w1x", ("lost", "d3", "gone", "d5", "d1"), np.zeros(5)), two)
    alone = relevance_model(INDEX, Ranking("q", "w1x", ("d3", "d5", "d1"), np.zeros(3)), two)
    np.testing.assert_array_equal(mixed, alone)
    ranking = Ranking("q", "w1x", ("lost", "gone"), np.zeros(2))
    terms, probabilities = relevance_model(INDEX, ranking, two)
    assert len(terms) == len(probabilities) == 0
    assert not FeatureExtractor(INDEX, EXPANSION, FeatureParameters(fb_docs=2))(ranking).any()
