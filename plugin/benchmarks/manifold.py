"""Manifold ranking: the stage, the closed form, label spreading on the same graph, and cost against n."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.semi_supervised import LabelSpreading

from benchmarks.harness import DATA, Row, once, seconds
from greylag.base import FloatArray, IntArray
from greylag.evaluation import read_topics
from greylag.index.lucene.build import build_index
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.positional import PositionalIndex
from greylag.rankers import affinity_graph, manifold_ranking, query_vector, spread_scores
from greylag.rankers.manifold.stage import ManifoldRanker

SPREAD = 2000  # images for label spreading, which takes thousands of steps
SIZES = (2_500, 5_000, 10_000, 20_000)


def rows() -> Iterator[Row]:
    """All rows of manifold ranking."""
    yield from stage_rows()
    X, digits = usps()
    yield from closed_form_rows(X)
    yield from label_spreading_rows(X[:SPREAD], digits[:SPREAD])
    yield from size_rows()


def stage_rows() -> Iterator[Row]:
    """Reranking Vaswani's top 1000 and top 100, by graph."""
    with tempfile.TemporaryDirectory() as folder:
        build_index(DATA / "vaswani" / "doc-text.trec.gz", Path(folder, "index"))
        lucene = LuceneIndex(Path(folder, "index"))
        index = PositionalIndex.from_lucene(lucene)
        run = lucene.bm25(1000).run(read_topics(DATA / "vaswani" / "query-text.trec"))
        for graph in ("full", "knn", "mutual_knn"):
            for depth in (1000, 100):
                stage = ManifoldRanker(index, depth=depth, graph=graph)
                each = seconds(lambda: [stage(ranking) for ranking in run.values()], 3) / len(run)  # noqa: B023
                aim = "at most 20" if depth == 1000 and graph in ("full", "knn") else ""
                yield Row(f"stage, {graph} graph, {depth} documents", 1e3 * each, "ms/query", aim)


def usps() -> tuple[FloatArray, IntArray]:
    """The digits 1 to 6 as the study has them, in random order."""
    with np.load(DATA / "usps" / "usps.npz") as arrays:
        chosen = np.random.default_rng(0).permutation(np.flatnonzero((arrays["y"] >= 1) & (arrays["y"] <= 6)))
        return arrays["X"][chosen].astype(np.float64) * 2 - 1, arrays["y"][chosen]


def closed_form_rows(X: FloatArray) -> Iterator[Row]:
    """One ranking of all images: the graph, the closed form on it, and both."""
    name = f"USPS, {len(X)} images"
    W = affinity_graph(X, graph="full", sigma=1.25)
    y = query_vector(len(X), 0)
    yield Row(f"{name}: graph", seconds(lambda: affinity_graph(X, graph="full", sigma=1.25), 3), "s")
    yield Row(
        f"{name}: closed form", seconds(lambda: spread_scores(W, y, solver="direct"), 3), "s", "at most 3, on 2 cores"
    )
    yield Row(f"{name}: conjugate gradients", seconds(lambda: spread_scores(W, y, solver="cg"), 3), "s")
    both = seconds(lambda: manifold_ranking(X, 0, graph="full", sigma=1.25), 3)
    yield Row(f"{name}: graph and closed form", both, "s")


def label_spreading_rows(X: FloatArray, digits: IntArray) -> Iterator[Row]:
    """Ten labelled images of each digit, a column of scores for each digit."""
    W = affinity_graph(X, graph="full", sigma=1.25)
    classes = np.unique(digits)
    labels = np.full(len(X), -1)
    for digit in classes:
        labels[np.flatnonzero(digits == digit)[:10]] = digit
    Y = (labels[:, np.newaxis] == classes).astype(np.float64)
    spreading = LabelSpreading(kernel=lambda *_: W, alpha=0.99, max_iter=100_000, tol=1e-9)
    theirs = once(lambda: spreading.fit(X, labels))
    ours = seconds(lambda: spread_scores(W, Y, alpha=0.99), 3)
    F = spread_scores(W, Y, alpha=0.99)
    difference = np.abs(F / F.sum(axis=1, keepdims=True) - spreading.label_distributions_).max()
    yield Row(f"label spreading's time / rank's, {len(X)} images, {spreading.n_iter_} steps", theirs / ours, "x")
    yield Row("label spreading's scores less rank's, largest", float(difference), "", "0")


def size_rows() -> Iterator[Row]:
    """The kNN graph of points on a roll, and one ranking on it, against n."""
    for n in SIZES:
        X, _ = make_swiss_roll(n, random_state=0)
        W = affinity_graph(X, graph="knn")
        y = query_vector(n, 0)
        yield Row(f"kNN graph of {n} points", seconds(lambda: affinity_graph(X, graph="knn"), 3), "s")  # noqa: B023
        yield Row(f"ranking of {n} points on it", seconds(lambda: spread_scores(W, y), 3), "s")  # noqa: B023
