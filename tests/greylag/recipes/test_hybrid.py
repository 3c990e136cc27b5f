"""Hybrid search: candidates and scores by brute force, and what is unknown."""

import numpy as np
import pytest

from greylag.base import ParameterError, Query, Ranking
from greylag.index import ArrayVectors, VectorSearch
from greylag.recipes import GeneralRanker, HybridSearch
from greylag.recipes.hybrid import combine_scores
from tests.greylag.diversity import samples
from tests.refusals import refuses

N = 40
INDEX = samples.index(4, N)
DOCIDS = [f"d{i}" for i in range(N)]


def vectors(seed, docids=DOCIDS):
    rng = np.random.default_rng(seed)
    return ArrayVectors(docids, rng.standard_normal((len(docids), 6)), {"q": rng.standard_normal(6)})


def by_hand(given, query, k, factor=1.0):
    """The formula, document by document; cosines by NumPy's norm, and the general model as a stage."""
    bm25 = dict(INDEX.bm25(N)(query))
    first = [docid for docid, _ in INDEX.bm25(k)(query)]
    row = np.asarray(given.queries[query.qid])
    cosine = {
        docid: float(np.dot(of_doc, row) / np.linalg.norm(of_doc) / np.linalg.norm(row))
        for docid, of_doc in zip(given.docids, given.array, strict=True)
    }
    near = sorted(cosine, key=lambda docid: -cosine[docid])[:k]
    docids = sorted({*first, *near}, key=lambda docid: -bm25.get(docid, 0.0))
    general = dict(GeneralRanker(INDEX)(Ranking("q", query.text, docids, [bm25.get(d, 0.0) for d in docids])))
    least = min(cosine[d] for d in docids if d in cosine)
    units = [row / np.linalg.norm(row) for row in given.array]
    between = [np.dot(x, y) for place, x in enumerate(units) for y in units[:place]]
    weight = factor * 0.28 * np.log(len(docids)) / np.std(between)
    above = {d: cosine.get(d, least) - np.mean(between) for d in docids}
    scores = {d: general[d] + weight * above[d] for d in docids}
    sure = {d: general[d] / np.log(len(docids)) + 4 * above[d] / (1 - np.mean(between)) for d in docids}
    return scores, {d: (bm25.get(d, 0.0), general[d], cosine.get(d, np.nan), sure[d]) for d in docids}, weight


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [5, 12, N])
def test_candidates_and_both_scores_are_those_by_hand(seed, k):
    query = Query("q", "w1x w3x w7x")
    given = vectors(seed, DOCIDS if seed % 2 else DOCIDS[:-7])
    factor = [1, 0.3, 5][seed % 3]
    search = HybridSearch(INDEX, given, k=k, weight=factor)
    expected, parts, weight = by_hand(given, query, k, factor)
    found = search.scores(query)
    assert dict(found.ranking()) == pytest.approx(expected)
    assert list(found.docids) == sorted(expected, key=lambda docid: -expected[docid])
    assert found.weight == pytest.approx(weight)
    columns = np.column_stack([found.bm25, found.general, found.cosines, found.confidence])
    np.testing.assert_allclose(columns, [parts[docid] for docid in found.docids], rtol=1e-6, atol=1e-12)
    assert search(query) == found.ranking()


def ndcg(docids, grades):
    """The measure by its definition."""
    gains = np.array([max(grades.get(docid, 0), 0) for docid in docids[:10]])
    ideal = np.sort([max(grade, 0) for grade in grades.values()])[::-1][:10]
    return sum(gains / np.log2(np.arange(len(gains)) + 2)) / sum(ideal / np.log2(np.arange(len(ideal)) + 2))


@pytest.mark.parametrize("sign", [1, -1, 0])
def test_the_weight_is_the_shrunk_posterior_mean(sign):
    """Relevant are the documents of the highest cosines, of BM25, or any: all weights of the grid rank as if given."""
    rng, given = np.random.default_rng(1), vectors(1)
    topics = {f"t{n}": f"w{n % 12}x w{(n + 3) % 12}x" for n in range(1, 13)}
    by_qid = {qid: rng.standard_normal(6) for qid in topics}
    qrels = {}
    for qid, row in by_qid.items():
        near, words = given.nearest(row[None], 4), INDEX.bm25(4)(Query("q", topics[qid])).docids
        relevant = {1: near, -1: words, 0: rng.choice(DOCIDS, 4, replace=False).tolist()}[sign]
        qrels[qid] = dict(zip(relevant, (3, 2, 1, 0), strict=True))
    qrels["t1"], qrels["elsewhere"] = {"d3": 0}, {"d3": 1}  # which say nothing
    searched = ArrayVectors(DOCIDS, given.array, by_qid)
    logarithm = []
    for power in np.arange(-2, 4.5, 0.5):
        run = HybridSearch(INDEX, searched, k=8, weight=2.0**power).run(topics)
        logarithm.append(2 * sum(ndcg(run[qid].docids, qrels[qid]) for qid in list(topics)[1:]) - power**2 / 2)
    p, powers = np.exp(logarithm) / np.exp(logarithm).sum(), np.arange(-2, 4.5, 0.5)
    mean = (p * powers).sum()
    expected = 2**mean if abs(mean) > np.sqrt((p * (powers - mean) ** 2).sum()) / 2 else 1
    learned = HybridSearch(INDEX, searched, k=8, weight=7).learn_weight(topics, qrels, n_jobs=2)
    assert learned.weight == pytest.approx(expected)
    assert (np.sign(np.log2(learned.weight)), abs(mean) > 0.01) == (sign, True)


def test_threads_and_other_queries_change_nothing():
    given = vectors(1)
    queries = [Query(f"q{n}", f"w{n}x w1x") for n in range(9)]
    by_qid = {query.qid: np.random.default_rng(n).standard_normal(6) for n, query in enumerate(queries)}
    search = HybridSearch(INDEX, ArrayVectors(DOCIDS, given.array, by_qid), k=7)
    alone = search.run(queries)
    assert alone == search.run(queries, n_jobs=3)
    assert alone["q4"] == search(queries[4])


@pytest.mark.parametrize("text", [" ", "unheard", "w1x"])
def test_odd_queries(text):
    """Without documents of BM25, the nearest are ranked; without a direction of the query, the general model ranks."""
    given, query = vectors(2), Query("q", text)
    found = HybridSearch(INDEX, given, k=6).scores(query)
    assert np.isfinite(found.scores).all()
    if text != "w1x":
        assert sorted(found.docids) == sorted(VectorSearch(given, k=6)(query).docids)
    zero = HybridSearch(INDEX, ArrayVectors(DOCIDS, given.array, {"q": np.zeros(6)}), k=6)(query)
    same = ArrayVectors(DOCIDS, np.ones((N, 2)), {"q": np.ones(2)})  # of which no cosine tells anything
    alike = HybridSearch(INDEX, same, k=6).scores(query)
    np.testing.assert_allclose(alike.confidence, alike.general / np.log(len(alike.docids)))
    assert zero.docids == GeneralRanker(INDEX)(INDEX.bm25(6)(query)).docids


def test_a_first_stage_gives_candidates_and_not_scores(caplog):
    query, given = Query("q", "w1x w2x"), vectors(3)
    found = INDEX.bm25(10)(query)
    odd = Ranking("q", query.text, ("unknown", *found.docids[::-1]), np.arange(len(found) + 1.0)[::-1])
    search = HybridSearch(INDEX, given, k=10)
    assert dict(search.extend(odd)) == pytest.approx(dict(search(query)))
    assert "unknown" in caplog.text


def test_candidates_are_the_best_among_some_documents():
    """By a function or truth values for each; vectors are in another order, four documents have none."""
    query, rows = Query("q", "w1x w2x"), np.random.default_rng(5).standard_normal((N - 3, 6))
    given = ArrayVectors(DOCIDS[:3:-1], rows[:-1], {"q": rows[-1]})
    cosine = dict(zip(given.docids, rows[:-1] @ rows[-1] / np.linalg.norm(rows[:-1], axis=1), strict=True))
    some = np.arange(N) % 3 == 1
    wanted = INDEX.docids_of(np.flatnonzero(some))
    words = [docid for docid in INDEX.bm25(N)(query).docids if docid in wanted][:4]
    near = sorted({*wanted} & {*cosine}, key=cosine.__getitem__)[-4:]
    for among in (some, some.item):
        found = HybridSearch(INDEX, given, k=4).scores(query, among)
        assert {*found.docids} == {*words, *near}
        expected = [cosine.get(docid, np.nan) / np.linalg.norm(rows[-1]) for docid in found.docids]
        np.testing.assert_allclose(found.cosines, expected)


def test_few_and_unknown_candidates():
    """Without a vector, the least cosine; one alone has no weight to share."""
    general, cosines = np.array([2.0, 1.0, 0.0]), np.array([0.3, np.nan, 0.5])
    scores, weight = combine_scores(general, cosines, 0.2, 0.1)
    assert scores.tolist() == pytest.approx((general + weight * np.array([0.1, 0.1, 0.3])).tolist())
    assert combine_scores(general, np.full(3, np.nan), 0.2, 0.1)[0].tolist() == general.tolist()
    assert combine_scores(general[:1], cosines[:1], 0.2, 0.0) == (2.0, 0.0)
    assert combine_scores(general[:0], cosines[:0], 0.2, 0.1)[0].tolist() == []


@pytest.mark.parametrize("k", [5, 20, N])
def test_scores_are_the_same_where_all_cosines_are_high(k):
    """A part that all unit vectors share lifts each cosine to a + (1 - a) c: with any number of candidates, no score
    changes, and the order is that of g + w c.
    """
    given, query, a = vectors(1), Query("q", "w1x w3x"), 0.8
    unit = given.array / np.linalg.norm(given.array, axis=1, keepdims=True)
    asked = given.queries["q"] / np.linalg.norm(given.queries["q"])
    rows = np.column_stack([np.sqrt(1 - a) * unit, np.full(N, np.sqrt(a))])
    shared = ArrayVectors(DOCIDS, rows, {"q": [*np.sqrt(1 - a) * asked, np.sqrt(a)]})
    found, lifted = (HybridSearch(INDEX, of, k=k).scores(query) for of in (given, shared))
    assert lifted.docids == found.docids
    np.testing.assert_allclose(lifted.cosines, a + (1 - a) * found.cosines, atol=1e-12)
    np.testing.assert_allclose(lifted.scores, found.scores, atol=1e-9)
    np.testing.assert_allclose(lifted.confidence, found.confidence, atol=1e-9)
    assert (np.diff(found.general + found.weight * found.cosines) <= 1e-12).all()


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: HybridSearch({"d0": "text"}, vectors(0)), "HybridSearch PositionalIndex"),
        (lambda: HybridSearch(INDEX, vectors(0, ["elsewhere"])), "elsewhere d0"),
        (lambda: HybridSearch(INDEX, vectors(0))("w1x"), "'query' vector"),
        (lambda: HybridSearch(INDEX, vectors(0), weight=0), "weight 0"),
        (lambda: HybridSearch(INDEX, vectors(0)).learn_weight({"q": "w1x"}, {"q": {"d1": 0}}), "1 topics relevant"),
    ],
)
def test_refusals(make, parts):
    refuses(make, ParameterError, parts)
