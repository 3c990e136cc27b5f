"""Messages by example: the query is a message, and its newsgroup is relevant (Zhou et al. 2003, section 5.3).

Manifold ranking is compared with the inner product of TF-IDF vectors, which is also the affinity. The paper does not
say which messages are joined: those of step 1 of its algorithm ("connecting") or all ("full"). Both are readings, and
both are reported, as is a kNN graph. The degree correction D^-1/2 f* is not in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from greylag.base import FloatArray, IntArray, parallel_map
from greylag.evaluation import Section
from greylag.index import PositionalIndex, stem
from greylag.rankers import AffinityGraph, Graph, affinity_graph, graph_degrees, spread_scores
from greylag.studies import Context, Outcome, Positive, Seed, Study, means_table
from greylag_papers.labelled_text import LabelledTexts, TextSettings, open_texts
from greylag_papers.zhou_2003.by_example import (
    PAGERANK,
    areas_by_step,
    class_means,
    class_means_table,
    compare_by_class,
    connecting,
    draw_queries,
    query_columns,
    roc_areas,
)

PRODUCT = "inner product"
Joining = Literal["connecting"] | Graph


class Settings(TextSettings):
    """The messages (their label is the newsgroup), their vectors, the queries and the rankings."""

    rare: NonNegativeInt = 5
    """Words in at most this many messages are ignored."""
    queries: Positive = 100
    """Messages drawn from each newsgroup, each a query of its own."""
    seed: Seed = 0
    """Seed of the queries."""
    graphs: Annotated[tuple[Joining, ...], Field(min_length=1)] = ("connecting", "full", "knn")
    """That of the paper's first step, and those of `affinity_graph`."""
    neighbours: Positive = 10
    """Number of neighbours in the graph "knn"."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.99
    """The alpha of manifold ranking."""
    steps: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1, 2, 3, 5, 10, 20, 50)
    """The t of each f(t)."""


def run(settings: Settings, messages: LabelledTexts, context: Context) -> Outcome:
    """Rank all messages for each query, by the inner product and on each graph."""
    X = vectors(messages.texts, settings.rare)
    has_words = np.diff(X.indptr) > 0  # the paper removes empty documents, too
    X, words = X[has_words], len(np.unique(X.indices))
    groups = np.array(messages.labels)[has_words]
    names = np.unique(groups).tolist()
    context.progress(f"newsgroups: {X.shape[0]} messages in {len(names)} groups, {words} words")
    rng = np.random.default_rng(settings.seed)
    queries = np.array([draw_queries(rng, groups, name, settings.queries) for name in names])
    areas = {PRODUCT: _areas((X @ X[queries.ravel()].T).toarray(), groups, queries)}
    by_step: dict[str, dict[int, FloatArray]] = {}
    work = partial(areas_on_graph, settings=settings)
    results = parallel_map(work, settings.graphs, X, groups, queries, what="graphs", n_jobs=context.n_jobs, coarse=True)
    for graph, (plain, corrected, walk, steps) in zip(settings.graphs, results, strict=True):
        areas |= {f"manifold, {graph}": plain, f"degree-corrected, {graph}": corrected, f"{PAGERANK}, {graph}": walk}
        by_step[graph] = steps
        context.progress(f"{queries.size} queries ranked on the graph {graph!r}")
    means = class_means(areas, names)
    rows = {f"f({t}), {graph}": area for graph, areas in by_step.items() for t, area in areas.items()}
    graphs = [f"{name}, {graph}" for graph in settings.graphs for name in ("manifold", "degree-corrected")]
    pairs = [(name, PRODUCT) for name in graphs]
    pairs += [(f"{PAGERANK}, {graph}", f"manifold, {graph}") for graph in settings.graphs]
    tested = compare_by_class(areas, pairs, names)
    better = {
        f"{name} above {PRODUCT}": {"share": float((areas[name] > areas[PRODUCT]).mean()), "n": float(queries.size)}
        for name in graphs
    }
    stepped = {name: {"all": float(area.mean())} for name, area in rows.items()}
    caption = f"Mean ROC areas over {settings.queries} queries of each newsgroup"
    shares = "Share of queries with a larger ROC area than by the inner product"
    return Outcome(
        scores=means | tested | better | stepped,
        results={"by newsgroup and query": {name: area.tolist() for name, area in areas.items()}},
        title="Manifold ranking of newsgroup messages",
        sections=[
            Section("ROC areas", parts=[class_means_table(caption, areas, names), means_table(shares, better)]),
            Section("Iterations", parts=[class_means_table("Mean ROC areas of f(t)", rows, names)]),
        ],
        provenance={"messages": X.shape[0], "words": words},
    )


def areas_on_graph(
    graph: Joining,
    X: csr_matrix,
    groups: NDArray[np.str_],
    queries: IntArray,
    *,
    settings: Settings,
) -> tuple[FloatArray, FloatArray, FloatArray, dict[int, FloatArray]]:
    """Compute ROC areas on a graph, each shaped as `queries`: of f*, D^-1/2 f*, D^1/2 f* (eq. 12), and each f(t)."""
    if graph == "connecting":
        products = (X @ X.T).toarray()
        norms = products.diagonal()
        # Rounding may leave a square below 0 for equal messages.
        distances = np.sqrt(np.maximum(norms[:, None] + norms - 2 * products, 0.0))
        W: AffinityGraph = np.where(connecting(distances), products, 0.0)
    else:
        W = affinity_graph(X, graph=graph, neighbours=settings.neighbours, affinity="inner_product")
    # One dense factor serves all queries; a sparse graph of texts fills in when it is factorised.
    dense = W if isinstance(W, np.ndarray) else W.toarray()
    f = spread_scores(dense, query_columns(len(dense), queries.ravel()), alpha=settings.alpha, solver="direct")
    by_step = areas_by_step(W, groups, queries, settings.steps, settings.alpha)
    root = np.sqrt(graph_degrees(W))[:, np.newaxis]
    return _areas(f, groups, queries), _areas(f / root, groups, queries), _areas(f * root, groups, queries), by_step


def vectors(texts: Sequence[str], rare: int) -> csr_matrix:
    """Compute unit TF-IDF vectors, (1 + log tf) log(N / df), of stems in more than `rare` texts, without stop words."""
    # Stop words are scikit-learn's 318 and Lucene's 33. A text without any other word has a row of zeros.
    index = PositionalIndex.from_texts((str(number), text) for number, text in enumerate(texts))
    counted = index.document_frequencies > rare
    # The index has stems, so that stop words are looked up by theirs.
    stops = index.term_numbers(sorted({stem(word) for word in ENGLISH_STOP_WORDS}))
    counted[stops[stops >= 0]] = False
    frequencies = index.term_frequencies(np.arange(len(texts)))
    frequencies.data *= counted[frequencies.indices]
    frequencies.eliminate_zeros()
    return index.weigh_tfidf(frequencies)


def _areas(scores: FloatArray, groups: NDArray[np.str_], queries: IntArray) -> FloatArray:
    return roc_areas(scores, groups, queries.ravel().tolist()).reshape(queries.shape)


STUDY = Study(Settings, open_texts, run)
