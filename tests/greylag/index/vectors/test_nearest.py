"""Search by vectors, compared with all cosines in float64."""

import re

import numpy as np
import pytest

from greylag.base import ParameterError, Query
from greylag.index import ArrayVectors, FunctionVectors, PositionalIndex, TfidfVectors, VectorSearch, cosines
from greylag.index.vectors import dense
from greylag.index.vectors.protocol import unit_rows
from tests.refusals import refuses

N, M = 60, 5
INDEX = PositionalIndex.from_texts({f"d{i}": f"word{i}" for i in range(N)})
QUERY = Query("q", "text")


def brute_force(docids, rows, query, k):
    """All cosines, sorted; ties in the order of rows."""
    query, rows = np.asarray(query, dtype=np.float64), np.asarray(rows, dtype=np.float64)
    products = []
    for row in rows:
        largest = np.abs(row).max() or 1.0
        length = np.sqrt(((row / largest) ** 2).sum())
        products.append(float((row / largest) @ query / length / np.sqrt(query @ query)) if length else 0.0)
    best = sorted(range(len(rows)), key=lambda row: (-round(products[row], 12), row))[:k]
    return [docids[row] for row in best], [products[row] for row in best]


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i4", "i1", "u1", ">f4"])
@pytest.mark.parametrize("seed", range(4))
def test_finds_what_all_cosines_find(monkeypatch, tmp_path, kind, seed):
    """In blocks, with ties, zero rows, and lengths whose squares leave the range of the type."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(dense, "BLOCK_ROWS", 7)
    rows = (100 + 4 * rng.standard_normal((N, M))).round(seed).astype(kind)  # all cosines are about the same
    rows = np.asfortranarray(rows) if seed % 2 else rows
    rows[5], rows[9], rows[20] = rows[50], 0, 2 * rows[3]
    if kind in ("f4", "f8"):
        rows[11] *= 1e30
        rows[30] *= 1e-30
    np.save(tmp_path / "rows.npy", rows)
    query, docids = rng.standard_normal(M), [f"d{i}" for i in rng.permutation(N)]
    vectors = ArrayVectors(docids, np.load(tmp_path / "rows.npy", mmap_mode="r"), {"q": query})
    for k in (1, 10, N, 1000):
        found, expected = VectorSearch(vectors, k=k)(QUERY), brute_force(docids, rows, query, k)
        assert list(found.docids) == expected[0]
        np.testing.assert_allclose(found.scores, expected[1], atol=1e-12)


@pytest.mark.parametrize("great", [0, 1, 30])
@pytest.mark.parametrize("steps", [1, 4, 127])
def test_bounds_lose_nothing(monkeypatch, great, steps):
    """Few steps, and a coordinate that is great in half of the rows, put estimates in another order than cosines."""
    rng = np.random.default_rng(great)
    monkeypatch.setattr(dense, "BLOCK_ROWS", 16)
    monkeypatch.setattr(dense, "_STEPS", steps)
    for _ in range(50):
        rows = rng.standard_normal((N, M)).astype(np.float32)
        rows[:, 0] += np.where(rng.random(N) < 0.5, great, 0)
        query, k = rng.standard_normal((1, M)), int(rng.integers(1, 6))
        among = rng.random(N) < 0.7 if rng.random() < 0.5 else None
        all_cosines = cosines(rows, query) if among is None else np.where(among, cosines(rows, query), -2)
        best = np.argsort(-all_cosines, kind="stable")[:k]
        found, values = ArrayVectors(range(N), rows).nearest_rows(query, k, among)
        np.testing.assert_array_equal(found, best)
        np.testing.assert_array_equal(values, all_cosines[best])


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1"])
@pytest.mark.parametrize("shared", [0, 1, 100])
def test_estimates_are_within_their_bound(kind, shared):
    """Of many dimensions, of which some have vanishing numbers, and all rows have a share in common."""
    rng = np.random.default_rng(4)
    rows = (40 * rng.standard_normal((300, 900)) * 10.0 ** rng.integers(-6, 1, 900) + shared).astype(kind)
    unit = unit_rows(rng.standard_normal((1, 900)) + shared)[0]
    coarse = ArrayVectors(range(300), rows)._coarse
    exact = unit_rows(rows).astype(np.longdouble) @ unit
    assert (np.abs(coarse.estimates(unit) - exact) <= coarse.away + 900 * np.finfo(np.float32).eps).all()
    assert coarse.away.max() < 0.1


def test_the_longest_and_shortest_rows_are_found_without_a_warning():
    vectors = ArrayVectors([*"abcd"], [[1e300, 0.0], [0.0, 1e-300], [1.0, 1.0], [0.0, 0.0]])
    with np.errstate(invalid="raise", divide="raise"):
        rows, cosines = vectors.nearest_rows(np.array([[1e300, 1e299]]), 4)
    assert rows.tolist() == [0, 2, 1, 3]
    np.testing.assert_allclose(cosines, np.array([10, 11 / np.sqrt(2), 1, 0]) / np.sqrt(101), atol=1e-15)


def test_estimates_decide_nothing():
    """Rows that differ by less than float32 tells apart are in the order of their exact cosines."""
    rng = np.random.default_rng(0)
    query, docids = rng.standard_normal(300), [f"d{i}" for i in range(500)]
    rows = (query + 3e-5 * rng.standard_normal((500, 300))).astype(np.float32)
    found = VectorSearch(ArrayVectors(docids, rows, {"q": query}), k=50)(QUERY)
    exact = np.array([np.dot(row, query) / np.sqrt(np.dot(row, row)) for row in rows.astype(np.longdouble)])
    assert len({*found.scores.astype(np.float32)}) < 3
    assert list(found.docids) == [docids[row] for row in np.argsort(-exact)[:50]]


def test_documents_of_the_index_alone_and_what_is_missing_is_logged(caplog):
    rng = np.random.default_rng(1)
    docids = [*(f"x{i}" for i in range(20)), *(f"d{i}" for i in range(1, N))]
    rows, query = rng.standard_normal((len(docids), M)), rng.standard_normal(M)
    vectors = ArrayVectors(docids, rows, {"q": query})
    found = VectorSearch(vectors, INDEX, k=15)(QUERY).docids
    assert list(found) == brute_force(docids[20:], rows[20:], query, 15)[0]
    outside, lacking = caplog.messages
    assert re.search("20 of 79 .* x0$", outside)
    assert re.search("1 of 60 .* d0$", lacking)


def test_a_function_is_asked_once_for_each_document_of_the_index():
    rng, asked = np.random.default_rng(2), []
    rows, query = {f"d{i}": row for i, row in enumerate(rng.standard_normal((N, M)))}, rng.standard_normal(M)
    rows["d3"] = np.full(M, np.nan)

    def look_up(docids):
        asked.extend(docids)
        return [rows[docid] for docid in docids]

    search = VectorSearch(FunctionVectors(look_up, lambda text: query), INDEX, k=8)
    del rows["d3"]
    for _ in range(2):
        assert list(search(QUERY).docids) == brute_force(list(rows), list(rows.values()), query, 8)[0]
    assert sorted(asked) == sorted(INDEX.docids_of(np.arange(N)))


@pytest.mark.parametrize("n", [2, 30, 1200])
def test_mean_and_spread_are_those_of_cosines_between_documents(n):
    rows, docids = np.random.default_rng(n).standard_normal((n, 3)), [f"d{i}" for i in range(n)]
    sampled = rows if n < 1000 else rows[[round(i * (n - 1) / 999) for i in range(1000)]]
    cosines = np.corrcoef(np.hstack([sampled, -sampled]))  # rows of mean 0, whose correlations are cosines
    expected = cosines[np.tril_indices(len(sampled), -1)]

    def of(array):
        search = VectorSearch(ArrayVectors(docids[: len(array)], array))
        return search.mean_cosine, search.spread

    assert of(7 * rows) == pytest.approx((np.mean(expected), np.std(expected)))
    assert of(np.ones((n, 3)) * rows[:1]) == pytest.approx((1, 0))
    assert of([[1.0]]) == (0, 0)


def test_a_zero_query_finds_nothing():
    assert VectorSearch(ArrayVectors(["a"], [[1.0]], {"q": [0.0]}))(QUERY).docids == ()
    assert VectorSearch(ArrayVectors([], np.zeros((0, 3)), {"q": [1.0, 0, 0]}))(QUERY).docids == ()


def test_faiss_finds_what_an_array_finds(tmp_path):
    faiss = pytest.importorskip("faiss", reason="needs faiss-cpu")
    from greylag.index import FaissVectors

    rows = np.random.default_rng(3).standard_normal((N, M)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    made = faiss.IndexFlatIP(M)
    made.add(rows)
    faiss.write_index(made, str(tmp_path / "index"))
    docids, queries = [f"d{i}" for i in range(N)], {"q": rows[7] + rows[8]}
    (tmp_path / "docid").write_text("\n".join(docids))
    of_faiss = VectorSearch(FaissVectors(tmp_path, queries=queries), INDEX, k=9)(QUERY)
    assert of_faiss == VectorSearch(ArrayVectors(docids, rows, queries), INDEX, k=9)(QUERY)


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: VectorSearch(ArrayVectors(["z"], [[1.0]]), INDEX), "docids d0 z"),
        (lambda: VectorSearch(FunctionVectors(lambda docids: [[np.nan]] * len(docids)), INDEX), "no document"),
        (lambda: VectorSearch(FunctionVectors(lambda docids: [[1.0]] * len(docids))), "FunctionVectors index="),
        (lambda: VectorSearch(TfidfVectors(INDEX), INDEX), "TfidfVectors sparse"),
        (lambda: VectorSearch(np.ones((1, 1))), "ArrayVectors(docids, array)"),
        (lambda: VectorSearch(ArrayVectors(["z"], [[1.0]]), k=0), "k 0"),
        (lambda: VectorSearch(ArrayVectors(["z"], [[1.0]], {"q": [1.0, 2.0]}))(QUERY), "'q' (1, 2) (1, 1)"),
        (lambda: VectorSearch(ArrayVectors(["z"], [[1.0]], {"p": [1.0]}))(QUERY), "'q' vector"),
        (lambda: VectorSearch(ArrayVectors(["z"], [[np.inf]], {"q": [1.0]}))(QUERY), "inf finite"),
        (lambda: ArrayVectors(["z"], [[1.0]]).nearest(np.ones((1, 2)), 1), "query (1, 2) (1, 1)"),
    ],
)
def test_refusals(make, parts):
    refuses(make, ParameterError, parts)
