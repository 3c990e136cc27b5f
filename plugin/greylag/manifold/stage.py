"""Manifold ranking as a reranking stage: the points of the graph are the query and its top documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

import numpy as np
from scipy.sparse import csr_matrix, vstack

from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.manifold.graph import Graph, affinity_graph
from greylag.manifold.ranking import manifold_ranking, rank
from greylag.ranking import FloatArray, Ranking, Stage, unit_range

Confidence = Literal["query", "scores"]

DECIMALS = 10  # of scores whose maximum is 1; the error of conjugate gradients is below them


@dataclass(frozen=True)
class ManifoldRanker(Stage):
    """Reranks by manifold ranking from the query, optionally with other evidence (Zhou et al. 2003, section 2).

    The points are the TF-IDF vectors, of unit length, of the query and the top `depth` documents. The affinity of two
    joined points is their cosine. The source vector y is 1 for the query. For a document it is

    - 0 with `confidence` "query";
    - its incoming score scaled to [0, 1] over the top `depth` documents with `confidence` "scores";
    - its grade divided by the query's highest grade, and 0 if not relevant, for documents that `feedback` judges, with
      either `confidence`. Relevant documents beyond the top `depth` become points, too.

    The result is a permutation of the ranking: the top `depth` documents by f*, rounded to 1e-10 of the highest, with
    ties in incoming order, followed by the others in incoming order with scores -1, -2, .... A document without terms
    or outside the index is an isolated point, with f* = (1 - alpha) y. A query without known terms is isolated, too,
    and has no influence.

    Parameters
    ----------
    index : PositionalIndex
    depth : int >= 1, default 100
        The number of documents to rerank.
    alpha : float in [0, 1), default 0.6
        How far scores spread. Near 1, documents that are similar to many others win regardless of the query; the
        paper's 0.99 is for queries drawn from the same data as the other points.
    graph : "connecting", "knn", "mutual_knn" or "full", default "knn"
        Which points are joined; see `affinity_graph`.
    neighbours : int >= 1, default 10
        The number of neighbours in a kNN graph.
    confidence : "query" or "scores", default "scores"
        Whether incoming scores are evidence.
    feedback : mapping of qid to docid to grade, optional
        Relevance feedback. Evaluating on the same judgements gives an oracle's scores.

    Raises
    ------
    ParameterError
        If an argument is outside its domain.
    """

    index: PositionalIndex
    _: KW_ONLY
    depth: int = 100
    alpha: float = 0.6
    graph: Graph = "knn"
    neighbours: int = 10
    confidence: Confidence = "scores"
    feedback: Mapping[str, Mapping[str, int]] | None = None

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ParameterError(f"depth is {self.depth}; it must be at least 1")
        if self.confidence not in get_args(Confidence):
            raise ParameterError(
                f"confidence is {self.confidence!r}; it must be one of {', '.join(get_args(Confidence))}"
            )
        # Ranking one point checks the other arguments.
        manifold_ranking(
            [[0.0]], 0, alpha=self.alpha, graph=self.graph, neighbours=self.neighbours, affinity="inner_product"
        )

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank one query's documents."""
        top = ranking.head(self.depth)
        n = len(top)
        docids, y = self._documents(top)
        W = affinity_graph(
            self._vectors(top.query, docids), graph=self.graph, neighbours=self.neighbours, affinity="inner_product"
        )
        f = rank(W, np.concatenate([[1.0], y]), alpha=self.alpha, solver="cg")
        first = top.rescore(np.round(f[1 : n + 1] / f.max(), DECIMALS) * f.max())
        others = -np.arange(1.0, len(ranking) - n + 1)
        scores = np.concatenate([first.scores, others])
        return Ranking(ranking.qid, ranking.query, first.docids + ranking.docids[n:], scores)

    def _documents(self, top: Ranking) -> tuple[tuple[str, ...], FloatArray]:
        """The documents of the graph, those of `top` first, and their entries of y."""
        confidences = unit_range(top.scores) if self.confidence == "scores" else np.zeros(len(top))
        y = dict(zip(top.docids, confidences.tolist(), strict=True))
        grades = (self.feedback or {}).get(top.qid, {})
        highest = max(grades.values(), default=0)
        y |= {d: max(grade, 0) / max(highest, 1) for d, grade in grades.items() if grade > 0 or d in y}
        return tuple(y), np.array(list(y.values()))

    def _vectors(self, query: str, docids: tuple[str, ...]) -> csr_matrix:
        """Unit TF-IDF vectors, the query's first."""
        terms = self.index.query_terms(query)
        terms, counts = np.unique(terms[terms >= 0], return_counts=True)
        frequencies = csr_matrix((counts.astype(np.float64), terms, [0, len(terms)]), shape=(1, self.index.n_terms))
        documents = self.index.tfidf(self.index.documents(docids))
        vectors = vstack([self.index.weigh_tfidf(frequencies), documents], format="csr")
        vectors.resize(vectors.shape[0], max(1, self.index.n_terms))  # points need a coordinate even without terms
        return vectors
