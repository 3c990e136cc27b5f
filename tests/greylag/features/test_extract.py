"""Feature values, and those of relevance models, compared with the formulas one clique and document at a time."""

import logging
from collections import Counter
from functools import partial
from math import exp, log

import numpy as np
import pytest

from greylag.base import Ranking
from greylag.features.cliques import cliques, relevance_models
from greylag.features.evidence import Prior
from greylag.features.extract import FeatureCounts, FeatureExtractor
from greylag.features.spec import EXPANSION, FeatureSpec, candidate_pool
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from tests.greylag.features.oracle import as_text, count, ordered_matches, random_documents, unordered_matches

BY_POSITION = parse_features(
    "FI/term/early,SD/ordered/early-O-1,SD/ordered/early-O-8,FD/unordered/early-U-2,FD/unordered/early-U-unlimited,"
    "FI/term/BM25-F-3,FI/term/LM-F-3,FI/term/LM-F-10,FI/term/early-F-4"
)
QUERIES = ["cat dog", "cat dog pig cow", "dog cat dog", "cat unicorn dog", "unicorn", "pig", " ", "the of"]


def by_hand(documents, query, spec, p):
    """A feature's value for every document, from the definitions."""
    terms = [word for word in query.split() if word not in ("the", "of")]
    lengths = [sum(word is not None for word in document) for document in documents]
    tokens, n = sum(lengths), len(documents)
    looked_at = [document[: spec.lead] for document in documents]
    own = [length if spec.lead is None else min(length, spec.lead) for length in lengths]
    average = sum(own) / sum(length > 0 for length in lengths)
    values = np.zeros(n)
    for places in cliques(len(terms), spec.dependence, spec.cliques, p.max_clique):
        clique = tuple(terms[place] for place in places)
        matches = ordered_matches if spec.window.order != "U" else partial(unordered_matches, profile=p.profile)
        in_all = [count(matches(document, clique, spec.window.width), p.profile) for document in documents]
        found = [matches(document, clique, spec.window.width) for document in looked_at]
        tf = [count(here, p.profile) for here in found]
        cf, df = sum(in_all), sum(f > 0 for f in in_all)
        odds = (n - df + 0.5) / (df + 0.5)
        idf = log(1 + odds) if p.idf == "lucene" else log(odds)
        for d, length in enumerate(own):
            if spec.function == "LM":
                values[d] += log((tf[d] + p.mu * (cf or 0.5) / tokens) / (length + p.mu))
            elif spec.function == "early":
                values[d] += idf / (1 + min(found[d])[0] / 10) if found[d] else 0
            else:
                values[d] += (
                    (p.k1 + 1) * tf[d] / (p.k1 * (1 - p.b + p.b * length / average) + tf[d]) * idf if tf[d] else 0
                )
    return values


@pytest.mark.parametrize(
    "parameters",
    [
        FeatureParameters(),
        FeatureParameters(mu=12.5, k1=1.7, b=0.9, idf="robertson", profile="galago", max_clique=4),
        FeatureParameters(k1=0.0, b=0.0, max_clique=2),
        FeatureParameters(mu=12.5, profile="inquery", max_clique=4),
    ],
)
@pytest.mark.parametrize("query", QUERIES)
def test_values_are_the_formulas(query, parameters):
    documents = random_documents(np.random.default_rng(5), 12)
    index = PositionalIndex.from_texts({f"{i}": as_text(document) for i, document in enumerate(documents)})
    mixed = parse_features("FD/unordered/LM-O-4,SD/ordered/BM25-U-3")
    specs = tuple(spec for spec in (*candidate_pool(), *mixed, *BY_POSITION) if isinstance(spec, FeatureSpec))
    order = np.random.default_rng(6).permutation(len(documents))
    ranking = Ranking("q", query, tuple(str(i) for i in order), np.zeros(len(order)))
    values = FeatureExtractor(index, specs, parameters)(ranking)
    for column, spec in enumerate(specs):
        expected = by_hand(documents, query, spec, parameters)[order]
        np.testing.assert_allclose(values[:, column], expected, rtol=1e-12, atol=1e-12, err_msg=str(spec))


def test_queries_of_more_terms_than_a_clique_are_limited():
    words = [f"word{i}x" for i in range(60)]
    index = PositionalIndex.from_texts({"1": " ".join(words), "2": " ".join(reversed(words)), "3": "word1x"})
    extractor = FeatureExtractor(
        index, (FeatureSpec("FD", "unordered", "BM25-U-unlimited"),), FeatureParameters(k1=0.0)
    )
    pairs_and_triples = 60 * 59 // 2 + 60 * 59 * 58 // 6
    values = extractor(Ranking("q", " ".join(words), ("1", "2", "3"), np.zeros(3)))[:, 0]
    assert values.tolist() == pytest.approx([pairs_and_triples * log(1 + 1.5 / 2.5)] * 2 + [0.0])
    assert [extractor.limits(" ".join(words[:n])) for n in (2, 3, 4, 60)] == [False, False, True, True]


def test_documents_outside_the_index(caplog):
    index = PositionalIndex.from_texts({"1": "cat dog", "2": "cat cat"})
    extractor = FeatureExtractor(index, parse_features("FI/term/BM25,FI/term/LM"))
    with caplog.at_level(logging.WARNING):
        values = extractor(Ranking("q7", "cat dog", ("x", "1", "2"), np.zeros(3)))
    np.testing.assert_array_equal(values[0], values[1:].min(axis=0))
    assert "query q7: 1 of 3 documents of 1 queries are unknown, such as x" in caplog.text
    assert extractor.knows(["x", "1"]).tolist() == [False, True]
    signed = extractor(Ranking("q7", "cat dog", ("x", "1", "2"), np.zeros(3)), [-0.5, 0.5])
    assert signed[0].tolist() == [values[1:, 0].max(), values[1:, 1].min()]
    assert not extractor(Ranking("q", "cat", ("x", "y"), np.zeros(2))).any()
    assert extractor(Ranking("q", "cat", (), np.zeros(0))).shape == (0, 2)


def test_rankings_together_have_the_values_of_each_alone(tmp_path):
    rng = np.random.default_rng(8)
    documents = random_documents(rng, 60)
    index = PositionalIndex.from_texts({f"{i}": as_text(document) for i, document in enumerate(documents)})
    prior = tmp_path / "prior.tsv"
    prior.write_text("".join(f"{i}\t{i + 0.5}\n" for i in range(60)))
    others = parse_features("score@minmax,FI/term/LM@z,reciprocal-rank")
    features = (Prior(str(prior)), *others, *candidate_pool(), *EXPANSION)
    extractor = FeatureExtractor(index, features, FeatureParameters(mu=9.0))
    rankings = []
    for number, query in enumerate(["cat dog", " ", "cat dog pig cow cat", "unicorn", "pig", "cow cow"]):
        docids = [f"{i}" for i in rng.permutation(60)[: 5 * number]] + ["lost"] * (number % 2)
        rankings.append(Ranking(f"q{number}", query, tuple(docids), np.zeros(len(docids))))
    counts = extractor.count(rankings)
    np.testing.assert_array_equal(counts.offsets, np.cumsum([0, *map(len, rankings)]))
    expected = np.concatenate([extractor(ranking) for ranking in rankings])
    assert extractor.weigh(counts).tobytes() == expected.tobytes()
    nested = FeatureCounts.join([extractor.count(rankings[:4]), extractor.count(rankings[4:])])
    assert extractor.weigh(nested).tobytes() == expected.tobytes()


RNG = np.random.default_rng(3)
WORDS = [f"w{i}x" for i in range(60)]
POPULARITY = 1 / np.arange(5, 65)
DOCUMENTS = [RNG.choice(WORDS, size=RNG.integers(1, 12), p=POPULARITY / POPULARITY.sum()).tolist() for _ in range(80)]
INDEX = PositionalIndex.from_texts({f"d{i}": " ".join(words) for i, words in enumerate(DOCUMENTS)})
CF = Counter(word for words in DOCUMENTS for word in words)
DF = Counter(word for words in DOCUMENTS for word in set(words))
TOKENS = sum(CF.values())
WORDY_QUERIES = ["w3x", "w1x w20x", "w7x w7x unknown w40x w2x", "unknown"]


def ranked(query, seed=0, size=30):
    order = np.random.default_rng(seed).permutation(len(DOCUMENTS))[:size].tolist()
    return Ranking("q", query, tuple(f"d{i}" for i in order), np.zeros(size)), order


def model_by_hand(query, feedback, p):
    """RM1, from its definition."""
    terms = [word for word in query.split() if word in CF]
    total = Counter()
    for d in feedback[: p.fb_docs]:
        words = Counter(DOCUMENTS[d])
        length = len(DOCUMENTS[d])
        logs = [log((words[word] + p.mu * CF[word] / TOKENS) / (length + p.mu)) for word in terms]
        for word, tf in words.items():
            total[word] += exp(sum(logs) / max(1, len(terms))) * tf / length
    rare = {word: share for word, share in total.items() if DF[word] <= len(DOCUMENTS) / 10}
    best = dict(sorted(rare.items(), key=lambda item: (-item[1], item[0]))[: p.fb_terms])
    return {word: share / sum(best.values()) for word, share in best.items()}


@pytest.mark.parametrize("query", WORDY_QUERIES)
@pytest.mark.parametrize(
    "parameters", [FeatureParameters(), FeatureParameters(mu=7.0, fb_docs=3, fb_terms=5), FeatureParameters(fb_docs=99)]
)
def test_is_rm1(query, parameters):
    ranking, order = ranked(query)
    terms, probabilities = relevance_models(INDEX, ranking, [parameters])
    expected = model_by_hand(query, order, parameters)
    found = dict(zip(INDEX.terms_of(terms), probabilities[:, 0], strict=True))
    assert found == pytest.approx(expected, rel=1e-9)
    assert probabilities.sum() == pytest.approx(1.0)
    assert (np.diff(terms) > 0).all()


@pytest.mark.parametrize("query", WORDY_QUERIES)
def test_features_are_the_weighted_sums(query):
    p = FeatureParameters(mu=30.0, k1=1.3, b=0.6, fb_docs=6, fb_terms=8)
    ranking, order = ranked(query)
    model = model_by_hand(query, order, p)
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


def test_documents_outside_the_index_take_no_place():
    two = FeatureParameters(fb_docs=2)
    mixed = relevance_models(INDEX, Ranking("q", "w1x", ("lost", "d3", "gone", "d5", "d1"), np.zeros(5)), [two])
    alone = relevance_models(INDEX, Ranking("q", "w1x", ("d3", "d5", "d1"), np.zeros(3)), [two])
    assert all(map(np.array_equal, mixed, alone))
    ranking = Ranking("q", "w1x", ("lost", "gone"), np.zeros(2))
    terms, probabilities = relevance_models(INDEX, ranking, [two])
    assert len(terms) == len(probabilities) == 0
    assert not FeatureExtractor(INDEX, EXPANSION, FeatureParameters(fb_docs=2))(ranking).any()
