"""Lexical translation.

Tests `base` and `greylag.recipes.cross_fitting`.
"""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from greylag.base import ModelError, ParameterError, Ranking
from greylag.evaluation import split_folds
from greylag.features import FeatureExtractor, FeatureParameters, parse_features
from greylag.features.learned.translation import MIN_QUERIES, Translation, estimate, learn_translation
from greylag.index.positional import PositionalIndex
from greylag.learning import Objective, training_data
from greylag.rankers import ModelRanker, RankingModel, explain
from greylag.recipes.cross_fitting import add_translation
from greylag.recipes.sources import FeatureSources, PreparedSources, TunedRM3

RNG = np.random.default_rng(5)
WORDS = [f"w{i}x" for i in range(25)]
TEXTS = {f"d{i}": " ".join(RNG.choice(WORDS, size=9)) for i in range(40)}
INDEX = PositionalIndex.from_texts(TEXTS)
RANKINGS = [
    Ranking(f"q{q}", " ".join(RNG.choice([*WORDS[:12], "unknown"], size=4)), tuple(TEXTS), np.zeros(40))
    for q in range(10)
]
QRELS = {
    r.qid: {f"d{d}": int(g) for d, g in zip(RNG.choice(41, 7, replace=False), RNG.integers(0, 3, 7), strict=True)}
    for r in RANKINGS
}
PAIRS = [(r.query, [docid for docid, grade in QRELS[r.qid].items() if grade > 0]) for r in RANKINGS]
MU, OWN = 30.0, 0.4


def background(word):
    cf = sum(text.split().count(word) for text in TEXTS.values())
    return MU * (cf or 0.5) / sum(len(text.split()) for text in TEXTS.values())


def by_definition(rounds):
    """The table T[t, w] of expectation maximisation and the likelihoods, word by word."""
    number = {word: place for place, word in enumerate(WORDS)}
    relevant = [(query, [TEXTS[d].split() for d in docids if d in TEXTS]) for query, docids in PAIRS]
    seen = Counter(word for _, documents in relevant for word in {w for document in documents for w in document})
    changing = {word for word in WORDS if seen[word] >= MIN_QUERIES}
    together = np.zeros((25, 25))
    for query, documents in relevant:
        for t, w in ((t, w) for t in query.split() for document in documents for w in document):
            if t in number and w in changing:
                together[number[t], number[w]] = 1
    table, likelihoods = together / np.maximum(1, together.sum(axis=0)), []
    for _ in range(rounds):
        expected, likelihood = np.zeros_like(table), 0.0
        for query, documents in relevant:
            for document in documents:
                for t in (t for t in query.split() if t in number):
                    itself = OWN if t in changing else 1.0
                    parts = [(1 - OWN) * table[number[t], number[w]] for w in document]
                    total = itself * document.count(t) + sum(parts) + background(t)
                    likelihood += math.log(total) / len(documents)
                    for w, part in zip(document, parts, strict=True):
                        expected[number[t], number[w]] += part / total / len(documents)
        table = expected / np.maximum(expected.sum(axis=0), 1e-300)
        likelihoods.append(likelihood)
    return table, likelihoods


@pytest.mark.parametrize("rounds", [1, 4])
def test_expectation_maximisation_is_that_of_its_definition(rounds):
    found = estimate(INDEX, PAIRS, mu=MU, own=OWN, rounds=rounds)
    table, likelihoods = by_definition(rounds)
    dense, names = np.zeros((25, 25)), [*map(WORDS.index, INDEX.terms_of(np.arange(INDEX.n_terms)))]
    dense[np.array(names)[found.terms], np.array(names)[found.words]] = found.shares
    np.testing.assert_allclose(dense, table, atol=1e-12)
    np.testing.assert_allclose(found.likelihoods, likelihoods)


def test_the_likelihood_never_falls_and_shares_add_up():
    found = estimate(INDEX, PAIRS, mu=MU, own=OWN, rounds=30)
    assert (np.diff(found.likelihoods) > -1e-9).all()
    assert found.likelihoods[-1] > found.likelihoods[0]
    np.testing.assert_allclose(np.bincount(found.words, found.shares)[np.unique(found.words)], 1.0)


def test_what_is_probable_is_kept():
    found = estimate(INDEX, PAIRS, mu=MU, own=OWN)
    kept = learn_translation(INDEX, RANKINGS, QRELS, mu=MU, own=OWN, least=0.2)
    names = INDEX.terms_of(np.arange(INDEX.n_terms))
    expected = {
        (names[t], names[w]): share
        for t, w, share in zip(*(column.tolist() for column in found[:3]), strict=True)
        if share >= 0.2
    }
    assert 0 < len(expected) < len(found.shares)
    assert {(t, w): share for t, words in kept.table.items() for w, share in words.items()} == pytest.approx(expected)


def test_values_are_those_of_the_formula_and_of_lm_without_a_table():
    feature = learn_translation(INDEX, RANKINGS, QRELS, mu=MU, own=OWN)
    changing = {word for words in feature.table.values() for word in words}
    values = feature.bind(INDEX)
    for ranking in RANKINGS[:3]:
        expected = []
        for text in TEXTS.values():
            words, total = text.split(), 0.0
            for t in ranking.query.split():
                tf = words.count(t) * (OWN if t in changing else 1.0)
                tf += (1 - OWN) * sum(feature.table.get(t, {}).get(w, 0.0) for w in words)
                total += math.log((tf + background(t)) / (len(words) + MU))
            expected.append(total)
        np.testing.assert_allclose(values(ranking), expected)
        order = RNG.permutation(40)
        mixed = replace(ranking, docids=tuple(ranking.docids[i] for i in order))
        np.testing.assert_array_equal(values(mixed), values(ranking)[order])
        lm = FeatureExtractor(INDEX, parse_features("FI/term/LM"), FeatureParameters(mu=MU))(ranking)[:, 0]
        for other in (Translation(MU, OWN, {}), Translation(MU, 1.0, feature.table)):
            np.testing.assert_allclose(other.bind(INDEX)(ranking), lm)


def test_no_query_has_values_of_a_table_that_was_learned_from_it():
    parts = split_folds([ranking.qid for ranking in RANKINGS], 3, 0)
    data = training_data(RANKINGS, QRELS, FeatureExtractor(INDEX, parse_features("FI/term/LM")))
    tuned = TunedRM3(FeatureParameters(mu=MU), 0.5)

    def added(qrels):
        sources = PreparedSources(FeatureSources(), Objective("AP"), RANKINGS, qrels, INDEX)
        return add_translation(data, sources, tuned, parts)

    fitted = added(QRELS)
    assert fitted.specs == (*data.specs, learn_translation(INDEX, RANKINGS, QRELS, mu=MU))
    for held_out in parts:
        table = learn_translation(INDEX, [r for r in RANKINGS if r.qid not in held_out], QRELS, mu=MU)
        expected = np.concatenate([table.bind(INDEX)(r) for q in held_out for r in RANKINGS if r.qid == q])
        np.testing.assert_array_equal(fitted.select_queries(held_out).features[:, 1], expected)
        changed = {**QRELS, **{qid: {f"d{d}": 1 for d in range(20)} for qid in held_out}}
        refitted = added(changed)
        assert refitted.specs != fitted.specs
        np.testing.assert_array_equal(refitted.select_queries(held_out).features[:, 1], expected)
    np.testing.assert_array_equal(fitted.features[:, 0], data.features[:, 0])


def test_a_model_keeps_the_table_and_explains_by_term(tmp_path):
    feature = learn_translation(INDEX, RANKINGS, QRELS, mu=MU)
    model = RankingModel((*parse_features("FI/term/BM25"), feature), (1.0, 2.0)).for_collection(INDEX)
    model.save(tmp_path / "model.json")
    read = RankingModel.load(tmp_path / "model.json")
    assert read == model
    ranked = ModelRanker(read, INDEX)(RANKINGS[0])
    explained = explain(read, INDEX, RANKINGS[0], ranked.docids[5])
    assert explained.score == pytest.approx(sum(share.contribution for share in explained.features), abs=1e-9)
    by_term = explained.features[1]
    assert sum(clique.contribution for clique in by_term.cliques) == pytest.approx(by_term.contribution, abs=1e-9)
    with pytest.raises(ParameterError, match="translation"):
        parse_features(str(feature))
    content = json.loads((tmp_path / "model.json").read_text())
    content["learned"][str(feature)]["own"] = 2.0
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(ModelError, match="damaged"):
        RankingModel.load(tmp_path / "model.json")


def test_nothing_to_learn_from_gives_an_empty_table():
    assert learn_translation(INDEX, [], {}, mu=MU).table == {}
    lost = Ranking("q0", "unknown words", ("d1",), np.zeros(1))
    assert learn_translation(INDEX, [lost], {"q0": {"d1": 1, "d2": 0}}, mu=MU).table == {}
    assert learn_translation(INDEX, RANKINGS[:1], {"q0": {"absent": 1}}, mu=MU).table == {}
    with pytest.raises(ParameterError, match="own is 2"):
        estimate(INDEX, PAIRS, mu=MU, own=2.0)
