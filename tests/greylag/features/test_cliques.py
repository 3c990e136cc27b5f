"""Cliques of queries."""

from collections import Counter
from math import comb, log

import numpy as np
import pytest

from greylag.base import Ranking
from greylag.features.cliques import ABSENT, FILLER, QueryTerms, cliques, distinct_cliques, query_cliques
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import FeatureSpec, candidate_pool
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex

POOL = candidate_pool()


def test_cliques_of_new_york_city():
    def named(dependence, clique_set):
        words = ["new", "york", "city"]
        return {tuple(words[i] for i in c) for c in cliques(3, dependence, clique_set)}

    pairs = {("new", "york"), ("york", "city")}
    assert named("FI", "term") == {("new",), ("york",), ("city",)}
    assert named("FI", "ordered") == named("FI", "unordered") == set()
    assert named("SD", "ordered") == named("SD", "unordered") == pairs
    assert named("FD", "ordered") == pairs | {("new", "york", "city")}
    assert named("FD", "unordered") == pairs | {("new", "city"), ("new", "york", "city")}


@pytest.mark.parametrize("n", range(7))
@pytest.mark.parametrize("max_size", [2, 3, 9])
def test_clique_sets_nest(n, max_size):
    for dependence in ("SD", "FD"):
        ordered = cliques(n, dependence, "ordered", max_size)
        unordered = cliques(n, dependence, "unordered", max_size)
        assert set(ordered) <= set(unordered)
        assert len(set(unordered)) == len(unordered)
        assert all(2 <= len(clique) <= max_size for clique in unordered)
    if max_size >= n:
        assert len(cliques(n, "FD", "unordered", max_size)) == 2**n - n - 1


@pytest.mark.parametrize("ordered", [True, False])
def test_distinct_cliques_have_their_multiplicity(ordered):
    sets = (("FI", "term"), ("SD", "ordered"), ("FD", "ordered"), ("FD", "unordered"))
    for terms in ([0, 1, 0], [0], [], [1, 1, 0, 2, 1], [0, 1, 2, 3]):
        rows, multiplicity = distinct_cliques(tuple(terms), sets, 3, ordered=ordered)
        found = [tuple(term for term in row if term != ABSENT) for row in rows.tolist()]
        assert len(set(found)) == len(found)
        for column, (dependence, clique_set) in enumerate(sets):
            named = [tuple(terms[i] for i in c) for c in cliques(len(terms), dependence, clique_set, 3)]
            expected = Counter(c if ordered else tuple(sorted(c)) for c in named)
            assert {c: m for c, m in zip(found, multiplicity[:, column], strict=True) if m} == expected


def test_query_cliques_are_term_numbers_with_padding():
    index = PositionalIndex.from_texts({"d": "cat dog", **{f"d{i}": "pig" for i in range(20)}})
    ranking = Ranking("q", "dog unicorn dog", ("d",), np.zeros(1))
    query = QueryTerms.of(index, ranking, [FeatureParameters()], expand=True)
    found = query_cliques(query, (("FI", "term"), ("SD", "ordered")), 2, ordered=True)
    (dog,) = index.term_numbers(["dog"])
    expected = {(-1, FILLER): [1, 0], (dog, FILLER): [2, 0], (dog, -1): [0, 1], (-1, dog): [0, 1]}
    assert {
        tuple(row): times for row, times in zip(found.terms.tolist(), found.multiplicity.tolist(), strict=True)
    } == expected
    assert ((found.rows == ABSENT) == (found.terms == FILLER)).all()
    expansion = query_cliques(query, (("FI", "expansion"),), 2, ordered=True)
    assert sorted(expansion.terms[:, 0].tolist()) == sorted(index.term_numbers(["cat", "dog"]).tolist())
    assert expansion.multiplicity.sum() == pytest.approx(1.0)


def test_long_queries_have_the_cliques_that_fit_in_memory(caplog):
    assert len(cliques(181, "FD", "unordered", 3)) == comb(181, 2) + comb(181, 3)
    assert not caplog.messages
    words = [f"word{i}x" for i in range(212)]
    index = PositionalIndex.from_texts({"a": " ".join(words), "b": "word1x word9x", "c": "word1x"})
    extractor = FeatureExtractor(index, candidate_pool(), FeatureParameters(k1=0.0))
    for _ in range(2):
        values = extractor(Ranking("q", " ".join(words), ("a", "b", "c"), np.zeros(3)))
    of_a, of_b, of_c = values[:, extractor.specs.index(FeatureSpec("FD", "unordered", "BM25-U-unlimited"))]
    rare, common = log(1 + 2.5 / 1.5), log(1 + 1.5 / 2.5)
    assert (of_a, of_b, of_c) == pytest.approx(((comb(212, 2) - 1) * rare + common, common, 0))
    assert caplog.messages == [
        "a query of 212 terms has more than 1000000 cliques of up to 3 terms under FD: "
        "only those of up to 2 terms are used"
    ]
    assert cliques(2000, "FD", "unordered", 3) == cliques(2000, "FD", "ordered", 3)
    assert caplog.messages[1].endswith("under FD: only those of adjacent terms are used")
    assert len(cliques(200, "FD", "ordered", 3)) == 199 + 198
    assert len(cliques(1000, "SD", "unordered", 10)) == 999


def test_large_cliques_of_long_queries_are_told_apart():
    terms = np.random.default_rng(3).integers(0, 300, size=300)
    rows, multiplicity = distinct_cliques(tuple(terms.tolist()), (("FD", "ordered"),), 10, ordered=True)
    expected = Counter(tuple(terms[first : first + size]) for size in range(2, 11) for first in range(300 - size + 1))
    found = {tuple(row[row >= 0]): count for row, count in zip(rows, multiplicity[:, 0], strict=True)}
    assert found == expected
