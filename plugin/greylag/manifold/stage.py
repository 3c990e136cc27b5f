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
from greylag.manifold.ranking import HIGHEST_ALPHA, rank
from greylag.ranking import Composable, FloatArray, Ranking

Confidence = Literal["query", "scores"]

DECIMALS = 10  # of scores, the highest being 1


@dataclass(frozen=True)
class ManifoldRanker(Composable):
    """Reranks by manifold ranking (Zhou et al. 2003, section 2) from the query, with or without other evidence.

    Points are the TF-IDF vectors of the query and of the first `depth` documents, all of unit length; the affinity of
    two of them is their cosine. y is 1 for the query. For a document d it is

    - 0, with `confidence` "query";
    - its incoming score, brought to [0, 1] over the first `depth` documents (the lowest 0, the highest 1; all 0 where
      they are equal), with `confidence` "scores";
    - whatever `confidence` is, its grade over the query's highest one, where `feedback` judges it: 0 where it is not
      relevant. Relevant documents that are not among the first `depth` are points too.

    The result is a permutation of the ranking: the first `depth` documents by f*, rounded to 10 significant digits,
    ties in the order in which they came; then all others in theirs, scored -1, -2, .... A document without terms, or
    outside the index, is an isolated point: its f* is (1 - alpha) y. So is a query without terms.

    Parameters
    ----------
    index : the collection.
    depth : how many documents to rerank, >= 1.
    alpha : in [0, 1): how far scores spread.
    graph, k : which points are joined: see `affinity_graph`. Only "full" graphs never hold n² numbers.
    confidence : "query" or "scores".
    feedback : grades by qid and docid. To score the result on the same judgements is to know the answer beforehand.

    Raises
    ------
    ParameterError
        An argument outside its domain.
    """

    index: PositionalIndex
    depth: int = 1000
    alpha: float = 0.99
    graph: Graph = "full"
    k: int = 10
    confidence: Confidence = "query"
    feedback: Mapping[str, Mapping[str, int]] | None = None

    def __post_init__(self) -> None:
        if self.depth < 1 or self.k < 1:
            raise ParameterError(f"depth and k have to be at least 1, not {self.depth} and {self.k}")
        if not 0 <= self.alpha <= HIGHEST_ALPHA:
            raise ParameterError(f"alpha has to be in [0, 1), not {self.alpha}")
        for value, allowed in ((self.graph, Graph), (self.confidence, Confidence)):
            if value not in get_args(allowed):
                raise ParameterError(f"{value!r} is unknown: use one of {', '.join(get_args(allowed))}")

    def __call__(self, ranking: Ranking) -> Ranking:
        top = ranking.head(self.depth)
        if not len(top):
            return ranking
        docids, y = self._documents(top)
        W = affinity_graph(self._vectors(ranking.query, docids), graph=self.graph, k=self.k, affinity="inner_product")
        f = rank(W, np.concatenate([[1.0], y]), alpha=self.alpha, solver="cg")
        first = top.rescore(np.round(f / f.max(), DECIMALS)[1 : len(top) + 1] * f.max())
        others = np.arange(-1.0, len(top) - len(ranking) - 1, -1.0)
        return Ranking(
            ranking.qid,
            ranking.query,
            first.docids + ranking.docids[len(top) :],
            np.concatenate([first.scores, others]),
        )

    def _documents(self, top: Ranking) -> tuple[tuple[str, ...], FloatArray]:
        """The documents that are points, those of `top` first, and their part of y."""
        confidence = dict.fromkeys(top.docids, 0.0)
        if self.confidence == "scores":
            confidence = dict(zip(top.docids, unit_range(top.scores).tolist(), strict=True))
        grades = (self.feedback or {}).get(top.qid, {})
        best = max(1, *grades.values()) if grades else 1
        for docid, grade in grades.items():
            if grade > 0 or docid in confidence:
                confidence[docid] = max(grade, 0) / best
        return tuple(confidence), np.array(list(confidence.values()))

    def _vectors(self, query: str, docids: tuple[str, ...]) -> csr_matrix:
        """Unit TF-IDF vectors: the query's row, then one for each document."""
        terms = self.index.query_terms(query)
        terms, counts = np.unique(terms[terms >= 0], return_counts=True)
        frequencies = csr_matrix((counts.astype(np.float64), terms, [0, len(terms)]), shape=(1, self.index.n_terms))
        documents = self.index.tfidf(self.index.documents(docids))
        return vstack([self.index.weigh_tfidf(frequencies), documents], format="csr")

