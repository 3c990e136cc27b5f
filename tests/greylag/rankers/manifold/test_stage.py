"""The manifold stage, compared with the closed form over TF-IDF vectors computed by hand."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.base import ParameterError, Ranking
from greylag.index import ArrayVectors, TfidfVectors
from greylag.index.analysis import analyze
from greylag.index.positional import PositionalIndex
from greylag.index.vectors.protocol import unit_rows
from greylag.rankers import affinity_graph
from greylag.rankers.manifold.stage import ManifoldRanker
from tests.greylag.rankers.manifold.points import closed_form, dense
from tests.refusals import refuses

WORDS = ["cat", "dog", "pig", "cow", "hen"]


def collection(seed, n):
    rng = np.random.default_rng(seed)
    return {f"d{i}": " ".join(rng.choice(WORDS, size=rng.integers(0, 6))) for i in range(n)}


def vectors(texts, query, docids):
    """(1 + log tf) log(N / df), of unit length: the query's row, then the documents'."""
    counts = {docid: Counter(analyze(text)) for docid, text in texts.items()}
    vocabulary = sorted(set().union(*counts.values()))
    idf = {term: np.log(len(texts) / sum(term in own for own in counts.values())) for term in vocabulary}
    rows = []
    for own in (Counter(analyze(query)), *(counts.get(docid, Counter()) for docid in docids)):
        row = np.array([(1 + np.log(own[term])) * idf[term] if own[term] else 0.0 for term in vocabulary])
        rows.append(row / np.linalg.norm(row) if row.any() else row)
    return np.array(rows).reshape(len(rows), -1)


def check(result, ranking, f, depth):
    """`result` is the ranking's first `depth` by `f`, equal ones in their order, and then the others."""
    n = min(depth, len(ranking))
    places = [ranking.docids.index(docid) for docid in result.docids]
    assert sorted(places) == list(range(len(ranking)))
    assert places[n:] == list(range(n, len(ranking)))
    np.testing.assert_allclose(result.scores[:n], f[places[:n]], atol=1e-9 * max(1.0, f.max(initial=0)))
    for before, after in pairwise(places[:n]):
        assert f[before] > f[after] - 1e-9
        assert before < after or f[before] - f[after] > 1e-13


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(0, 12), alpha=st.sampled_from([0.0, 0.3, 0.9, 0.99]),
       depth=st.integers(1, 15), confidence=st.sampled_from(["query", "scores"]), tied=st.booleans(),
       query=st.sampled_from(["cat", "cat dog dog", "hen unheard", "unheard", ""]))  # fmt: skip
def test_is_the_closed_form_and_a_permutation(seed, n, alpha, depth, confidence, tied, query):
    texts = collection(seed, max(n, 2))
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.integers(3, size=n).astype(float) if tied else rng.standard_normal(n))[::-1]
    docids = tuple(f"d{i}" for i in rng.permutation(n))
    ranking = Ranking("q", query, docids, scores)
    stage = ManifoldRanker(
        PositionalIndex.from_texts(texts), depth=depth, alpha=alpha, graph="full", confidence=confidence
    )
    top = scores[:depth]
    spread = np.ptp(top) if n else 0
    y = (top - top.min()) / spread if spread else np.full(len(top), 0.5)
    y = y if confidence == "scores" else np.zeros(len(top))
    X = vectors(texts, query, list(docids[:depth]))
    check(stage(ranking), ranking, closed_form(X @ X.T, np.array([1.0, *y]), alpha)[1:], depth)


@pytest.mark.parametrize("graph", ["knn", "mutual_knn"])
@pytest.mark.parametrize("seed", range(5))
def test_graphs_join_the_query_and_its_documents(graph, seed):
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(60)]
    texts = {f"d{i}": " ".join(rng.choice(words, size=25)) for i in range(40)}
    ranking = Ranking("q", "w1 w2 w3", tuple(texts), np.arange(40.0, 0, -1))
    X = vectors(texts, ranking.query, list(texts)[:30])
    W = affinity_graph(X, graph=graph, neighbours=4, affinity="inner_product")
    y = np.array([1.0, *np.linspace(1, 0, 30)])
    stage = ManifoldRanker(PositionalIndex.from_texts(texts), depth=30, alpha=0.7, graph=graph, neighbours=4)
    check(stage(ranking), ranking, closed_form(dense(W), y, 0.7)[1:], 30)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("sigma", [None, 0.7])
def test_exponent_steps_and_sigma(exponent, sigma):
    texts = collection(5, 9)
    docids = [*texts]
    ranking = Ranking("1", "cat dog", tuple(docids), np.arange(9.0, 0, -1))
    points = vectors(texts, "cat dog", docids)
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    W = points @ points.T if sigma is None else np.exp(-(distances**2) / (2 * sigma**2))
    np.fill_diagonal(W, 0)
    degree = np.where(W.sum(axis=1) > 1e-14, W.sum(axis=1), 1.0)
    S = np.diag(degree**-exponent) @ W @ np.diag(degree ** (exponent - 1))
    y = np.concatenate([[1.0], np.linspace(1, 0, 9)])
    f = y
    for _ in range(3):
        f = 0.8 * S @ f + 0.2 * y
    limit = closed_form(W, y, 0.8, exponent)
    for steps, expected in ((3, f), (None, limit)):
        stage = ManifoldRanker(
            PositionalIndex.from_texts(texts), graph="full", alpha=0.8, exponent=exponent, steps=steps, sigma=sigma
        )
        check(stage(ranking), ranking, expected[1:], 100)


def test_feedback_adds_points_and_overrides_scores():
    texts = {"a": "cat dog", "b": "cat pig", "c": "cow hen", "d": "cow pig dog", "e": "hen dog", "far": "cow cow pig"}
    ranking = Ranking("q", "cat", ("a", "b", "c", "d", "e"), np.array([5.0, 4, 3, 2, 1]))
    feedback = {"q": {"a": 0, "c": 1, "far": 2, "nowhere": 0, "d": -1}, "other": {"e": 3}}
    stage = ManifoldRanker(PositionalIndex.from_texts(texts), depth=4, alpha=0.8, graph="full", feedback=feedback)
    X = vectors(texts, "cat", ["a", "b", "c", "d", "far"])
    f = closed_form(X @ X.T, np.array([1.0, 0, 2 / 3, 0.5, 0, 1]), 0.8)[1:5]
    check(stage(ranking), ranking, f, 4)
    without = replace(stage, feedback=None)
    unjudged = Ranking("new", "cat", ranking.docids, ranking.scores)
    assert stage(unjudged) == without(unjudged)


def test_grades_without_a_relevant_document_remove_confidence():
    texts = {"a": "cat dog", "b": "cat pig", "c": "hen cow"}
    ranking = Ranking("q", "cat", ("a", "b"), np.array([2.0, 1]))
    options = {"alpha": 0.5, "graph": "full", "confidence": "scores"}
    index = PositionalIndex.from_texts(texts)
    result = ManifoldRanker(index, **options, feedback={"q": {"a": 0, "c": -2}})(ranking)
    X = vectors(texts, "cat", ["a", "b"])
    check(result, ranking, closed_form(X @ X.T, np.array([1.0, 0, 0]), 0.5)[1:], 2)


def test_isolated_points_keep_their_order():
    """Documents without terms or a path do, and all documents if no query term is known; unknown ones their ranks."""
    texts = {"a": "the", "b": "cat dog", "c": "", "d": "dog cat", "e": "hen pig"}
    index = PositionalIndex.from_texts(texts)
    ranking = Ranking("q", "cat", ("a", "e", "outside", "b", "c", "d"), np.array([6.0, 5, 4, 3, 2, 1]))
    result = ManifoldRanker(index, confidence="query", graph="full")(ranking)
    assert result.docids == ("b", "d", "outside", "a", "e", "c")
    assert result.scores[3:].tolist() == [0, 0, 0]
    unknown = Ranking("q", "unheard", ranking.docids, ranking.scores)
    assert ManifoldRanker(index, confidence="query")(unknown).docids == ranking.docids


def test_a_collection_without_terms():
    ranking = Ranking("q", "cat", ("a", "b"), np.array([2.0, 1]))
    result = ManifoldRanker(PositionalIndex.from_texts({"a": "", "b": "the"}), alpha=0.75)(ranking)
    assert result == Ranking("q", "cat", ("a", "b"), np.array([0.25, 0]))


def test_equal_documents_stay_in_their_order():
    texts = {f"d{i}": text for i, text in enumerate(["cat dog pig", "cow hen", "dog cat pig", "pig hen cat"] * 5)}
    index = PositionalIndex.from_texts(texts)
    ranking = Ranking("q", "cat pig", tuple(texts), np.full(20, 1.0))
    for graph in ("full", "knn"):
        order = [int(docid[1:]) for docid in ManifoldRanker(index, graph=graph)(ranking).docids]
        for kind in (0, 1, 3):
            same = [i for i in order if i % 4 == kind or (kind == 0 and i % 4 == 2)]
            assert same == sorted(same)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"depth": 0}, "depth 0"),
        ({"alpha": 1.0}, "alpha 1.0"),
        ({"confidence": "rank"}, "confidence 'rank' query scores"),
        ({"steps": 0}, "steps 0"),
        ({"sigma": 1.0, "affinity": "cosine"}, "sigma 'cosine' 'rbf'"),
        ({"relevance_level": 0}, "level 0"),
        ({"feedback": {"q"}}, "set"),
        ({"feedback": {"q": {"a"}}}, "q {'a'}"),
        ({"index": None, "vectors": ArrayVectors(["a"], [[1.0]])}, "queries="),
    ],
)
def test_refusals(options, parts):
    given = {"index": PositionalIndex.from_texts(collection(1, 3))} | options
    refuses(lambda: ManifoldRanker(**given)(Ranking("q", "", ("a",), [1.0])), ParameterError, parts)


@pytest.mark.parametrize("graph", ["knn", "full"])
def test_dense_vectors_of_documents_and_queries(graph):
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((20, 5)).astype(np.float32)
    docids = tuple(f"d{i}" for i in range(19))
    ranking = Ranking("q", "", docids, np.arange(19.0, 0, -1))
    vectors = ArrayVectors(docids, rows[1:], queries={"q": rows[0]})
    result = ManifoldRanker(vectors=vectors, graph=graph, neighbours=4, alpha=0.7)(ranking)
    W = affinity_graph(unit_rows(rows), graph=graph, neighbours=4, affinity="rbf")
    y = np.array([1.0, *np.linspace(1, 0, 19)])
    check(result, ranking, closed_form(dense(W), y, 0.7)[1:], 19)


def test_the_cosine_of_dense_vectors_needs_coordinates_that_are_not_negative():
    texts = collection(1, 12)
    ranking = Ranking("q", "cat", tuple(texts), np.arange(12.0, 0, -1))
    index = PositionalIndex.from_texts(texts)
    sparse = TfidfVectors(index)
    rows, query = sparse.documents(ranking.docids).toarray(), sparse.query("q", "cat").toarray()
    given = ArrayVectors(ranking.docids, rows, lambda text: query[0])
    ours = ManifoldRanker(vectors=given, affinity="cosine", graph="full")(ranking)
    theirs = ManifoldRanker(index, graph="full")(ranking)
    by_docid = dict(zip(theirs.docids, theirs.scores, strict=True))
    np.testing.assert_allclose(ours.scores, [by_docid[docid] for docid in ours.docids], atol=1e-9)
    stage = ManifoldRanker(vectors=ArrayVectors(ranking.docids, -rows, lambda text: query[0]), affinity="cosine")
    refuses(lambda: stage(ranking), ParameterError, "query q: -1")
