"""Manifold ranking as a stage: the query and the documents that it found are the points of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.sparse import csr_matrix, vstack

from greylag.diversity.mmr import unit_range
from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.manifold.graph import Graph, affinity_graph
from greylag.manifold.ranking import manifold_ranking, rank
from greylag.ranking import FloatArray, Ranking, Stage

Confidence = Literal["query", "scores"]

DECIMALS = 10  # of scores whose highest is 1; what conjugate gradients leave open is beyond them


@dataclass(frozen=True)
class ManifoldRanker(Stage):
    """Reranks by manifold ranking from the query, with or without other evidence (Zhou et al. 2003, section 2).

    Points are the TF-IDF vectors of the query and of the first `depth` documents, of unit length; the affinity of two
    points that the graph joins is their cosine. y is 1 for the query, and for a document

    - with `confidence` "query", 0;
    - with `confidence` "scores", its incoming score brought to [0, 1] over the first `depth` documents (the lowest 0,
      the highest 1; all 0 where they are equal);
    - where `feedback` judges it, whatever `confidence` is, its grade over the query's highest one, and 0 where it is
      not relevant. Relevant documents that are not among the first `depth` are points too.

    The result is a permutation of the ranking: the first `depth` documents by f*, to within 1e-10 of the highest, ties
    in the order in which they came; then all others in theirs, scored -1, -2, .... A document without terms or outside
    the index is an isolated point, with f* = (1 - alpha) y. So is a query without known terms, which then has no say.

    Parameters
    ----------
    index : the collection.
    depth : how many documents to rerank, >= 1.
    alpha : in [0, 1): how far scores spread. Near 1, documents that resemble many others win, whatever the query; the
        paper's 0.99 is for queries that are points like the others.
    graph, k : which points are joined: see `affinity_graph`.
    confidence : "query" or "scores".
    feedback : grades by qid and docid. Scores on the same judgements are those of a system that was told the answer.

    Raises
    ------
    ParameterError
        An argument outside its domain.
    """

    index: PositionalIndex
    depth: int = 100
    alpha: float = 0.6
    graph: Graph = "knn"
    k: int = 10
    confidence: Confidence = "scores"
    feedback: Mapping[str, Mapping[str, int]] | None = None

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ParameterError(f"depth has to be at least 1, not {self.depth}")
        if self.confidence not in get_args(Confidence):
            raise ParameterError(
                f"confidence is {self.confidence!r}; it must be one of {', '.join(get_args(Confidence))}"
            )
        # A graph of one point, for the errors of the other arguments.
        manifold_ranking([[0.0]], 0, alpha=self.alpha, graph=self.graph, k=self.k, affinity="inner_product")

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank one query's documents."""
        top = ranking.head(self.depth)
        n = len(top)
        docids, y = self._documents(top)
        W = affinity_graph(self._vectors(top.query, docids), graph=self.graph, k=self.k, affinity="inner_product")
        f = rank(W, np.concatenate([[1.0], y]), alpha=self.alpha, solver="cg")
        first = top.rescore(np.round(f[1 : n + 1] / f.max(), DECIMALS) * f.max())
        others = -np.arange(1.0, len(ranking) - n + 1)
        scores = np.concatenate([first.scores, others])
        return Ranking(ranking.qid, ranking.query, first.docids + ranking.docids[n:], scores)

    def _documents(self, top: Ranking) -> tuple[tuple[str, ...], FloatArray]:
        """The documents that are points, those of `top` first, and their y."""
        confidences = unit_range(top.scores) if self.confidence == "scores" else np.zeros(len(top))
        y = dict(zip(top.docids, confidences.tolist(), strict=True))
        grades = (self.feedback or {}).get(top.qid, {})
        highest = max(grades.values(), default=0)
        y |= {d: max(grade, 0) / max(highest, 1) for d, grade in grades.items() if grade > 0 or d in y}
        return tuple(y), np.array(list(y.values()))

    def _vectors(self, query: str, docids: tuple[str, ...]) -> csr_matrix:
        """Unit TF-IDF vectors: the query's row, then one for each document."""
        terms = self.index.query_terms(query)
        terms, counts = np.unique(terms[terms >= 0], return_counts=True)
        frequencies = csr_matrix((counts.astype(np.float64), terms, [0, len(terms)]), shape=(1, self.index.n_terms))
        documents = self.index.tfidf(self.index.documents(docids))
        vectors = vstack([self.index.weigh_tfidf(frequencies), documents], format="csr")
        vectors.resize(vectors.shape[0], max(1, self.index.n_terms))  # points need a coordinate, if all texts are empty
        return vectors
