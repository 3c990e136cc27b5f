"""Messages by example: the query is a message, the answer its newsgroup (Zhou et al. 2003, section 5).

Manifold ranking against the inner product of TF-IDF vectors, which is also the affinity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt
from scipy.sparse import csr_matrix

from greylag.experiments import config
from greylag.experiments.report import (
    Figure,
    Section,
    Table,
    as_text,
    check_dependencies,
    draw_figure,
    provenance,
    write_report,
    write_results,
)
from greylag.experiments.study import Result, Say
from greylag.index import PositionalIndex, stem
from greylag.manifold import affinity_graph, rank
from greylag.manifold.graph import Graph
from greylag.ranking import FloatArray, IntArray
from greylag_papers.labelled_text import Documents, read_labelled_texts
from greylag_papers.zhou_2003.by_example import draw_queries, query_columns, roc_areas

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

PRODUCT = "inner product"


class Settings(config.Experiment):
    """The messages, their vectors, the queries and the rankings.

    Parameters
    ----------
    documents : the messages; the label is the newsgroup.
    rare : words in no more than so many messages are left out.
    queries, seed : so many messages of each newsgroup are drawn, each a query of its own.
    graphs, k, alpha : of the rankings, see `affinity_graph`.
    """

    documents: Documents
    rare: NonNegativeInt = 5
    queries: config.Positive = 100
    seed: int = 0
    graphs: Annotated[tuple[Graph, ...], Field(min_length=1)] = ("connecting", "full", "knn")
    k: config.Positive = 10
    alpha: float = 0.99


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``results.json`` and ``report.html`` to `out`."""
    check_dependencies()
    found = read_labelled_texts(settings.path(settings.documents.path), settings.documents)
    X = vectors(found.texts, settings.rare)
    kept = np.diff(X.indptr) > 0
    X, words = X[kept], len(np.unique(X.indices))
    groups = np.array(found.labels)[kept]
    names = np.unique(groups).tolist()
    say(f"newsgroups: {X.shape[0]} messages of {len(names)} groups, {words} words")
    rng = np.random.default_rng(settings.seed)
    queries = np.array([draw_queries(rng, groups, name, settings.queries) for name in names])
    areas = {PRODUCT: _areas((X @ X[queries.ravel()].T).toarray(), groups, queries)}
    for graph in settings.graphs:
        areas[f"manifold, {graph}"] = _areas(spread(X, queries.ravel(), graph, settings), groups, queries)
        say(f"{queries.size} queries ranked on the graph {graph!r}")
    results = {name: dict(zip(names, area.mean(axis=1).tolist(), strict=True)) for name, area in areas.items()}
    each = {name: area.tolist() for name, area in areas.items()}
    write_results(out, {"means": results, "by newsgroup and query": each}, indent=None)
    tables = areas_tables(names, areas)
    figures = [areas_figure(names, areas[PRODUCT], name, area) for name, area in areas.items() if name != PRODUCT]
    more = {"messages": X.shape[0], "words": words}
    sections = [Section("ROC areas", parts=[*tables, *figures])]
    write_report(out / "report.html", "Manifold ranking of newsgroup messages", sections, provenance(settings, **more))
    return Result(results, "\n".join(map(as_text, tables)))


def vectors(texts: Sequence[str], rare: int) -> csr_matrix:
    """Unit TF-IDF vectors, (1 + log tf) log(N / df), of the stems in more than `rare` texts that are no stop words'.

    Stop words are scikit-learn's 318 and Lucene's 33. A text without another word has a zero row.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    index = PositionalIndex.from_texts((str(number), text) for number, text in enumerate(texts))
    counted = index.document_frequencies > rare
    stops = index.term_numbers(sorted({stem(word) for word in ENGLISH_STOP_WORDS}))
    counted[stops[stops >= 0]] = False
    frequencies = index.term_frequencies(np.arange(len(texts)))
    frequencies.data *= counted[frequencies.indices]
    frequencies.eliminate_zeros()
    return index.weigh_tfidf(frequencies)


def spread(X: csr_matrix, queries: IntArray, graph: Graph, settings: Settings) -> FloatArray:
    """f* for each query, shape (n, queries)."""
    W = affinity_graph(X, graph=graph, neighbours=settings.k, affinity="inner_product")
    # One factor of the whole matrix serves all queries; sparse graphs of text have none that is sparse.
    dense = W if isinstance(W, np.ndarray) else W.toarray()
    return rank(dense, query_columns(len(dense), queries), alpha=settings.alpha, solver="direct")


def areas_tables(names: Sequence[str], areas: Mapping[str, FloatArray]) -> tuple[Table, Table]:
    """Means by newsgroup, and the queries for which a ranking is better than the inner product."""
    means = [(name, *area.mean(axis=1).tolist(), float(area.mean())) for name, area in areas.items()]
    better = {name: area > areas[PRODUCT] for name, area in areas.items() if name != PRODUCT}
    shares = [(name, *share.mean(axis=1).tolist(), float(share.mean())) for name, share in better.items()]
    header = ("ranked by", *names, "all")
    return (
        Table(f"Mean ROC areas over {areas[PRODUCT].shape[1]} queries of each newsgroup", header, means),
        Table("Share of the queries with a larger ROC area than by the inner product", header, shares, decimals=2),
    )


def areas_figure(names: Sequence[str], baseline: FloatArray, name: str, areas: FloatArray) -> Figure:
    """A point for each query, a panel for each newsgroup."""

    def draw(canvas: Canvas) -> None:
        for axes, group, x, y in zip(canvas.subplots(1, len(names)), names, baseline, areas, strict=True):
            axes.scatter(x, y, s=6, linewidths=0)
            axes.axline((0.5, 0.5), slope=1, color="0.6", linewidth=0.8)
            axes.set(
                title=group, xlim=(0.2, 1), ylim=(0.2, 1), xticks=(0.2, 0.6, 1), yticks=(0.2, 0.6, 1), aspect="equal"
            )
        canvas.supxlabel(f"ROC area, {PRODUCT}")
        canvas.supylabel(f"ROC area, {name}")

    return draw_figure(f"ROC areas by newsgroup: {name}. Above the line, manifold ranking is better.", draw, height=2.6)


def _areas(scores: FloatArray, groups: NDArray[np.str_], queries: IntArray) -> FloatArray:
    return roc_areas(scores, groups, queries.ravel().tolist()).reshape(queries.shape)
